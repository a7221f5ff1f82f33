package claimer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
)

// A claim under way when the claimer is told to end goes through, and its runs
// are published: nobody else would for the length of a dispatch lease.
func TestEndDuringAClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, out := newStore(), &published{}
		s.add(10, time.Now())
		claiming, answer := make(chan struct{}), make(chan struct{})
		s.onClaim = func() error {
			close(claiming)
			<-answer
			return nil
		}
		stop := run(t, s, out, nil)
		<-claiming
		stopped := make(chan struct{})
		go func() {
			stop()
			close(stopped)
		}()
		synctest.Wait() // the end has been asked for
		close(answer)
		<-stopped
		if out.count() != 10 {
			t.Errorf("%d runs were published, want 10", out.count())
		}
	})
}

// A claim's answer is lost, and the database is out of reach for a while: the
// runs are published when it is back, not when their dispatch lease ends (H15).
func TestUnknownClaimDuringAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, out := newStore(), &published{}
		s.add(10, time.Now())
		back := time.Now().Add(5 * time.Second)
		outage := func() error {
			if time.Now().Before(back) {
				return core.ErrUnknownOutcome
			}
			return nil
		}
		s.onClaim, s.onReadClaimed = outage, outage
		stop := run(t, s, out, nil)
		time.Sleep(time.Until(back) + 3*time.Second)
		if out.count() != 10 {
			t.Errorf("%d runs were published 3 s after the outage, want 10", out.count())
		}
		stop()
	})
}

// A timer that came up while the claimer could not look is found by its first
// look afterwards, however long that was.
func TestTimersMadeDuringAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, out := newStore(), &published{}
		began := time.Now()
		s.onLook = func() error {
			if since := time.Since(began); since > 2*time.Second && since < 25*time.Second {
				return core.ErrUnknownOutcome
			}
			return nil
		}
		stop := run(t, s, out, func(c *claimer.Config) { c.StragglerEvery = time.Hour })
		time.Sleep(3 * time.Second)
		s.add(1, time.Now())
		time.Sleep(22*time.Second + 11*time.Second) // the longest gap between rounds is 10 s
		if out.count() != 1 {
			t.Error("the timer was not found")
		}
		stop()
	})
}

// More timers are overdue than one look takes, or than fit in memory: they are
// claimed one look after the other, without a pause.
func TestMoreThanOneLookTakes(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]int{"than a look takes": 200_000, "than fit in memory": 3000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const n = 15_000
				s, out := newStore(), &published{}
				s.add(n, time.Now().Add(-time.Minute))
				stop := run(t, s, out, func(c *claimer.Config) { c.Held = held })
				time.Sleep(3 * time.Second)
				stop()
				if out.count() != n {
					t.Errorf("%d of %d timers were claimed within 3 s", out.count(), n)
				}
			})
		})
	}
}
