package inprocess_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/queuetest"
	"github.com/fencepost/fencepost/infra/inprocess"
)

func newQueue(t *testing.T, cfg inprocess.Config) *inprocess.Queue {
	t.Helper()
	q, err := inprocess.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func messages(n int) []core.Message {
	msgs := make([]core.Message, n)
	for i := range msgs {
		msgs[i] = core.Message{Key: core.RunKey{Region: "local", ScheduleID: uuid.Max, Slot: time.Unix(int64(i), 0).UTC()}, Fence: 65536}
	}
	return msgs
}

func TestQueueKeepsTheContract(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, func(t *testing.T) (core.Publisher, core.Consumer, string) {
		q := newQueue(t, inprocess.Config{Queues: []string{"other", "http"}, Capacity: 200})
		return q, q, "http"
	})
}

func TestPublishTakesWhatFits(t *testing.T) {
	t.Parallel()
	q := newQueue(t, inprocess.Config{Queues: []string{"http", "exec"}, Capacity: 3})
	msgs := messages(5)
	type answer struct {
		Taken, Waiting int
		Full           bool
	}
	publish := func(queue string, msgs []core.Message) answer {
		n, err := q.Publish(t.Context(), queue, msgs)
		if err != nil && !errors.Is(err, core.ErrQueueFull) {
			t.Fatal(err)
		}
		return answer{n, q.Len(queue), err != nil}
	}
	if diff := cmp.Diff(answer{2, 2, false}, publish("http", msgs[:2])); diff != "" {
		t.Errorf("with room (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(answer{1, 3, true}, publish("http", msgs[2:])); diff != "" {
		t.Errorf("with room for one (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(answer{0, 3, true}, publish("http", msgs[3:])); diff != "" {
		t.Errorf("when full (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(answer{3, 3, false}, publish("exec", msgs[:3])); diff != "" {
		t.Errorf("the other queue (-want +got):\n%s", diff)
	}

	ds, err := q.Receive(t.Context(), "http", 2)
	if err != nil {
		t.Fatal(err)
	}
	got := []core.Message{ds[0].Message, ds[1].Message}
	if diff := cmp.Diff(msgs[:2], got); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(answer{2, 3, false}, publish("http", msgs[3:])); diff != "" {
		t.Errorf("with room again (-want +got):\n%s", diff)
	}
}

func TestCapacityDefaultsToTenThousand(t *testing.T) {
	t.Parallel()
	q := newQueue(t, inprocess.Config{Queues: []string{"http"}})
	n, err := q.Publish(t.Context(), "http", messages(10_001))
	if n != 10_000 || !errors.Is(err, core.ErrQueueFull) {
		t.Errorf("Publish took %d with error %v, want 10,000 and a full queue", n, err)
	}
}

func TestPublishTakesNothingOnceStopped(t *testing.T) {
	t.Parallel()
	errStop := errors.New("stopped by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	q := newQueue(t, inprocess.Config{Queues: []string{"http"}})
	if n, err := q.Publish(ctx, "http", messages(1)); n != 0 || !errors.Is(err, errStop) || q.Len("http") != 0 {
		t.Errorf("Publish took %d with error %v, want none and the cause", n, err)
	}
}

func TestMisuseIsRefused(t *testing.T) {
	t.Parallel()
	q := newQueue(t, inprocess.Config{Queues: []string{"http"}})
	_, publishErr := q.Publish(t.Context(), "htpp", messages(1))
	_, receiveErr := q.Receive(t.Context(), "htpp", 1)
	_, maxErr := q.Receive(t.Context(), "http", 0)
	_, noneErr := inprocess.New(inprocess.Config{})
	_, twiceErr := inprocess.New(inprocess.Config{Queues: []string{"a", "a"}})
	_, emptyErr := inprocess.New(inprocess.Config{Queues: []string{""}})
	_, negativeErr := inprocess.New(inprocess.Config{Queues: []string{"a"}, Capacity: -1})
	_, hugeErr := inprocess.New(inprocess.Config{Queues: []string{"a"}, Capacity: 1 << 40})
	tests := []struct {
		name string
		err  error
		want core.Code
	}{
		{"publish to an unknown queue", publishErr, core.CodeNotFound},
		{"receive from an unknown queue", receiveErr, core.CodeNotFound},
		{"receive nothing", maxErr, core.CodeInvalid},
		{"no queue", noneErr, core.CodeInvalid},
		{"one queue twice", twiceErr, core.CodeInvalid},
		{"a queue without a name", emptyErr, core.CodeInvalid},
		{"a negative capacity", negativeErr, core.CodeInvalid},
		{"a huge capacity", hugeErr, core.CodeInvalid},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, core.CodeOf(tt.err)); diff != "" {
			t.Errorf("%s: code of %v (-want +got):\n%s", tt.name, tt.err, diff)
		}
	}
	if !errors.Is(publishErr, inprocess.ErrUnknownQueue) || q.Len("htpp") != 0 {
		t.Errorf("error %v, want ErrUnknownQueue", publishErr)
	}
}

// TestTurns: tenants take turns, each with its messages in their order, however many
// another has.
func TestTurns(t *testing.T) {
	t.Parallel()
	q, err := inprocess.New(inprocess.Config{Queues: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	tenants := [3]uuid.UUID{{1}, {2}, {3}}
	put := func(tenant, n int) {
		for i := range n {
			m := core.Message{Tenant: tenants[tenant], Fence: int64(i)}
			if _, err := q.Publish(t.Context(), "a", []core.Message{m}); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(0, 6)
	put(1, 1)
	put(2, 2)
	var got []string
	take := func(n int) {
		ds, err := q.Receive(t.Context(), "a", n)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			got = append(got, fmt.Sprintf("%d.%d", d.Tenant[0], d.Fence))
		}
	}
	take(4)
	put(1, 1)
	take(10)
	want := "1.0 2.0 3.0 1.1 3.1 1.2 2.0 1.3 1.4 1.5"
	if s := strings.Join(got, " "); s != want || q.Len("a") != 0 {
		t.Errorf("they came as %s and %d are left, want %s", s, q.Len("a"), want)
	}
}
