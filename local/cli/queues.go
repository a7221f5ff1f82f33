package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/infra/database"
)

// limitTimeout bounds what is done to a limit in a database.
const limitTimeout = 30 * time.Second

func newQueues(a *app) *cobra.Command {
	cmd := group("queues", "Show and set how many runs of a queue are running at once", newQueuesList(a), newQueuesLimit(a), newQueuesUnlimit(a))
	addJSON(cmd)
	return cmd
}

func newQueuesList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the limits of queues", Example: "  fencepost queues list", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := c.QueueLimits(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON(cmd) {
				return a.printJSON(api.List[api.QueueLimit]{Items: all})
			}
			rows := make([][]string, len(all))
			for i, l := range all {
				rows[i] = []string{l.Queue, l.Of, strconv.Itoa(l.Concurrency), strconv.Itoa(l.Running), strconv.Itoa(l.Waiting)}
			}
			return a.printTable([]string{"QUEUE", "OF", "AT ONCE", "RUNNING", "WAITING"}, rows)
		},
	}
}

// everyone are the flags by which an operator sets a limit for all tenants.
type everyone struct {
	all         bool
	url, region string
}

func (e *everyone) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&e.all, "all-tenants", false, "for all tenants together, in the database itself")
	f.StringVar(&e.url, "database-url", "", "postgres:// URL, with --all-tenants (default $DATABASE_URL)")
	f.StringVar(&e.region, "region", "local", "region of the limit, with --all-tenants")
}

// in does something to the limits in the database.
func (e *everyone) in(a *app, ctx context.Context, do func(context.Context, core.LimitAdmin) error) error {
	if e.url == "" {
		e.url = a.Getenv("DATABASE_URL")
	}
	if e.url == "" {
		return usageError("--all-tenants needs --database-url or DATABASE_URL")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limitTimeout, errors.New("changing the limit took too long"))
	defer cancel()
	db, err := database.Open(ctx, database.Config{URL: e.url, Region: e.region, MaxConns: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer db.Close()
	return do(ctx, db)
}

func newQueuesLimit(a *app) *cobra.Command {
	var e everyone
	cmd := &cobra.Command{
		Use:   "limit QUEUE N",
		Short: "Let at most N of your runs in a queue be running at once",
		Long: `Let at most N of your runs in a queue be running at once, up to 1000; 0 lets none
start. Runs beyond it wait, queued, and no attempt is counted. Those that are running
go on.

Whoever has access to the database can limit all tenants together, with
--all-tenants; then those with the fewest running come first.`,
		Example: `  fencepost queues limit http 20
  fencepost queues limit http 200 --all-tenants --database-url postgres://user@host/fencepost`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return usageError("N must be a whole number, not %q", args[1])
			}
			if e.all {
				l := core.Limit{Queue: args[0], TenantID: core.AllTenants, Concurrency: n}
				if err := l.Check(); err != nil {
					return err
				}
				err := e.in(a, cmd.Context(), func(ctx context.Context, db core.LimitAdmin) error { return db.SetLimit(ctx, l) })
				if err != nil {
					return fmt.Errorf("limit queue: %w", err)
				}
				return a.say(cmd, api.QueueLimit{Queue: l.Queue, Of: "all", Concurrency: n}, "queue %s runs %d at once, of all tenants", l.Queue, n)
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			l, err := c.LimitQueue(cmd.Context(), args[0], n)
			if err != nil {
				return err
			}
			return a.say(cmd, l, "queue %s runs %d at once", l.Queue, l.Concurrency)
		},
	}
	e.add(cmd)
	return cmd
}

func newQueuesUnlimit(a *app) *cobra.Command {
	var e everyone
	cmd := &cobra.Command{
		Use: "unlimit QUEUE", Short: "End your limit of a queue", Example: "  fencepost queues unlimit http", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if e.all {
				err := e.in(a, cmd.Context(), func(ctx context.Context, db core.LimitAdmin) error {
					return db.DropLimit(ctx, args[0], core.AllTenants)
				})
				if errors.Is(err, core.ErrNotFound) {
					return fmt.Errorf("queue %s has no limit of all tenants", args[0])
				}
				if err != nil || asJSON(cmd) {
					return err
				}
				return a.say(cmd, nil, "queue %s has no limit of all tenants any more", args[0])
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			if err := c.UnlimitQueue(cmd.Context(), args[0]); err != nil || asJSON(cmd) {
				return err // the API answers with nothing
			}
			return a.say(cmd, nil, "queue %s has no limit of yours any more", args[0])
		},
	}
	e.add(cmd)
	return cmd
}
