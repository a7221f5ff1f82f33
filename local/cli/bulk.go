package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/core/schedules"
)

const (
	// maxBulkBytes leaves room in a batch for what is around the schedules.
	maxBulkBytes = 7 << 20
	// bulkTries bounds how often a schedule is sent about which the API could
	// not decide, such as when its database was too busy.
	bulkTries = 4
	bulkPause = time.Second
)

// versionMismatch is the code of a refusal to change what somebody else changed.
const versionMismatch = "version_mismatch"

// errUndecided ends a load that the API does not cope with.
var errUndecided = errors.New("the API could not decide about some schedules")

// bulkFits reports how many of the bodies fit into one batch, at least one.
func bulkFits(bodies []json.RawMessage) int {
	total := 0
	for i, b := range bodies {
		if total += len(b) + 1; i > 0 && (total > maxBulkBytes || i == schedules.MaxMany) {
			return i
		}
	}
	return len(bodies)
}

// bulk puts schedules, whatever their number, and hands on what became of each in
// order: put is safe to repeat, so that what was not decided is sent again.
func (a *app) bulk(ctx context.Context, c *client.Client, bodies []json.RawMessage, dryRun bool, each func(i int, item api.BatchItem) error) error {
	for begin := 0; begin < len(bodies); {
		end := begin + bulkFits(bodies[begin:])
		items, err := a.bulkPart(ctx, c, bodies[begin:end], dryRun)
		if err != nil {
			return err
		}
		for i, item := range items {
			if err := each(begin+i, item); err != nil {
				return err
			}
		}
		begin = end
	}
	return nil
}

func (a *app) bulkPart(ctx context.Context, c *client.Client, bodies []json.RawMessage, dryRun bool) ([]api.BatchItem, error) {
	items := make([]api.BatchItem, len(bodies))
	open := make([]int, len(bodies))
	for i := range open {
		open[i] = i
	}
	for try := range bulkTries {
		if try > 0 {
			if err := a.Clock.Sleep(ctx, bulkPause); err != nil {
				return nil, err
			}
		}
		in := api.BatchInput{Mode: "put", DryRun: dryRun}
		for _, i := range open {
			in.Items = append(in.Items, bodies[i])
		}
		out, err := c.Batch(ctx, in)
		switch {
		case err != nil:
			return nil, err
		case len(out.Items) != len(open):
			return nil, errors.New("the API answered about another number of schedules")
		}
		for n, i := range open {
			items[i] = out.Items[n]
		}
		open = slices.DeleteFunc(open, func(i int) bool { return decided(items[i]) })
		if len(open) == 0 {
			return items, nil
		}
	}
	return nil, errUndecided
}

// decided reports whether sending an item again cannot help.
func decided(item api.BatchItem) bool {
	return item.Status < http.StatusInternalServerError && item.Status != http.StatusTooManyRequests &&
		(item.Problem == nil || item.Problem.Code != "changed")
}

// reason says why an item was refused, in the words of the client's own errors.
func reason(p *api.Problem) string { return oneLine((&client.Error{Problem: *p}).Error()) }
