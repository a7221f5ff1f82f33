package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// dockerImage is what new folders get; a folder keeps the image it began
	// with, whose major version its data need.
	dockerImage = "postgres:17.6"

	dockerVersionTimeout = 3 * time.Second
	dockerTimeout        = 30 * time.Second
	dockerPullTimeout    = 10 * time.Minute
	dockerGrace          = 20 * time.Second
)

// docker runs PostgreSQL in a container. The data are in a named volume: a bind
// mount would leave files of a foreign user in the data folder. Container and
// volume have one name, made from the folder's path and its password, so that a
// deleted folder does not meet its old volume with a new password.
type docker struct {
	config   Config
	path     string
	image    string
	password string
}

func dockerMark(dataDir string) string  { return filepath.Join(dataDir, "docker-image") }
func dockerReady(dataDir string) string { return filepath.Join(dataDir, "docker-ready") }

func findDocker(ctx context.Context, c Config, dirs []string) (backend, bool) {
	path := findProgram(dirs, "docker")
	if path == "" {
		return nil, false
	}
	args := []string{"version", "--format", "{{.Server.Version}}"}
	if _, err := run(ctx, dockerVersionTimeout, tool{path: path, args: args, dir: "/"}); err != nil {
		return nil, false
	}
	return &docker{config: c, path: path, image: dockerImageOf(c.DataDir)}, true
}

func dockerImageOf(dataDir string) string {
	content, err := os.ReadFile(dockerMark(dataDir))
	if image := strings.TrimSpace(string(content)); err == nil && image != "" {
		return image
	}
	return dockerImage
}

func (d *docker) kind() string { return "docker " + strings.Replace(d.image, ":", " ", 1) }

// prepare fetches the image. The mark is written before the volume can exist,
// so that the password, which names the volume, is never made anew after it.
func (d *docker) prepare(ctx context.Context) (err error) {
	made := exists(dockerMark(d.config.DataDir))
	if d.password, err = readPassword(d.config.DataDir, !made); err != nil {
		return err
	}
	if _, err := d.run(ctx, dockerTimeout, "image", "inspect", d.image); err != nil {
		if _, err := d.run(ctx, dockerPullTimeout, "pull", "--quiet", d.image); err != nil {
			return fmt.Errorf("fetch the image: %w", err)
		}
	}
	if made {
		return nil
	}
	return writeFile(dockerMark(d.config.DataDir), d.image+"\n")
}

func (d *docker) leftover(ctx context.Context) (instance, error) {
	if d.password == "" {
		password, err := readPassword(d.config.DataDir, false)
		if err != nil {
			return nil, err
		}
		d.password = password
	}
	if c := (&container{d}); c.alive(ctx) {
		return c, nil
	}
	return nil, d.removeContainer(ctx)
}

func (d *docker) removeContainer(ctx context.Context) error {
	_, err := d.run(ctx, dockerTimeout, "rm", "--force", d.name())
	if err != nil && !strings.Contains(err.Error(), "No such container") { // older versions fail when there is none
		return fmt.Errorf("remove the old container: %w", err)
	}
	return nil
}

func (d *docker) launch(ctx context.Context, port int) (instance, error) {
	if err := d.removeContainer(ctx); err != nil {
		return nil, err
	}
	if !exists(dockerReady(d.config.DataDir)) {
		if err := d.removeVolume(ctx); err != nil {
			return nil, fmt.Errorf("remove a half-made database: %w", err)
		}
	}
	if _, err := d.run(ctx, dockerTimeout, d.runArgs(port)...); err != nil {
		return nil, err
	}
	return &container{d}, nil
}

// runArgs start the container. The password comes from the client's
// environment: a command line is everybody's to read.
func (d *docker) runArgs(port int) []string {
	args := []string{
		"run", "--detach", "--name", d.name(),
		"--publish", "127.0.0.1:" + strconv.Itoa(port) + ":5432",
		"--mount", "type=volume,source=" + d.name() + ",target=/var/lib/postgresql/data",
		"--shm-size", "256m",
		"--env", "POSTGRES_PASSWORD", "--env", "POSTGRES_USER=" + roleName, "--env", "POSTGRES_DB=postgres",
		"--env", "POSTGRES_INITDB_ARGS=--locale=C --encoding=UTF8 --auth-host=scram-sha-256",
		"--log-opt", "max-size=10m", "--log-opt", "max-file=3",
		d.image,
		"-c", "max_connections=" + strconv.Itoa(d.config.MaxConnections),
		"-c", "max_wal_size=1GB", "-c", "timezone=UTC", "-c", "log_timezone=UTC",
	}
	if d.config.NoSync {
		args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off")
	}
	return args
}

func (d *docker) url(port int, database string) string {
	return postgresURL(url.UserPassword(roleName, d.password), port, database)
}

func (d *docker) createDatabase() string { return "create database " + databaseName }

func (d *docker) lastLog(ctx context.Context) string {
	output, err := d.run(ctx, dockerTimeout, "logs", "--tail", strconv.Itoa(tailLines), d.name())
	if err != nil {
		return ""
	}
	return quoteLog(output)
}

// settle marks the volume as whole: the image listens on TCP only when its
// initdb is done.
func (d *docker) settle() error {
	if exists(dockerReady(d.config.DataDir)) {
		return nil
	}
	return writeFile(dockerReady(d.config.DataDir), "")
}

func (d *docker) remove(ctx context.Context) error {
	if err := d.removeContainer(ctx); err != nil {
		return err
	}
	return d.removeVolume(ctx)
}

func (d *docker) removeVolume(ctx context.Context) error {
	_, err := d.run(ctx, dockerTimeout, "volume", "rm", "--force", d.name())
	return err
}

func (d *docker) name() string {
	sum := sha256.Sum256([]byte(d.config.DataDir + "\x00" + d.password))
	return "fencepost-" + hex.EncodeToString(sum[:6])
}

func (d *docker) run(ctx context.Context, timeout time.Duration, args ...string) (string, error) {
	return run(ctx, timeout, tool{path: d.path, args: args, dir: "/", env: []string{"POSTGRES_PASSWORD=" + d.password}})
}

// container is the running container of a docker backend.
type container struct{ *docker }

func (c *container) alive(ctx context.Context) bool {
	output, err := c.run(ctx, dockerTimeout, "inspect", "--format", "{{.State.Running}}", c.name())
	return err == nil && output == "true"
}

// stop lets Docker do both steps: the image's stop signal, then a kill.
func (c *container) stop(ctx context.Context) error {
	grace := strconv.Itoa(int(dockerGrace / time.Second))
	ctx = context.WithoutCancel(ctx)
	_, err := c.run(ctx, dockerGrace+dockerTimeout, "stop", "-t", grace, c.name())
	return errors.Join(err, c.removeContainer(ctx))
}
