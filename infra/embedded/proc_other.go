//go:build !linux

package embedded

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const psTimeout = 3 * time.Second

// isRunning reports whether the process exists, runs the program and names dir
// on its command line, as every server that this package starts does.
func isRunning(ctx context.Context, pid int, program, dir string) bool {
	ps := tool{path: "/bin/ps", args: []string{"-ww", "-o", "stat=,command=", "-p", strconv.Itoa(pid)}}
	output, err := run(ctx, psTimeout, ps)
	if err != nil {
		return false
	}
	fields := strings.Fields(output)
	if len(fields) < 2 || strings.HasPrefix(fields[0], "Z") {
		return false
	}
	return filepath.Base(fields[1]) == program && strings.Contains(output, dir)
}

// runningIn finds nothing here: the children of a killed server carry no folder
// on their command line. They end by themselves, and the start is tried again.
func runningIn(context.Context, string, string) []int { return nil }
