package cli

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/local/crontab"
	"github.com/fencepost/fencepost/local/manifest"
)

// cronWriter writes schedules as a crontab.
type cronWriter struct{ w *crontab.Writer }

// Write implements exporter.
func (c *cronWriter) Write(s *api.Schedule) error {
	e, why := cronEntry(s)
	return c.w.Write(s.Name, e, why)
}

// Close implements exporter.
func (*cronWriter) Close() error { return nil }

// cronEntry returns what a crontab says instead of a schedule, or why it has no
// way to say it.
func cronEntry(s *api.Schedule) (*crontab.Entry, string) {
	var job struct {
		Command, Stdin, Shell, Dir, User string
		Env                              map[string]string
	}
	e := &crontab.Entry{Spec: s.Spec, Zone: s.TimeZone}
	switch {
	case s.Job.Queue != execQueue || json.Unmarshal(s.Job.Payload, &job) != nil:
		return e, "its job is no command"
	case s.State != stateActive:
		return e, "it is " + s.State
	case job.User != "":
		return e, "it runs as a user of its own, which only a system's crontab can say"
	case job.Dir != "" && job.Dir != job.Env["HOME"]:
		return e, "it runs in a folder of its own"
	case !plainSpec(s.Spec):
		return e, "no crontab has its spec: " + s.Spec
	}
	if lost := lostInCron(s); len(lost) > 0 {
		return e, "a crontab cannot keep its " + strings.Join(lost, ", ")
	}
	e.Command, e.Stdin, e.Shell, e.Dir, e.Env = job.Command, job.Stdin, job.Shell, job.Dir, job.Env
	return e, ""
}

// lostInCron returns the fields that a line of a crontab would change, since it
// says nothing about them: import gives it what cron does.
func lostInCron(s *api.Schedule) []string {
	made := *s
	made.Misfire, made.Overlap, made.Timeout, made.Retry.MaxAttempts = string(core.MisfireRunOnce), string(core.OverlapAllow), "0s", 1
	made.MisfireGrace, made.MisfireCap = core.FormatDuration(core.DefaultMisfireGrace), core.DefaultMisfireCap
	made.DSTGap, made.DSTOverlap, made.Window, made.Exact = "auto", "auto", "0s", true
	made.StartsAt, made.EndsAt, made.MaxRuns, made.DeleteAfterCompletion = nil, nil, 0, false
	var lost []string
	for _, c := range manifest.Diff(s, &made) {
		if c.Field != "exact" || s.Spread != "0s" { // of a spec that is exact anyway
			lost = append(lost, c.Field)
		}
	}
	return lost
}

var (
	cronFields  = regexp.MustCompile(`(?i)^(?:[0-9*,/-]+ ){3}(?:[0-9*,/-]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)+ (?:[0-9*,/-]|sun|mon|tue|wed|thu|fri|sat)+$`)
	openSteps   = regexp.MustCompile(`(?:^|[ ,])[0-9]+/`) // of our own: a step without a range
	cronsMacros = []string{"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}
)

// plainSpec reports whether cron knows the spec.
func plainSpec(spec string) bool {
	return slices.Contains(cronsMacros, spec) || cronFields.MatchString(spec) && !openSteps.MatchString(spec)
}
