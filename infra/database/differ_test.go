package database_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core/memory"
	"github.com/fencepost/fencepost/core/storetest"
)

// still is the clock of the reference: it moves only when it is told to.
type still struct {
	mu  sync.Mutex
	now time.Time
}

func (s *still) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *still) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// The store only reads the time.

func (*still) Sleep(context.Context, time.Duration) error { panic("the store slept") }
func (*still) After(time.Duration) <-chan time.Time       { panic("the store waited") }

// TestDiffer does the same to the reference store and to the database, in sequences
// that a seed chooses, and compares answers and state after each operation: the
// simulations run on the reference, and say something of the database by this test.
func TestDiffer(t *testing.T) {
	t.Parallel()
	const steps = 400
	for name, serializable := range map[string]bool{"read_committed": false, "serializable": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := clocked(t, serializable)
			for seed := range uint64(3) {
				differ(t, seed, steps, open(t))
			}
		})
	}
}

func differ(t *testing.T, seed uint64, steps int, b storetest.Harness) {
	t.Helper()
	now, err := b.Store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	clock := &still{now: now}
	reference := memory.New(b.Region, clock)
	storetest.Differ(t, seed, steps, storetest.Harness{Store: reference, Region: b.Region, Advance: clock.advance, Alert: reference.Alert}, b)
}
