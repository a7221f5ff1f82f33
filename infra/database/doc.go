// Package database keeps schedules, timers and runs in PostgreSQL 15 or later
// or CockroachDB 24.3 or later, with one set of statements for both: it is the
// store behind every stage.
//
// Each statement is a file in sql/, embedded, with the index that serves it and
// the invariants that it keeps. A state change is one statement in an implicit
// transaction at READ COMMITTED; correctness rests on the fences that the
// statements compare, not on the isolation level, and holds at SERIALIZABLE too.
package database
