package database

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations
var migrationFiles embed.FS

// Migrate brings the database at url to this release's schema and returns how
// many steps it took. Several processes may call it at once: a lock in a table
// lets one through and the others find nothing left to do. On CockroachDB a
// database without regions gets region as its primary one.
func Migrate(ctx context.Context, url, region string, log *slog.Logger) (int, error) {
	pc, err := poolConfig(Config{URL: url, StatementTimeout: 5 * time.Minute})
	if err != nil {
		return 0, err
	}
	config := pc.ConnConfig
	// CockroachDB refuses DDL at READ COMMITTED.
	config.RuntimeParams["default_transaction_isolation"] = "serializable"
	folder, err := dialect(ctx, config, region)
	if err != nil {
		return 0, fmt.Errorf("connect to the database at %s: %w", Address(url), translate("migrate", err))
	}
	files, err := fs.Sub(migrationFiles, "migrations/"+folder)
	if err != nil {
		return 0, fmt.Errorf("open migrations: %w", err)
	}
	locker, err := lock.NewPostgresTableLocker(
		lock.WithTableLeaseDuration(30*time.Second),
		lock.WithTableHeartbeatInterval(5*time.Second),
		lock.WithTableLockTimeout(time.Second, 120),
	)
	if err != nil {
		return 0, fmt.Errorf("make migration lock: %w", err)
	}
	db := stdlib.OpenDB(*config)
	// Closing flushes nothing: every step has been committed or undone.
	defer func() { _ = db.Close() }()
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithLocker(locker), goose.WithSlog(log), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return 0, fmt.Errorf("read migrations: %w", err)
	}
	steps, err := p.Up(ctx)
	if err != nil {
		return len(steps), fmt.Errorf("migrate the database at %s: %w", Address(url), err)
	}
	return len(steps), nil
}

// dialect returns the folder of migrations for the server and prepares its
// database for them.
func dialect(ctx context.Context, config *pgx.ConnConfig, region string) (string, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if !isCockroach(conn) {
		return "postgres", nil
	}
	var regions int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM [SHOW REGIONS FROM DATABASE]").Scan(&regions); err != nil {
		return "", err
	}
	if regions == 0 {
		_, err = conn.Exec(ctx, fmt.Sprintf("ALTER DATABASE %s SET PRIMARY REGION %s",
			pgx.Identifier{config.Database}.Sanitize(), pgx.Identifier{region}.Sanitize()))
	}
	return "cockroachdb", err
}
