package httptarget_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/httptarget"
)

// A server that says when to come again is believed, in both forms of the header,
// whatever this machine's clock says.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const date = "Tue, 05 Jan 2027 09:00:00 GMT"
	for _, tt := range []struct {
		status int
		header string
		want   time.Duration
	}{
		{429, "120", 2 * time.Minute},
		{503, "Tue, 05 Jan 2027 09:00:30 GMT", 30 * time.Second},
		{503, "Tue, 05 Jan 2027 08:59:30 GMT", 0},
		{500, "7200", 2 * time.Hour},
		{503, "99999999", core.MaxRetryAfter},
		{503, "-5", 0}, {503, "soon", 0}, {503, "", 0}, {503, "99999999999999999999", 0},
		{404, "120", 0}, // another attempt cannot cure it
	} {
		t.Run(fmt.Sprintf("%d %s", tt.status, tt.header), func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", date)
				w.Header().Set("Retry-After", tt.header)
				w.WriteHeader(tt.status)
			}))
			t.Cleanup(srv.Close)
			_, err := open(t, httptarget.Config{}).Execute(t.Context(), execution(fmt.Sprintf(`{"url":%q}`, srv.URL)))
			if got := core.RetryDelay(err); err == nil || got != tt.want {
				t.Errorf("the delay of %v is %s, want %s", err, got, tt.want)
			}
		})
	}
}
