// Package e2e holds no code but tests: they run the real stages together on a
// real database, through races, lost answers, outages and kills, because no
// test of one part can show that the promises of the whole hold.
//
// What the product must survive, and the tests that show it, here or where another
// package is named:
//
//   - A message comes twice, three times, after the end of its run, or with an old
//     fence: TestMessageAgain; TestSQSFaults.
//   - Publishing is lost, or done with its answer lost: TestSQSFaults. A claim, start,
//     heartbeat, finish or sweep is: TestStageStatementOfUnknownOutcome and those below it.
//   - An executor is killed: TestKilledExecutor, TestSQSExecutorKilled, TestUpOverSQS;
//     everything is: TestEverythingKilled.
//   - An executor is frozen past its lease and thawed: TestFrozenHolder,
//     TestSQSExecutorFrozen.
//   - The database is gone for 20 s during 200 live runs: TestOutageWithLiveRuns; at the
//     worst moments: TestH15OutageAtAClaim, TestOutageAtAStart, TestOutageAtAFinish.
//   - A job kills whoever tries it: TestBugs/bug-h49.
//   - A handler ignores its context: TestFrozenHolder; core/executor TestDeafTarget.
//   - SIGTERM comes with 50 live runs: TestUpTerminated; core/executor TestShutdown.
//   - A process's clock is 30 s off: TestClockOff; core/claimer TestBugs/bug-h36.
//   - 10,000 runs are due for one queue with a concurrency of 10:
//     TestManyRunsDueForOneQueue.
//   - A backlog is longer than the dispatch lease: TestBacklogIsCopiedSeldom;
//     core/claimer TestSweepPublishesAgain.
//   - A queue refuses for a minute: core/claimer TestQueueRefusesForAMinute and
//     TestRefusedBacklogIsBounded; SQS stops and comes back empty: TestSQSStopped.
//
// Reports of what other schedulers did are tests that have their ids: bug-h46 to
// bug-h49 and bug-h51 in TestBugs, bug-h50 in core, bug-h52 in core/claimer, bug-h53 in
// core/storetest, bug-h54 in core/api.
package e2e
