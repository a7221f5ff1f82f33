package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	versionTimeout = 5 * time.Second

	// oldestPostgres is the first major version that Fencepost supports.
	oldestPostgres = 15
)

// programs are the executables of one installed PostgreSQL.
type programs struct {
	dir     string
	version string
	major   int
}

func (p programs) path(name string) string { return filepath.Join(p.dir, name) }

// findBackend picks what to run: what made the folder's data, else the first
// thing that the machine has.
func findBackend(ctx context.Context, c Config) (backend, error) {
	dirs := searchDirs(c)
	switch {
	case exists(postgresData(c.DataDir)):
		return findKeptPostgres(ctx, c, dirs)
	case exists(cockroachData(c.DataDir)):
		if found, ok := findCockroach(ctx, c, dirs); ok {
			return found, nil
		}
		return nil, fmt.Errorf("%w: %s holds data of CockroachDB, but there is no cockroach on PATH", ErrNoDatabase, c.DataDir)
	case exists(dockerMark(c.DataDir)):
		if found, ok := findDocker(ctx, c, dirs); ok {
			return found, nil
		}
		return nil, fmt.Errorf("%w: %s was made with Docker, but no Docker server answers", ErrNoDatabase, c.DataDir)
	}
	for _, candidate := range postgresPrograms(ctx, dirs) {
		if candidate.major >= oldestPostgres {
			return newPostgres(c, candidate), nil
		}
	}
	if found, ok := findCockroach(ctx, c, dirs); ok {
		return found, nil
	}
	if found, ok := findDocker(ctx, c, dirs); ok {
		return found, nil
	}
	return nil, fmt.Errorf("%w: install PostgreSQL %d or later (\"apt install postgresql\" or \"brew install postgresql\"), put cockroach on PATH, or start Docker",
		ErrNoDatabase, oldestPostgres)
}

// findKeptPostgres wants the major version that made the data: no other can
// read them.
func findKeptPostgres(ctx context.Context, c Config, dirs []string) (backend, error) {
	content, err := os.ReadFile(filepath.Join(postgresData(c.DataDir), "PG_VERSION"))
	if err != nil {
		return nil, fmt.Errorf("read the version of the data: %w", err)
	}
	made := strings.TrimSpace(string(content))
	for _, candidate := range postgresPrograms(ctx, dirs) {
		if strconv.Itoa(candidate.major) == made {
			return newPostgres(c, candidate), nil
		}
	}
	return nil, fmt.Errorf("%w: %s holds data of PostgreSQL %s: install that version or choose another folder with --data",
		ErrNoDatabase, c.DataDir, made)
}

// keptBackends lists every backend that may have something in the folder, for
// Remove; none of them has to be installed.
func keptBackends(c Config) []backend {
	var kept []backend
	if exists(postgresData(c.DataDir)) {
		kept = append(kept, newPostgres(c, programs{}))
	}
	if exists(cockroachData(c.DataDir)) {
		kept = append(kept, &cockroach{config: c})
	}
	if exists(dockerMark(c.DataDir)) {
		kept = append(kept, &docker{config: c, path: "docker"})
	}
	return kept
}

// searchDirs lists the folders to look in: those of the configuration, or PATH,
// then Debian's and Homebrew's, the highest version first.
func searchDirs(c Config) []string {
	if c.BinDirs != nil {
		return c.BinDirs
	}
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			continue // only a malformed pattern
		}
		slices.SortFunc(found, func(a, b string) int { return firstNumber(b) - firstNumber(a) })
		dirs = append(dirs, found...)
	}
	return dirs
}

var digits = regexp.MustCompile(`[0-9]+`)

func firstNumber(text string) int {
	number, err := strconv.Atoi(digits.FindString(text))
	if err != nil {
		return 0
	}
	return number
}

// postgresPrograms lists the installations of PostgreSQL in the folders. It
// asks each for its version, so the folders' names do not matter.
func postgresPrograms(ctx context.Context, dirs []string) []programs {
	var found []programs
	for _, dir := range dirs {
		if findProgram([]string{dir}, "initdb") == "" {
			continue
		}
		path := findProgram([]string{dir}, "postgres")
		if path == "" {
			continue
		}
		output, err := run(ctx, versionTimeout, tool{path: path, args: []string{"--version"}, dir: "/"})
		if err != nil {
			continue // not a program of this machine
		}
		if version, major, ok := parsePostgresVersion(output); ok {
			found = append(found, programs{dir: dir, version: version, major: major})
		}
	}
	return found
}

var postgresVersion = regexp.MustCompile(`\(PostgreSQL\) (([0-9]+)[^ ]*)`)

// parsePostgresVersion reads "postgres (PostgreSQL) 15.18 (Debian ...)".
func parsePostgresVersion(output string) (version string, major int, ok bool) {
	match := postgresVersion.FindStringSubmatch(output)
	if match == nil {
		return "", 0, false
	}
	return match[1], firstNumber(match[2]), true
}

// findProgram returns the first executable of that name in the folders, or
// nothing.
func findProgram(dirs []string, name string) string {
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return ""
}
