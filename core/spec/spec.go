// Package spec reads a schedule's spec, whichever of the three kinds it is, and
// answers when the next slot comes.
package spec

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/cron"
)

// Slots answers when slots come and which of them are closed. Values are immutable
// and safe for concurrent use; all times are UTC.
type Slots interface {
	// Next returns the first slot after t, the zero time if there is none.
	Next(t time.Time) time.Time
	// Prev returns the last slot before t, the zero time if there is none.
	Prev(t time.Time) time.Time
	// Closed returns the name of a calendar in which a slot at t is closed, "" if
	// there is none, and until when that holds at least; the zero time is for ever.
	Closed(t time.Time) (calendar string, until time.Time)
}

// kind is what each of the three kinds of specs can say of itself.
type kind interface {
	Next(t time.Time) time.Time
	Prev(t time.Time) time.Time
	// Describe puts the spec in plain English.
	Describe() string
	// Explain says what a clock change did to a slot, "" if none touched it.
	Explain(slot time.Time) string
}

// DST is how a spec meets clock changes once auto is resolved, for its owner to
// read.
type DST struct {
	Gap     core.DSTGap
	Overlap core.DSTOverlap
	Reason  string // why auto came to these, in a sentence
}

// Spec is a parsed spec. Only Parse and Load make one. It is immutable and safe
// for concurrent use.
type Spec struct {
	kind
	// Text is the normalized form, which Load reads back.
	Text string
	// Zone is the time zone: the schedule's, or else the one that the text had in
	// front. Empty is UTC.
	Zone string
	// Anchor is the instant of a one-time spec and the origin of an interval;
	// the zero time for cron, and for an interval whose phase is a hash.
	Anchor time.Time
	// OneTime is set when there is no slot but the one that was asked for, or two
	// if a clock change repeats it and both are wanted.
	OneTime bool
	// Relative is set when the text counts from the time at which it was parsed,
	// as "in 3d" does: read again, it is another spec.
	Relative bool
	DST      DST
	// FromID is set when the schedule's id decides about the slots: H in cron, the
	// phase of an interval without an anchor.
	FromID bool
	// Hint tells the owner what the spec may not say plainly. It is mostly empty.
	Hint string
	// closings are the calendars in which its slots may be closed.
	closings []core.Closing
}

// Of reads the stored spec of a schedule with its calendars.
func Of(s *core.Scheduled) (Spec, error) {
	parsed, err := Load(&s.Schedule)
	return parsed.Under(s.Calendars), err
}

// Under returns the spec with other calendars, in which slots may be closed.
func (s Spec) Under(calendars []core.Closing) Spec {
	s.closings = calendars
	return s
}

// Closed implements Slots.
func (s Spec) Closed(t time.Time) (calendar string, until time.Time) {
	for _, c := range s.closings {
		closed, end := c.Closed(t)
		if closed {
			return c.Name(), end
		}
		if !end.IsZero() && (until.IsZero() || end.Before(until)) {
			until = end
		}
	}
	return "", until
}

// Parse reads the spec of a schedule as its user wrote it: a cron expression,
// "every 15m", "at 2027-01-05T09:00" (in the zone) or "in 3d" (from now, which is
// the database's time). Of s it reads what decides about slots: spec, zone,
// anchor, the DST policies, CatchUpWithin, and the id, which gives an interval
// without an anchor its phase. Errors name the field.
func Parse(s *core.Schedule, now time.Time) (Spec, error) {
	if hint := foreign(s.Spec); hint != "" {
		return Spec{}, core.Invalid("spec", "%s", hint)
	}
	parsed, err := parse(s, now)
	if err != nil {
		return Spec{}, err
	}
	return parsed, CheckFires(s, parsed, now)
}

// Load reads a spec back from its stored form. What Parse accepted once loads
// for ever.
func Load(s *core.Schedule) (Spec, error) { return parse(s, time.Time{}) }

// CheckFires refuses a schedule whose parsed spec has no slot after now, which a
// change of the DST policies or the zone alone can make of one that had some.
// One-time specs may be over, but not skipped whole by a clock change.
func CheckFires(s *core.Schedule, parsed Spec, now time.Time) error {
	if parsed.OneTime {
		now = time.Time{}
	}
	if fires(parsed, now) {
		return nil
	}
	other := *s
	other.DSTGap = core.DSTGapRunAfter
	if after, err := parse(&other, time.Time{}); s.DSTGap == core.DSTGapSkip && err == nil && fires(after, now) {
		return core.Invalid("dst_gap", "is skip, and all that the spec asks for falls into hours that clock changes skip: it would never fire; use run_after")
	}
	if _, ok := parsed.kind.(bounded); ok {
		return core.Invalid("ends_at", "leaves no slot: the spec has none between now, or starts_at, and then")
	}
	return core.Invalid("spec", "has no slot left before the year 9999: it would never fire")
}

// fires reports whether there is a slot after now that a timer can hold.
func fires(s Spec, now time.Time) bool {
	next := s.Next(now)
	return !next.IsZero() && next.Before(core.Forever)
}

// blanks may stand around words, and any number of them between two.
const blanks = " \t\r\n"

func parse(s *core.Schedule, now time.Time) (Spec, error) {
	whole := strings.TrimRight(s.Spec, blanks)
	zone := s.TimeZone
	name, text, prefixed := cron.SplitZone(whole)
	if prefixed && zone == "" {
		zone = name
	}
	loc, err := cron.LoadLocation(zone)
	if err != nil {
		return Spec{}, refuseZone(err)
	}
	text = strings.TrimLeft(text, blanks)
	word, rest := text, ""
	if end := strings.IndexAny(text, blanks); end >= 0 {
		word, rest = text[:end], strings.TrimLeft(text[end:], blanks)
	}
	r := reader{Schedule: s, loc: loc, now: now, column: len(whole) - len(rest) + 1}
	var parsed Spec
	if isoDuration.MatchString(text) { // an interval needs no word in front
		word, rest, r.column = "every", text, len(whole)-len(text)+1
	}
	switch first := strings.ToLower(word); first {
	case "every", "@every", "at", "in":
		if prefixed && cron.LinkTarget(name) != cron.LinkTarget(loc.String()) {
			return Spec{}, core.Invalid("time_zone", "differs from the zone in front of the spec; drop one of them")
		}
		parsed, err = r.words(first, rest)
	default:
		if !s.Anchor.IsZero() {
			return Spec{}, refuseAnchor()
		}
		parsed, err = r.cron(whole)
	}
	parsed.Zone = zone
	if r := &s.Rules; err == nil && (!r.StartsAt.IsZero() || !r.EndsAt.IsZero()) {
		parsed.kind = bounded{parsed.kind, r.StartsAt, r.EndsAt}
	}
	return parsed, err
}

// isoDuration matches a duration of ISO 8601, such as P3D or PT90M.
var isoDuration = regexp.MustCompile(`^[Pp]T?\d\S*$`)

func refuseZone(err error) error {
	var unknown *cron.ZoneError
	if errors.As(err, &unknown) {
		return core.Invalid("time_zone", "column 1, %q: not a name of the IANA database; %s", unknown.Name, unknown.Hint)
	}
	return fmt.Errorf("load the time zone: %w", err)
}

func refuseAnchor() error {
	return core.Invalid("anchor", `goes with an interval only, such as "every 15m"`)
}

// reader reads the part of a spec that begins in a column.
type reader struct {
	*core.Schedule
	loc    *time.Location
	now    time.Time // zero: the text is a stored one
	column int
}

func (r reader) words(first, rest string) (Spec, error) {
	switch first {
	case "at":
		return r.at(rest)
	case "in":
		if !r.Anchor.IsZero() {
			return Spec{}, refuseAnchor()
		}
		return r.in(rest)
	}
	return r.interval(rest)
}

// refuse says in the form of cron.ParseError what is wrong with a token.
func (r reader) refuse(part, token, reason, hint string) error {
	if len(token) > maxTokenBytes {
		token = strings.ToValidUTF8(token[:maxTokenBytes], "")
	}
	return refuse(part+fmt.Sprintf(", column %d, %q: %s; %s", r.column, token, reason, hint), core.Place{Token: token, Position: r.column, Hint: hint})
}

// refuse returns the error of a spec with the place that it is about.
func refuse(message string, at core.Place) error {
	err := core.Invalid("spec", "%s", message)
	err.Place = &at
	return err
}

const maxTokenBytes = 40

func (r reader) cron(text string) (Spec, error) {
	o := cron.Options{Location: r.loc, Salt: core.Hash("cron", r.ID)}
	switch r.DSTGap {
	case core.DSTGapAuto:
	case core.DSTGapRunAfter:
		o.Gap = cron.GapRunAfter
	case core.DSTGapSkip:
		o.Gap = cron.GapSkip
	}
	switch r.DSTOverlap {
	case core.DSTOverlapAuto:
	case core.DSTOverlapFirst:
		o.Overlap = cron.OverlapFirst
	case core.DSTOverlapBoth:
		o.Overlap = cron.OverlapBoth
	}
	e, err := cron.Parse(text, o)
	var wrong *cron.ParseError
	switch {
	case errors.As(err, &wrong):
		return Spec{}, refuse(wrong.Error(), core.Place{Token: wrong.Token, Position: wrong.Position, Hint: wrong.Hint})
	case err != nil:
		return Spec{}, core.Invalid("spec", "%s", err)
	}
	gap, overlap, why := e.Policies()
	_, plain, _ := cron.SplitZone(e.String())
	if plain[0] == '@' {
		plain = strings.ToLower(plain)
	}
	return Spec{
		kind: e, Text: plain, FromID: e.Salted(), Hint: burstHint(strings.Fields(plain)),
		DST: DST{core.DSTGap(gap.String()), core.DSTOverlap(overlap.String()), why},
	}, nil
}

// burstHint tells those who wrote a star before an hour, or a minute, and may have
// meant once in it.
func burstHint(fields []string) string {
	units := []string{"minute", "hour"}
	if len(fields) == 6 {
		units = []string{"second", "minute", "hour"}
	}
	for i := range len(units) - 1 {
		if len(fields) < 5 || fields[i] != "*" || strings.HasPrefix(fields[i+1], "*") {
			continue
		}
		once := slices.Clone(fields)
		for j := range i + 1 {
			once[j] = "0"
		}
		return fmt.Sprintf("every %s of the %s, 60 runs in each; %q runs once in each", units[i], units[i+1], strings.Join(once, " "))
	}
	return ""
}
