package api_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/check"
)

// TestCheckerReadsTheAPI: the checker has types of its own for what the API shows; each
// field that it reads is one that the API has.
func TestCheckerReadsTheAPI(t *testing.T) {
	t.Parallel()
	for _, pair := range []struct{ reads, shown any }{{check.Run{}, api.Run{}}, {check.Schedule{}, api.Schedule{}}} {
		shown := fields(reflect.TypeOf(pair.shown))
		for name, kind := range fields(reflect.TypeOf(pair.reads)) {
			if got, ok := shown[name]; !ok || strings.TrimPrefix(got, "*") != strings.TrimPrefix(kind, "*") {
				t.Errorf("%T reads %s as %s; %T has %q", pair.reads, name, kind, pair.shown, got)
			}
		}
	}
}

// fields returns the JSON names of a struct's fields with their types.
func fields(of reflect.Type) map[string]string {
	out := map[string]string{}
	for f := range of.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			out[name] = f.Type.String()
		}
	}
	return out
}
