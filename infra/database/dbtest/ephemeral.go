package dbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/embedded"
)

const (
	folderPrefix = "fencepost-dbtest-"

	// folderAge keeps the sweep away from the folder of a run that has not yet
	// locked it.
	folderAge = time.Minute

	// sweepLimit bounds what one run spends on the remains of others.
	sweepLimit = 5

	// A test database gets many clients: each parallel test has its own pool.
	ephemeralConnections = 400

	stopTimeout = 30 * time.Second
)

var errStopTimeout = errors.New("ending the ephemeral server took longer than 30 seconds")

// startEphemeral starts a server in a folder of its own, whose removal ends it.
func startEphemeral(ctx context.Context) (string, func(context.Context) error, error) {
	sweep(ctx)
	dir, err := os.MkdirTemp("", folderPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for the server: %w", err)
	}
	remove := func() error { return os.RemoveAll(dir) }
	// Under root the server runs as another user, who has to pass through.
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", nil, errors.Join(fmt.Errorf("open the server's folder: %w", err), remove())
	}
	running, err := embedded.Start(ctx, ephemeralConfig(dir))
	if err != nil {
		err = fmt.Errorf("DATABASE_URL names no server for the tests, and there is none to start: %w", err)
		return "", nil, errors.Join(err, remove())
	}
	stop := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, stopTimeout, errStopTimeout)
		defer cancel()
		return errors.Join(running.Stop(ctx), remove())
	}
	return running.URL(), stop, nil
}

func ephemeralConfig(dir string) embedded.Config {
	return embedded.Config{
		DataDir:        filepath.Join(dir, "data"),
		Clock:          clock.System{},
		MaxConnections: ephemeralConnections,
		NoSync:         true,
	}
}

// sweep ends the servers of test processes that were killed. It is a courtesy
// to the machine: an error leaves the remains to the next run.
func sweep(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, stopTimeout, errStopTimeout)
	defer cancel()
	folders, err := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*"))
	if err != nil {
		return // only a malformed pattern
	}
	swept := 0
	for _, dir := range folders {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || (clock.System{}).Now().Sub(info.ModTime()) < folderAge {
			continue
		}
		if err := embedded.Remove(ctx, ephemeralConfig(dir)); err != nil {
			continue // in use, or another user's
		}
		if err := os.Remove(dir); err != nil {
			continue
		}
		if swept++; swept == sweepLimit {
			return
		}
	}
}
