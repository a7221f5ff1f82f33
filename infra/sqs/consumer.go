package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/core"
)

const (
	// moreCalls is how many calls follow at once when the first was full.
	moreCalls = 9
	// maxReceives is how often a message that cannot be read comes before it
	// is deleted. A redrive policy is to take it earlier.
	maxReceives = 20
	// maxHeld bounds the messages whose visibility is extended. Those beyond
	// come again while their runs go on, and are dropped.
	maxHeld = 10_000
	// lateAnswer is how long an answer is waited for once Receive is to end: a
	// queue with a backlog answers within that.
	lateAnswer = 500 * time.Millisecond
	// backgroundCalls is how many calls extend, and how many delete, at once.
	backgroundCalls = 4
)

// Consumer is core.Consumer on SQS. Make it with NewConsumer and end it with
// Close. It is safe for concurrent use.
type Consumer struct {
	c       *client
	cancel  context.CancelFunc // ends what goes on in the background
	closing chan struct{}
	running sync.WaitGroup
	close   func()

	mu   sync.Mutex
	held map[uuid.UUID]*holding // by token

	deletions deletions
}

var _ core.Consumer = (*Consumer)(nil)

// NewConsumer returns a consumer and starts its two background loops, which
// outlive ctx and end in Close. It refuses what NewPublisher refuses.
func NewConsumer(ctx context.Context, cfg Config) (*Consumer, error) {
	shared, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	c := &Consumer{c: shared, closing: make(chan struct{}), held: map[uuid.UUID]*holding{}, deletions: newDeletions()}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	c.close = sync.OnceFunc(func() { close(c.closing) })
	c.running.Go(func() { c.extendOn(background) })
	c.running.Go(func() { c.deleteOn(background) })
	return c, nil
}

// Receive waits for messages until ctx is done. When a first call brings ten and
// there is room for more, further calls follow at once, up to nine. What SQS hands
// out within half a second after ctx ended is handed back; a message of a later
// answer stays hidden for the visibility timeout.
func (c *Consumer) Receive(ctx context.Context, queue string, max int) ([]core.Delivery, error) {
	q, err := c.c.find(queue)
	if err != nil {
		return nil, err
	}
	if max < 1 {
		return nil, core.Invalid("max", "must be at least 1")
	}
	for ctx.Err() == nil {
		ds, full, err := c.poll(ctx, q, min(max, batchSize), c.c.c.Wait)
		if err != nil {
			return nil, err
		}
		if full {
			ds = append(ds, c.more(ctx, q, (max-batchSize)/batchSize)...)
		}
		if len(ds) > 0 {
			return ds, nil
		}
	}
	return nil, context.Cause(ctx)
}

// more makes calls for ten messages each without waiting for any. An error is
// left for the next call to meet: the first one's messages are there.
func (c *Consumer) more(ctx context.Context, q queue, calls int) []core.Delivery {
	var mu sync.Mutex
	var all []core.Delivery
	var g errgroup.Group
	for range min(calls, moreCalls) {
		g.Go(func() error {
			ds, _, err := c.poll(ctx, q, batchSize, 0)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, ds...)
			return err
		})
	}
	_ = g.Wait() // as said above
	return all
}

// poll makes one call, and reports whether it brought ten messages.
func (c *Consumer) poll(ctx context.Context, q queue, max int, wait time.Duration) ([]core.Delivery, bool, error) {
	later, end := c.outlive(ctx, lateAnswer)
	defer end()
	limited, cancel := c.c.limit(later, wait)
	defer cancel()
	out, err := c.c.sqs.ReceiveMessage(limited, &awssqs.ReceiveMessageInput{
		QueueUrl:                    &q.url,
		MaxNumberOfMessages:         int32(max),
		WaitTimeSeconds:             int32(wait / time.Second),
		VisibilityTimeout:           int32(c.c.c.Visibility / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameApproximateReceiveCount},
	}, q.here)
	if err != nil {
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		return nil, false, fault(ctx, "receive", err)
	}
	if ctx.Err() != nil {
		c.handBack(ctx, q, out.Messages)
		return nil, false, context.Cause(ctx)
	}
	ds := make([]core.Delivery, 0, len(out.Messages))
	var foreign []types.Message
	for _, m := range out.Messages {
		d := core.Delivery{Token: uuid.New(), Receipt: receipt(q.name, aws.ToString(m.ReceiptHandle))}
		if json.Unmarshal([]byte(aws.ToString(m.Body)), &d.Message) != nil {
			foreign = append(foreign, m)
			continue
		}
		ds = append(ds, d)
	}
	c.hold(q, ds)
	c.leave(q, foreign)
	return ds, len(out.Messages) == batchSize, nil
}

// leave lets messages that cannot be read become visible again, and deletes
// those that nobody took for long.
func (c *Consumer) leave(q queue, foreign []types.Message) {
	if len(foreign) == 0 {
		return
	}
	deleted := 0
	for _, m := range foreign {
		n, err := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
		if err == nil && n >= maxReceives && c.deletions.add(q.name, aws.ToString(m.ReceiptHandle), c.c.c.Clock.Now()) {
			deleted++
		}
	}
	c.c.c.Logger.Warn("messages cannot be read; they are left to other executors and the redrive policy",
		"queue", q.name, "messages", len(foreign), "deleted", deleted, "message_id", aws.ToString(foreign[0].MessageId))
}

// Done has the messages deleted, within about a second and together with others
// that are done meanwhile. A message that cannot be deleted comes again, and is
// dropped when its run does not start.
func (c *Consumer) Done(ctx context.Context, ds []core.Delivery) error {
	c.forget(ds)
	rest := map[string][]string{} // what there is no room for in the background
	now := c.c.c.Clock.Now()
	for _, d := range ds {
		name, handle, ok := strings.Cut(d.Receipt, " ")
		if _, known := c.c.queues[name]; !ok || !known {
			continue // another queue's
		}
		if !c.deletions.add(name, handle, now) {
			rest[name] = append(rest[name], handle)
		}
	}
	return c.delete(ctx, rest)
}

// receipt keeps the queue's name beside SQS's own handle.
func receipt(queue, handle string) string { return queue + " " + handle }

// Close deletes what is done and ends the background loops. Messages that are
// still worked on become visible again in their time. It may be called twice,
// and ctx bounds it.
func (c *Consumer) Close(ctx context.Context) error {
	c.close()
	ended := make(chan struct{})
	go func() {
		c.running.Wait()
		close(ended)
	}()
	defer func() {
		c.cancel()
		<-ended
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		return fmt.Errorf("close the consumer: %w", context.Cause(ctx))
	}
	if err := c.delete(ctx, c.deletions.stop()); err != nil {
		return fmt.Errorf("close the consumer: %w", err)
	}
	return nil
}

// delete deletes by batches of ten, several at once.
func (c *Consumer) delete(ctx context.Context, handles map[string][]string) error {
	var g errgroup.Group
	g.SetLimit(backgroundCalls)
	for name, all := range handles {
		q := c.c.queues[name]
		for len(all) > 0 {
			n := min(batchSize, len(all))
			batch := all[:n]
			all = all[n:]
			g.Go(func() error { return c.deleteBatch(ctx, q, batch) })
		}
	}
	return g.Wait()
}

func (c *Consumer) deleteBatch(ctx context.Context, q queue, handles []string) error {
	left, err := c.c.rounds(ctx, "delete", len(handles), func(ctx context.Context, numbers []int) ([]types.BatchResultErrorEntry, error) {
		in := &awssqs.DeleteMessageBatchInput{QueueUrl: &q.url}
		for _, i := range numbers {
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: id(i), ReceiptHandle: &handles[i]})
		}
		out, err := c.c.sqs.DeleteMessageBatch(ctx, in, q.here)
		if err != nil {
			return nil, err
		}
		return out.Failed, nil
	})
	if len(left) > 0 && err == nil {
		err = errors.New("delete: SQS refused entries")
	}
	return err
}
