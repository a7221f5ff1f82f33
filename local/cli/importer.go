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
	own    map[string]api.Schedule // that an import of this file made, by name
	seen   map[string]int          // entries of one identity so far
	taken  map[string]bool         // names that the file has
	counts map[verdict]int
	// entries counts the lines that were taken, wrong those that a person could
	// make right.
	entries, wrong int
}

// readOwn finds the schedules of earlier imports of the file.
func (i *importer) readOwn(ctx context.Context) error {
	i.own = map[string]api.Schedule{}
	for s, err := range i.client.AllSchedules(ctx, client.ScheduleFilter{Labels: labelCrontab + "=" + i.flags.source}) {
		if err != nil {
			return err
		}
		i.own[s.Name] = s
	}
	return nil
}

func (i *importer) count(v verdict, line crontab.Line) {
	i.counts[v]++
	switch {
	case v == refused && !line.Foreign:
		i.wrong++
	case line.Entry != nil && v != refused:
		i.entries++
	}
}

// take deals with one line. An error ends the import; what concerns the line
// alone is a verdict.
func (i *importer) take(ctx context.Context, line crontab.Line) (verdict, string, error) {
	switch e := line.Entry; {
	case line.Ignored != "":
		return ignored, line.Ignored, nil
	case line.Setting != "":
		return applied, line.Setting, nil
	case e == nil:
		return refused, line.Refused, nil
	case e.User == "" && e.NamesUser():
		return refused, "the sixth field is a user, as in /etc/crontab: import the file with --system", nil
	}
	e := line.Entry
	i.seen[e.Identity()]++
	name := crontab.Name(e, i.seen[e.Identity()])
	old, exists, err := i.existing(ctx, name)
	if err != nil {
		return "", "", err
	}
	in, err := i.input(e, old)
	if err != nil {
		return "", "", err
	}
	r, err := i.client.Put(ctx, name, in, i.flags.dryRun)
	switch {
	case client.IsRefusal(err):
		return refused, oneLine(err.Error()), nil
	case err != nil:
		return "", "", err
	}
	i.taken[name] = true
	text := name + nextRun(r.Schedule)
	if e.User != "" {
		text += "; runs as " + e.User
	}
	switch {
	case !exists:
		return created, text, nil
	case in.Paused != nil:
		return resumed, text, nil
	case r.Outcome == "unchanged":
		return unchanged, name, nil
	}
	return updated, text, nil
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

// input returns the schedule of an entry, with the ways of cron. The labels that
// people gave it stay.
func (i *importer) input(e *crontab.Entry, old api.Schedule) (api.ScheduleInput, error) {
	payload, err := json.Marshal(struct {
		Command string            `json:"command"`
		Stdin   string            `json:"stdin,omitempty"`
		Shell   string            `json:"shell,omitempty"`
		Dir     string            `json:"dir,omitempty"`
		User    string            `json:"user,omitempty"`
		Env     map[string]string `json:"env,omitempty"`
	}{e.Command, e.Stdin, e.Shell, e.Dir, e.User, e.Env})
	if err != nil {
		return api.ScheduleInput{}, fmt.Errorf("encode the command: %w", err)
	}
	labels := maps.Clone(old.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[labelCrontab] = i.flags.source
	in := api.ScheduleInput{
		Spec: e.Spec, TimeZone: e.Zone, Labels: labels, Job: &api.JobInput{Queue: execQueue, Payload: payload},
		Misfire: string(core.MisfireRunOnce), Overlap: string(core.OverlapAllow), Exact: true, Timeout: "0s", MaxAttempts: 1,
	}
	if _, back := labels[labelLeft]; back {
		delete(labels, labelLeft)
		in.Paused = new(bool) // an import paused it, not a person
	}
	return in, nil
}

// settleLeft deals with the schedules whose lines left the file. Nothing is
// paused while a line is wrong: it may be theirs.
func (i *importer) settleLeft(ctx context.Context, a *app) error {
	for _, name := range slices.Sorted(maps.Keys(i.own)) {
		s := i.own[name]
		_, marked := s.Labels[labelLeft]
		switch {
		case i.taken[name] || marked && s.State == stateActive: // a person resumed it
			continue
		case marked, s.State != stateActive:
			continue
		case i.wrong > 0 && i.flags.prune:
			i.counts[left]++
			if err := a.report("-", left, name+" left the file; nothing is paused while lines are refused, since one may be its line"); err != nil {
				return err
			}
			continue
		case !i.flags.prune:
			i.counts[left]++
			if err := a.report("-", left, name+" left the file; --prune pauses it"); err != nil {
				return err
			}
			continue
		}
		if err := i.pause(ctx, s); err != nil {
			return fmt.Errorf("pause %s: %w", name, err)
		}
		i.counts[paused]++
		if err := a.report("-", paused, name+" left the file"); err != nil {
			return err
		}
	}
	return nil
}

const stateActive = string(core.ScheduleActive)

// pause pauses a schedule and marks it as one that an import may resume.
func (i *importer) pause(ctx context.Context, s api.Schedule) error {
	if i.flags.dryRun {
		return nil
	}
	labels, yes := maps.Clone(s.Labels), true
	labels[labelLeft] = "true"
	_, err := i.client.Edit(ctx, s.ID, api.ScheduleInput{Labels: labels, Paused: &yes})
	return err
}
