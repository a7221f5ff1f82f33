package exectarget_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/exectarget"
)

func TestCheckAccepts(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{
		`{"command":"date"}`,
		`{"command":" a | b\n c","dir":"/tmp","stdin":"x","shell":"/bin/bash","env":{"A":"","_b9":"é"}}`,
		`{"command":"date","dir":null,"stdin":null,"shell":null,"env":null}`,
		`{"command":"date","env":{"DATABASE_URL":"the job's own"}}`,
	} {
		if err := exectarget.New(exectarget.Config{}).Check(json.RawMessage(payload)); err != nil {
			t.Errorf("%s: %v", payload, err)
		}
	}
}

func TestCheckNamesTheFieldAndNotTheValue(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64<<10)
	tests := []struct{ payload, field string }{
		{``, ""}, {`null`, ""}, {`["hunter2"]`, ""}, {`{`, ""},
		{`{}`, "command"}, {`{"command":null}`, "command"}, {`{"command":" \t\n"}`, "command"}, {`{"command":7}`, "command"},
		{`{"command":"hunter2\u0000"}`, "command"}, {`{"command":"hunter2` + long + `"}`, "command"},
		{`{"command":"date","Command":"hunter2"}`, "Command"}, {`{"command":"date","timeout":"hunter2"}`, "timeout"},
		{`{"command":"date","dir":"hunter2"}`, "dir"}, {`{"command":"date","dir":"/hunter2\u0000"}`, "dir"},
		{`{"command":"date","dir":"/hunter2` + long + `"}`, "dir"},
		{`{"command":"date","shell":"hunter2"}`, "shell"}, {`{"command":"date","shell":""}`, "shell"},
		{`{"command":"date","stdin":["hunter2"]}`, "stdin"}, {`{"command":"date","stdin":"hunter2\u0000"}`, "stdin"},
		{`{"command":"date","user":"hunter2 x"}`, "user"}, {`{"command":"date","user":"-hunter2"}`, "user"},
		{`{"command":"date","env":["hunter2"]}`, "env"}, {`{"command":"date","env":{"hunter2 x":""}}`, "env"},
		{`{"command":"date","env":{"":"hunter2"}}`, "env"}, {`{"command":"date","env":{"9A":"hunter2"}}`, "env"},
		{`{"command":"date","env":{"A=B":"hunter2"}}`, "env"}, {`{"command":"date","env":{"É":"hunter2"}}`, "env"},
		{`{"command":"date","env":{"A":"hunter2\u0000"}}`, "env.A"}, {`{"command":"date","env":{"A":null}}`, "env.A"},
		{`{"command":"date","env":{"A":7}}`, "env.A"}, {`{"command":"date","env":{"A":"hunter2` + long + `"}}`, "env"},
		{`{"command":"date","env":{"FENCEPOST_FENCE":"hunter2"}}`, "env.FENCEPOST_FENCE"},
	}
	target := exectarget.New(exectarget.Config{})
	for _, tt := range tests {
		err := target.Check(json.RawMessage(tt.payload))
		var e *core.Error
		if !errors.As(err, &e) || e.Code != core.CodeInvalid {
			t.Errorf("%.80s: error %v, want one of code invalid", tt.payload, err)
			continue
		}
		if diff := cmp.Diff(tt.field, e.Field); diff != "" {
			t.Errorf("%.80s: field (-want +got):\n%s", tt.payload, diff)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.80s: error %q repeats the value", tt.payload, err)
		}
		if _, err := target.Execute(t.Context(), core.Execution{Payload: json.RawMessage(tt.payload)}); !core.IsPermanent(err) {
			t.Errorf("%.80s: Execute answered %v, want a permanent error", tt.payload, err)
		}
	}
}
