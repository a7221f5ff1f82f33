package e2e_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core/api/client"
	checker "github.com/fencepost/fencepost/core/check"
	"github.com/fencepost/fencepost/infra/embedded"
	"github.com/fencepost/fencepost/infra/sqs/sqstest"
)

// chaosQuiet is how long nothing goes wrong at the end: leases end, and what was lost
// is run again.
const chaosQuiet = 2 * time.Minute

// chaosBounds are what its history is judged by. The machine is busy with killing.
var chaosBounds = checker.Bounds{Skew: 500 * time.Millisecond, Lag: 10 * time.Second, Recovery: 75 * time.Second, Lease: 30 * time.Second, Settle: 2 * time.Minute}

// site is what jobs call: it writes down what they do, by its own clock.
type site struct {
	mu  sync.Mutex
	rng *rand.Rand
	log []checker.Execution
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		RunID        string    `json:"run_id"`
		ScheduleID   string    `json:"schedule_id"`
		ScheduledFor time.Time `json:"scheduled_for"`
		Attempt      int       `json:"attempt"`
		Fence        int64     `json:"fence"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	n, takes, fails := len(s.log), time.Duration(s.rng.IntN(1500))*time.Millisecond, s.rng.IntN(20) == 0
	if s.rng.IntN(15) == 0 {
		takes = 5*time.Second + time.Duration(s.rng.IntN(10))*time.Second
	}
	s.log = append(s.log, checker.Execution{Run: in.RunID, Schedule: in.ScheduleID, Slot: in.ScheduledFor, Attempt: in.Attempt, Fence: in.Fence, Begin: time.Now()})
	s.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-r.Context().Done(): // whoever called is gone, or gave it up
		fails = true
	}
	s.mu.Lock()
	s.log[n].End, s.log[n].Failed = time.Now(), fails
	s.mu.Unlock()
	if fails {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]int64{"fence": in.Fence}) // who is gone hears nothing
}

// chaos is an installation of real processes, and what is done to it.
type chaos struct {
	*world
	rng       *rand.Rand
	dir       string
	server    *embedded.Server
	front     *sqstest.Front
	api       *client.Client
	claimers  []*process
	executors []*process
	h         checker.History
	ids       []string
	site      *site
	deck      []int // kinds of faults to come
}

// TestChaos kills, freezes and cuts off the processes of an installation of 300
// schedules for as long as FENCEPOST_CHAOS says, and judges its history. make chaos
// runs it.
func TestChaos(t *testing.T) {
	text := os.Getenv("FENCEPOST_CHAOS")
	if text == "" {
		t.Skip("make chaos runs it")
	}
	lasts, err := time.ParseDuration(text)
	check(t, err)
	c := newChaos(t, lasts)
	c.create(300)
	c.h.Start = time.Now()
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		c.strike()
		time.Sleep(2 * time.Second)
		c.change()
		time.Sleep(time.Duration(2+c.rng.IntN(4)) * time.Second)
	}
	time.Sleep(chaosQuiet)
	c.judge()
}
