package embedded

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	tailLines = 12
	tailBytes = 8 << 10
)

// quoteLog makes the last lines of a log fit for the end of an error.
func quoteLog(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return ""
	}
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return "; its last words:\n" + strings.Join(lines, "\n")
}

// readTail returns the end of a file, or nothing when it cannot be read.
func readTail(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close() //nolint:errcheck // nothing was written
	if info, err := file.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := file.Seek(-tailBytes, io.SeekEnd); err != nil {
			return ""
		}
	}
	content, err := io.ReadAll(io.LimitReader(file, tailBytes))
	if err != nil {
		return ""
	}
	return string(content)
}

// logFiles lists the log files of a folder, oldest first: their names are their
// times.
func logFiles(dir string) []string {
	paths, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil
	}
	slices.Sort(paths)
	return paths
}

// lastWritten returns the file that was written last; later ones win a tie.
func lastWritten(paths []string) string {
	var last string
	var lastTime time.Time
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && !info.ModTime().Before(lastTime) {
			last, lastTime = path, info.ModTime()
		}
	}
	return last
}

// pruneLogs keeps the newest files of a folder.
func pruneLogs(dir string, keep int) error {
	paths := logFiles(dir)
	var err error
	for _, path := range paths[:max(0, len(paths)-keep)] {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}
