package executor_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/executor"
	"github.com/fencepost/fencepost/infra/inprocess"
)

// asking is a queue that notes how many messages it was asked for.
type asking struct {
	*inprocess.Queue
	mu    sync.Mutex
	asked []int
}

func (a *asking) Receive(ctx context.Context, queue string, most int) ([]core.Delivery, error) {
	a.mu.Lock()
	a.asked = append(a.asked, most)
	a.mu.Unlock()
	return a.Queue.Receive(ctx, queue, most)
}

// An executor that is full and has a backlog asks for ten messages at once,
// although its attempts end one by one.
func TestFullExecutorAsksForMany(t *testing.T) {
	bubble(t, func(s *stage) {
		q := &asking{Queue: s.queue}
		var mu sync.Mutex
		begun := 0
		stop := s.execute(func(context.Context, core.Execution) (json.RawMessage, error) {
			mu.Lock()
			begun++
			d := 100*time.Millisecond + time.Duration(begun%10)*time.Millisecond
			mu.Unlock()
			time.Sleep(d)
			return nil, nil
		}, func(c *executor.Config) { c.Queue, c.Concurrency = q, 10 })
		var ms []core.Message
		for range 50 {
			ms = append(ms, s.ready(nil))
		}
		s.publish(ms...)
		s.until(5 * time.Second)
		stop()
		if diff := cmp.Diff([]int{10, 10, 10, 10, 10, 10}, q.asked); diff != "" {
			s.Errorf("messages asked for: %s", diff)
		}
	})
}

// Attempts that end rarely are not waited for, beyond a moment.
func TestReserveGoesOnAfterAMoment(t *testing.T) {
	bubble(t, func(s *stage) {
		began := map[int]time.Duration{}
		var mu sync.Mutex
		stop := s.execute(func(context.Context, core.Execution) (json.RawMessage, error) {
			mu.Lock()
			n := len(began)
			began[n] = s.at()
			mu.Unlock()
			time.Sleep(time.Duration(n+1) * time.Second)
			return nil, nil
		}, func(c *executor.Config) { c.Concurrency = 2 })
		var ms []core.Message
		for range 3 {
			ms = append(ms, s.ready(nil))
		}
		s.publish(ms...)
		s.until(10 * time.Second)
		stop()
		if diff := cmp.Diff(map[int]time.Duration{0: 0, 1: 0, 2: time.Second + 20*time.Millisecond}, began); diff != "" {
			s.Errorf("attempts began at: %s", diff)
		}
	})
}

// Where no backlog waits, no start does.
func TestReserveWithoutBacklogWaitsForNothing(t *testing.T) {
	bubble(t, func(s *stage) {
		var began []time.Duration
		var mu sync.Mutex
		stop := s.execute(func(context.Context, core.Execution) (json.RawMessage, error) {
			mu.Lock()
			began = append(began, s.at())
			mu.Unlock()
			time.Sleep(5 * time.Second)
			return nil, nil
		}, func(c *executor.Config) { c.Concurrency = 4 })
		var want []time.Duration
		for i := range 3 {
			s.until(time.Duration(i) * time.Millisecond)
			want = append(want, s.at())
			s.give(nil)
		}
		s.until(10 * time.Second)
		stop()
		if diff := cmp.Diff(want, began); diff != "" {
			s.Errorf("attempts began at: %s", diff)
		}
	})
}
