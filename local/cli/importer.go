package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/local/crontab"
)

// The labels of imported schedules: the file that they are of, and a mark on
// those that an import has paused because their line left it.
const (
	labelCrontab = "fencepost.io/crontab"
	labelLeft    = "fencepost.io/crontab-left"
)

// importer brings the schedules of a crontab to what its lines say.
type importer struct {
	client *client.Client
	flags  importFlags
	report *crontabReport
	own    map[string]api.Schedule // that an import of this file made, by name
	seen   map[string]int          // entries of one identity so far
	taken  map[string]bool         // names that the file has
	users  map[string]bool
	// entries counts the lines that were taken, unzoned those of them that no line
	// gave a zone, wrong those that a person could make right.
	entries, unzoned, wrong int
}

func newImporter(c *client.Client, f importFlags, r *crontabReport) *importer {
	return &importer{
		client: c, flags: f, report: r,
		own: map[string]api.Schedule{}, seen: map[string]int{}, taken: map[string]bool{}, users: map[string]bool{},
	}
}

// readOwn finds the schedules of earlier imports of the file.
func (i *importer) readOwn(ctx context.Context) error {
	for s, err := range i.client.AllSchedules(ctx, client.ScheduleFilter{Labels: labelCrontab + "=" + i.flags.source}) {
		if err != nil {
			return err
		}
		i.own[s.Name] = s
	}
	return nil
}

// importLines deals with every line, and then with the lines that left the file.
// An error ends it; what concerns one line alone is a finding.
func (i *importer) importLines(ctx context.Context, lines []crontab.Line) error {
	for _, line := range lines {
		f, err := i.take(ctx, line)
		if err != nil {
			return fmt.Errorf("line %d: %w; import the file again to go on", line.Number, err)
		}
		f.Line = line.Number
		if f.Verdict == refused && !line.Foreign {
			i.wrong++
		}
		if err := i.report.add(f); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.own)) {
		s := i.own[name]
		// What a person has paused or resumed after it left is theirs.
		if _, marked := s.Labels[labelLeft]; marked || i.taken[name] || s.State != stateActive {
			continue
		}
		f, err := i.leave(ctx, s)
		if err != nil {
			return fmt.Errorf("pause %s: %w", name, err)
		}
		if err := i.report.add(f); err != nil {
			return err
		}
	}
	return nil
}

func (i *importer) take(ctx context.Context, line crontab.Line) (*finding, error) {
	e := line.Entry
	switch {
	case line.Ignored != "":
		return &finding{Verdict: ignored, Text: line.Ignored}, nil
	case line.Setting != "":
		return &finding{Verdict: applied, Text: line.Setting}, nil
	case e == nil:
		return &finding{Verdict: refused, Text: line.Refused}, nil
	case e.User == "" && e.NamesUser():
		return &finding{Verdict: refused, Text: "the sixth field is a user, as in /etc/crontab: import the file with --system"}, nil
	}
	i.seen[e.Identity()]++
	f, err := i.put(ctx, e, crontab.Name(e, i.seen[e.Identity()]))
	if client.IsRefusal(err) {
		return &finding{Verdict: refused, Text: oneLine(err.Error())}, nil
	}
	if err != nil || f.Verdict == refused {
		return f, err
	}
	i.entries++
	if e.Zone == "" {
		i.unzoned++
	}
	if e.User != "" {
		i.users[e.User] = true
	}
	return f, nil
}

// putTries bounds how often a schedule is read anew that people change at the same
// time.
const putTries = 3

// put makes the schedule of a name what the entry says.
func (i *importer) put(ctx context.Context, e *crontab.Entry, name string) (f *finding, err error) {
	i.taken[name] = true
	for range putTries {
		if f, err = i.putOnce(ctx, e, name); !client.IsCode(err, versionMismatch) {
			break
		}
		delete(i.own, name) // what is known of it has changed
	}
	return f, err
}

func (i *importer) putOnce(ctx context.Context, e *crontab.Entry, name string) (*finding, error) {
	old, exists, err := i.existing(ctx, name)
	if err != nil {
		return nil, err
	}
	in, err := input(e, old, exists)
	if err != nil {
		return nil, err
	}
	_, back := old.Labels[labelLeft]
	if owner := old.Labels[labelCrontab]; owner != "" && owner != i.flags.source && !back {
		return i.share(ctx, name, in, owner)
	}
	in.Labels[labelCrontab] = i.flags.source
	if delete(in.Labels, labelLeft); back {
		in.Paused = new(bool) // an import paused it, not a person
	}
	r, err := i.client.PutVersion(ctx, name, old.Version, in, i.flags.dryRun)
	if err != nil {
		return nil, err
	}
	f := &finding{Verdict: updated, Name: name, User: e.User, NextRunAt: r.NextRunAt}
	switch {
	case !exists:
		f.Verdict = created
	case back:
		f.Verdict = resumed
	case schedules.Outcome(r.Outcome) == schedules.Unchanged:
		f.Verdict = unchanged
	}
	if r.State != stateActive {
		f.Text = "it is " + r.State
	}
	return f, nil
}

// share deals with an entry that another crontab has too. They have one schedule
// between them, which stays that crontab's, so that neither file changes or
// pauses what the other one asks for.
func (i *importer) share(ctx context.Context, name string, in api.ScheduleInput, owner string) (*finding, error) {
	r, err := i.client.Put(ctx, name, in, true)
	if err != nil {
		return nil, err
	}
	if schedules.Outcome(r.Outcome) == schedules.Unchanged {
		return &finding{Verdict: unchanged, Name: name, Text: "it is of the crontab " + owner}, nil
	}
	return &finding{Verdict: refused, Name: name, Text: "it is of the crontab " + owner + ", with other variables, input or user; if that is this file, name it: --source '" + owner + "'"}, nil
}

// existing returns the schedule of a name, whoever made it.
func (i *importer) existing(ctx context.Context, name string) (api.Schedule, bool, error) {
	if s, ok := i.own[name]; ok {
		return s, true, nil
	}
	s, err := i.client.Named(ctx, name)
	if client.IsCode(err, core.ErrNotFound.Kind) {
		return api.Schedule{}, false, nil
	}
	return s, err == nil, err
}

// input returns the schedule of an entry, with the ways of cron. Of one that
// exists only what a crontab can say is new: limits and labels that people gave it
// stay.
func input(e *crontab.Entry, old api.Schedule, exists bool) (api.ScheduleInput, error) {
	in := api.ScheduleInput{Misfire: string(core.MisfireRunOnce), Overlap: string(core.OverlapAllow), Exact: true, Timeout: "0s", Retry: &api.RetryInput{MaxAttempts: 1}}
	if exists {
		var err error
		if in, err = inputOf(old); err != nil {
			return in, err
		}
	}
	payload, err := json.Marshal(struct {
		Command string            `json:"command"`
		Stdin   string            `json:"stdin,omitempty"`
		Shell   string            `json:"shell,omitempty"`
		Dir     string            `json:"dir,omitempty"`
		User    string            `json:"user,omitempty"`
		Env     map[string]string `json:"env,omitempty"`
	}{e.Command, e.Stdin, e.Shell, e.Dir, e.User, e.Env})
	if err != nil {
		return in, fmt.Errorf("encode the command: %w", err)
	}
	in.Spec, in.TimeZone, in.Job = e.Spec, e.Zone, &api.JobInput{Queue: execQueue, Payload: payload}
	if in.TimeZone == utc {
		in.TimeZone = "" // above or below a line that sets it, it is the same
	}
	if in.Labels == nil {
		in.Labels = map[string]string{}
	}
	return in, nil
}

// inputOf returns what would make a schedule what it is: the API takes what it
// shows under the same names.
func inputOf(s api.Schedule) (in api.ScheduleInput, err error) {
	raw, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(raw, &in)
	}
	if err != nil {
		return in, fmt.Errorf("copy schedule %s: %w", s.Name, err)
	}
	return in, nil
}

const stateActive = string(core.ScheduleActive)

// leave deals with a schedule whose line left the file. Nothing is paused while a
// line is wrong: it may be its own.
func (i *importer) leave(ctx context.Context, s api.Schedule) (*finding, error) {
	switch {
	case !i.flags.prune:
		return &finding{Verdict: left, Name: s.Name, Text: "its line left the file; --prune pauses it"}, nil
	case i.wrong > 0:
		return &finding{Verdict: left, Name: s.Name, Text: "its line left the file; nothing is paused while lines are refused, since one may be its line"}, nil
	}
	f := &finding{Verdict: paused, Name: s.Name, Text: "its line left the file"}
	if i.flags.dryRun {
		return f, nil
	}
	// The mark says that an import may resume it.
	labels := maps.Clone(s.Labels)
	labels[labelLeft] = "true"
	body, err := json.Marshal(map[string]any{"labels": labels, "paused": true})
	if err != nil {
		return nil, fmt.Errorf("encode the pause: %w", err)
	}
	_, err = i.client.EditVersion(ctx, s.ID, s.Version, body)
	if client.IsCode(err, versionMismatch) {
		return &finding{Verdict: left, Name: s.Name, Text: "its line left the file; somebody changed it meanwhile: import again to pause it"}, nil
	}
	return f, err
}
