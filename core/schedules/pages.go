package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// The bounds of a page: one of large items is cut, so that neither the store nor
// the caller holds a thousand of them at once. A chunk is what is read in one go.
const (
	readChunk    = 100
	maxPageBytes = 4 << 20
)

// part is items of a list, and where it goes on if there are more.
type part[T, P any] struct {
	items []T
	more  bool
	last  P
}

// collect reads a page of up to limit items from a position on. Read returns up to
// n items from a position on; fewer, with more to come, end the page as well.
func collect[T, P any](from P, limit int, read func(from P, n int) (part[T, P], error), position func(*T) P, size func(*T) int) (part[T, P], error) {
	page := part[T, P]{more: true, last: from}
	held := 0
	for page.more && len(page.items) < limit {
		n := min(readChunk, limit-len(page.items))
		next, err := read(page.last, n)
		if err != nil {
			return part[T, P]{}, err
		}
		for i := range next.items {
			item := &next.items[i]
			if held += size(item); held > maxPageBytes && len(page.items) > 0 {
				return page, nil // it goes on behind its last item
			}
			page.items, page.last = append(page.items, *item), position(item)
		}
		page.more, page.last = next.more, next.last
		if len(next.items) < n {
			break
		}
	}
	return page, nil
}

// List returns a page of schedules, oldest first. It is shorter than asked for
// where payloads are large or the filter lets few pass; More says whether to go on.
func (s *Service) List(ctx context.Context, tenant uuid.UUID, q core.ScheduleQuery) (core.SchedulePage, error) {
	read := func(after uuid.UUID, n int) (part[core.Scheduled, uuid.UUID], error) {
		q.After, q.Limit = after, n
		page, err := s.store.List(ctx, tenant, q)
		return part[core.Scheduled, uuid.UUID]{page.Items, page.More, page.Last}, err
	}
	page, err := collect(q.After, q.Limit, read, func(f *core.Scheduled) uuid.UUID { return f.Schedule.ID }, scheduleBytes)
	return core.SchedulePage{Items: page.items, More: page.more, Last: page.last}, err
}

// scheduleBytes counts what may be large in a schedule.
func scheduleBytes(f *core.Scheduled) int {
	n := len(f.Schedule.Job.Payload)
	for key, value := range f.Schedule.Labels {
		n += len(key) + len(value)
	}
	return n
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

// Runs returns a page of a schedule's runs, newest slot first, which may be as
// short as List's; core.ErrNotFound for an unknown schedule.
func (s *Service) Runs(ctx context.Context, tenant, id uuid.UUID, q core.RunQuery) (core.RunPage, error) {
	read := func(before time.Time, n int) (part[core.Run, time.Time], error) {
		q.Before, q.Limit = before, n
		page, err := s.store.Runs(ctx, tenant, id, q)
		return part[core.Run, time.Time]{page.Items, page.More, page.Last}, err
	}
	page, err := collect(q.Before, q.Limit, read, func(r *core.Run) time.Time { return r.Key.Slot },
		func(r *core.Run) int { return len(r.Result) + len(r.Error) })
	if err == nil && len(page.items) == 0 {
		// Tell a schedule without such runs from no schedule.
		if _, err = s.store.Get(ctx, tenant, id); err != nil {
			err = fmt.Errorf("list runs: %w", err)
		}
	}
	if err != nil {
		return core.RunPage{}, err
	}
	return core.RunPage{Items: page.items, More: page.more, Last: page.last}, nil
}
