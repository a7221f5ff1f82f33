package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/executor"
)

// queueing is a schedule whose slots may wait for a run.
func queueing(c *core.Schedule) { c.Overlap = core.OverlapQueueOne }

// A run that slots may wait for is told of when it has ended, and no other.
func TestNudge(t *testing.T) {
	broken := errors.New("it broke")
	for name, tt := range map[string]struct {
		change func(*core.Schedule)
		err    error
		want   int
	}{
		"success":               {queueing, nil, 1},
		"a failure for good":    {queueing, core.Permanent(broken), 1},
		"a failure to be tried": {queueing, broken, 0},
		"nothing waits":         {nil, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(s *stage) {
				var got []uuid.UUID
				f := &faults{Store: s.db, onNudge: func(_ context.Context, ids []uuid.UUID) { got = append(got, ids...) }}
				stop := s.execute(func(context.Context, core.Execution) (json.RawMessage, error) { return nil, tt.err },
					func(c *executor.Config) { c.Store = f })
				key := s.give(tt.change)
				s.until(time.Second)
				stop()
				want := slices.Repeat([]uuid.UUID{key.ScheduleID}, tt.want)
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					s.Errorf("nudged schedules (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A nudge that hangs ends by itself, holds no outcome up, and what came meanwhile
// goes in one statement. The end of the executor sends what is left.
func TestNudgeHoldsNothingUp(t *testing.T) {
	bubble(t, func(s *stage) {
		var mu sync.Mutex
		var sizes []int
		f := &faults{Store: s.db, onNudge: func(ctx context.Context, ids []uuid.UUID) {
			mu.Lock()
			sizes = append(sizes, len(ids))
			mu.Unlock()
			<-ctx.Done()
		}}
		stop := s.execute(takes(0), func(c *executor.Config) { c.Store = f })
		s.give(queueing)
		s.until(100 * time.Millisecond)
		var keys []core.RunKey
		for range 20 {
			keys = append(keys, s.give(queueing))
		}
		s.until(200 * time.Millisecond)
		for _, k := range keys {
			if r := s.run(k); r.State != core.RunSucceeded {
				s.Errorf("while a nudge hangs a run is %s", r.State)
			}
		}
		s.until(3 * time.Second)
		s.give(queueing)
		s.until(3100 * time.Millisecond)
		stop()
		if took := s.at(); took > 6100*time.Millisecond { // two hang, one after the other
			s.Errorf("the end took until %s", took)
		}
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff([]int{1, 20, 1}, sizes); diff != "" {
			s.Errorf("schedules in each nudge (-want +got):\n%s", diff)
		}
	})
}
