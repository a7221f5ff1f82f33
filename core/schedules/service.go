package schedules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// Service is safe for concurrent use.
type Service struct {
	store   core.ScheduleStore
	region  string
	targets map[string]core.Target
	known   string // names the targets, for messages
	match   Match
}

// New returns a service on store. Schedules live in region; targets are the
// queues that a job may name, with what executes them. New keeps the map and
// does not change it.
func New(store core.ScheduleStore, region string, targets map[string]core.Target) *Service {
	names := slices.Sorted(maps.Keys(targets))
	return &Service{store: store, region: region, targets: targets, known: "known are " + strings.Join(names, ", ")}
}

// maxRounds bounds how often an edit is planned anew because its row changed
// between the read and the write.
const maxRounds = 20

// Get returns one schedule; core.ErrNotFound.
func (s *Service) Get(ctx context.Context, tenant, id uuid.UUID) (core.Scheduled, error) {
	return s.store.Get(ctx, tenant, id)
}

// The bounds of a page: one with large payloads is cut, so that neither the
// database nor the caller holds a thousand of them at once.
const (
	readChunk    = 100
	maxPageBytes = 4 << 20
)

// List returns a page of schedules, oldest first. It is shorter than asked for
// where payloads are large or the filter lets few pass; More says whether to go on.
func (s *Service) List(ctx context.Context, tenant uuid.UUID, q core.ScheduleQuery) (core.SchedulePage, error) {
	page := core.SchedulePage{More: true, Last: q.After}
	size := 0
	for page.More && len(page.Items) < q.Limit {
		next := q
		next.After, next.Limit = page.Last, min(readChunk, q.Limit-len(page.Items))
		part, err := s.store.List(ctx, tenant, next)
		if err != nil {
			return core.SchedulePage{}, err
		}
		for _, found := range part.Items {
			if size += len(found.Schedule.Job.Payload); size > maxPageBytes && len(page.Items) > 0 {
				return page, nil // it goes on behind its last item
			}
			page.Items, page.Last = append(page.Items, found), found.Schedule.ID
		}
		page.More, page.Last = part.More, part.Last
		if len(part.Items) < next.Limit {
			break // the look was bounded, or this is the end
		}
	}
	return page, nil
}

// Runs returns a page of a schedule's runs, newest slot first;
// core.ErrNotFound for an unknown schedule.
func (s *Service) Runs(ctx context.Context, tenant, id uuid.UUID, q core.RunQuery) (core.RunPage, error) {
	runs, err := s.store.Runs(ctx, tenant, id, q)
	if err != nil || len(runs.Items) > 0 {
		return runs, err
	}
	// No runs: tell a schedule without runs from no schedule.
	if _, err := s.store.Get(ctx, tenant, id); err != nil {
		return core.RunPage{}, fmt.Errorf("list runs: %w", err)
	}
	return runs, nil
}

// Run returns one run with its failed attempts; core.ErrNotFound.
func (s *Service) Run(ctx context.Context, tenant uuid.UUID, key core.RunKey) (core.Run, []core.Attempt, error) {
	return s.store.Run(ctx, tenant, key)
}

// Filter returns the schedule of a name, if there is one and the query lets it
// pass.
func (s *Service) Filter(ctx context.Context, tenant uuid.UUID, name string, q core.ScheduleQuery) ([]core.Scheduled, error) {
	found, err := s.GetNamed(ctx, tenant, name)
	switch {
	case errors.Is(err, core.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case !q.Chooses(&found):
		return nil, nil
	}
	return []core.Scheduled{found}, nil
}
