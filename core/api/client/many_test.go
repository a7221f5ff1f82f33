package client_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/api"
)

func TestRequestsByNameAndInBatches(t *testing.T) {
	t.Parallel()
	c, asked := serve(t, 200, `{"id":"x","outcome":"replaced","items":[{"status":409,"problem":{"code":"name_taken"}}],"refused":1}`)
	ctx := t.Context()
	_, err1 := c.Named(ctx, "a/b c%ü")
	_, err2 := c.Named(ctx, "..")
	put, err3 := c.Put(ctx, "n", api.ScheduleInput{Spec: "<@daily>", Job: &api.JobInput{Queue: "q"}}, false)
	_, err4 := c.PutJSON(ctx, "n", json.RawMessage(`{"spec":"& <"}`), true)
	batch, err5 := c.Batch(ctx, api.BatchInput{Mode: "put", DryRun: true, Items: []json.RawMessage{[]byte(`{"name":"<>"}`)}})
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil || put.ID != "x" || put.Outcome != "replaced" || batch.Refused != 1 || batch.Items[0].Problem.Code != "name_taken" {
		t.Errorf("%+v %+v %v", put, batch, err)
	}
	want := []string{
		"GET /v1/schedules/by-name/a%2Fb%20c%25%C3%BC Bearer fp_x",
		"GET /v1/schedules/by-name/%2E%2E Bearer fp_x",
		`PUT /v1/schedules/by-name/n Bearer fp_x {"spec":"<@daily>","job":{"queue":"q"}}`,
		`PUT /v1/schedules/by-name/n?dry_run=true Bearer fp_x {"spec":"& <"}`,
		`POST /v1/schedules/batch Bearer fp_x {"items":[{"name":"<>"}],"mode":"put","dry_run":true}`,
	}
	if diff := cmp.Diff(want, *asked); diff != "" {
		t.Error(diff)
	}
}
