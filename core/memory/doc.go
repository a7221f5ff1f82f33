// Package memory is the store kept in memory: the reference that says in plain
// Go what the SQL statements must do, and the store of tests whose time is not
// real.
//
// One mutex makes every method atomic. It is simple rather than fast: looks and
// sweeps walk over everything there is. Unlike the database it keeps JSON as it
// was written, and nobody ever finds a row locked.
package memory
