package api_test

import (
	"strings"
	"testing"

	"github.com/fencepost/fencepost/core"
)

// The tests of this file are named after reports of what other schedulers did.

// TestBugH54: a payload above the limit is refused at once, with the limit, and
// is not something to try again.
func TestBugH54(t *testing.T) {
	t.Parallel()
	s := newFake(t, &fakeStore{})
	payload := `"` + strings.Repeat("x", core.MaxPayloadBytes-1) + `"` // a byte too many
	body := `{"name":"n","spec":"@daily","job":{"queue":"test","payload":` + payload + `}}`
	for _, w := range []struct{ method, path string }{
		{"POST", "/v1/schedules"}, {"PUT", "/v1/schedules/by-name/n"}, {"PATCH", aSchedule},
	} {
		p := problem(s, s.send(w.method, w.path, body), 413)
		if p.Code != "too_large" || !strings.Contains(p.Detail, "256 KiB") {
			t.Errorf("%s: %+v", w.method, p)
		}
	}
}
