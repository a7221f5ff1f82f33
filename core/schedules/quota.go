package schedules

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

// Limits bound what each tenant may have. The zero value bounds nothing but what
// core does.
type Limits struct {
	// Schedules is how many schedules a tenant may have, up to MaxQuota. Zero is no
	// limit. It is kept to approximately: each process counts every ten seconds, for
	// large limits more rarely, and knows at once only of what it creates itself.
	Schedules int
	// MinInterval is the smallest time between two slots of a schedule. Clock
	// changes do not count. Those that exist stay. Zero is core.MinInterval.
	MinInterval time.Duration
}

// MaxQuota bounds Limits.Schedules, since counting takes time.
const MaxQuota = 1_000_000

// NewLimited returns a service like New, which holds tenants to limits. It fails
// if these make no sense.
func NewLimited(store core.ScheduleStore, region string, targets map[string]core.Target, l Limits) (*Service, error) {
	switch {
	case l.Schedules < 0 || l.Schedules > MaxQuota:
		return nil, core.Invalid("quota", "must be from 0, which is none, to %d schedules", MaxQuota)
	case l.MinInterval < 0:
		return nil, core.Invalid("smallest interval", "must not be negative")
	}
	s := New(store, region, targets)
	if l.Schedules > 0 {
		s.quota = &quota{most: l.Schedules, store: store, tallies: map[uuid.UUID]*tally{}}
	}
	s.minInterval = l.MinInterval
	return s, nil
}

const (
	// countEvery is how old a count of schedules may get, for each 100,000 that a
	// tenant may have. Before a refusal it is not older than a tenth of that.
	countEvery = 10 * time.Second
	countStep  = 100_000
	// maxTallies bounds the tenants that are remembered.
	maxTallies = 10_000
)

// quota knows about how many schedules each tenant has. A nil one has no limit.
// Safe for concurrent use.
type quota struct {
	most  int
	store core.ScheduleStore

	mutex   sync.Mutex
	tallies map[uuid.UUID]*tally
}

// tally is what is known of one tenant.
type tally struct {
	counted int       // by the store
	at      time.Time // of that count, by the database's clock
	mark    int       // what made was when that count began
	made    int       // by this process, less what it deleted
	pending int       // being made
}

func (t *tally) used() int { return t.counted + t.made - t.mark + t.pending }

// reserve returns how many of n new schedules a tenant may make. Whoever reserved
// settles.
func (q *quota) reserve(ctx context.Context, tenant uuid.UUID, n int, now time.Time) (int, error) {
	if q == nil || n == 0 {
		return n, nil
	}
	if err := q.count(ctx, tenant, n, now); err != nil {
		return 0, fmt.Errorf("count schedules: %w", err)
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	t := q.of(tenant)
	granted := max(0, min(n, q.most-t.used()))
	t.pending += granted
	return granted, nil
}

// count counts a tenant's schedules if what is known is too old for n more.
func (q *quota) count(ctx context.Context, tenant uuid.UUID, n int, now time.Time) error {
	oldest := countEvery * time.Duration(1+(q.most-1)/countStep)
	q.mutex.Lock()
	t := q.of(tenant)
	age, mark := now.Sub(t.at), t.made
	if t.used()+n > q.most {
		oldest /= 10
	}
	q.mutex.Unlock()
	if age < oldest {
		return nil
	}
	counted, err := q.store.CountSchedules(ctx, tenant, q.most)
	if err != nil {
		return err
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	t = q.of(tenant)
	t.counted, t.at, t.mark = counted, now, min(mark, t.made)
	return nil
}

// settle says what became of schedules that were reserved, or with none reserved
// that some were deleted.
func (q *quota) settle(tenant uuid.UUID, reserved, made int) {
	if q == nil {
		return
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	t := q.of(tenant)
	t.pending = max(0, t.pending-reserved)
	t.made += made
}

// of returns the tally of a tenant. Forgotten ones are counted again.
func (q *quota) of(tenant uuid.UUID) *tally {
	t, ok := q.tallies[tenant]
	if ok {
		return t
	}
	for other, o := range q.tallies {
		if len(q.tallies) < maxTallies {
			break
		}
		if o.pending == 0 {
			delete(q.tallies, other)
		}
	}
	t = &tally{}
	q.tallies[tenant] = t
	return t
}

func (q *quota) exceeded() error {
	return &core.Error{
		Code: core.ErrQuotaExceeded.Code, Kind: core.ErrQuotaExceeded.Kind,
		Message: fmt.Sprintf("a tenant may have %d schedules here; delete some, or ask the operator for more", q.most),
	}
}

// The look for the smallest interval: over a year, or so many slots.
const (
	lookSlots = 1500
	lookSpan  = 366 * 24 * time.Hour
)

// checkInterval refuses a schedule that comes more often than it may.
func (s *Service) checkInterval(sch *core.Schedule, parsed spec.Spec) error {
	if s.minInterval <= core.MinInterval || parsed.OneTime {
		return nil
	}
	// In UTC, since the hours that clock changes shorten are not the user's choice.
	plain := *sch
	plain.Spec, plain.TimeZone, plain.Anchor = parsed.Text, "", parsed.Anchor
	if inUTC, err := spec.Load(&plain); err == nil {
		parsed = inUTC
	}
	first := parsed.Next(time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC))
	for n, at := 0, first; n < lookSlots && !at.IsZero() && at.Sub(first) < lookSpan; n++ {
		next := parsed.Next(at)
		if gap := next.Sub(at); !next.IsZero() && gap < s.minInterval {
			return &core.Error{
				Code: core.ErrQuotaExceeded.Code, Kind: core.ErrQuotaExceeded.Kind, Field: "spec",
				Message: fmt.Sprintf("has slots %s apart; %s is the smallest interval here; choose a longer one, or ask the operator for less",
					core.FormatDuration(gap), core.FormatDuration(s.minInterval)),
			}
		}
		at = next
	}
	return nil
}
