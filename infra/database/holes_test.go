package database_test

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"testing"
)

// A hole is a way in which the natural reading of a scheduler's rules goes
// wrong, found by a model checker and named by its number. Its scenario walks
// into it and returns what it saw go wrong, "" if nothing. Each guard is what
// closes the hole: the test also runs the scenario with the guard taken out and
// demands that it does go wrong then, so that no guard is there for show.
type hole struct {
	name     string
	scenario func(w *world) string
	// stall, if any, slows a statement down at its weakest moment, with and
	// without the guard.
	stall  *mutation
	guards []mutation
	// natural, if any, does what the scenario does the way one would without
	// the guard, where the guard is no part of a statement: it has to go wrong.
	natural func(w *world) string
}

// sleeping makes the rows of from arrive late: after the statement has taken
// its snapshot and before it locks or changes what it found.
func sleeping(file, from, alias string) *mutation {
	return &mutation{file: file, guard: "FROM " + from + " AS " + alias + "\n", instead: "FROM (SELECT v.* FROM (SELECT pg_sleep(0.4)) AS stall, " + from + " AS v) AS " + alias + "\n"}
}

func holes() []hole {
	var all []hole
	for _, group := range [][]hole{claimHoles(), editHoles(), runHoles(), upkeepHoles(), manualHoles(), policyHoles(), backfillHoles(), limitHoles()} {
		all = append(all, group...)
	}
	return all
}

func TestHoles(t *testing.T) {
	t.Parallel()
	var report struct {
		sync.Mutex
		lines []string
	}
	t.Run("all", func(t *testing.T) {
		for _, h := range holes() {
			t.Run(h.name, func(t *testing.T) {
				for name, serializable := range map[string]bool{"read_committed": false, "serializable": true} {
					t.Run("closed/"+name, func(t *testing.T) {
						t.Parallel()
						w := newWorld(t, serializable, combine(t, h.stall, nil))
						if wrong := h.scenario(w); wrong != "" {
							t.Error(wrong)
						}
					})
				}
				if h.natural != nil {
					t.Run("open/natural", func(t *testing.T) {
						t.Parallel()
						wrong := h.natural(newWorld(t, false, nil))
						if wrong == "" {
							t.Error("nothing went wrong with the natural reading")
						}
						report.Lock()
						defer report.Unlock()
						report.lines = append(report.lines, fmt.Sprintf("%s | the natural reading | %s", h.name, wrong))
					})
				}
				for i, g := range h.guards {
					t.Run(fmt.Sprintf("open/%d", i+1), func(t *testing.T) {
						t.Parallel()
						w := newWorld(t, false, combine(t, h.stall, &g))
						wrong := h.scenario(w)
						if wrong == "" {
							t.Errorf("nothing went wrong without %q in %s: the guard or its test is idle", g.guard, g.file)
						}
						report.Lock()
						defer report.Unlock()
						report.lines = append(report.lines, fmt.Sprintf("%s | %s without `%s` | %s", h.name, g.file, flat(g.guard), wrong))
					})
				}
			})
		}
	})
	sort.Strings(report.lines)
	t.Log("what taking each guard out did:\n" + strings.Join(report.lines, "\n"))
}

func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

func combine(t testing.TB, a, b *mutation) func(name, text string) string {
	return func(name, text string) string {
		for _, m := range []*mutation{a, b} {
			if m != nil {
				text = m.rewrite(t)(name, text)
			}
		}
		return text
	}
}
