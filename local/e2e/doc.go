// Package e2e holds no code but tests: they run the real stages together on a
// real database, through races, lost answers, outages and kills, because no
// test of one part can show that the promises of the whole hold.
package e2e
