package modeltest_test

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/modeltest"
)

// workers leaves half of the processors to the tests beside, unless there are none.
func workers() int {
	if os.Getenv("FENCEPOST_SOAK") != "" {
		return runtime.GOMAXPROCS(0)
	}
	return max(1, runtime.GOMAXPROCS(0)/2)
}

// reach is how deep to look, and for how long at most: ten steps, or as far as a time
// goes that the environment gives (FENCEPOST_SOAK).
func reach(t *testing.T) (depth int, limit time.Duration) {
	t.Helper()
	text := os.Getenv("FENCEPOST_SOAK")
	if text == "" {
		return 10, 5 * time.Minute
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return 60, d / 5 // for each of five
}

// TestModel looks at all orders of ten steps; -v prints how many states that makes.
func TestModel(t *testing.T) {
	for name, scope := range map[string]modeltest.Scope{
		"skip, pause":            {Overlap: core.OverlapSkip},
		"skip, trigger":          {Overlap: core.OverlapSkip, Trigger: true},
		"queue_one, trigger":     {Overlap: core.OverlapQueueOne, Trigger: true},
		"cancel_previous, pause": {Overlap: core.OverlapCancelPrevious},
		"allow, pause":           {Overlap: core.OverlapAllow},
	} {
		t.Run(name, func(t *testing.T) {
			depth, limit := reach(t)
			f := modeltest.Explore(t.Context(), scope, depth, workers(), limit, time.Now)
			if f.Wrong != "" {
				t.Errorf("%s, by\n  %s", f.Wrong, strings.Join(f.Path, "\n  "))
			}
			t.Logf("%d states, all paths of %d steps", f.States, f.Depth)
			if f.Depth < 10 && f.Wrong == "" {
				t.Errorf("only %d steps deep", f.Depth)
			}
		})
	}
}

// anyFence takes outcomes under any fence.
type anyFence struct{ modeltest.Store }

func (s anyFence) Finish(ctx context.Context, os []core.Outcome) ([]core.Finished, error) {
	for fence := os[0].Fence; fence < os[0].Fence+8; fence++ {
		o := os[0]
		o.Fence = fence
		if got, err := s.Store.Finish(ctx, []core.Outcome{o}); err != nil || len(got) > 0 {
			return got, err
		}
	}
	return nil, nil
}

// beside lets every slot run beside what is alive.
type beside struct{ modeltest.Store }

func (s beside) Claim(ctx context.Context, shard int16, moves []core.Move, lease time.Duration) ([]core.Claimed, error) {
	moves[0].OnBusy = core.BusyAllow
	return s.Store.Claim(ctx, shard, moves, lease)
}

// TestModelFinds: a store that breaks a promise is found, with the shortest way to it.
func TestModelFinds(t *testing.T) {
	for rule, spoil := range map[string]func(modeltest.Store) modeltest.Store{
		"C6":  func(s modeltest.Store) modeltest.Store { return anyFence{s} },
		"C10": func(s modeltest.Store) modeltest.Store { return beside{s} },
	} {
		f := modeltest.Explore(t.Context(), modeltest.Scope{Overlap: core.OverlapSkip, Spoil: spoil}, 12, workers(), 2*time.Minute, time.Now)
		if !strings.HasPrefix(f.Wrong, rule+":") {
			t.Errorf("%s: %q after %d states, %d deep", rule, f.Wrong, f.States, f.Depth)
		}
		t.Logf("%s, by\n  %s", f.Wrong, strings.Join(f.Path, "\n  "))
	}
}
