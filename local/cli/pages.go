package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
)

// addPage adds the flags of a list.
func addPage(f *pflag.FlagSet, p *client.Page) {
	f.IntVar(&p.Limit, "limit", 100, "print at most this many, up to 1000")
	f.StringVar(&p.Cursor, "cursor", "", "go on where the list before ended, with the same filters")
}

// checkPage refuses a limit that the client would take for none.
func checkPage(p client.Page) error {
	if p.Limit == 0 {
		return core.Invalid("limit", "must be a whole number from 1 to 1000")
	}
	return nil
}

// maxLooks bounds how long a command waits for a filter that finds little: it is
// enough to look at ten million schedules.
const maxLooks = 1000

// fill reads pages until it has as many items as a page has, since those of the
// API can be short.
func fill[T any](p client.Page, read func(client.Page) (api.List[T], error)) (api.List[T], error) {
	all := api.List[T]{Items: []T{}}
	limit := p.Limit
	for range maxLooks {
		p.Limit = limit - len(all.Items)
		found, err := read(p)
		if err != nil {
			return all, err
		}
		all.Items, all.NextCursor = append(all.Items, found.Items...), found.NextCursor
		if all.NextCursor == nil || len(all.Items) >= limit {
			break
		}
		p.Cursor = *all.NextCursor
	}
	return all, nil
}

// more tells a person how to see the next page.
func (a *app) more(next *string) error {
	if next == nil {
		return nil
	}
	_, err := fmt.Fprintf(a.Err, "there are more: go on with --cursor %s\n", *next)
	return err
}
