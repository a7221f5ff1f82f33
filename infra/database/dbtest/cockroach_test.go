package dbtest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCockroachNeedsItsProgram: a wrong path is an error and never a download.
func TestCockroachNeedsItsProgram(t *testing.T) {
	t.Parallel()
	if _, _, err := startCockroach(filepath.Join(t.TempDir(), "cockroach")); err == nil || !strings.Contains(err.Error(), "COCKROACH_BINARY") {
		t.Errorf("a missing program gives %v", err)
	}
	fake := filepath.Join(t.TempDir(), "cockroach")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, stop, err := startCockroach(fake)
	if err == nil {
		_ = stop(context.Background())
		t.Error("a program that is no database was taken for one")
	}
}
