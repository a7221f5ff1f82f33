package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/local/manifest"
	"github.com/fencepost/fencepost/local/terminal"
)

// pruneSets deletes the schedules of the files' sets that no file has.
func (r *applier) pruneSets(ctx context.Context) error {
	names := map[string]bool{}
	for _, w := range r.wanted {
		names[w.Name] = true
	}
	for _, set := range slices.Sorted(maps.Keys(r.sets)) {
		var gone []api.Schedule
		for s, err := range r.client.AllSchedules(ctx, client.ScheduleFilter{Labels: manifest.SetLabel + "=" + set}) {
			if err != nil {
				return fmt.Errorf("prune set %s: %w", set, err)
			}
			if !names[s.Name] {
				gone = append(gone, s)
			}
		}
		for _, s := range gone {
			if err := r.pruneOne(ctx, s); err != nil {
				return fmt.Errorf("prune %q: %w", s.Name, err)
			}
		}
	}
	return nil
}

func (r *applier) pruneOne(ctx context.Context, s api.Schedule) error {
	if _, err := fmt.Fprintln(r.Out, terminal.Printable("pruned "+s.Name)); err != nil {
		return err
	}
	r.counts.pruned++
	if r.dryRun {
		return nil
	}
	// Only as it was listed: a set that takes it over keeps it.
	err := r.client.DeleteVersion(ctx, s.ID, s.Version)
	switch {
	case client.IsCode(err, core.ErrNotFound.Kind):
		return nil // somebody was faster
	case client.IsCode(err, versionMismatch):
		return errors.New("somebody changed it meanwhile; apply again to go on")
	}
	return err
}
