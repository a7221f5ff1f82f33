package sqs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/core"
)

// publishCalls is how many calls one Publish makes at once.
const publishCalls = 10

// Publisher is core.Publisher on SQS. Make it with NewPublisher. It is safe for
// concurrent use and needs no closing.
type Publisher struct{ c *client }

var _ core.Publisher = (*Publisher)(nil)

// NewPublisher returns a publisher. It refuses a Config without queues or clock,
// and URLs that are not those of standard queues, but calls nobody.
func NewPublisher(c Config) (*Publisher, error) {
	shared, err := newClient(c)
	if err != nil {
		return nil, err
	}
	return &Publisher{shared}, nil
}

// Publish sends batches of ten, several at once, and what failed alone again
// for about a second. It returns how many messages lie before the first that
// was not taken; those behind it may have been sent too, and coming again they
// do no harm. A throttled queue answers core.ErrQueueFull.
func (p *Publisher) Publish(ctx context.Context, queue string, msgs []core.Message) (int, error) {
	q, err := p.c.find(queue)
	if err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, fmt.Errorf("publish: %w", context.Cause(ctx))
	}
	taken := make([]bool, len(msgs))
	reasons := make([]error, (len(msgs)+batchSize-1)/batchSize)
	var failed atomic.Bool // then what has not been sent would not count
	var g errgroup.Group
	g.SetLimit(publishCalls)
	for i := range reasons {
		if failed.Load() {
			break
		}
		from, to := i*batchSize, min((i+1)*batchSize, len(msgs))
		g.Go(func() error {
			reasons[i] = p.send(ctx, q, msgs[from:to], taken[from:to])
			if reasons[i] != nil {
				failed.Store(true)
			}
			return nil
		})
	}
	_ = g.Wait() // the reasons have it all
	n := slices.Index(taken, false)
	if n < 0 {
		return len(msgs), nil
	}
	return n, reasons[n/batchSize]
}

// group names a message's tenant. By it SQS sees to it, in a standard queue, that a
// backlog of one tenant does not hold up the others (its fair queues).
func group(m *core.Message) *string {
	if m.Tenant == (uuid.UUID{}) {
		return nil
	}
	name := m.Tenant.String()
	return &name
}

// send sends at most ten messages and marks those that were taken.
func (p *Publisher) send(ctx context.Context, q queue, msgs []core.Message, taken []bool) error {
	bodies := make([]string, len(msgs))
	for i, m := range msgs {
		body, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("publish: encode a message: %w", err)
		}
		bodies[i] = string(body)
	}
	left, err := p.c.rounds(ctx, "publish", len(msgs), func(ctx context.Context, numbers []int) ([]types.BatchResultErrorEntry, error) {
		in := &awssqs.SendMessageBatchInput{QueueUrl: &q.url}
		for _, i := range numbers {
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: id(i), MessageBody: &bodies[i], MessageGroupId: group(&msgs[i])})
		}
		out, err := p.c.sqs.SendMessageBatch(ctx, in, q.here)
		if err != nil {
			return nil, err
		}
		return out.Failed, nil
	})
	for i := range taken {
		taken[i] = !slices.Contains(left, i)
	}
	return err
}
