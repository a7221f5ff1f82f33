package sqs_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/queuetest"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/sqs"
	"github.com/fencepost/fencepost/infra/sqs/sqstest"
)

// jobs is the name of the queue of every test.
const jobs = "jobs"

// config maps jobs to a URL at the given SQS.
func config(address, queueURL string) sqs.Config {
	return sqs.Config{AWS: sqstest.Config(address), Queues: map[string]string{jobs: queueURL}, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)}
}

func publisher(t *testing.T, c sqs.Config) *sqs.Publisher {
	t.Helper()
	p, err := sqs.NewPublisher(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// consumer returns one that is closed when the test ends.
func consumer(t *testing.T, c sqs.Config) *sqs.Consumer {
	t.Helper()
	consumer, err := sqs.NewConsumer(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := consumer.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return consumer
}

func TestQueueKeepsTheContract(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, func(t *testing.T) (core.Publisher, core.Consumer, string) {
		c := config(sqstest.Endpoint(t), sqstest.NewQueue(t, nil))
		return publisher(t, c), consumer(t, c), jobs
	})
}

// Twenty thousand messages pass through, and nothing of them stays in memory.
func TestManyMessagesTakeLittleMemory(t *testing.T) {
	t.Parallel()
	const n, batch = 20_000, 1000
	url := sqstest.NewQueue(t, nil)
	c := config(sqstest.Endpoint(t), url)
	pub, cons := publisher(t, c), consumer(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	before := heap()
	all := messages(n)
	for msgs := range slices.Chunk(all, batch) {
		if taken, err := pub.Publish(ctx, jobs, msgs); taken != batch || err != nil {
			t.Fatalf("Publish took %d: %v", taken, err)
		}
	}
	seen := make([]bool, n+1)
	for left := n; left > 0; {
		ds, err := cons.Receive(ctx, jobs, 100)
		if err != nil {
			t.Fatalf("with %d left: %v", left, err)
		}
		for _, d := range ds {
			if !seen[d.Fence] {
				seen[d.Fence] = true
				left--
			}
		}
		if err := cons.Done(ctx, ds); err != nil {
			t.Fatal(err)
		}
	}
	if err := cons.Close(ctx); err != nil {
		t.Error(err)
	}
	if left := depth(t, url); left > 0 {
		t.Errorf("%d messages were not deleted", left)
	}
	runtime.KeepAlive(all)
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestMisuseIsRefused(t *testing.T) {
	t.Parallel()
	const good = "https://sqs.eu-central-1.amazonaws.com/123456789012/jobs"
	for name, change := range map[string]func(*sqs.Config){
		"no queue":              func(c *sqs.Config) { c.Queues = nil },
		"a queue without name":  func(c *sqs.Config) { c.Queues = map[string]string{"": good} },
		"a name with a blank":   func(c *sqs.Config) { c.Queues = map[string]string{"a b": good} },
		"no URL":                func(c *sqs.Config) { c.Queues = map[string]string{jobs: "jobs"} },
		"an ARN":                func(c *sqs.Config) { c.Queues = map[string]string{jobs: "arn:aws:sqs:eu-central-1:123456789012:jobs"} },
		"a FIFO queue":          func(c *sqs.Config) { c.Queues = map[string]string{jobs: good + ".fifo"} },
		"no region":             func(c *sqs.Config) { c.Queues, c.AWS.Region = map[string]string{jobs: "http://localhost/jobs"}, "" },
		"too long a wait":       func(c *sqs.Config) { c.Wait = 21 * time.Second },
		"half a second":         func(c *sqs.Config) { c.Visibility = 1500 * time.Millisecond },
		"too long a visibility": func(c *sqs.Config) { c.Visibility = 13 * time.Hour },
	} {
		c := config("http://localhost", good)
		change(&c)
		_, perr := sqs.NewPublisher(c)
		_, cerr := sqs.NewConsumer(t.Context(), c)
		if core.CodeOf(perr) != core.CodeInvalid || core.CodeOf(cerr) != core.CodeInvalid {
			t.Errorf("%s: got %v and %v, want code invalid", name, perr, cerr)
		}
	}
	c := config("http://localhost", good)
	p, cons := publisher(t, c), consumer(t, c)
	_, perr := p.Publish(t.Context(), "other", messages(1))
	_, rerr := cons.Receive(t.Context(), "other", 1)
	if !errors.Is(perr, sqs.ErrUnknownQueue) || !errors.Is(rerr, sqs.ErrUnknownQueue) {
		t.Errorf("got %v and %v, want an unknown queue", perr, rerr)
	}
	if _, err := cons.Receive(t.Context(), jobs, 0); core.CodeOf(err) != core.CodeInvalid {
		t.Errorf("got %v, want code invalid", err)
	}
	c.Clock = nil
	if _, err := sqs.NewPublisher(c); err == nil {
		t.Error("takes a Config without a clock")
	}
}

// A queue whose URL names a region is called there.
func TestQueuesInOtherRegions(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://sqs.eu-central-1.amazonaws.com/123456789012/jobs":   "sqs.eu-central-1.amazonaws.com",
		"https://sqs.cn-north-1.amazonaws.com.cn/123456789012/jobs":  "sqs.cn-north-1.amazonaws.com.cn",
		"https://vpce-0a1b.sqs.eu-west-1.vpce.example/1/jobs":        "sqs.us-east-1.amazonaws.com",
		"https://sqs.eu-central-1.api.example.com/123456789012/jobs": "sqs.us-east-1.amazonaws.com",
	} {
		called := ""
		c := config("", address)
		c.AWS.BaseEndpoint = nil
		c.AWS.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
			called = r.URL.Host
			return nil, errors.New("no network")
		})
		_, err := publisher(t, c).Publish(t.Context(), jobs, messages(1))
		if err == nil || called != want {
			t.Errorf("%s: called %q (%v), want %q", address, called, err, want)
		}
	}
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }
