package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	readyPoll    = 50 * time.Millisecond
	adoptTimeout = 10 * time.Second
	adoptTries   = 3
	queryTimeout = 5 * time.Second

	// SQLSTATE of a refused password: waiting longer cannot help.
	codeInvalidPassword = "28P01"
)

var (
	errStartTimeout = errors.New("the database did not answer within the start timeout")
	errAdoptTimeout = errors.New("the running database did not answer")
	errQueryTimeout = errors.New("the database did not answer the query")
	errStopTimeout  = errors.New("the database did not stop within the stop timeout")
	errExited       = errors.New("the database exited while it started")
)

func (s *Server) start(ctx context.Context) error {
	backend, err := findBackend(ctx, s.config)
	if err != nil {
		return err
	}
	s.backend = backend
	if err := backend.prepare(ctx); err != nil {
		return fmt.Errorf("prepare %s: %w", backend.kind(), err)
	}
	adopted, err := s.adopt(ctx)
	if err != nil {
		return err
	}
	if !adopted {
		if err := s.launch(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(backend.settle(), s.ensureDatabase(ctx)); err != nil {
		return errors.Join(err, s.stopInstance(ctx, s.instance))
	}
	s.config.Logger.InfoContext(ctx, "database started",
		"kind", backend.kind(), "port", s.port, "data_dir", s.config.DataDir, "adopted", adopted)
	return nil
}

// adopt takes over the server of an earlier process when it answers with our
// password, which proves to both sides that it is ours; otherwise it stops that
// server. A server that was taken over keeps the settings it was started with.
func (s *Server) adopt(ctx context.Context) (bool, error) {
	for range adoptTries {
		instance, err := s.backend.leftover(ctx)
		if err != nil || instance == nil {
			return false, err
		}
		if err = s.tryAdopt(ctx, instance); err == nil {
			return true, nil
		}
		s.config.Logger.WarnContext(ctx, "stopping a database that was left running", "err", err)
		if err := s.stopInstance(ctx, instance); err != nil {
			return false, fmt.Errorf("stop the database that was left running: %w", err)
		}
		// Looked at again: a server that was killed leaves children behind.
	}
	return false, errors.New("a database that was left running comes back after each stop")
}

func (s *Server) tryAdopt(ctx context.Context, instance instance) error {
	port, err := readPort(s.config.DataDir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, adoptTimeout, errAdoptTimeout)
	defer cancel()
	if err := s.awaitReady(ctx, instance, port); err != nil {
		return err
	}
	s.instance, s.port = instance, port
	return nil
}

// launch starts a server and waits for its first answer. A server that exits
// before that is started again, on another port when its own is taken.
func (s *Server) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.StartTimeout, errStartTimeout)
	defer cancel()
	for try := 1; ; try++ {
		err := s.launchOnce(ctx)
		if err == nil {
			return nil
		}
		if try == launchTries || !errors.Is(err, errExited) {
			return fmt.Errorf("start %s: %w%s", s.backend.kind(), err, s.backend.lastLog(context.WithoutCancel(ctx)))
		}
		if err := s.config.Clock.Sleep(ctx, launchPause); err != nil {
			return fmt.Errorf("start %s: %w", s.backend.kind(), err)
		}
	}
}

func (s *Server) launchOnce(ctx context.Context) error {
	port, err := choosePort(ctx, s.config.DataDir)
	if err != nil {
		return err
	}
	instance, err := s.backend.launch(ctx, port)
	if err != nil {
		return err
	}
	if err := s.awaitReady(ctx, instance, port); err != nil {
		return errors.Join(err, s.stopInstance(ctx, instance))
	}
	s.instance, s.port = instance, port
	return nil
}

func (s *Server) awaitReady(ctx context.Context, instance instance, port int) error {
	for {
		err := query(ctx, s.backend.url(port, "postgres"), func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "select 1")
			return err
		})
		if err == nil {
			return nil
		}
		if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == codeInvalidPassword {
			return fmt.Errorf("the server refuses the password in %s: %w", passwordPath(s.config.DataDir), err)
		}
		if !instance.alive(ctx) {
			return errExited
		}
		if cause := s.config.Clock.Sleep(ctx, readyPoll); cause != nil {
			return fmt.Errorf("%w (last answer: %w)", cause, err)
		}
	}
}

// ensureDatabase makes the product's database unless it is there. The lock on
// the folder excludes a second maker.
func (s *Server) ensureDatabase(ctx context.Context) error {
	err := query(ctx, s.backend.url(s.port, "postgres"), func(ctx context.Context, conn *pgx.Conn) error {
		var have int
		row := conn.QueryRow(ctx, "select count(*) from pg_database where datname = $1", databaseName)
		if err := row.Scan(&have); err != nil || have > 0 {
			return err
		}
		_, err := conn.Exec(ctx, s.backend.createDatabase())
		return err
	})
	if err != nil {
		return fmt.Errorf("create database %s: %w", databaseName, err)
	}
	return nil
}

// stopInstance stops a server even when ctx is done already: an orderly stop
// ends with ctx, a forced one has limits of its own.
func (s *Server) stopInstance(ctx context.Context, instance instance) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.StopTimeout, errStopTimeout)
	defer cancel()
	return instance.stop(ctx)
}

func (s *Server) remove(ctx context.Context) error {
	for _, backend := range keptBackends(s.config) {
		instance, err := backend.leftover(ctx)
		if err != nil {
			return fmt.Errorf("find the running database: %w", err)
		}
		if instance != nil {
			if err := s.stopInstance(ctx, instance); err != nil {
				return fmt.Errorf("stop the running database: %w", err)
			}
		}
		if err := backend.remove(ctx); err != nil {
			return fmt.Errorf("remove the database: %w", err)
		}
	}
	if err := os.RemoveAll(s.config.DataDir); err != nil {
		return fmt.Errorf("remove the data folder: %w", err)
	}
	return nil
}

// query runs use on a connection of its own, within a limit of its own.
func query(ctx context.Context, url string, use func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, queryTimeout, errQueryTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return errors.Join(use(ctx, conn), conn.Close(ctx))
}
