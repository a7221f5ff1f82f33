// Package embedded starts and stops the database of a single machine, because
// nobody should have to install, configure and guard a server before the first
// schedule runs.
//
// It uses what the machine has: the programs of PostgreSQL, or of CockroachDB,
// or a container of PostgreSQL, in that order. Once a folder holds data, the
// same kind of server is used for it ever after.
//
// Everything is made to survive a kill -9 of any process at any moment. The
// folder is guarded by a file lock, which the kernel drops with the process
// that holds it. A database that outlived its starter is taken over by the next
// Start when it answers, and stopped and started again when it does not. For
// that reason the server does not die with its parent (no Pdeathsig), and it
// has a session of its own, so that an interrupt from the terminal reaches only
// the process that has to drain first.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fencepost/fencepost/core"
)

const (
	databaseName = "fencepost"
	roleName     = "fencepost"

	defaultStartTimeout   = 60 * time.Second
	defaultStopTimeout    = 30 * time.Second
	defaultMaxConnections = 100

	// launchTries bounds how often a server that exits while it starts is
	// started again: its port can be taken by a stranger between choice and
	// bind, and the last children of a killed server take a moment to go.
	launchTries = 3
	launchPause = time.Second
)

// Config says where the database lives and how it is run. The zero value is
// not usable: DataDir and Clock are required.
type Config struct {
	// DataDir is the folder that holds the data, the password, the port and
	// the logs. It is made when missing. Required.
	DataDir string
	// Clock paces the polling while a server starts or stops. Required.
	Clock core.Clock
	// Logger receives starts, take-overs and forced stops. Nil discards them.
	Logger *slog.Logger
	// BinDirs are the folders to search for the database programs, and no
	// others. Nil searches PATH and the usual places of each system.
	BinDirs []string
	// StartTimeout limits the time from launch to the first answer, crash
	// recovery included. Making a new database has a limit of its own.
	// Defaults to 60 s.
	StartTimeout time.Duration
	// StopTimeout limits the orderly part of Stop; after it the server is
	// stopped at once, and the next start recovers. Defaults to 30 s.
	StopTimeout time.Duration
	// MaxConnections is the server's limit; CockroachDB has none and ignores
	// it. Defaults to 100.
	MaxConnections int
	// NoSync turns off waiting for the disk. Killed processes lose nothing by
	// it, but a crash of the machine can destroy the database: for tests only.
	NoSync bool
}

// Server is a running database that belongs to this process until Stop. It is
// safe for concurrent use.
type Server struct {
	config   Config
	backend  backend
	instance instance
	port     int
	lock     *folderLock

	stopping sync.Mutex
	stopped  bool
}

// backend is one way to run a database on this machine.
type backend interface {
	// kind names the product and its version.
	kind() string
	// prepare makes the data folder. It may be killed at any moment and is
	// safe to repeat.
	prepare(ctx context.Context) error
	// leftover finds the server of an earlier process, and returns nil when
	// there is none. Other remains that would hinder a start are removed.
	leftover(ctx context.Context) (instance, error)
	// launch starts a server on the port and does not wait until it answers.
	launch(ctx context.Context, port int) (instance, error)
	// settle is called once the server has answered.
	settle() error
	// url is the address of a database of the server.
	url(port int, database string) string
	// createDatabase is the statement that makes the product's database.
	createDatabase() string
	// lastLog returns the last lines of the server's log, for an error.
	lastLog(ctx context.Context) string
	// remove deletes what the backend keeps outside the data folder.
	remove(ctx context.Context) error
}

// instance is a running server, started by this process or by an earlier one.
type instance interface {
	// alive reports whether the server still runs.
	alive(ctx context.Context) bool
	// stop ends the server, in an orderly way while ctx lasts, then by force.
	stop(ctx context.Context) error
}

// Start brings the database of the folder up and returns when it answers
// queries. It fails with ErrInUse when another live process holds the folder,
// and with ErrNoDatabase when the machine has no database to run.
func Start(ctx context.Context, c Config) (*Server, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	lock, err := lockFolder(c.DataDir)
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, lock: lock}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start the database in %s: %w", c.DataDir, err), lock.release())
	}
	return s, nil
}

// URL is the address of the database as every PostgreSQL driver takes it. It
// holds the password: do not log it.
func (s *Server) URL() string { return s.backend.url(s.port, databaseName) }

// Kind names what runs, for people: "postgresql 15.18".
func (s *Server) Kind() string { return s.backend.kind() }

// Wait blocks until the server has exited, which it does not do by itself, and
// then returns nil; or until ctx is done, and then returns its cause.
func (s *Server) Wait(ctx context.Context) error {
	for s.instance.alive(ctx) {
		if err := s.config.Clock.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	return nil
}

// Stop shuts the server down and gives the folder up. Open connections are cut
// and open transactions undone. When ctx or StopTimeout ends first, the server
// is stopped by force, which loses nothing. A second call does nothing.
func (s *Server) Stop(ctx context.Context) error {
	s.stopping.Lock()
	defer s.stopping.Unlock()
	if s.stopped {
		return nil
	}
	if err := s.stopInstance(ctx, s.instance); err != nil {
		return fmt.Errorf("stop %s: %w", s.Kind(), err)
	}
	s.stopped = true
	s.config.Logger.InfoContext(ctx, "database stopped", "kind", s.Kind())
	return s.lock.release()
}

// Remove stops what still runs in the folder and deletes the folder with all
// its data. It fails with ErrInUse when a live process holds the folder.
func Remove(ctx context.Context, c Config) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	if _, err := os.Stat(c.DataDir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	lock, err := lockFolder(c.DataDir)
	if err != nil {
		return err
	}
	s := &Server{config: c, lock: lock}
	return errors.Join(s.remove(ctx), lock.release())
}

// DefaultDataDir is the folder of `fencepost up` when none is named:
// $XDG_DATA_HOME/fencepost, else ~/.local/share/fencepost. For root it is
// /var/lib/fencepost: the unprivileged user that the database runs as cannot
// reach root's home.
func DefaultDataDir() (string, error) {
	home, err := os.UserHomeDir()
	if dir := defaultDataDir(os.Geteuid(), os.Getenv("XDG_DATA_HOME"), home); dir != "" {
		return dir, nil
	}
	return "", fmt.Errorf("find the folder for data: %w", err)
}

func defaultDataDir(uid int, base, home string) string {
	switch {
	case uid == 0:
		return "/var/lib/fencepost"
	case filepath.IsAbs(base): // the standard says to ignore a relative one
		return filepath.Join(base, "fencepost")
	case home != "":
		return filepath.Join(home, ".local", "share", "fencepost")
	default:
		return ""
	}
}

func (c Config) withDefaults() (Config, error) {
	if c.DataDir == "" {
		return c, errors.New("embedded database: Config.DataDir is empty")
	}
	if c.Clock == nil {
		return c, errors.New("embedded database: Config.Clock is nil")
	}
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return c, fmt.Errorf("find the data folder: %w", err)
	}
	c.DataDir = dir
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.StartTimeout <= 0 {
		c.StartTimeout = defaultStartTimeout
	}
	if c.StopTimeout <= 0 {
		c.StopTimeout = defaultStopTimeout
	}
	if c.MaxConnections <= 0 {
		c.MaxConnections = defaultMaxConnections
	}
	return c, nil
}
