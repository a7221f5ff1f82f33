package sqs_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain looks for goroutines that outlive their tests. Connections that are
// kept for the next call are no leak.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
	)
}
