// Package check judges a history of the scheduler by rules C1 to C15. It exists so that
// "never twice, never lost" is not said by the code that is to keep it: it shares
// nothing with the rest of the module, neither its types nor its idea of when a slot
// comes, and reads only what can be seen from outside:
//
//   - operations: each call of the API with when it was sent and answered, by the
//     caller's clock, and what it answered; a call without an answer may have happened;
//   - executions: what the jobs themselves wrote down, by their own clock;
//   - faults: what was done to the installation, from when until when;
//   - runs: all rows of history, as the API's lists give them in the end;
//   - pages: what lists gave while runs were added.
//
// The rules:
//
//	C1  each slot ran, was recorded as skipped, alone or in a range, or is still owed
//	C2  slots are missed only around faults, and then the misfire policy is kept
//	C3  nothing starts early
//	C4  one row for each slot of a schedule
//	C5  attempts and fences rise; two attempts overlap only when the older lease had run out
//	C6  no outcome of a former holder is kept
//	C7  attempts do not exceed the maximum, and nothing follows a dead letter
//	C8  nothing starts after pause or delete was answered, save runs claimed before
//	C9  after a heal every claimed run ends
//	C10 the overlap policy is kept
//	C11 the pages of history hold each run once, also while runs are added
//	C12 starts are on time, where no fault was near
//	C13 spread is bounded, stable and never early
//	C14 whoever silently stops is told of (nothing here tells yet: unknown)
//	C15 each verdict names what it rests on
//
// A fault extends the time in which something has to happen to its heal plus the
// recovery bound, as in Jepsen's test of Chronos. What cannot be told from the logs is
// unknown, not passed.
package check
