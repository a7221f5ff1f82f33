package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	initdbTimeout = 2 * time.Minute
	forceTimeout  = 10 * time.Second
	orphanTimeout = 5 * time.Second
	keptLogs      = 5

	// stagingPrefix names the folders in which databases are made.
	stagingPrefix = "postgresql.new-"
)

// postgres runs the PostgreSQL programs of the machine.
type postgres struct {
	config   Config
	programs programs
	data     string
	owner    owner
	password string
}

func newPostgres(c Config, p programs) *postgres {
	return &postgres{config: c, programs: p, data: postgresData(c.DataDir)}
}

func postgresData(dataDir string) string { return filepath.Join(dataDir, "postgresql") }

func (p *postgres) kind() string { return "postgresql " + p.programs.version }

// prepare makes the database in a folder beside its place and moves it there
// when it is whole, so that a half-made one is never taken for a database. The
// name of the folder is new each time: the initdb of a killed process may still
// be writing to the old one.
func (p *postgres) prepare(ctx context.Context) (err error) {
	made := exists(p.data)
	if p.password, err = readPassword(p.config.DataDir, !made); err != nil {
		return err
	}
	if p.owner, err = chooseOwner(p.data); err != nil {
		return err
	}
	if err := p.owner.checkReach(p.config.DataDir); err != nil {
		return err
	}
	p.removeStaging(ctx)
	if made {
		return p.owner.giveFromRoot(p.data)
	}
	staging, err := os.MkdirTemp(p.config.DataDir, stagingPrefix)
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	if err := p.initdb(ctx, staging); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(staging, "data"), p.data); err != nil {
		return fmt.Errorf("put the new database in place: %w", err)
	}
	return syncDir(p.config.DataDir)
}

func (p *postgres) initdb(ctx context.Context, staging string) error {
	passwordFile := filepath.Join(staging, "password")
	if err := os.WriteFile(passwordFile, []byte(p.password+"\n"), 0o600); err != nil {
		return fmt.Errorf("hand the password over: %w", err)
	}
	if err := p.owner.give(staging); err != nil {
		return fmt.Errorf("give the folder to %s: %w", p.owner.name, err)
	}
	args := []string{
		"--pgdata=" + filepath.Join(staging, "data"), "--username=" + roleName, "--pwfile=" + passwordFile,
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C",
	}
	if p.config.NoSync {
		args = append(args, "--no-sync")
	}
	_, err := run(ctx, initdbTimeout, tool{
		path: p.programs.path("initdb"), args: args, dir: staging, owner: p.owner,
	})
	return err
}

func (p *postgres) removeStaging(ctx context.Context) {
	old, err := filepath.Glob(filepath.Join(p.config.DataDir, stagingPrefix+"*"))
	if err != nil {
		return // only a malformed pattern
	}
	for _, path := range old {
		if err := os.RemoveAll(path); err != nil {
			p.config.Logger.WarnContext(ctx, "half-made database not removed", "path", path, "err", err)
		}
	}
}

// leftover finds the postmaster of an earlier process. Without one it clears
// the way for the next: children that outlived their postmaster are ended, and
// its pid file is removed, since its pid can belong to somebody else by now, at
// which PostgreSQL would refuse to start.
func (p *postgres) leftover(ctx context.Context) (instance, error) {
	pidFile := filepath.Join(p.data, "postmaster.pid")
	if pid := firstPID(pidFile); isRunning(ctx, pid, "postgres", p.data) {
		return p.process(pid), nil
	}
	for _, pid := range runningIn(ctx, "postgres", p.data) {
		child := p.process(pid)
		child.steps = []stopStep{{syscall.SIGKILL, orphanTimeout}} // their memory is lost anyway
		if err := child.stop(ctx); err != nil {
			return nil, fmt.Errorf("end a child of an earlier server: %w", err)
		}
	}
	if err := os.Remove(pidFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove a stale pid file: %w", err)
	}
	return nil, nil
}

// process describes a server: SIGINT stops it in order, SIGQUIT at once.
func (p *postgres) process(pid int) *process {
	return &process{
		pid: pid, program: "postgres", dir: p.data, clock: p.config.Clock, logger: p.config.Logger,
		steps: []stopStep{{signal: syscall.SIGINT}, {syscall.SIGQUIT, forceTimeout}, {syscall.SIGKILL, forceTimeout}},
	}
}

func (p *postgres) launch(_ context.Context, port int) (_ instance, err error) {
	if err := pruneLogs(p.logDir(), keptLogs-1); err != nil {
		return nil, fmt.Errorf("remove old logs: %w", err)
	}
	output, err := os.OpenFile(p.startLog(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the start log: %w", err)
	}
	defer func() { err = errors.Join(err, output.Close()) }()
	server := p.process(0)
	if err := server.spawn(p.programs.path("postgres"), p.args(port), p.owner, output); err != nil {
		return nil, err
	}
	return server, nil
}

func (p *postgres) args(port int) []string {
	settings := []string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(port),
		// A socket's path may be 107 bytes long, a data folder's longer.
		"unix_socket_directories=",
		"max_connections=" + strconv.Itoa(p.config.MaxConnections),
		"password_encryption=scram-sha-256",
		"shared_buffers=128MB",
		"max_wal_size=1GB",
		"timezone=UTC",
		"log_timezone=UTC",
		"lc_messages=C",
		// The server writes its own log, so that it goes on when we die.
		"logging_collector=on",
		"log_directory=log",
		"log_filename=postgresql-%Y%m%d-%H%M%S.log",
		"log_rotation_age=1d",
		"log_rotation_size=10MB",
	}
	if p.config.NoSync {
		settings = append(settings, "fsync=off", "full_page_writes=off")
	}
	args := []string{"-D", p.data}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	return args
}

func (p *postgres) url(port int, database string) string {
	return postgresURL(url.UserPassword(roleName, p.password), port, database)
}

func postgresURL(user *url.Userinfo, port int, database string) string {
	address := url.URL{
		Scheme: "postgres", User: user, Path: "/" + database, RawQuery: "sslmode=disable",
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
	}
	return address.String()
}

func (p *postgres) createDatabase() string { return "create database " + databaseName }

func (p *postgres) settle() error { return nil }

func (p *postgres) logDir() string   { return filepath.Join(p.data, "log") }
func (p *postgres) startLog() string { return filepath.Join(p.config.DataDir, "start.log") }

// lastLog looks where the server spoke last: on its standard error until it has
// opened its log, then there.
func (p *postgres) lastLog(context.Context) string {
	return quoteLog(readTail(lastWritten(append([]string{p.startLog()}, logFiles(p.logDir())...))))
}

func (p *postgres) remove(context.Context) error { return nil }

// firstPID reads the first line of a pid file; zero means none.
func firstPID(path string) int {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return 0
	}
	return pid
}
