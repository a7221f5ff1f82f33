// Package sqs carries messages between claimers and executors through Amazon
// SQS, and exists so that the two can be processes or functions that know
// nothing of each other.
//
// Queues are standard ones: messages may come twice and in any order, which the
// start statement sorts out. A message that cannot be read, be it of a newer
// release or not ours at all, is left to become visible again, so that another
// executor or the queue's own redrive policy takes it; one that was received 20
// times is deleted, so that none goes round for ever. Deleting one is safe: the
// run's row is the outbox.
package sqs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/fencepost/fencepost/core"
)

const (
	batchSize = 10 // entries of a call; SQS takes no more

	callAttempts = 3           // of a call that failed as a whole, by the SDK
	callBackoff  = time.Second // at most, between those
	idleConns    = 64          // kept for the next calls

	loadTimeout = 10 * time.Second
)

// ErrUnknownQueue answers a queue that Config does not map, or whose URL names
// no queue at SQS. Its runs wait in the database.
var ErrUnknownQueue = &core.Error{Code: core.CodeNotFound, Kind: "unknown_queue", Field: "queue", Message: "no such queue at SQS"}

// Config says which queues there are and how to reach them. AWS, Queues and
// Clock are required; every other zero value is replaced by its default.
type Config struct {
	// AWS has credentials, region and endpoint; LoadAWS reads them from the
	// environment. A queue whose URL names a region is called there.
	AWS aws.Config
	// Queues are the URLs of standard queues by the names that jobs use.
	Queues map[string]string
	Clock  core.Clock
	Logger *slog.Logger // defaults to slog.Default
	// Timeout bounds each call, beside the long poll. Defaults to 5 s.
	Timeout time.Duration

	// The rest is a consumer's.

	// Wait is how long a call waits for a message, in whole seconds up to 20.
	// Defaults to 20 s.
	Wait time.Duration
	// Visibility is how long a received message stays hidden unless that is
	// extended, in whole seconds. Defaults to 2 min.
	Visibility time.Duration
	// Hold is how long it is extended while its run goes on. After that the
	// message comes again and is dropped. Defaults to 15 min.
	Hold time.Duration
	// Linger is how long a deletion may wait for others to share its call, at
	// most a quarter of Visibility. Defaults to 1 s.
	Linger time.Duration
}

func (c Config) withDefaults() (Config, error) {
	def := func(d *time.Duration, by time.Duration) {
		if *d == 0 {
			*d = by
		}
	}
	def(&c.Timeout, 5*time.Second)
	def(&c.Wait, 20*time.Second)
	def(&c.Visibility, 2*time.Minute)
	def(&c.Hold, 15*time.Minute)
	def(&c.Linger, time.Second)
	c.Linger = min(c.Linger, c.Visibility/4)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	switch {
	case c.Clock == nil:
		return c, errors.New("sqs: clock is required")
	case c.Timeout < 0 || c.Hold < 0 || c.Linger < 0:
		return c, errors.New("sqs: durations must not be negative")
	case c.Wait < time.Second || c.Wait > 20*time.Second || c.Wait%time.Second != 0:
		return c, core.Invalid("wait", "must be whole seconds from 1s to 20s")
	case c.Visibility < time.Second || c.Visibility > 12*time.Hour || c.Visibility%time.Second != 0:
		return c, core.Invalid("visibility", "must be whole seconds from 1s to 12h")
	case len(c.Queues) == 0:
		return c, core.Invalid("queues", "must name at least one")
	}
	return c, nil
}

// LoadAWS reads credentials, region and endpoint as every program on the AWS SDK
// does: AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL, a role and so on.
func LoadAWS(ctx context.Context) (aws.Config, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, loadTimeout, errors.New("loading the AWS configuration took too long"))
	defer cancel()
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return c, fmt.Errorf("load the AWS configuration: %w", err)
	}
	c.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = idleConns
	})
	return c, nil
}

// queue is one of SQS's.
type queue struct {
	name, url string
	region    string // that the URL names; empty if it names none
}

// here makes a call go to the queue's own region.
func (q queue) here(o *awssqs.Options) {
	if q.region != "" && o.BaseEndpoint == nil {
		o.Region = q.region
	}
}

// client is what publisher and consumer share.
type client struct {
	c      Config
	sqs    *awssqs.Client
	queues map[string]queue
}

func newClient(c Config) (*client, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	queues := make(map[string]queue, len(c.Queues))
	for name, address := range c.Queues {
		q, err := parseQueue(name, address)
		if err != nil {
			return nil, err
		}
		if q.region == "" && c.AWS.Region == "" {
			return nil, core.Invalid("queues", "queue %s: set AWS_REGION, since the URL names no region", name)
		}
		queues[name] = q
	}
	s := awssqs.NewFromConfig(c.AWS, func(o *awssqs.Options) {
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts, r.MaxBackoff = callAttempts, callBackoff
		})
	})
	return &client{c: c, sqs: s, queues: queues}, nil
}

// parseQueue takes what a person has copied from the console.
func parseQueue(name, address string) (queue, error) {
	u, err := url.Parse(address)
	switch {
	case name == "" || strings.ContainsAny(name, " \t\r\n"):
		return queue{}, core.Invalid("queues", "must have names, without blanks")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return queue{}, core.Invalid("queues", "queue %s: must be a URL such as https://sqs.eu-central-1.amazonaws.com/123456789012/jobs", name)
	case strings.HasSuffix(u.Path, ".fifo"):
		return queue{}, core.Invalid("queues", "queue %s: must be a standard queue; the order of FIFO queues would be paid for in vain", name)
	}
	q := queue{name: name, url: address}
	if host, ok := strings.CutPrefix(u.Hostname(), "sqs."); ok && strings.Contains(host, ".amazonaws.") {
		q.region, _, _ = strings.Cut(host, ".")
	}
	return q, nil
}

func (c *client) find(name string) (queue, error) {
	q, ok := c.queues[name]
	if !ok {
		return queue{}, ErrUnknownQueue
	}
	return q, nil
}

// limit bounds one call.
func (c *client) limit(ctx context.Context, extra time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.c.Timeout+extra, errors.New("sqs took too long"))
}

// fault gives an error of the SDK one of core's codes. What the caller's context
// ended with counts for more than how the SDK put it.
func fault(ctx context.Context, what string, err error) error {
	var api smithy.APIError
	var missing *types.QueueDoesNotExist
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	case errors.As(err, &missing):
		return fmt.Errorf("%s: %w: %w", what, ErrUnknownQueue, err)
	case errors.As(err, &api) && throttles(api.ErrorCode()):
		return fmt.Errorf("%s: %w: %w", what, core.ErrQueueFull, err)
	}
	return fmt.Errorf("%s: %w", what, &core.Error{Code: core.CodeUnavailable, Message: "SQS does not answer as it should", Err: err})
}

// throttles reports whether a code asks to slow down.
func throttles(code string) bool {
	_, ok := retry.DefaultThrottleErrorCodes[code]
	return ok || code == "OverLimit" || code == "KmsThrottled"
}
