package embedded

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// isRunning reports whether the process exists, runs the program and has dir as
// its working folder. A zombie does not: it has no folder any more.
func isRunning(_ context.Context, pid int, program, dir string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	exe, err := os.Readlink(filepath.Join(proc, "exe"))
	if err != nil {
		return false
	}
	// A program that was upgraded while it runs has this suffix.
	if filepath.Base(strings.TrimSuffix(exe, " (deleted)")) != program {
		return false
	}
	cwd, err := os.Stat(filepath.Join(proc, "cwd"))
	if err != nil {
		return false
	}
	want, err := os.Stat(dir)
	return err == nil && os.SameFile(cwd, want)
}

// runningIn lists the processes that run the program in dir.
func runningIn(ctx context.Context, program, dir string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err == nil && isRunning(ctx, pid, program, dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}
