package sqs

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/core"
)

// looks is how often within a visibility timeout the messages are looked
// through. They are extended in its second half, so that there is a second try.
const looks = 6

// holding is a message whose run goes on.
type holding struct {
	token  uuid.UUID
	queue  queue
	handle string
	since  time.Time
	until  time.Time // it is hidden
}

// hold keeps messages hidden from now on. Time counts from now rather than from
// the call, which may have waited long.
func (c *Consumer) hold(q queue, ds []core.Delivery) {
	now := c.c.c.Clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range ds {
		if len(c.held) >= maxHeld {
			return
		}
		handle := strings.TrimPrefix(d.Receipt, receipt(q.name, ""))
		c.held[d.Token] = &holding{token: d.Token, queue: q, handle: handle, since: now, until: now.Add(c.c.c.Visibility)}
	}
}

func (c *Consumer) forget(ds []core.Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range ds {
		delete(c.held, d.Token)
	}
}

// extendOn extends the visibility of held messages, until the consumer closes.
func (c *Consumer) extendOn(ctx context.Context) {
	for {
		select {
		case <-c.c.c.Clock.After(c.c.c.Visibility / looks):
		case <-c.closing:
			return
		}
		c.extend(ctx)
	}
}

// extend extends what needs it by batches of ten, several at once.
func (c *Consumer) extend(ctx context.Context) {
	var g errgroup.Group
	g.SetLimit(backgroundCalls)
	for _, all := range c.due() {
		for len(all) > 0 {
			n := min(batchSize, len(all))
			batch := all[:n]
			all = all[n:]
			g.Go(func() error { return c.extendBatch(ctx, batch) })
		}
	}
	if err := g.Wait(); err != nil {
		c.c.c.Logger.Warn("extend the visibility of messages", "error", err)
	}
}

// due returns copies of the holdings that are in the second half of their time,
// by queue, and drops those that were held for long enough.
func (c *Consumer) due() map[string][]holding {
	now := c.c.c.Clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string][]holding{}
	for token, h := range c.held {
		switch {
		case now.Sub(h.since) > c.c.c.Hold:
			delete(c.held, token)
		case h.until.Sub(now) <= c.c.c.Visibility/2:
			out[h.queue.name] = append(out[h.queue.name], *h)
		}
	}
	return out
}

// extendBatch extends at most ten. What fails for a while is tried again at the
// next look; what SQS does not know any longer is forgotten.
func (c *Consumer) extendBatch(ctx context.Context, batch []holding) error {
	in := &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: &batch[0].queue.url}
	for i, h := range batch {
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: id(i), ReceiptHandle: aws.String(h.handle), VisibilityTimeout: int32(c.c.c.Visibility / time.Second),
		})
	}
	limited, cancel := c.c.limit(ctx, 0)
	defer cancel()
	sent := c.c.c.Clock.Now()
	out, err := c.c.sqs.ChangeMessageVisibilityBatch(limited, in, batch[0].queue.here)
	if err != nil {
		return fault(ctx, "extend", err)
	}
	again, never, err := split(out.Failed, len(batch))
	if err != nil {
		return err
	}
	failed := map[int]bool{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range again {
		failed[i] = true
	}
	for _, i := range never {
		failed[i] = true
		delete(c.held, batch[i].token)
	}
	for i, h := range batch {
		if held := c.held[h.token]; held != nil && !failed[i] {
			held.until = sent.Add(c.c.c.Visibility)
		}
	}
	return nil
}

// outlive returns a context that ends some time after ctx, with its cause.
func (c *Consumer) outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-c.c.c.Clock.After(by):
		case <-later.Done():
		}
		cancel(context.Cause(ctx))
	})
	return later, func() {
		stop()
		cancel(nil)
	}
}

// handBack makes messages visible again that nobody here waits for any longer, or
// they would stay hidden for the visibility timeout while others are idle. ctx has
// ended, so that the call has a limit of its own.
func (c *Consumer) handBack(ctx context.Context, q queue, all []types.Message) {
	if len(all) == 0 {
		return
	}
	in := &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url}
	for i, m := range all {
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: id(i), ReceiptHandle: m.ReceiptHandle})
	}
	limited, cancel := c.c.limit(context.WithoutCancel(ctx), 0)
	defer cancel()
	out, err := c.c.sqs.ChangeMessageVisibilityBatch(limited, in, q.here)
	if err != nil || len(out.Failed) > 0 {
		c.c.c.Logger.Warn("messages stay hidden for their visibility timeout", "queue", q.name, "messages", len(all), "error", err)
	}
}
