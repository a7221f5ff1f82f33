package sqs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/fencepost/fencepost/core"
)

const (
	entryRounds = 3 // in which entries that failed alone are sent
	entryGap    = 100 * time.Millisecond
)

// call sends the entries with the given numbers and returns those that failed.
// Their ids are id of their numbers.
type call func(ctx context.Context, numbers []int) ([]types.BatchResultErrorEntry, error)

// id names an entry within its call.
func id(number int) *string {
	s := strconv.Itoa(number)
	return &s
}

// rounds sends n entries and sends those again that failed alone, in a few
// rounds with growing gaps. It returns the numbers of those that were not taken,
// with the reason of one of them.
func (c *client) rounds(ctx context.Context, what string, n int, send call) (left []int, reason error) {
	for i := range n {
		left = append(left, i)
	}
	var refused []int // sending them again cannot help
	gap := entryGap
	for round := 1; ; round++ {
		limited, cancel := c.limit(ctx, 0)
		failed, err := send(limited, left)
		cancel()
		if err != nil {
			return append(refused, left...), fault(ctx, what, err)
		}
		if len(failed) > 0 {
			reason = entryFault(what, failed[0])
		}
		again, never, err := split(failed, n)
		if err != nil {
			return append(refused, left...), fmt.Errorf("%s: %w", what, err)
		}
		left, refused = again, append(refused, never...)
		if len(left) == 0 || round == entryRounds {
			return append(refused, left...), reason
		}
		if err := c.c.Clock.Sleep(ctx, gap/2+rand.N(gap/2)); err != nil {
			return append(refused, left...), fmt.Errorf("%s: %w", what, err)
		}
		gap *= 2
	}
}

// split returns the numbers of the entries that may be taken the next time, and
// of those that never will.
func split(failed []types.BatchResultErrorEntry, n int) (again, never []int, err error) {
	for _, f := range failed {
		number, err := strconv.Atoi(value(f.Id))
		switch {
		case err != nil || number < 0 || number >= n:
			return nil, nil, errors.New("SQS answered for an entry that was not sent")
		case f.SenderFault && !throttles(value(f.Code)):
			never = append(never, number)
		default:
			again = append(again, number)
		}
	}
	return again, never, nil
}

// entryFault says why one entry failed. SQS's message is left out, since it may
// repeat what was sent.
func entryFault(what string, f types.BatchResultErrorEntry) error {
	code := value(f.Code)
	if throttles(code) {
		return fmt.Errorf("%s: %w: %s", what, core.ErrQueueFull, code)
	}
	return fmt.Errorf("%s: %w", what, &core.Error{Code: core.CodeUnavailable, Message: "SQS refused an entry: " + code})
}

// value returns what a pointer of the SDK points to, or "".
func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
