// Package queuetest is the conformance suite of core.Publisher and
// core.Consumer, and exists so that the stages can rely on the same few
// promises whatever queue lies between them.
package queuetest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
)

// Open returns both ends of a queue that is empty and used by nobody else, and
// its name. It clears up behind itself with t.Cleanup.
type Open func(t *testing.T) (core.Publisher, core.Consumer, string)

// patience is how long a queue may take for what should come soon.
const patience = 30 * time.Second

// Run holds a queue to its contract. Messages may come in any order and more
// than once; none may be lost, changed or delivered twice under one token. Each
// subtest opens a queue of its own, of which room for 200 messages is asked.
func Run(t *testing.T, open Open) {
	tests := []struct {
		name string
		run  func(context.Context, *testing.T, core.Publisher, core.Consumer, string)
	}{
		{"a batch arrives whole and unchanged", testBatch},
		{"an empty batch is taken", testEmptyBatch},
		{"no more than max are received", testMax},
		{"each delivery has a token of its own", testTokens},
		{"the batch is the caller's again after publish", testNoReference},
		{"concurrent use loses nothing", testConcurrent},
		{"receive ends with the context's cause", testReceiveEnds},
		{"receive waits for the first message", testReceiveWaits},
		{"publish ends with its context", testPublishEnds},
		{"what was received can be done with", testDone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("the queue took too long"))
			defer cancel()
			p, c, name := open(t)
			tt.run(ctx, t, p, c, name)
		})
	}
}

// messages returns n different ones: regions, years and fences of every size.
func messages(n int) []core.Message {
	msgs := make([]core.Message, n)
	regions := []string{"local", "eu-central-1", "r"}
	for i := range msgs {
		msgs[i] = core.Message{
			Key: core.RunKey{
				Region:     regions[i%len(regions)],
				ScheduleID: uuid.NewSHA1(uuid.NameSpaceOID, []byte{byte(i), byte(i >> 8)}),
				Slot:       time.UnixMicro(1_800_000_000_000_000 + int64(i)*3_600_000_001).UTC(),
			},
			Fence: int64(i)<<32 + 1,
		}
	}
	return msgs
}

// publish hands over all of msgs.
func publish(ctx context.Context, t *testing.T, p core.Publisher, queue string, msgs []core.Message) {
	t.Helper()
	n, err := p.Publish(ctx, queue, msgs)
	if n != len(msgs) || err != nil {
		t.Errorf("Publish took %d of %d: %v", n, len(msgs), err)
	}
}

// receive returns what one Receive does, which is at least one delivery.
func receive(ctx context.Context, t *testing.T, c core.Consumer, queue string, limit int) []core.Delivery {
	t.Helper()
	ds, err := c.Receive(ctx, queue, limit)
	if err != nil {
		t.Fatalf("Receive: %v", err)
	}
	if len(ds) < 1 || len(ds) > limit {
		t.Fatalf("Receive returned %d deliveries, want 1 to %d", len(ds), limit)
	}
	return ds
}

// collect receives until ds and what follows hold every one of want.
func collect(ctx context.Context, t *testing.T, c core.Consumer, queue string, want []core.Message, ds []core.Delivery) []core.Delivery {
	t.Helper()
	missing := make(map[string]bool, len(want))
	for _, m := range want {
		missing[m.Key.ID()] = true
	}
	for _, d := range ds {
		delete(missing, d.Key.ID())
	}
	for len(missing) > 0 {
		more := receive(ctx, t, c, queue, 10)
		for _, d := range more {
			delete(missing, d.Key.ID())
		}
		ds = append(ds, more...)
	}
	checkDeliveries(t, want, ds)
	return ds
}

// checkDeliveries wants every message of want once or more, and no other.
func checkDeliveries(t *testing.T, want []core.Message, ds []core.Delivery) {
	t.Helper()
	byID := func(msgs []core.Message) map[string]core.Message {
		m := make(map[string]core.Message, len(msgs))
		for _, msg := range msgs {
			m[msg.Key.ID()] = msg
		}
		return m
	}
	got := make([]core.Message, len(ds))
	for i, d := range ds {
		got[i] = d.Message
	}
	if diff := cmp.Diff(byID(want), byID(got)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	tokens := make(map[uuid.UUID]bool, len(ds))
	for _, d := range ds {
		if d.Token == uuid.Nil || tokens[d.Token] {
			t.Errorf("token %v is empty or was given before", d.Token)
		}
		tokens[d.Token] = true
	}
}

func testBatch(ctx context.Context, t *testing.T, p core.Publisher, c core.Consumer, queue string) {
	msgs := messages(100)
	publish(ctx, t, p, queue, msgs)
	for _, d := range collect(ctx, t, c, queue, msgs, nil) {
		raw, err := json.Marshal(d.Message)
		if err != nil {
			t.Fatal(err)
		}
		var again core.Message
		if err := json.Unmarshal(raw, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d.Message, again); diff != "" {
			t.Errorf("through JSON (-want +got):\n%s", diff)
		}
	}
}

func testEmptyBatch(ctx context.Context, t *testing.T, p core.Publisher, c core.Consumer, queue string) {
	publish(ctx, t, p, queue, nil)
	msgs := messages(1)
	publish(ctx, t, p, queue, msgs)
	collect(ctx, t, c, queue, msgs, nil)
}

func testMax(ctx context.Context, t *testing.T, p core.Publisher, c core.Consumer, queue string) {
	msgs := messages(30)
	publish(ctx, t, p, queue, msgs)
	ds := receive(ctx, t, c, queue, 1)
	ds = append(ds, receive(ctx, t, c, queue, 3)...)
	collect(ctx, t, c, queue, msgs, ds)
}

func testTokens(ctx context.Context, t *testing.T, p core.Publisher, c core.Consumer, queue string) {
	m := messages(1)[0]
	publish(ctx, t, p, queue, []core.Message{m, m})
	publish(ctx, t, p, queue, []core.Message{m})
	var all []core.Delivery
	for len(all) < 3 {
		all = append(all, receive(ctx, t, c, queue, 10)...)
	}
	checkDeliveries(t, []core.Message{m}, all)
}

func testNoReference(ctx context.Context, t *testing.T, p core.Publisher, c core.Consumer, queue string) {
	msgs, want := messages(10), messages(10)
	publish(ctx, t, p, queue, msgs)
	clear(msgs)
	collect(ctx, t, c, queue, want, nil)
}

func testConcurrent(ctx context.Context, t *testing.T, p core.Publisher, c core.Consumer, queue string) {
	const publishers, receivers, each = 8, 8, 25
	msgs := messages(publishers * each)
	var wg sync.WaitGroup
	for i := range publishers {
		wg.Go(func() { publish(ctx, t, p, queue, msgs[i*each:(i+1)*each]) })
	}
	errComplete := errors.New("everything came")
	receiving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	var all []core.Delivery
	seen := make(map[string]bool, len(msgs))
	for range receivers {
		wg.Go(func() {
			for receiving.Err() == nil {
				ds, err := c.Receive(receiving, queue, 7)
				if err != nil && !errors.Is(err, errComplete) {
					t.Errorf("Receive: %v", err)
					return
				}
				mu.Lock()
				all = append(all, ds...)
				for _, d := range ds {
					seen[d.Key.ID()] = true
				}
				if len(seen) == len(msgs) {
					stop(errComplete)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	checkDeliveries(t, msgs, all)
}

func testReceiveEnds(ctx context.Context, t *testing.T, _ core.Publisher, c core.Consumer, queue string) {
	errStop := errors.New("stopped by the test")
	ended, cancel := context.WithCancelCause(ctx)
	cancel(errStop)
	if ds, err := c.Receive(ended, queue, 10); len(ds) != 0 || !errors.Is(err, errStop) {
		t.Errorf("with an ended context Receive returned %d deliveries and %v, want the cause", len(ds), err)
	}
	short, cancelShort := context.WithTimeoutCause(ctx, 50*time.Millisecond, errStop)
	defer cancelShort()
	if ds, err := c.Receive(short, queue, 10); len(ds) != 0 || !errors.Is(err, errStop) {
		t.Errorf("on an empty queue Receive returned %d deliveries and %v, want the cause", len(ds), err)
	}
}

func testReceiveWaits(ctx context.Context, t *testing.T, p core.Publisher, c core.Consumer, queue string) {
	msgs := messages(1)
	var wg sync.WaitGroup
	wg.Go(func() { publish(ctx, t, p, queue, msgs) })
	ds := receive(ctx, t, c, queue, 10)
	wg.Wait()
	checkDeliveries(t, msgs, ds)
}

func testPublishEnds(ctx context.Context, t *testing.T, p core.Publisher, _ core.Consumer, queue string) {
	ended, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("stopped by the test"))
	type answer struct {
		n   int
		err error
	}
	done := make(chan answer, 1)
	msgs := messages(20)
	go func() {
		n, err := p.Publish(ended, queue, msgs)
		done <- answer{n, err}
	}()
	select {
	case a := <-done:
		if a.n < 0 || a.n > len(msgs) || (a.n < len(msgs)) != (a.err != nil) {
			t.Errorf("Publish took %d of %d with error %v; fewer than all and an error belong together", a.n, len(msgs), a.err)
		}
	case <-ctx.Done():
		t.Fatal("Publish outlived its context")
	}
}

func testDone(ctx context.Context, t *testing.T, p core.Publisher, c core.Consumer, queue string) {
	msgs := messages(5)
	publish(ctx, t, p, queue, msgs)
	ds := collect(ctx, t, c, queue, msgs, nil)
	if err := c.Done(ctx, ds); err != nil {
		t.Errorf("Done: %v", err)
	}
	if err := c.Done(ctx, nil); err != nil {
		t.Errorf("Done with nothing: %v", err)
	}
}
