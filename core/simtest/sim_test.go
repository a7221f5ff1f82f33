package simtest_test

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core/check"
	"github.com/fencepost/fencepost/core/simtest"
)

// setting reads a number from the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// judge plays a seed and returns its report as text if a rule was broken.
func judge(t *testing.T, seed uint64) (*check.History, string) {
	t.Helper()
	h, err := simtest.Play(t.Context(), seed, nil)
	if err != nil {
		return nil, err.Error()
	}
	r, err := check.Check(h, simtest.Bounds)
	if err != nil {
		return h, err.Error()
	}
	if r.OK() {
		return h, ""
	}
	var text bytes.Buffer
	_ = r.Print(&text) // a buffer takes everything
	return h, text.String()
}

// seeds gives out which histories to play: 2,000, or as the environment says: one again
// (FENCEPOST_SEED), another number of them (FENCEPOST_HISTORIES), or new ones for a time
// (FENCEPOST_SOAK).
func seeds(t *testing.T) (next func() (uint64, bool), alone bool) {
	t.Helper()
	first, n := uint64(1), setting(t, "FENCEPOST_HISTORIES", 2000)
	if one := setting(t, "FENCEPOST_SEED", 0); one > 0 {
		first, n = one, 1
	}
	var given atomic.Uint64
	if text := os.Getenv("FENCEPOST_SOAK"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("FENCEPOST_SOAK: %v", err)
		}
		began := time.Now()
		first = uint64(began.Unix())
		return func() (uint64, bool) { return first + given.Add(1), time.Since(began) < d }, false
	}
	return func() (uint64, bool) {
		k := given.Add(1) - 1
		return first + k, k < n
	}, n == 1
}

// workers leaves half of the processors to the tests beside, unless there are none.
func workers() int {
	if os.Getenv("FENCEPOST_SOAK") != "" || os.Getenv("FENCEPOST_HISTORIES") != "" {
		return runtime.GOMAXPROCS(0)
	}
	return max(1, runtime.GOMAXPROCS(0)/2)
}

// TestHistories plays histories and judges each.
func TestHistories(t *testing.T) {
	t.Parallel()
	began := time.Now()
	next, alone := seeds(t)
	var histories, failed, runs, attempts, faults atomic.Int64
	var once sync.Once
	one := func(seed uint64) {
		h, wrong := judge(t, seed)
		histories.Add(1)
		if h != nil {
			runs.Add(int64(len(h.Runs)))
			attempts.Add(int64(len(h.Executions)))
			faults.Add(int64(len(h.Faults)))
		}
		if wrong == "" {
			return
		}
		if failed.Add(1); os.Getenv("FENCEPOST_ALL") != "" {
			t.Logf("seed %d\n%s", seed, wrong)
		}
		once.Do(func() {
			t.Errorf("seed %d; play it again with FENCEPOST_SEED=%d go test -v -run TestHistories ./core/simtest\n%s", seed, seed, wrong)
		})
		if alone && h != nil {
			dump(t, h)
		}
	}
	var players sync.WaitGroup
	for range workers() {
		players.Go(func() {
			for seed, more := next(); more; seed, more = next() {
				one(seed)
			}
		})
	}
	players.Wait()
	took := time.Since(began)
	t.Logf("%d histories in %s, %.0f a second: %d runs, %d attempts, %d faults; %d broke a rule", histories.Load(), took.Round(time.Millisecond),
		float64(histories.Load())/took.Seconds(), runs.Load(), attempts.Load(), faults.Load(), failed.Load())
}

func dump(t *testing.T, h *check.History) {
	t.Helper()
	dir, err := os.MkdirTemp("", "fencepost-history-")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Write(dir); err != nil {
		t.Fatal(err)
	}
	t.Logf("the history is in %s", dir)
}

// TestSameSeed: a seed plays the same history each time, and another plays another.
func TestSameSeed(t *testing.T) {
	t.Parallel()
	play := func(seed uint64) string {
		h, err := simtest.Play(t.Context(), seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for seed := range uint64(10) {
		if a, b := play(seed), play(seed); a != b {
			i := 0
			for a[i] == b[i] {
				i++
			}
			t.Fatalf("seed %d: ...%s\nand ...%s", seed, strings.ToValidUTF8(a[max(0, i-300):i+200], ""), b[max(0, i-300):i+200])
		}
	}
	if play(1) == play(2) {
		t.Error("two seeds play the same")
	}
}
