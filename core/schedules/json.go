package schedules

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// sameJSON compares two documents by what they mean: the database keeps
// neither blanks nor the order of members.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, okX := decode(a)
	y, okY := decode(b)
	return okX && okY && reflect.DeepEqual(x, y)
}

func decode(b json.RawMessage) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err == nil
}
