package database

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/clock"
)

// Config says which database to use and how. URL and Region are required.
type Config struct {
	// URL is a postgres:// URL. A default_transaction_isolation in it wins
	// over the level that the package names itself, READ COMMITTED.
	URL string
	// Region is the home of all rows that this process writes and reads.
	Region string
	// MaxConns bounds the pool. Defaults to 4.
	MaxConns int32
	// StatementTimeout bounds each statement on the server. Defaults to 10 s,
	// and must stay below the claimer's low-water distance of 15 s.
	StatementTimeout time.Duration
	// ClaimPool forbids sequential scans on PostgreSQL: set it on the pools of
	// claimers and executors, whose statements all have an index.
	ClaimPool bool
	// Clock paces retries. Defaults to the system's clock.
	Clock core.Clock
	// Logger receives what the server has to say. Defaults to slog.Default.
	Logger *slog.Logger
	// Rewrite, if not nil, replaces the text of each statement as it is
	// loaded. Tests take guards out with it to see that they are needed.
	Rewrite func(name, text string) string
}

// DB is the store. It is safe for concurrent use.
type DB struct {
	pool   *pgxpool.Pool
	region string
	sql    statements
	clock  core.Clock
	log    *slog.Logger
	// cockroach is set on CockroachDB, which expires runs by itself and has no
	// partitions to keep.
	cockroach bool
}

// Open connects to the database, which has to answer within ctx. It changes
// nothing there; see Migrate.
func Open(ctx context.Context, c Config) (*DB, error) {
	if c.Region == "" {
		return nil, core.Invalid("region", "is empty")
	}
	sql, err := loadStatements(c.Rewrite)
	if err != nil {
		return nil, err
	}
	pc, err := poolConfig(c)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, translate("open database", err)
	}
	d := &DB{pool: pool, region: c.Region, sql: sql, clock: c.Clock, log: c.Logger}
	if d.clock == nil {
		d.clock = clock.System{}
	}
	if d.log == nil {
		d.log = slog.Default()
	}
	if err := d.detect(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect to the database at %s: %w", Address(c.URL), err)
	}
	return d, nil
}

// poolConfig translates c; values in the URL win over the package's own.
func poolConfig(c Config) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		// The parser's error repeats the URL and with it the password.
		return nil, core.Invalid("database-url", "is not a postgres:// URL")
	}
	timeout := c.StatementTimeout
	if timeout == 0 {
		timeout = 10 * time.Second
	}
	params := map[string]string{
		"application_name":                    "fencepost",
		"default_transaction_isolation":       "read committed",
		"statement_timeout":                   fmt.Sprint(timeout.Milliseconds()),
		"lock_timeout":                        "2000",
		"idle_in_transaction_session_timeout": "5000",
		"timezone":                            "UTC",
	}
	for k, v := range params {
		if _, ok := pc.ConnConfig.RuntimeParams[k]; !ok {
			pc.ConnConfig.RuntimeParams[k] = v
		}
	}
	if pc.ConnConfig.ConnectTimeout == 0 {
		pc.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	pc.MaxConns = 4
	if c.MaxConns > 0 {
		pc.MaxConns = c.MaxConns
	}
	pc.MaxConnLifetime = 30 * time.Minute
	pc.MaxConnLifetimeJitter = 3 * time.Minute
	pc.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		return tunePlans(ctx, conn, c.ClaimPool)
	}
	return pc, nil
}

// tunePlans sets what the two servers name differently. CockroachDB plans
// limited scans well only when it sees the values.
func tunePlans(ctx context.Context, conn *pgx.Conn, claimPool bool) error {
	var setting string
	switch {
	case isCockroach(conn):
		setting = "SET plan_cache_mode = force_custom_plan"
	case claimPool:
		setting = "SET enable_seqscan = off"
	default:
		return nil
	}
	if _, err := conn.Exec(ctx, setting); err != nil {
		return fmt.Errorf("tune connection: %w", err)
	}
	return nil
}

func isCockroach(conn *pgx.Conn) bool {
	return conn.PgConn().ParameterStatus("crdb_version") != ""
}

func (d *DB) detect(ctx context.Context) error {
	return d.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		d.cockroach = isCockroach(c.Conn())
		return c.Ping(ctx)
	})
}

// Close ends all connections; it waits for those in use.
func (d *DB) Close() { d.pool.Close() }

// ExpiresItself reports whether the database expires history by itself, 30 days after
// a run has ended, as CockroachDB does.
func (d *DB) ExpiresItself() bool { return d.cockroach }

// Region returns the region whose rows this store reads and writes.
func (d *DB) Region() string { return d.region }

// Ping answers nil when the database does.
func (d *DB) Ping(ctx context.Context) error {
	return translate("ping database", d.pool.Ping(ctx))
}

// Address returns host, port and database of a URL, without its credentials,
// for messages.
func Address(url string) string {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return "an unreadable URL"
	}
	return fmt.Sprintf("%s:%d/%s", c.Host, c.Port, c.Database)
}

// query runs a named statement and collects its rows into structs by column
// name, sending it again while the database undoes it.
func query[T any](ctx context.Context, d *DB, name string, args ...any) ([]T, error) {
	var out []T
	retry := d.retry
	if d.sql.reads(name) {
		retry = d.retryRead
	}
	err := retry(ctx, func() error {
		rows, err := d.pool.Query(ctx, d.sql[name], args...)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowToStructByName[T])
		return err
	})
	if err != nil {
		return nil, translate(strings.ReplaceAll(name, "_", " "), err)
	}
	return out, nil
}

// exec runs a named statement that returns no rows.
func (d *DB) exec(ctx context.Context, name string, args ...any) error {
	err := d.retry(ctx, func() error {
		_, err := d.pool.Exec(ctx, d.sql[name], args...)
		return err
	})
	return translate(strings.ReplaceAll(name, "_", " "), err)
}

// The conversions below keep the driver's types out of core: UUIDs go as
// pgtype.UUID, which works in every query mode of pgx, and zero times as NULL.

func pgID(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func nullDuration(d time.Duration) *time.Duration {
	if d == 0 {
		return nil
	}
	return &d
}

func fromNull[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func utc(p *time.Time) time.Time {
	if p == nil {
		return time.Time{}
	}
	return p.UTC()
}

func nullText[S ~string](s S) *string {
	if s == "" {
		return nil
	}
	t := string(s)
	return &t
}

// each maps a slice; the arrays that statements take are built with it.
func each[T, U any](in []T, f func(T) U) []U {
	out := make([]U, len(in))
	for i, v := range in {
		out[i] = f(v)
	}
	return out
}
