// Package core holds the vocabulary of Fencepost, the contracts between its
// stages and the outside, and nothing that does I/O.
//
// A schedule says what should happen; its timer says when it next happens. The
// claim turns due timers into runs and moves the timers on, in one statement.
// A run goes through these states:
//
//	           claim, trigger
//	                 │
//	  skipped ◄──────┼──────► queued ──► running ──► succeeded
//	(policy says no)          ▲ ▲ │        │ │
//	                          │ │ │        │ └─────► dead
//	     sweep: due or lost   │ │ │        ▼
//	                          │ └─┼──── retrying
//	                          │   ▼        │
//	                          │ canceled ◄─┘
//	                          └── running whose heartbeats stopped
//
// Every slot of a schedule ends in exactly one row of runs, or in one row that
// stands for a range of skipped slots.
//
// Three clocks are kept apart. The database's clock decides what is due and
// whose lease has ended. The process's clock measures durations. The slot
// gives a run its meaning and is compared with nothing but other slots.
package core
