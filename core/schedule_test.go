package core_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

func TestSpread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec   string
		window time.Duration
		exact  bool
		want   time.Duration
	}{
		{"@hourly", 0, false, time.Hour}, {"@daily", 0, false, time.Hour}, {"@weekly", 0, false, time.Hour}, {"@monthly", 0, false, time.Hour},
		{"@yearly", 0, false, time.Hour}, {"@annually", 0, false, time.Hour}, {"@midnight", 0, false, 0}, {"@daily", 0, true, 0},
		{"@daily", 20 * time.Minute, false, 20 * time.Minute}, {"0 0 * * *", 0, false, 0}, {"0 0 * * *", time.Minute, false, time.Minute},
		{"every 1h", 0, false, 0},
	} {
		s := core.Schedule{Spec: c.spec, Window: c.window, Exact: c.exact}
		if got := s.Spread(); got != c.want {
			t.Errorf("%s, window %s, exact %t: spread over %s, want %s", c.spec, c.window, c.exact, got, c.want)
		}
	}
}

// TestHourlyIsSpreadEvenly: of 100,000 schedules the busiest second holds at
// most twice the mean, none starts early or in the next hour, and shards say
// nothing about offsets.
func TestHourlyIsSpreadEvenly(t *testing.T) {
	t.Parallel()
	const n = 100_000
	seconds, quarters := map[time.Duration]int{}, map[[2]int]int{}
	for i := range n {
		s := core.Schedule{Spec: "@hourly", ID: uuid.MustParse("018f0000-0000-7000-8000-000000000000")}
		binary.BigEndian.PutUint64(s.ID[8:], uint64(i)|1<<63)
		offset := s.Offset()
		if offset < 0 || offset >= time.Hour || offset%time.Second != 0 || offset != s.Offset() {
			t.Fatalf("offset %s", offset)
		}
		seconds[offset]++
		quarters[[2]int{int(core.ShardOf(s.ID)) / 16, int(offset / (15 * time.Minute))}]++
	}
	busiest := 0
	for _, count := range seconds {
		busiest = max(busiest, count)
	}
	if busiest > 2*n/3600 {
		t.Errorf("the busiest second holds %d of a mean of %d", busiest, n/3600)
	}
	for pair, count := range quarters {
		if count < n/16*9/10 || count > n/16*11/10 {
			t.Errorf("quarter of shards and of the hour %v: %d schedules, want about %d", pair, count, n/16)
		}
	}
}
