package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
)

// A program makes a schedule of its own when it starts. Put may be called each
// time: equal content changes nothing.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(api.PutResult{Schedule: api.Schedule{Name: "nightly-report"}, Outcome: "created"})
	}))
	defer server.Close()

	c, err := client.New(server.URL, "fp_...")
	if err != nil {
		fmt.Println(err)
		return
	}
	made, err := c.Put(context.Background(), "nightly-report", api.ScheduleInput{
		Spec: "0 3 * * *", TimeZone: "Europe/Berlin", Job: &api.JobInput{HTTP: &api.HTTPInput{URL: "https://example.com/report"}},
	}, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(made.Name, made.Outcome)
	// Output: nightly-report created
}
