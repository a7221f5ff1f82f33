package core_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tests below show that each rule of arch_test.go catches what it is for,
// and lets pass what it should.

func TestImportRule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, imported string
		allowed        bool
	}{
		"core: standard library":        {"core/plan", "net/http", true},
		"core: core":                    {"core/plan", module + "/core/spec", true},
		"core: uuid":                    {"core", "github.com/google/uuid", true},
		"core: errgroup":                {"core/claimer", "golang.org/x/sync/errgroup", true},
		"core: adapter":                 {"core/claimer", module + "/infra/clock", false},
		"core: driver":                  {"core/claimer", "github.com/jackc/pgx/v5", false},
		"core: other cron library":      {"core/cron", "github.com/robfig/cron/v3", false},
		"core: huma in the API":         {"core/api", "github.com/danielgtaylor/huma/v2/adapters/humago", true},
		"core: huma elsewhere":          {"core/schedules", "github.com/danielgtaylor/huma/v2", false},
		"core: go-cmp":                  {"core/plan", "github.com/google/go-cmp/cmp", false},
		"core: go-cmp in a suite":       {"core/queuetest", "github.com/google/go-cmp/cmp", true},
		"core: local":                   {"core", module + "/local/cli", false},
		"infra: core":                   {"infra/sqs", module + "/core", true},
		"infra: clock":                  {"infra/database", module + "/infra/clock", true},
		"infra: its own SDK":            {"infra/database", "github.com/jackc/pgx/v5/pgxpool", true},
		"infra: another's SDK":          {"infra/httptarget", "github.com/jackc/pgx/v5", false},
		"infra: SQS and its SDK":        {"infra/sqs", "github.com/aws/aws-sdk-go-v2/service/sqs", true},
		"infra: another adapter":        {"infra/database", module + "/infra/embedded", false},
		"infra: dbtest and embedded":    {"infra/database/dbtest", module + "/infra/embedded", true},
		"infra: dbtest and another":     {"infra/database/dbtest", module + "/infra/inprocess", false},
		"infra: a name that begins so":  {"infra/clocks", module + "/infra/clock2", false},
		"infra: local":                  {"infra/database", module + "/local/up", false},
		"functions: core and infra":     {"functions/api", module + "/infra/database", true},
		"functions: own package":        {"functions/api", module + "/functions/api/routes", true},
		"functions: another function":   {"functions/api", module + "/functions/claimer", false},
		"functions: local":              {"functions/api", module + "/local/up", false},
		"local: local, infra and core":  {"local/up", module + "/local/cli", true},
		"local: command line libraries": {"local/cli", "github.com/spf13/cobra", true},
		"a folder of its own":           {"tools", module + "/core", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want []string
			if !c.allowed {
				want = []string{c.from + "/x.go imports " + c.imported}
			}
			got := importRule(unit{path: c.from, sources: []source{{name: "x.go", imports: []string{c.imported}}}})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestClockRule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, text string
		want       []string
	}{
		"call":        {"core/plan", `import "time"; func f() { time.Sleep(time.Second) }`, []string{"core/plan/x.go uses time.Sleep"}},
		"value":       {"local/up", `import "time"; var now = time.Now`, []string{"local/up/x.go uses time.Now"}},
		"other name":  {"core", `import t "time"; var d = t.Since(t.Time{})`, []string{"core/x.go uses t.Since"}},
		"dot import":  {"core", `import . "time"; var d = Now()`, []string{`core/x.go uses import . "time"`}},
		"ticker":      {"core", `import "time"; var t = time.NewTicker(1)`, []string{"core/x.go uses time.NewTicker"}},
		"allowed":     {"core", `import "time"; var d = time.Unix(0, 0).Add(time.Hour)`, nil},
		"no clock":    {"core", `var c = time.Now()`, nil},
		"clock's own": {"infra/clock", `import "time"; var now = time.Now`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := parseSource("x.go", []byte("package x; "+c.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, clockRule(unit{path: c.path, sources: []source{s}})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDocRule(t *testing.T) {
	t.Parallel()
	one := []source{{name: "x.go"}}
	if got := docRule(unit{path: "core/x", doc: "Package x exists.", sources: one}); got != nil {
		t.Errorf("refuses a package with a comment: %q", got)
	}
	if got := docRule(unit{path: "core/x"}); got != nil {
		t.Errorf("refuses a package that has only tests: %q", got)
	}
	want := []string{"core/x has no package comment"}
	if diff := cmp.Diff(want, docRule(unit{path: "core/x", sources: one})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSizeRule(t *testing.T) {
	t.Parallel()
	text := func(body, rest int) []byte { // of body + 3 + rest lines
		return []byte("package x\nfunc f() {\n" + strings.Repeat("\tg()\n", body) + "}\n" + strings.Repeat("//\n", rest))
	}
	for name, c := range map[string]struct {
		text []byte
		want []string
	}{
		"just small enough": {text(47, 349), nil},
		"long file":         {text(47, 350), []string{"core/x.go has 400 lines"}},
		"long function":     {text(48, 0), []string{"core/x.go: f has 50 lines"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := parseSource("x.go", c.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, sizeRule(unit{path: "core", sources: []source{s}})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTopRule(t *testing.T) {
	t.Parallel()
	got := topRule([]string{"go.mod", "core/key.go", ".ci/run", ".gitignore", "cmd/x/main.go", "cmd/y/main.go", "core.md", "SECURITY.md"})
	if diff := cmp.Diff([]string{"cmd", "core.md"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTextRule(t *testing.T) {
	t.Parallel()
	if got := textRule("a.md", []byte("see core/adr, example.com and ../core")); got != nil {
		t.Errorf("refuses what is fine: %q", got)
	}
	for _, f := range foreign() {
		if got := textRule("a.md", []byte("see "+f+" there")); len(got) != 1 || !strings.HasPrefix(got[0], "a.md has ") {
			t.Errorf("says %q about %q", got, f)
		}
		if got := textRule("a.zip", []byte("\x00"+f)); got != nil {
			t.Errorf("reads what is not text: %q", got)
		}
	}
}

func TestADRRule(t *testing.T) {
	t.Parallel()
	const good = "# 0002 A title\n\nStatus: accepted\n\n## Context\n\n## Decision\n\n## Rejected\n"
	for name, c := range map[string]struct {
		file, text string
		want       []string
	}{
		"good":          {"0002-a-title.md", good, nil},
		"a number left": {"0003-a-title.md", good, []string{"0003-a-title.md is not number 0002"}},
		"no markdown":   {"0002-a-title", good, []string{"0002-a-title is not number 0002"}},
		"just fits":     {"0002-a.md", good + strings.Repeat("x\n", 51), nil},
		"too long":      {"0002-a.md", good + strings.Repeat("x\n", 52), []string{"0002-a.md has 61 lines"}},
		"no status":     {"0002-a.md", strings.Replace(good, "Status: accepted", "", 1), []string{`0002-a.md lacks "Status:"`}},
		"none rejected": {"0002-a.md", strings.Replace(good, "## Rejected", "## Other", 1), []string{`0002-a.md lacks "## Rejected"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, adrRule(c.file, c.text, 2)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
