package cron

import (
	"time"
)

// Options holds what a spec does not say. The zero value is UTC, automatic
// policies and a salt of zero.
type Options struct {
	// Location is the zone whose wall clock the fields are compared with. Nil is
	// UTC. A zone prefix in the spec must name the same zone.
	Location *time.Location
	// Gap is what to do with skipped wall time. Defaults to the choice that suits
	// the spec.
	Gap GapPolicy
	// Overlap is what to do with repeated wall time. Defaults to the choice that
	// suits the spec.
	Overlap OverlapPolicy
	// Salt spreads H tokens: a hash of the schedule's id, so that a schedule
	// keeps its times for life.
	Salt uint64
}

// Expression is a parsed spec with its zone and policies. It is immutable and
// safe for concurrent use; only [Parse] makes a usable one.
type Expression struct {
	spec    string
	loc     *time.Location
	every   time.Duration // > 0 for @every; then the fields below are unused
	clock   clockRule
	days    dayRule
	months  uint16 // bits 1-12
	gap     GapPolicy
	overlap OverlapPolicy
	why     string
	salted  bool  // an H decided something
	grain   int64 // seconds to which a slot after a gap is rounded up
}

// String returns the spec as it was given, zone prefix included, with runs of
// blanks folded to one. Parsing it again gives the same slots.
func (e *Expression) String() string { return e.spec }

// Salted reports whether an H made [Options].Salt decide about slots, so that a
// preview without the schedule's salt shows other ones.
func (e *Expression) Salted() bool { return e.salted }

// Policies returns the policies in force, with auto resolved, and a sentence
// that explains the choice to the schedule's owner.
func (e *Expression) Policies() (gap GapPolicy, overlap OverlapPolicy, why string) {
	return e.gap, e.overlap, e.why
}
