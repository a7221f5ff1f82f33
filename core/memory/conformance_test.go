package memory_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core/memory"
	"github.com/fencepost/fencepost/core/storetest"
)

// still is a clock that moves only when it is told to.
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

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, open)
}

func TestUpkeep(t *testing.T) {
	t.Parallel()
	storetest.RunUpkeep(t, open)
}

func open(*testing.T) storetest.Harness {
	clock := &still{now: time.Date(2027, 3, 9, 11, 29, 31, 123_456_000, time.UTC)}
	s := memory.New("local", clock)
	return storetest.Harness{Store: s, Region: "local", Advance: clock.advance, Alert: s.Alert}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	storetest.RunPolicies(t, open)
}
