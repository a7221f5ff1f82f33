package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/infra/database"
)

// migrateLimit bounds a migration, waiting for another one's lock included.
const migrateLimit = 10 * time.Minute

func newMigrate(a *app) *cobra.Command {
	var url, region string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring a database to this release's schema",
		Long: `Bring a database to this release's schema. Several may run at once: one does
the work and the others wait. up does the same by itself.`,
		Example: "  fencepost migrate --database-url postgres://user@host/fencepost",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if url == "" {
				url = a.Getenv("DATABASE_URL")
			}
			if url == "" {
				return usageError("--database-url or DATABASE_URL is required")
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), migrateLimit, errors.New("migrating took too long"))
			defer cancel()
			return a.migrate(ctx, url, region)
		},
	}
	cmd.Flags().StringVar(&url, "database-url", "", "postgres:// URL (default $DATABASE_URL)")
	cmd.Flags().StringVar(&region, "region", "local", "primary region of a CockroachDB database that has none")
	return cmd
}

func (a *app) migrate(ctx context.Context, url, region string) error {
	steps, err := database.Migrate(ctx, url, region, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	db, err := database.Open(ctx, database.Config{URL: url, Region: region})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.EnsurePartitions(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "%s is up to date (%d steps taken)\n", database.Address(url), steps)
	return err
}
