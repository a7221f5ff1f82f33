package simtest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mutant is the product with one line broken.
type mutant struct {
	name  string
	file  string // below the module's root
	line  string // that is there once
	into  string
	rules string // one of which has to say so
}

// mutants break the lines that the promises rest on.
func mutants() []mutant {
	return []mutant{
		{"claim: the fence is not compared", "core/memory/timers.go", "&& t.Fence == m.Fence &&", "&&", "C1 C2 C8 C10"},
		{"claim: nothing waits for its time", "core/memory/timers.go", "&& !t.FireAt.After(now) &&\n\t\t!micro(m.ValidFrom).After(now) &&", "&&", "C3"},
		{"claim: a plan is good for ever", "core/memory/timers.go", "&& now.Before(micro(m.ValidUntil))", "", "C1 C2 C12"},
		{"claim: a plan is good too early", "core/memory/timers.go", "!micro(m.ValidFrom).After(now) && ", "", "C3"},
		{"claim: a live run is not met", "core/memory/store.go", "return !allow && p != nil && !p.State.Final()", "_ = p\n\treturn false", "C10"},
		{"start: the fence is not compared", "core/memory/runs.go", "first := r.State == core.RunQueued && r.Fence == d.Fence", "first := r.State == core.RunQueued", "C5 C6 C7"},
		{"start: another's run is given again", "core/memory/runs.go", "&& r.holder == d.Token", "", "C5 C7"},
		{"finish: the fence is not compared", "core/memory/runs.go", "r.State != core.RunRunning || r.Fence != h.Fence", "r.State != core.RunRunning", "C5 C6"},
		{"finish: attempts have no maximum", "core/memory/runs.go", "case r.Attempt-r.credits >= r.MaxAttempts:\n\t\tr.State = core.RunDead\n", "", "C7"},
		{"sweep: lost attempts have no maximum", "core/memory/sweep.go", "case lost && r.Attempt-r.credits >= r.MaxAttempts:", "case false:", "C7"},
		{"pause: the timer goes on", "core/plan/edit.go", "true, until, note\n\te.MoveTimer, e.Keep = true, keep(&e.Schedule)", "true, until, note\n\te.MoveTimer, e.Keep = false, keep(&e.Schedule)", "C8"},
		{"plan: from now instead of done", "core/plan/plan.go", "first := slots.Next(t.Done)\n\tif first.IsZero() || t.RunsLeft", "first := slots.Next(later(t.Done, at.Add(-time.Second)))\n\tif first.IsZero() || t.RunsLeft", "C1"},
		{"plan: the newest missed slot is missed", "core/plan/block.go", "\t\tb.runs = []time.Time{newest}\n\t}\n}", "\t\tif b.onTime || b.single() {\n\t\t\tb.runs = []time.Time{newest}\n\t\t}\n\t}\n}", "C2"},
		{"plan: a clock ahead makes the newest", "core/plan/plan.go", "b.s.Effective(b.newest))\n\tif next := b.slots.Next(m.Done)", "b.s.Effective(m.Done))\n\tif next := b.slots.Next(m.Done)", "C2"},
		{"edit: what is owed is forgotten", "core/plan/edit.go", "e.Settle = append(e.Settle, b.rows...)", "", "C1"},
		{"spread: before the slot", "core/schedule.go", "return time.Duration(Hash(\"spread\", s.ID)%seconds) * time.Second", "return -time.Duration(Hash(\"spread\", s.ID)%seconds) * time.Second", "C3"},
		{"pages: a row too far", "core/memory/lists.go", "k.Slot.Before(before) && !k.Slot.Before(from)", "!k.Slot.After(before) && !k.Slot.Before(from)", "C11"},
	}
}

var broken = regexp.MustCompile(`(?m)^\s+(C\d+)\s+failed`)

// TestMutants builds the simulation with one line of the product broken, by the
// compiler's overlay, so that no other build knows of it, and demands that the rule
// which the line is for is broken. It takes minutes: FENCEPOST_MUTANTS=1 runs it.
func TestMutants(t *testing.T) {
	if os.Getenv("FENCEPOST_MUTANTS") == "" {
		t.Skip("make mutants runs it")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	survivors := 0
	for _, m := range mutants() {
		got := m.play(t, root)
		verdict := "survives"
		for rule := range strings.FieldsSeq(m.rules) {
			if strings.Contains(" "+got+" ", " "+rule+" ") {
				verdict = "caught"
			}
		}
		if verdict == "survives" {
			survivors++
		}
		fmt.Fprintf(&table, "%-40s %-9s %s\n", m.name, verdict, got)
	}
	t.Logf("\n%s%d mutants, %d survive", table.String(), len(mutants()), survivors)
	if survivors > 0 {
		t.Errorf("%d mutants survive", survivors)
	}
}

// play returns the rules that a mutant's histories break first.
func (m mutant) play(t *testing.T, root string) string {
	t.Helper()
	path := filepath.Join(root, m.file)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.line); n != 1 {
		t.Errorf("%s: the line is %d times in %s", m.name, n, m.file)
		return ""
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), m.line, m.into, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	replace, _ := json.Marshal(map[string]map[string]string{"Replace": {path: changed}}) // texts can be encoded
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-timeout", "5m", "-overlay", overlay, "-run", "TestHistories", "./core/simtest")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "FENCEPOST_HISTORIES=600", "FENCEPOST_MUTANTS=")
	out, err := cmd.CombinedOutput()
	if err != nil && strings.Contains(string(out), "build failed") {
		t.Errorf("%s does not build:\n%s", m.name, out)
	}
	var rules []string
	for _, found := range broken.FindAllStringSubmatch(string(out), -1) {
		rules = append(rules, found[1])
	}
	return strings.Join(rules, " ")
}
