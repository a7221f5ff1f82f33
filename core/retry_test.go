package core_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core"
)

func TestRetryDelay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		retry   core.Retry
		attempt int
		random  float64
		want    time.Duration
	}{
		"first":                    {core.Retry{}, 1, 0, 5 * time.Second},
		"first, at most":           {core.Retry{}, 1, 0.999999999999, 10 * time.Second},
		"doubles":                  {core.Retry{}, 3, 1, 40 * time.Second},
		"bounded":                  {core.Retry{}, 20, 1, time.Hour},
		"bug-h50":                  {core.Retry{InitialDelay: time.Second, MaxDelay: time.Hour}, 70, 1, time.Hour},
		"as many as there may be":  {core.Retry{Multiplier: 100}, 1 << 30, 0, 30 * time.Minute},
		"no attempt":               {core.Retry{}, 0, 1, 10 * time.Second},
		"constant":                 {core.Retry{Multiplier: 1}, 9, 1, 10 * time.Second},
		"full":                     {core.Retry{Jitter: core.JitterFull}, 2, 0.25, 5 * time.Second},
		"initial beyond the bound": {core.Retry{InitialDelay: 2 * time.Hour}, 1, 1, time.Hour},
		"bound below the initial":  {core.Retry{MaxDelay: time.Second}, 1, 1, time.Second},
		"a third more":             {core.Retry{InitialDelay: 9 * time.Second, Multiplier: 4.0 / 3}, 2, 1, 12 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.retry.Delay(c.attempt, c.random)
			if off := got - c.want; off > time.Microsecond || off < -time.Microsecond {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	base := errors.New("busy")
	wrapped := fmt.Errorf("call: %w", core.RetryAfter(base, time.Minute))
	if got := core.RetryDelay(wrapped); got != time.Minute || !errors.Is(wrapped, base) || wrapped.Error() != "call: busy" {
		t.Errorf("%s of %v", got, wrapped)
	}
	if core.RetryAfter(nil, time.Minute) != nil || core.RetryDelay(base) != 0 {
		t.Error("nothing asks for a delay")
	}
	if got := core.RetryDelay(core.RetryAfter(base, 1000*time.Hour)); got != core.MaxRetryAfter {
		t.Errorf("unbounded: %s", got)
	}
	if got := core.RetryDelay(core.RetryAfter(base, -time.Hour)); got != 0 {
		t.Errorf("negative: %s", got)
	}
}
