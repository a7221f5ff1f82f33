package manifest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/fencepost/fencepost/core/api"
)

// Change is a field that differs between two schedules. Its values are JSON, or
// empty where the field is missing.
type Change struct {
	Field    string // such as job.payload.command
	Old, New string
}

// Diff returns the fields of a file by which two schedules differ, objects member
// by member, in the order of their names within each field.
func Diff(from, to *api.Schedule) []Change {
	var changes []Change
	old := fields(from)
	for i, f := range fields(to) {
		a, b := flatten(old[i]), flatten(f)
		names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if a[name] != b[name] {
				changes = append(changes, Change{name, a[name], b[name]})
			}
		}
	}
	return changes
}

// flatten returns the values of a field by their paths, each in one canonical
// form. An empty object is a value.
func flatten(f field) map[string]string {
	out := map[string]string{}
	value := f.value
	if f.whole != nil {
		value = f.whole
	}
	if f.usual && (string(value) == "null" || string(value) == "{}") {
		return out // not there, as an anchor or labels
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		v = string(f.value) // not reached: the API sends JSON
	}
	walk(f.name, v, out)
	return out
}

func walk(path string, v any, out map[string]string) {
	if object, ok := v.(map[string]any); ok && len(object) > 0 {
		for name, member := range object {
			walk(path+"."+name, member, out)
		}
		return
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it came from JSON
	out[path] = strings.TrimSpace(b.String())
}

// Fields returns the fields of a schedule's body as changes from nothing, in the
// order in which the body has them.
func Fields(body json.RawMessage) ([]Change, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	if _, err := d.Token(); err != nil { // the bracket
		return nil, err
	}
	var changes []Change
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		values := flatten(field{name: name, value: value})
		for _, path := range slices.Sorted(maps.Keys(values)) {
			changes = append(changes, Change{Field: path, New: values[path]})
		}
	}
	return changes, nil
}
