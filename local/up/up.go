// Package up runs all of Fencepost in one process, on a database of its own if
// none is given: it is the whole product on a laptop, and each role of it on a
// server.
package up

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/core/worker"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/database"
	"github.com/fencepost/fencepost/infra/embedded"
	"github.com/fencepost/fencepost/infra/telemetry"
)

// The roles that a process can have.
const (
	RoleAPI      = "api"
	RoleClaimer  = "claimer"
	RoleExecutor = "executor"
)

// Roles are all roles, in the order in which they start.
func Roles() []string { return []string{RoleAPI, RoleClaimer, RoleExecutor} }

const oneDay = 24 * time.Hour

// DefaultKeep is how long history is kept unless somebody says otherwise.
const DefaultKeep = 30 * oneDay

// Config says what to run. Out is required; every other zero value has a
// default or switches something off.
type Config struct {
	// DatabaseURL is the database to use. Empty starts an embedded one.
	DatabaseURL string
	// DataDir holds the embedded database. Defaults to
	// embedded.DefaultDataDir.
	DataDir string
	Listen  string // defaults to 127.0.0.1:8080
	// MetricsListen is where metrics are served, by themselves. Empty serves them
	// beside the API if that listens on the loopback.
	MetricsListen string
	Roles         []string // defaults to all
	Region        string   // defaults to "local"
	// AllowExec lets schedules run commands on this machine.
	AllowExec bool
	// AllowPrivate lets the http target call private addresses.
	AllowPrivate bool
	// Rate bounds the requests of each tenant to this process's API. Zero is no
	// limit.
	Rate api.RateLimit
	// Limits bound what each tenant may have. The zero value bounds nothing.
	Limits schedules.Limits
	// WorkerQueues are those whose runs workers outside lease over the API.
	WorkerQueues []string
	// SQS are the URLs of queues at Amazon SQS by the queues whose runs they carry.
	// The others go through the database, or through this process.
	SQS map[string]string
	// DeadLetters is the one of SQS that is told of dead runs; empty is none.
	DeadLetters string
	// Keep is how long history is kept, from 1 to 366 days. Defaults to DefaultKeep.
	Keep    time.Duration
	Version string
	// Out gets what a person should see: a summary, then a line for each run.
	Out    io.Writer
	Logger *slog.Logger // defaults to slog.Default
	// SaveProfile stores the address and the key for the other commands and
	// returns where. Nil stores nothing.
	SaveProfile func(url, key string) (string, error)
	// LoadKey returns a key that may be of this database: the environment's, or
	// one that an earlier start stored, or "". Nil knows none.
	LoadKey func(url string) string
	// FirstStart is called once for a new embedded database, when the API
	// answers, and returns a line for the summary.
	FirstStart func(ctx context.Context, url, key string) (string, error)
}

func (c Config) withDefaults() (Config, error) {
	if c.Out == nil {
		return c, errors.New("up: out is required")
	}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:8080"
	}
	if len(c.Roles) == 0 {
		c.Roles = Roles()
	}
	for _, r := range c.Roles {
		if !slices.Contains(Roles(), r) {
			return c, core.Invalid("--roles", "must be some of %s, with commas between", strings.Join(Roles(), ", "))
		}
	}
	if c.Rate.PerSecond < 0 || c.Rate.Burst < 0 {
		return c, core.Invalid("--tenant-rate", "and --tenant-burst must not be negative")
	}
	if c.Limits.Schedules < 0 || c.Limits.Schedules > schedules.MaxQuota {
		return c, core.Invalid("--tenant-schedules", "must be from 0, which is no limit, to %d", schedules.MaxQuota)
	}
	if _, err := net.ResolveTCPAddr("tcp", c.Listen); err != nil {
		return c, core.Invalid("--listen", `is not an address such as "127.0.0.1:8080"`)
	}
	if err := cmp.Or(c.checkQueues(), c.checkMetrics()); err != nil {
		return c, err
	}
	if c.Region == "" {
		c.Region = "local"
	}
	if c.Keep == 0 {
		c.Keep = DefaultKeep
	}
	if c.Keep < oneDay || c.Keep > 366*oneDay {
		return c, core.Invalid("--keep-history", "must be from 1d to 366d")
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, nil
}

func (c Config) has(role string) bool { return slices.Contains(c.Roles, role) }

// process is what one call of Run holds.
type process struct {
	c     Config
	clock core.Clock
	owner string
	db    *database.DB
	desk  *worker.Desk
	// metrics count what the roles do.
	metrics *telemetry.Metrics
	// kind names the database for the summary.
	kind  string
	fresh bool // the embedded database is new
}

// Run runs the roles until ctx is done, then drains for a few seconds and stops
// what it started. It fails when the database cannot be reached at the start,
// the address is taken or another process holds the data folder.
func Run(ctx context.Context, c Config) (err error) {
	c, err = c.withDefaults()
	if err != nil {
		return err
	}
	host, _ := os.Hostname() // empty is fine: the rest of the name is unique
	p := &process{c: c, clock: clock.System{}, owner: fmt.Sprintf("%s-%d-%s", host, os.Getpid(), uuid.NewString()[:8]), metrics: telemetry.New(c.Version)}
	url := c.DatabaseURL
	if url == "" {
		server, serr := p.startEmbedded(ctx)
		if serr != nil {
			return serr
		}
		defer func() { err = errors.Join(err, stop(ctx, server)) }()
		url = server.URL()
		p.kind = server.Kind()
	} else {
		p.kind = "the database at " + database.Address(url)
	}
	// After the data folder: a second up on the same folder is to say so.
	listener, err := p.listen(ctx)
	if err != nil {
		return err
	}
	if listener != nil {
		// The server closes it too; a second close changes nothing.
		defer func() { _ = listener.Close() }()
	}
	if err := p.openDatabase(ctx, url); err != nil {
		return err
	}
	defer p.db.Close()
	return p.serve(ctx, listener)
}

// listen takes the address of the API, if this process has that role.
func (p *process) listen(ctx context.Context) (net.Listener, error) {
	if !p.c.has(RoleAPI) {
		return nil, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", p.c.Listen)
	if err != nil {
		return nil, fmt.Errorf("choose another address with --listen: %w", err)
	}
	return l, nil
}

func (p *process) startEmbedded(ctx context.Context) (*embedded.Server, error) {
	if p.c.DataDir == "" {
		dir, err := embedded.DefaultDataDir()
		if err != nil {
			return nil, err
		}
		p.c.DataDir = dir
	}
	return embedded.Start(ctx, embedded.Config{DataDir: p.c.DataDir, Clock: p.clock, Logger: p.c.Logger})
}

func stop(ctx context.Context, server *embedded.Server) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), 10*time.Second, errors.New("stopping the database took too long"))
	defer cancel()
	return server.Stop(ctx)
}

func (p *process) openDatabase(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Minute, errors.New("preparing the database took too long"))
	defer cancel()
	steps, err := database.Migrate(ctx, url, p.c.Region, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	p.fresh = steps > 0 && p.c.DatabaseURL == ""
	p.db, err = database.Open(ctx, database.Config{
		URL: url, Region: p.c.Region, MaxConns: int32(4 + 4*len(p.c.Roles)), ClaimPool: true, Logger: p.c.Logger, Clock: p.clock,
	})
	if err == nil && p.db.ExpiresItself() && p.c.Keep != DefaultKeep {
		p.db.Close()
		return core.Invalid("--keep-history", "must be 30d on CockroachDB, which expires runs by itself: see ttl_expiration_expression of the table runs")
	}
	return err
}

// serve runs the roles until ctx is done or one of them fails.
func (p *process) serve(ctx context.Context, listener net.Listener) error {
	stages, err := p.stages(ctx)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	if listener != nil {
		handler, err := p.handler()
		if err != nil {
			return err
		}
		g.Go(func() error { return p.serveHTTP(gctx, listener, p.withMetrics(handler, listener)) })
	}
	if p.c.MetricsListen != "" {
		g.Go(func() error { return p.serveMetrics(gctx) })
	}
	for _, run := range stages {
		g.Go(func() error { return run(gctx) })
	}
	g.Go(func() error { return p.upkeep(gctx) })
	g.Go(func() error { return p.clear(gctx) })
	g.Go(func() error { return p.greet(gctx, listener) })
	err = g.Wait()
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		fmt.Fprintln(p.c.Out, "Stopped; nothing is lost: the next start goes on where this one ended.")
		return nil
	}
	return err
}

// upkeep keeps the day partitions and removes old idempotency keys, at once and
// each hour; each minute after a failure, such as a backup that holds the table, and
// while there is more to remove. Until it works the default partition takes what
// has no day.
func (p *process) upkeep(ctx context.Context) error {
	for ctx.Err() == nil {
		gap := time.Hour
		err := p.keepPartitions(ctx)
		more := false
		if err == nil {
			more, err = p.dropReservations(ctx)
		}
		if err != nil && ctx.Err() == nil {
			p.c.Logger.Warn("upkeep; it is tried again in a minute", "error", err)
		}
		if err != nil || more {
			gap = time.Minute
		}
		_ = p.clock.Sleep(ctx, gap) // an error is ctx's end
	}
	return nil
}

// clearEvery is how soon a completed schedule goes once its time is over.
const clearEvery = 10 * time.Second

// clear deletes completed schedules whose time to stay is over.
func (p *process) clear(ctx context.Context) error {
	service := schedules.New(p.db, p.c.Region, nil)
	for p.clock.Sleep(ctx, clearEvery) == nil {
		if err := p.clearSome(ctx, service); err != nil && ctx.Err() == nil {
			p.c.Logger.Warn("completed schedules stay; it is tried again", "error", err)
		}
	}
	return nil
}

func (p *process) clearSome(ctx context.Context, service *schedules.Service) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("deleting completed schedules took too long"))
	defer cancel()
	for range 100 { // what is left goes next time
		if n, err := service.DeleteCompleted(ctx); err != nil || n == 0 {
			return err
		}
	}
	return nil
}

func (p *process) keepPartitions(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("upkeep took too long"))
	defer cancel()
	if err := p.db.EnsurePartitions(ctx); err != nil {
		return err
	}
	dropped, err := p.db.DropExpired(ctx, p.c.Keep)
	if dropped > 0 {
		p.c.Logger.Info("dropped expired history", "days", dropped)
	}
	return err
}

// dropReservations removes idempotency keys whose day is over, and reports whether
// there are more.
func (p *process) dropReservations(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("removing idempotency keys took too long"))
	defer cancel()
	for range 200 {
		if n, err := p.db.DropReservations(ctx); err != nil || n == 0 {
			return false, err
		}
	}
	return true, nil
}
