package dbtest

import (
	"context"
	"fmt"
	"os"

	"github.com/cockroachdb/cockroach-go/v2/testserver"
)

// startCockroach starts a single node of CockroachDB from the given program. It
// downloads nothing. The node's region is the one that the tests work in.
func startCockroach(binary string) (string, func(context.Context) error, error) {
	// Without this check testserver would look for a program elsewhere.
	if _, err := os.Stat(binary); err != nil {
		return "", nil, fmt.Errorf("COCKROACH_BINARY names no program: %w", err)
	}
	node, err := testserver.NewTestServer(
		testserver.CockroachBinaryPathOpt(binary),
		testserver.LocalityFlagsOpt("region=local"),
	)
	if err != nil {
		return "", nil, fmt.Errorf("start %s: %w", binary, err)
	}
	stop := func(context.Context) error {
		node.Stop()
		return nil
	}
	return node.PGURL().String(), stop, nil
}
