package sqs_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/sqs"
	"github.com/fencepost/fencepost/infra/sqs/sqstest"
)

// messages returns n different ones, whose fences are 1 to n.
func messages(n int) []core.Message {
	msgs := make([]core.Message, n)
	for i := range msgs {
		msgs[i] = core.Message{Key: core.RunKey{Region: "local", ScheduleID: uuid.Max, Slot: time.Unix(int64(i), 0).UTC()}, Fence: int64(i + 1)}
	}
	return msgs
}

// fence reads the fence of an entry of messages.
func fence(e sqstest.Entry) int64 {
	var m core.Message
	if json.Unmarshal([]byte(e.Body), &m) != nil {
		return 0
	}
	return m.Fence
}

// fences receives until n messages have come and returns their fences in order.
func fences(t *testing.T, c core.Consumer, n int) []int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out []int64
	for len(out) < n {
		ds, err := c.Receive(ctx, jobs, 100)
		if err != nil {
			t.Fatalf("after %d of %d messages: %v", len(out), n, err)
		}
		for _, d := range ds {
			out = append(out, d.Fence)
		}
		if err := c.Done(ctx, ds); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(out)
	return out
}

func upTo(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i + 1)
	}
	return out
}

// TestPublishNamesTenants: SQS is told whose a message is, where that is known.
func TestPublishNamesTenants(t *testing.T) {
	t.Parallel()
	front := sqstest.NewFront(t)
	var mu sync.Mutex
	groups := map[int64]string{}
	front.Set("SendMessageBatch", sqstest.FailEntries(func(e sqstest.Entry) string {
		mu.Lock()
		defer mu.Unlock()
		groups[fence(e)] = e.Group
		return ""
	}))
	msgs := messages(2)
	msgs[1].Tenant = uuid.Max
	c := config(front.URL, sqstest.NewQueue(t, nil))
	if n, err := publisher(t, c).Publish(t.Context(), jobs, msgs); n != 2 || err != nil {
		t.Errorf("Publish took %d: %v", n, err)
	}
	if diff := cmp.Diff(map[int64]string{1: "", 2: uuid.Max.String()}, groups); diff != "" {
		t.Errorf("groups by fence (-want +got):\n%s", diff)
	}
}

func TestPublishSendsAgainWhatFailedAlone(t *testing.T) {
	t.Parallel()
	front := sqstest.NewFront(t)
	c := config(front.URL, sqstest.NewQueue(t, nil))
	var mu sync.Mutex
	seen := map[int64]int{}
	front.Set("SendMessageBatch", sqstest.FailEntries(func(e sqstest.Entry) string {
		mu.Lock()
		defer mu.Unlock()
		n := fence(e)
		seen[n]++
		switch {
		case n == 3 && seen[n] == 1:
			return "InternalError"
		case n == 14 && seen[n] <= 2:
			return "!ThrottlingException"
		}
		return ""
	}))
	n, err := publisher(t, c).Publish(t.Context(), jobs, messages(25))
	if n != 25 || err != nil {
		t.Errorf("Publish took %d: %v", n, err)
	}
	want := map[int64]int{}
	for _, f := range upTo(25) {
		want[f] = 1
	}
	want[3], want[14] = 2, 3
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("entries by fence (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(upTo(25), fences(t, consumer(t, c), 25)); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

func TestPublishCountsFromTheFront(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		code string
		want error
	}{
		"an entry that is refused":   {"!InvalidMessageContents", &core.Error{Code: core.CodeUnavailable}},
		"an entry that always fails": {"InternalError", &core.Error{Code: core.CodeUnavailable}},
		"an entry that is throttled": {"RequestThrottled", core.ErrQueueFull},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			front := sqstest.NewFront(t)
			c := config(front.URL, sqstest.NewQueue(t, nil))
			front.Set("SendMessageBatch", sqstest.FailEntries(func(e sqstest.Entry) string {
				if fence(e) == 14 {
					return tt.code
				}
				return ""
			}))
			n, err := publisher(t, c).Publish(t.Context(), jobs, messages(20))
			if n != 13 || core.CodeOf(err) != core.CodeOf(tt.want) {
				t.Errorf("Publish took %d with error %v, want 13 and code %s", n, err, core.CodeOf(tt.want))
			}
			if err != nil && strings.Contains(err.Error(), "as the test wants") {
				t.Errorf("the error repeats what SQS said of an entry: %v", err)
			}
			want := slices.Delete(upTo(20), 13, 14)
			if diff := cmp.Diff(want, fences(t, consumer(t, c), 19)); diff != "" {
				t.Errorf("received (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPublishSaysWhyTheQueueTakesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule  sqstest.Rule
		want  core.Code
		is    error
		calls int
	}{
		"throttled":       {sqstest.Refuse(http.StatusBadRequest, "RequestThrottled"), core.CodeThrottled, core.ErrQueueFull, 3},
		"too much":        {sqstest.Refuse(http.StatusForbidden, "OverLimit"), core.CodeThrottled, core.ErrQueueFull, 1},
		"broken":          {sqstest.Refuse(http.StatusServiceUnavailable, "ServiceUnavailable"), core.CodeUnavailable, nil, 3},
		"no connection":   {sqstest.Drop, core.CodeUnavailable, nil, 3},
		"no permission":   {sqstest.Refuse(http.StatusForbidden, "AccessDeniedException"), core.CodeUnavailable, nil, 1},
		"no such a queue": {sqstest.Refuse(http.StatusBadRequest, "QueueDoesNotExist"), core.CodeNotFound, sqs.ErrUnknownQueue, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			front := sqstest.NewFront(t)
			front.Set("", tt.rule)
			n, err := publisher(t, config(front.URL, front.URL+"/q")).Publish(t.Context(), jobs, messages(1))
			if n != 0 || core.CodeOf(err) != tt.want || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("Publish took %d with error %v, want none and code %s", n, err, tt.want)
			}
			if diff := cmp.Diff(map[string]int{"SendMessageBatch": tt.calls}, front.Counts()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// What has been sent when one batch fails does not count, so that no more is
// sent than need be.
func TestPublishStopsAtAFailedBatch(t *testing.T) {
	t.Parallel()
	front := sqstest.NewFront(t)
	front.Set("", sqstest.Refuse(http.StatusForbidden, "OverLimit"))
	n, err := publisher(t, config(front.URL, front.URL+"/q")).Publish(t.Context(), jobs, messages(5000))
	if n != 0 || !errors.Is(err, core.ErrQueueFull) {
		t.Errorf("Publish took %d with error %v, want none and a full queue", n, err)
	}
	if calls := front.Counts()["SendMessageBatch"]; calls < 1 || calls > 50 {
		t.Errorf("made %d calls of 500", calls)
	}
}

func TestPublishWhoseAnswerWasLostSendsAgain(t *testing.T) {
	t.Parallel()
	front := sqstest.NewFront(t)
	c := config(front.URL, sqstest.NewQueue(t, nil))
	var once sync.Once
	front.Set("SendMessageBatch", func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		once.Do(func() { sqstest.LoseAnswer(w, r, forward) })
		forward.ServeHTTP(w, r)
	})
	if n, err := publisher(t, c).Publish(t.Context(), jobs, messages(10)); n != 10 || err != nil {
		t.Errorf("Publish took %d: %v", n, err)
	}
	twice := append(upTo(10), upTo(10)...)
	slices.Sort(twice)
	if diff := cmp.Diff(twice, fences(t, consumer(t, c), 20)); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

func TestPublishHasADeadline(t *testing.T) {
	t.Parallel()
	front := sqstest.NewFront(t)
	front.Set("", func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() })
	c := config(front.URL, front.URL+"/q")
	c.Timeout = 200 * time.Millisecond
	began := time.Now()
	n, err := publisher(t, c).Publish(t.Context(), jobs, messages(100))
	if n != 0 || core.CodeOf(err) != core.CodeUnavailable || time.Since(began) > 10*time.Second {
		t.Errorf("Publish took %d with error %v after %s, want none and unavailable", n, err, time.Since(began))
	}
}
