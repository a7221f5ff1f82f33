package cron_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	robfig "github.com/robfig/cron/v3"

	"github.com/fencepost/fencepost/core/cron"
)

// secondsOptional is the parser that users of robfig build for six fields.
func secondsOptional() robfig.Parser {
	return robfig.NewParser(robfig.SecondOptional | robfig.Minute | robfig.Hour | robfig.Dom | robfig.Month | robfig.Dow | robfig.Descriptor)
}

// robfigTakes parses with both of robfig's usual parsers; they panic on a zone
// prefix without fields.
func robfigTakes(spec string) (s robfig.Schedule, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	s, err := secondsOptional().Parse(spec)
	if err != nil {
		s, err = robfig.ParseStandard(spec)
	}
	return s, err == nil
}

// refusedOnPurpose lists what the package documentation excepts from its
// promise to take all that robfig takes, save what can never fire.
func refusedOnPurpose(spec string) bool {
	if len(spec) > 256 || strings.Contains(spec, "*-") || strings.Contains(spec, "?-") {
		return true
	}
	if slices.ContainsFunc(strings.Fields(spec), func(f string) bool { return strings.Trim(f, ",") == "" }) {
		return true
	}
	if strings.HasPrefix(spec, "TZ=") || strings.HasPrefix(spec, "CRON_TZ=") {
		return true
	}
	if d, found := strings.CutPrefix(spec, "@every "); found {
		delay, err := time.ParseDuration(d)
		return err != nil || delay <= 0 || d != strings.Join(strings.Fields(d), "")
	}
	return strings.ContainsFunc(spec, func(r rune) bool { return r < ' ' && r != '\t' || r > '~' })
}

// sameDayRule reports whether both libraries read the day fields alike: robfig
// takes a star with a step for a restriction, and a star anywhere in a list for
// none.
func sameDayRule(spec string) bool {
	fields := strings.Fields(spec)
	if spec == "" || fields[0][0] == '@' {
		return true
	}
	for _, i := range []int{len(fields) - 3, len(fields) - 1} {
		if f := fields[i]; f != "*" && f != "?" && strings.ContainsAny(f, "*?") {
			return false
		}
	}
	return true
}

// compareWithRobfig checks that we take what robfig takes, and that both agree
// on the next slots where the rules do. The zone is UTC, where robfig cannot
// hang.
func compareWithRobfig(t *testing.T, spec string, from time.Time) {
	t.Helper()
	theirs, ok := robfigTakes(spec)
	if !ok {
		return
	}
	ours, err := cron.Parse(spec, cron.Options{})
	if err != nil {
		if !refusedOnPurpose(spec) && !robfigNever(spec, theirs) {
			t.Fatalf("robfig takes %q: %v", spec, err)
		}
		return
	}
	if strings.Contains(spec, "TZ=") || !sameDayRule(spec) {
		return
	}
	for range 5 {
		want := theirs.Next(from) // zero if there is none for five years
		if want.IsZero() {
			return
		}
		if got := ours.Next(from); !got.Equal(want) {
			t.Fatalf("%q after %s: %s, robfig says %s", spec, from, got, want.UTC())
		}
		from = want
	}
}

// robfigNever looks for any slot from a time with a leap day ahead. It takes
// very long for a field of commas, which is refused on purpose.
func robfigNever(spec string, s robfig.Schedule) bool {
	if strings.HasPrefix(spec, "@every") {
		return false
	}
	return s.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero()
}

func TestRobfig(t *testing.T) {
	t.Parallel()
	for _, spec := range robfigSpecs() {
		if _, ok := robfigTakes(spec); !ok {
			t.Errorf("robfig does not take %q", spec)
		}
		compareWithRobfig(t, spec, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	r := rand.New(rand.NewPCG(3, 3))
	for range 3000 {
		from := time.Unix(r.Int64N(4_000_000_000), 0).UTC()
		compareWithRobfig(t, randomSpec(r), from)
		compareWithRobfig(t, randomField(r, 0, 59, 3)+" "+randomSpec(r), from)
	}
}

// robfigSpecs are oddities that robfig takes.
func robfigSpecs() []string {
	return []string{
		"? ? ? ? ?", "?/7 * * * *", "5/15 * * * *", "0 0 1/10 * *", "0 0 1 2/3 *", "0 0 * * 1/2", "0 0 * * mon/2",
		"0 0 * jan-MAR Sun-tue", "1,,2, * * * *", "+5 * * * *", "007 * * * *", "0-59/100 * * * *", "*,5 * * * *",
		"  0\t0 * * *  ", "0 0 0 29 2 ?", "30 * * * * *", "0 0 5-5 * *", "@every 1h2m3s", "@every 500ms", "@annually", "@hourly",
	}
}

// TestRobfigWildcard compares wildcard specs, for which both libraries follow
// real time, in zones whose changes robfig survives.
func TestRobfigWildcard(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	for _, name := range []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata"} {
		loc := zone(t, name)
		for range 50 {
			spec := randomField(r, 0, 59, 2) + " * * * *"
			ours := mustParse(t, spec, cron.Options{Location: loc, Gap: cron.GapSkip, Overlap: cron.OverlapBoth})
			theirs, err := robfig.ParseStandard("TZ=" + name + " " + spec)
			if err != nil {
				t.Fatal(err)
			}
			from := randomChange(r, loc).Add(-3 * time.Hour)
			for end := from.Add(6 * time.Hour); from.Before(end); {
				want := theirs.Next(from)
				if got := ours.Next(from); !got.Equal(want) {
					t.Fatalf("%q in %s after %s: %s, robfig says %s", spec, name, from, got, want)
				}
				from = want
			}
		}
	}
}
