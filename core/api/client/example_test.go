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

	c, err := client.New(client.Config{URL: server.URL, Key: "fp_..."})
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

// A program that may be started twice for one order triggers one run: the key names
// the order, and what is sent again is answered with the run that it made.
func ExampleWithKey() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(api.Run{ID: "run of " + r.Header.Get("Idempotency-Key"), State: "queued"})
	}))
	defer server.Close()

	c, err := client.New(client.Config{URL: server.URL, Key: "fp_..."})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := client.WithKey(context.Background(), "order-4711")
	run, err := c.Trigger(ctx, "0190d4b2-0000-7000-8000-000000000000", json.RawMessage(`{"order":4711}`))
	if client.IsCode(err, "run_live") {
		fmt.Println("one is under way")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.ID, run.State)
	// Output: run of order-4711 queued
}
