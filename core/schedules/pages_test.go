package schedules_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

// long is a store with lists of equal items, numbered from 1.
type long struct {
	core.ScheduleStore
	items int
	item  core.Scheduled
	run   core.Run
	err   error
	reads []int // limits that were asked for
}

func (l *long) List(_ context.Context, _ uuid.UUID, q core.ScheduleQuery) (core.SchedulePage, error) {
	l.reads = append(l.reads, q.Limit)
	var page core.SchedulePage
	for n := int(q.After[15]) + int(q.After[14])<<8 + 1; n <= l.items && len(page.Items) < q.Limit; n++ {
		found := l.item
		found.Schedule.ID[14], found.Schedule.ID[15] = byte(n>>8), byte(n)
		page.Items, page.Last, page.More = append(page.Items, found), found.Schedule.ID, n < l.items
	}
	return page, l.err
}

func (l *long) Runs(_ context.Context, _, _ uuid.UUID, q core.RunQuery) (core.RunPage, error) {
	l.reads = append(l.reads, q.Limit)
	var page core.RunPage
	for n := 1; n <= l.items && len(page.Items) < q.Limit; n++ {
		r := l.run
		if r.Key.Slot = time.Unix(int64(10_000-n), 0); q.Before.IsZero() || r.Key.Slot.Before(q.Before) {
			page.Items, page.Last, page.More = append(page.Items, r), r.Key.Slot, n < l.items
		}
	}
	return page, l.err
}

type position struct {
	after  uuid.UUID
	before time.Time
	more   bool
}

// walk counts the items of the first page and of all, and the pages.
func walk(t *testing.T, next func(*position) (int, error)) (first, total, pages int) {
	t.Helper()
	p := position{more: true}
	for ; p.more && pages < 2000; pages++ {
		n, err := next(&p)
		if err != nil {
			t.Fatal(err)
		}
		if pages == 0 {
			first = n
		}
		total += n
	}
	return first, total, pages
}

// TestPagesAreBounded: what is large ends a page early; none is empty, each goes
// on behind its last item, and no more than a chunk is read at once.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	labels := map[string]string{}
	for i := range core.MaxLabels {
		labels[fmt.Sprintf("%s%02d", strings.Repeat("k", 60), i)] = strings.Repeat("v", 200)
	}
	small := core.Scheduled{Schedule: core.Schedule{Job: core.Job{Payload: []byte(`{}`)}}}
	for name, c := range map[string]struct {
		item        core.Scheduled
		run         core.Run
		limit, want int
		pages       int
	}{
		"small items":     {item: small, limit: 1000, want: 1000, pages: 2},
		"a part of chunk": {item: small, limit: 150, want: 150, pages: 8},
		"large payloads":  {item: core.Scheduled{Schedule: core.Schedule{Job: core.Job{Payload: make([]byte, 256<<10)}}}, limit: 1000, want: 16, pages: 75},
		"too large alone": {item: core.Scheduled{Schedule: core.Schedule{Job: core.Job{Payload: make([]byte, 5<<20)}}}, limit: 7, want: 1, pages: 1200},
		"many labels":     {item: core.Scheduled{Schedule: core.Schedule{Labels: labels}}, limit: 1000, want: 500, pages: 3},
		"large results":   {run: core.Run{Result: make([]byte, 16<<10), Error: strings.Repeat("x", 4<<10)}, limit: 1000, want: 204, pages: 6},
	} {
		store := &long{items: 1200, item: c.item, run: c.run}
		service := schedules.New(store, "local", nil)
		next := func(p *position) (int, error) {
			page, err := service.List(t.Context(), uuid.UUID{}, core.ScheduleQuery{After: p.after, Limit: c.limit})
			p.more, p.after = page.More, page.Last
			return len(page.Items), err
		}
		if c.run.Result != nil {
			next = func(p *position) (int, error) {
				page, err := service.Runs(t.Context(), uuid.UUID{}, uuid.UUID{}, core.RunQuery{Before: p.before, Limit: c.limit})
				p.more, p.before = page.More, page.Last
				return len(page.Items), err
			}
		}
		first, total, pages := walk(t, next)
		if diff := cmp.Diff([]int{c.want, 1200, c.pages}, []int{first, total, pages}); diff != "" {
			t.Errorf("%s: items of the first page, of all, pages: %s", name, diff)
		}
		for _, n := range store.reads {
			if n > 100 || n < 1 {
				t.Errorf("%s: %d read at once", name, n)
			}
		}
	}
}

func TestPagesEndWithAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	service := schedules.New(&long{items: 3, err: broken}, "local", nil)
	if page, err := service.List(t.Context(), uuid.UUID{}, core.ScheduleQuery{Limit: 2}); !errors.Is(err, broken) || len(page.Items) > 0 {
		t.Errorf("%+v %v", page, err)
	}
	if page, err := service.Runs(t.Context(), uuid.UUID{}, uuid.UUID{}, core.RunQuery{Limit: 2}); !errors.Is(err, broken) || len(page.Items) > 0 {
		t.Errorf("%+v %v", page, err)
	}
}
