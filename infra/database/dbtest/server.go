package dbtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencepost/fencepost/infra/clock"
)

const (
	// namePrefix begins the name of every database that this package makes.
	namePrefix = "fencepost_test_"

	// leftoverAge is how old the databases of a run that is gone must be to be
	// dropped by another.
	leftoverAge = time.Hour

	prepareTimeout   = 2 * time.Minute
	statementTimeout = 30 * time.Second

	// A template cannot be copied while anybody is connected to it, be it
	// autovacuum, and a full server has no room for the copy.
	copyTries = 50
	copyPause = 100 * time.Millisecond

	codeObjectInUse        = "55006"
	codeTooManyConnections = "53300"
)

var (
	errPrepareTimeout   = errors.New("preparing the template took longer than 2 minutes")
	errStatementTimeout = errors.New("the statement took longer than 30 seconds")
)

// server makes and drops databases. Its one connection serializes that, as the
// copying of a template demands, and tells other runs by its application name
// that this run is alive.
type server struct {
	base      *url.URL
	run       string // namePrefix, the start by the server's clock, and something random
	stop      func(context.Context) error
	cockroach bool
	region    string // of CockroachDB; empty on a cluster without localities
	prepare   Prepare
	clock     clock.System

	mutex sync.Mutex
	conn  *pgx.Conn
	count int
}

func startServer(ctx context.Context, prepare Prepare) (_ *server, err error) {
	address, stop, err := findServer(ctx)
	if err != nil {
		return nil, err
	}
	s := &server{stop: stop, prepare: prepare}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(ctx))
		}
	}()
	if s.base, err = url.Parse(address); err != nil || s.base.Scheme == "" {
		return nil, errors.New("DATABASE_URL must have the form postgres://user@host:port/database")
	}
	if err := s.identify(ctx); err != nil {
		return nil, fmt.Errorf("reach the test server: %w", err)
	}
	if err := s.dropLeftovers(ctx); err != nil {
		return nil, fmt.Errorf("drop the databases of earlier runs: %w", err)
	}
	if err := s.makeTemplate(ctx); err != nil {
		return nil, fmt.Errorf("make the template database: %w", err)
	}
	return s, nil
}

// findServer returns the address of a server and what ends it.
func findServer(ctx context.Context) (string, func(context.Context) error, error) {
	for _, name := range []string{"FENCEPOST_TEST_DATABASE_URL", "DATABASE_URL"} {
		if address := os.Getenv(name); address != "" {
			return address, func(context.Context) error { return nil }, nil
		}
	}
	if binary := os.Getenv("COCKROACH_BINARY"); binary != "" {
		return startCockroach(binary)
	}
	return startEphemeral(ctx)
}

// identify learns the product and names the run.
func (s *server) identify(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, statementTimeout, errStatementTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.base.String())
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing was written
	var version string
	var now int64
	row := conn.QueryRow(ctx, "select version(), extract(epoch from now())::int8")
	if err := row.Scan(&version, &now); err != nil {
		return err
	}
	s.run = fmt.Sprintf("%s%d_%s", namePrefix, now, strings.ToLower(rand.Text()[:8]))
	s.cockroach = strings.Contains(version, "CockroachDB")
	if !s.cockroach {
		return nil
	}
	row = conn.QueryRow(ctx, "select coalesce(min(region), '') from [show regions from cluster]")
	return row.Scan(&s.region)
}

func (s *server) template() string { return s.run + "_template" }

// makeTemplate prepares the database that the tests' are copied from. Nobody
// may connect to it afterwards. CockroachDB cannot copy a database.
func (s *server) makeTemplate(ctx context.Context) error {
	if s.cockroach {
		return nil
	}
	if err := s.exec(ctx, "create database "+s.template()); err != nil {
		return err
	}
	if err := s.fill(ctx, s.template()); err != nil {
		return err
	}
	return s.exec(ctx, "alter database "+s.template()+" allow_connections false")
}

func (s *server) fill(ctx context.Context, name string) error {
	if s.prepare == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, prepareTimeout, errPrepareTimeout)
	defer cancel()
	if err := s.prepare(ctx, s.url(name)); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return nil
}

func (s *server) create(ctx context.Context) (string, error) {
	s.mutex.Lock()
	s.count++
	name := fmt.Sprintf("%s_%d", s.run, s.count)
	s.mutex.Unlock()
	if s.cockroach {
		statement := "create database " + name
		if s.region != "" {
			statement += " primary region " + pgx.Identifier{s.region}.Sanitize()
		}
		if err := s.exec(ctx, statement); err != nil {
			return "", fmt.Errorf("create database: %w", err)
		}
		return name, s.fill(ctx, name)
	}
	if err := s.copyTemplate(ctx, name); err != nil {
		return "", fmt.Errorf("copy the template database: %w", err)
	}
	return name, nil
}

func (s *server) copyTemplate(ctx context.Context, name string) error {
	for try := 1; ; try++ {
		err := s.exec(ctx, "create database "+name+" template "+s.template())
		if err == nil || try == copyTries || !isBusy(err) {
			return err
		}
		if err := s.clock.Sleep(ctx, copyPause); err != nil {
			return err
		}
	}
}

func isBusy(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refused.Code == codeObjectInUse || refused.Code == codeTooManyConnections)
}

func (s *server) drop(ctx context.Context, name string) error {
	how := " with (force)"
	if s.cockroach {
		how = " cascade"
	}
	if err := s.exec(ctx, "drop database if exists "+pgx.Identifier{name}.Sanitize()+how); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

var ownName = regexp.MustCompile(`^(` + namePrefix + `[0-9]+_[0-9a-z]{8})_(template|[0-9]+)$`)

// dropLeftovers removes what runs left behind that were killed: old databases
// whose run has no connection any more. Two runs may do it at the same time.
func (s *server) dropLeftovers(ctx context.Context) error {
	names, err := s.leftovers(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !ownName.MatchString(name) {
			continue
		}
		if err := s.drop(ctx, name); err != nil && !isBusy(err) {
			return err
		}
	}
	return nil
}

func (s *server) leftovers(ctx context.Context) (names []string, err error) {
	err = s.use(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `
			select d.datname from pg_database d
			where d.datname like 'fencepost\_test\_%'
			  and split_part(d.datname, '_', 3) < (extract(epoch from now())::int8 - $1::int8)::text
			  and not exists (
			    select 1 from pg_stat_activity a
			    where a.application_name <> ''
			      and left(d.datname, length(a.application_name)) = a.application_name)
			order by d.datname limit 1000`, int64(leftoverAge/time.Second))
		if err != nil {
			return err
		}
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return names, err
}

func (s *server) url(name string) string {
	address := *s.base
	address.Path = "/" + name
	return address.String()
}

func (s *server) exec(ctx context.Context, statement string) error {
	return s.use(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, statement)
		return err
	})
}

// use lends out the one connection, and makes it anew when a test that ends
// sessions has ended this one.
func (s *server) use(ctx context.Context, do func(context.Context, *pgx.Conn) error) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, statementTimeout, errStatementTimeout)
	defer cancel()
	if s.conn == nil || s.conn.IsClosed() {
		config, err := pgx.ParseConfig(s.base.String())
		if err != nil {
			return err
		}
		config.RuntimeParams["application_name"] = s.run
		if s.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
			return err
		}
	}
	return do(ctx, s.conn)
}

// close drops the template and ends the server when it is ours.
func (s *server) close(ctx context.Context) error {
	var err error
	if s.conn != nil {
		if !s.cockroach {
			err = s.drop(ctx, s.template())
		}
		err = errors.Join(err, s.conn.Close(ctx))
	}
	return errors.Join(err, s.stop(ctx))
}
