package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// cockroach runs a single node of CockroachDB. It listens on the loopback
// address only and asks for no password: TLS certificates would be needed.
type cockroach struct {
	config  Config
	path    string
	version string
}

func cockroachData(dataDir string) string { return filepath.Join(dataDir, "cockroach") }

func findCockroach(ctx context.Context, c Config, dirs []string) (backend, bool) {
	path := findProgram(dirs, "cockroach")
	if path == "" {
		return nil, false
	}
	version, err := run(ctx, versionTimeout, tool{path: path, args: []string{"version", "--build-tag"}, dir: "/"})
	if err != nil {
		return nil, false
	}
	return &cockroach{config: c, path: path, version: version}, true
}

func (c *cockroach) kind() string { return "cockroachdb " + c.version }

func (c *cockroach) prepare(context.Context) error {
	if err := os.MkdirAll(cockroachData(c.config.DataDir), 0o700); err != nil {
		return fmt.Errorf("make the store: %w", err)
	}
	return nil
}

func (c *cockroach) pidFile() string { return filepath.Join(c.config.DataDir, "cockroach.pid") }
func (c *cockroach) logDir() string  { return filepath.Join(c.config.DataDir, "log") }
func (c *cockroach) outputPath() string {
	return filepath.Join(c.config.DataDir, "start.log")
}

func (c *cockroach) leftover(ctx context.Context) (instance, error) {
	store := cockroachData(c.config.DataDir)
	if pid := firstPID(c.pidFile()); isRunning(ctx, pid, "cockroach", store) {
		return c.process(pid), nil
	}
	// Killed between its start and its writing the pid file.
	for _, pid := range runningIn(ctx, "cockroach", store) {
		if err := c.process(pid).stop(ctx); err != nil {
			return nil, fmt.Errorf("end an earlier server: %w", err)
		}
	}
	return nil, nil
}

// process describes a server; SIGTERM drains it.
func (c *cockroach) process(pid int) *process {
	return &process{
		pid: pid, program: "cockroach", dir: cockroachData(c.config.DataDir),
		clock: c.config.Clock, logger: c.config.Logger,
		steps: []stopStep{{signal: syscall.SIGTERM}, {syscall.SIGKILL, forceTimeout}},
	}
}

func (c *cockroach) launch(_ context.Context, port int) (_ instance, err error) {
	output, err := os.OpenFile(c.outputPath(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the start log: %w", err)
	}
	defer func() { err = errors.Join(err, output.Close()) }()
	server := c.process(0)
	if err := server.spawn(c.path, c.args(port), owner{}, output); err != nil {
		return nil, err
	}
	return server, nil
}

// args are the flags of the server. The locality makes the region "local"
// known, so that the multi-region schema works on one node.
func (c *cockroach) args(port int) []string {
	return []string{
		"start-single-node", "--insecure",
		"--store=" + cockroachData(c.config.DataDir),
		"--listen-addr=127.0.0.1:" + strconv.Itoa(port),
		"--http-addr=127.0.0.1:0",
		"--locality=region=local",
		"--pid-file=" + c.pidFile(),
		"--log-dir=" + c.logDir(), // bounded by its own defaults
	}
}

func (c *cockroach) url(port int, database string) string {
	return postgresURL(url.User("root"), port, database)
}

func (c *cockroach) createDatabase() string {
	return `create database ` + databaseName + ` primary region "local"`
}

func (c *cockroach) settle() error { return nil }

func (c *cockroach) lastLog(context.Context) string { return quoteLog(readTail(c.outputPath())) }

func (c *cockroach) remove(context.Context) error { return nil }
