package cli

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core/cron"
	"github.com/fencepost/fencepost/local/terminal"
)

// verdict is what became of a line, or of the schedule of one that left the file.
type verdict string

// The verdicts.
const (
	created   verdict = "created"
	updated   verdict = "updated" // its variables, user or input changed
	resumed   verdict = "resumed" // the line is back
	unchanged verdict = "unchanged"
	paused    verdict = "paused" // the line left the file
	left      verdict = "left"   // the line left the file, and nothing was done
	applied   verdict = "set"
	refused   verdict = "refused"
	ignored   verdict = "ignored"
)

// finding is one line of the report.
type finding struct {
	// Line is zero for a schedule whose line left the file.
	Line      int        `json:"line,omitempty"`
	Verdict   verdict    `json:"verdict"`
	Name      string     `json:"name,omitempty"`
	NextRunAt *time.Time `json:"next_run_at,omitempty"`
	User      string     `json:"user,omitempty"`
	// Text is what else there is to say.
	Text string `json:"text,omitempty"`
}

// String returns the finding as a person reads it.
func (f *finding) String() string {
	where := "-"
	if f.Line > 0 {
		where = fmt.Sprintf("line %d", f.Line)
	}
	var parts []string
	for _, part := range []string{f.Name, showNext(f.NextRunAt), f.runsAs(), f.Text} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return where + "\t" + string(f.Verdict) + "\t" + terminal.Printable(strings.Join(parts, "; "))
}

func (f *finding) runsAs() string {
	if f.User == "" {
		return ""
	}
	return "runs as " + f.User
}

func showNext(at *time.Time) string {
	if at == nil {
		return ""
	}
	return "next run at " + showTime(at)
}

// crontabReport is what an import says, a line at a time for a person and whole
// for a program.
type crontabReport struct {
	app    *app
	asJSON bool

	DryRun bool            `json:"dry_run"`
	Lines  []*finding      `json:"lines"`
	Counts map[verdict]int `json:"counts"`
	Notes  []string        `json:"notes"`
}

func newCrontabReport(a *app, f *importFlags) *crontabReport {
	return &crontabReport{app: a, asJSON: f.json, DryRun: f.dryRun, Lines: []*finding{}, Notes: []string{}, Counts: map[verdict]int{created: 0, unchanged: 0, refused: 0}}
}

// add takes a finding and, for a person, prints it at once.
func (r *crontabReport) add(f *finding) error {
	r.Counts[f.Verdict]++
	if r.asJSON {
		r.Lines = append(r.Lines, f)
		return nil
	}
	_, err := fmt.Fprintln(r.app.Out, f)
	return err
}

// end finishes the report. An import that failed half way has no notes.
func (r *crontabReport) end() error {
	if r.asJSON {
		return r.app.printJSON(r)
	}
	var parts []string
	for _, v := range []verdict{created, updated, resumed, unchanged, paused, left, refused} {
		if n, always := r.Counts[v]; n > 0 || always { // it begins with those that are always told
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	counts := strings.Join(parts, ", ")
	if r.DryRun {
		counts = "dry run, nothing was done: " + counts
	}
	_, err := fmt.Fprintln(r.app.Out, strings.Join(append(slices.Clone(r.Notes), counts), "\n"))
	return err
}

const cronsWays = "imported lines run as cron runs them: exactly on time, once (max_attempts 1), beside each other (overlap allow), without a time limit"

// note adds what holds for the entries that were taken.
func (i *importer) note() {
	r := i.report
	if i.entries == 0 {
		return
	}
	r.Notes = append(r.Notes, cronsWays)
	if len(i.users) > 0 {
		r.Notes = append(r.Notes, "users: "+strings.Join(slices.Sorted(maps.Keys(i.users)), ", ")+"; only a fencepost that runs as root can run commands as others than itself")
	}
	if here := r.app.localZone(); i.unzoned > 0 && i.flags.zone == "" && here != utc {
		r.Notes = append(r.Notes, fmt.Sprintf("%s in UTC, since nothing above sets a zone; cron on this machine would use %s: --time-zone %s",
			plural(i.unzoned, "line is", "lines are"), here, here))
	}
}

// localZone returns the name of this machine's time zone; UTC for one that keeps
// its time, and for none.
func (a *app) localZone() string {
	name := strings.TrimPrefix(a.Getenv("TZ"), ":")
	if name == "" {
		target, err := os.Readlink("/etc/localtime")
		if err != nil {
			return utc
		}
		_, name, _ = strings.Cut(target, "zoneinfo/")
	}
	zone, err := cron.LoadLocation(name)
	if err != nil {
		return utc
	}
	for _, months := range []int{0, 6} {
		if _, offset := a.Clock.Now().In(zone).AddDate(0, months, 0).Zone(); offset != 0 {
			return name
		}
	}
	return utc
}
