package manifest

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

type kind uint8

const (
	scalar kind = iota
	mapping
	sequence
)

// value is a value of a file, with where it stands. Values are not changed once
// they are built: aliases and defaults share them.
type value struct {
	kind         kind
	line, column int
	depth        int             // levels in it
	text         json.RawMessage // of a scalar, as JSON
	members      []member        // of a mapping
	items        []*value        // of a sequence
}

// member is a member of a mapping, with where its name stands.
type member struct {
	name         string
	line, column int
	value        *value
}

func (v *value) member(name string) *member {
	for i := range v.members {
		if v.members[i].name == name {
			return &v.members[i]
		}
	}
	return nil
}

// holding returns the member that is or holds a field. Names may have dots.
func (v *value) holding(field string) *member {
	for i, m := range v.members {
		rest, ok := strings.CutPrefix(field, m.name)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return &v.members[i]
		}
	}
	return nil
}

// item returns the item of a list that a field begins with, such as [2].name, and
// the rest of the field; nil if there is none.
func (v *value) item(field string) (*value, string) {
	index, rest, ok := strings.Cut(strings.TrimPrefix(field, "["), "]")
	n, err := strconv.Atoi(index)
	if !strings.HasPrefix(field, "[") || !ok || err != nil || n < 0 || n >= len(v.items) {
		return nil, ""
	}
	return v.items[n], strings.TrimPrefix(rest, ".")
}

// merge returns over with the members of base that it does not have, in mappings
// of both too. A nil base has none.
func merge(base, over *value) *value {
	if base == nil || base.kind != mapping || over.kind != mapping {
		return over
	}
	at := make(map[string]int, len(over.members))
	for i, m := range over.members {
		at[m.name] = i
	}
	out := *over
	out.members = append([]member(nil), over.members...)
	for _, m := range base.members {
		if i, ok := at[m.name]; ok {
			out.members[i].value = merge(m.value, out.members[i].value)
		} else {
			out.members = append(out.members, m)
		}
	}
	return &out
}

// append appends the value as JSON; false if it would be longer than most bytes.
// That ends a value in which aliases repeat others many times over.
func (v *value) append(b []byte, most int) ([]byte, bool) {
	if len(b) > most {
		return b, false
	}
	ok := true
	switch v.kind {
	case scalar:
		b = append(b, v.text...)
	case mapping:
		b = append(b, '{')
		for i, m := range v.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, quote(m.name)...), ':')
			if b, ok = m.value.append(b, most); !ok {
				return b, false
			}
		}
		b = append(b, '}')
	case sequence:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			if b, ok = item.append(b, most); !ok {
				return b, false
			}
		}
		b = append(b, ']')
	}
	return b, len(b) <= most
}

// quote returns a text as a JSON string, without the escapes that are for HTML.
func quote(text string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string cannot fail
	return bytes.TrimRight(b.Bytes(), "\n")
}
