package up

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/worker"
	"github.com/fencepost/fencepost/infra/inprocess"
	"github.com/fencepost/fencepost/infra/sqs"
)

// queues are where runs go: through SQS for the queues that are mapped to it,
// through this process for the others.
type queues struct {
	inside *inprocess.Queue
	desk   *worker.Desk      // of the queues that workers lease from
	mapped map[string]string // to URLs
	// sent and received are nil where nothing is mapped, or the role is not there.
	sent     *sqs.Publisher
	received *sqs.Consumer
}

// openQueues connects what the roles of this process need.
func (p *process) openQueues(ctx context.Context, names []string) (*queues, error) {
	inside, err := inprocess.New(inprocess.Config{Queues: names})
	if err != nil {
		return nil, err
	}
	q := &queues{inside: inside, mapped: p.c.SQS}
	if q.desk, err = worker.New(worker.Config{Store: p.db, Clock: p.clock, Queues: p.c.WorkerQueues, Observe: p.metrics.Observe}); err != nil {
		return nil, err
	}
	if len(q.mapped) == 0 {
		return q, nil
	}
	aws, err := sqs.LoadAWS(ctx)
	if err != nil {
		return nil, err
	}
	c := sqs.Config{AWS: aws, Queues: q.mapped, Clock: p.clock, Logger: p.c.Logger}
	if p.c.has(RoleClaimer) || p.c.has(RoleExecutor) { // which lets go what waited for it
		if q.sent, err = sqs.NewPublisher(c); err != nil {
			return nil, err
		}
	}
	if p.c.has(RoleExecutor) {
		if q.received, err = sqs.NewConsumer(ctx, c); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// local returns the given queues but for those that go through SQS.
func (q *queues) local(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return q.mapped[name] != "" })
}

// Publish implements core.Publisher.
func (q *queues) Publish(ctx context.Context, queue string, msgs []core.Message) (int, error) {
	switch {
	case slices.Contains(q.desk.Queues(), queue):
		return q.desk.Publish(ctx, queue, msgs)
	case q.mapped[queue] != "":
		return q.sent.Publish(ctx, queue, msgs)
	}
	return q.inside.Publish(ctx, queue, msgs)
}

// Receive implements core.Consumer.
func (q *queues) Receive(ctx context.Context, queue string, limit int) ([]core.Delivery, error) {
	if q.mapped[queue] != "" {
		return q.received.Receive(ctx, queue, limit)
	}
	return q.inside.Receive(ctx, queue, limit)
}

// Done implements core.Consumer. Deliveries of this process have no receipt.
func (q *queues) Done(ctx context.Context, ds []core.Delivery) error {
	var inside, sent []core.Delivery
	for _, d := range ds {
		if d.Receipt == "" {
			inside = append(inside, d)
		} else {
			sent = append(sent, d)
		}
	}
	err := q.inside.Done(ctx, inside)
	if q.received != nil && len(sent) > 0 {
		err = errors.Join(err, q.received.Done(ctx, sent))
	}
	return err
}

// close deletes the messages that are done.
func (q *queues) close(ctx context.Context) error {
	if q.received == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), 5*time.Second, errors.New("deleting messages took too long"))
	defer cancel()
	return q.received.Close(ctx)
}

// checkQueues refuses queues that nothing here could use.
func (c *Config) checkQueues() error {
	for _, name := range c.WorkerQueues {
		if name == "http" || name == "exec" || name == c.DeadLetters || name == "" {
			return core.Invalid("--worker-queue", "must be a name of its own, not http, exec or the one of --dead-letter-queue")
		}
	}
	known := []string{"http", "exec", c.DeadLetters}
	for _, name := range slices.Sorted(maps.Keys(c.SQS)) {
		if !slices.Contains(known, name) || name == "" {
			return core.Invalid("--sqs-queue", "%s is no queue here; there are http, exec and the one of --dead-letter-queue", name)
		}
	}
	if c.DeadLetters != "" && c.SQS[c.DeadLetters] == "" {
		return core.Invalid("--dead-letter-queue", "needs a queue at SQS: give --sqs-queue %s=URL", c.DeadLetters)
	}
	if slices.Contains([]string{"http", "exec"}, c.DeadLetters) {
		return core.Invalid("--dead-letter-queue", "must be a queue of its own")
	}
	return nil
}
