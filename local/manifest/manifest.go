// Package manifest reads and writes files that describe schedules, and exists so
// that what an installation runs can live in a repository: a mistake in such a
// file is named by line, column and field before anything is stored.
package manifest

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fencepost/fencepost/core"
)

// The bounds of a file. Its schedules are counted with what aliases and defaults
// add to them.
const (
	MaxFileBytes = 10 << 20
	// MaxScheduleBytes is as much as the API takes for one schedule.
	MaxScheduleBytes = core.MaxPayloadBytes
	maxTotalBytes    = 64 << 20
	maxDepth         = 100
	maxFaults        = 20
)

// File is what a file says.
type File struct {
	// Set names the owner of the schedules, for pruning; it may be empty. The
	// bodies of its items carry it in the label SetLabel.
	Set   string
	Items []Item
	// Calendars are what the schedules may name; their bodies have no name.
	Calendars []Item
	// Simulation is what fencepost simulate plays, nil if there is none: its body
	// is the section simulate. Applying a file leaves it out of account.
	Simulation *Item
}

// Item is one schedule of a file.
type Item struct {
	Name string
	// Body is the schedule as the API takes it, the file's defaults included.
	Body json.RawMessage
	// Line and Column say where the schedule begins.
	Line, Column int
	root         *value
}

// Where returns the line and column of a field, named as the API does, such as
// job.http.url or calendars[0]; of what it would be in, if the file does not have it.
func (i *Item) Where(field string) (line, column int) {
	line, column = i.Line, i.Column
	for at := i.root; at != nil; {
		if item, rest := at.item(field); item != nil {
			line, column, at, field = item.line, item.column, item, rest
			continue
		}
		m := at.holding(field)
		if m == nil {
			break
		}
		line, column, at = m.line, m.column, m.value
		field = strings.TrimPrefix(strings.TrimPrefix(field, m.name), ".")
	}
	return line, column
}

// Fault is something wrong with a file.
type Fault struct {
	Line, Column int
	Field        string // such as schedules[2].job; may be empty
	Message      string
}

// String returns a fault as compilers write theirs.
func (f Fault) String() string {
	text := fmt.Sprintf("%d:%d: ", f.Line, f.Column)
	if f.Field != "" {
		text += f.Field + ": "
	}
	return text + f.Message
}

// Faults is the error of a file that was not taken: from one to 20 of them, in the
// order of the file as far as possible.
type Faults []Fault

// Error returns the first fault and how many more there are.
func (f Faults) Error() string {
	if len(f) == 1 {
		return f[0].String()
	}
	return fmt.Sprintf("%s (and %d more)", f[0], len(f)-1)
}

// Read reads a file in YAML or JSON: a mapping with the list schedules, whose
// fields are those of the API, and optionally defaults, which are merged under
// each of them, set, and calendars. It returns Faults for a file that is wrong, and none of
// its schedules then; any other error is r's.
func Read(r io.Reader) (*File, error) {
	data, err := readAll(r)
	if err != nil {
		return nil, err
	}
	root, err := parse(data)
	if err != nil {
		return nil, err
	}
	b := builder{}
	file := b.file(root)
	if len(b.faults) > 0 {
		return nil, b.faults
	}
	return file, nil
}

// readAll reads a file that is text of bounded length.
func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxFileBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the file: %w", err)
	case len(data) > MaxFileBytes:
		return nil, Faults{{1, 1, "", fmt.Sprintf("the file is larger than %d MiB", MaxFileBytes>>20)}}
	case !utf8.Valid(data) || strings.ContainsRune(string(data[:min(len(data), 1024)]), 0):
		return nil, Faults{{1, 1, "", "the file is not text in UTF-8"}}
	}
	return data, nil
}

// setName is what a label's value may be everywhere.
var setName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// file takes the mapping apart that a file is.
func (b *builder) file(root *value) *File {
	file := &File{}
	var defaults, list, calendars *value
	if root.kind != mapping {
		b.add(root, "must be a mapping with the list schedules")
		return file
	}
	for _, m := range root.members {
		switch m.name {
		case "set":
			if err := json.Unmarshal(m.value.text, &file.Set); err != nil || !setName.MatchString(file.Set) {
				b.at(m.line, m.column, "set", "must be a name of letters, digits, dots, dashes and underscores, at most 63")
			}
		case "defaults":
			defaults = m.value
			if b.is(mapping, m, "a mapping") && defaults.member("name") != nil {
				b.at(m.line, m.column, "defaults.name", "cannot be the same for all schedules")
			}
		case "schedules":
			list = m.value
			b.is(sequence, m, "a list")
		case "calendars":
			calendars = m.value
			b.is(sequence, m, "a list")
		case "simulate":
			file.Simulation = b.simulation(m)
		default:
			b.at(m.line, m.column, m.name, "is not a field here; there are set, defaults, calendars, schedules and simulate")
		}
	}
	if list == nil && calendars == nil {
		b.at(root.line, root.column, "schedules", "is required")
	}
	if len(b.faults) == 0 && list != nil {
		file.Items = b.items("schedules", list, defaults)
	}
	if len(b.faults) == 0 && calendars != nil {
		file.Calendars = b.items("calendars", calendars, nil)
	}
	for i := range file.Items {
		b.own(&file.Items[i], file.Set)
	}
	return file
}

// simulation returns the section simulate.
func (b *builder) simulation(m member) *Item {
	item := &Item{Line: m.line, Column: m.column, root: m.value}
	var ok bool
	if b.is(mapping, m, "a mapping") {
		if item.Body, ok = m.value.append(nil, MaxScheduleBytes); !ok {
			b.at(m.line, m.column, m.name, fmt.Sprintf("is larger than %d KiB", MaxScheduleBytes>>10))
		}
	}
	return item
}

// own labels a schedule with the set of its file.
func (b *builder) own(item *Item, set string) {
	if set == "" || len(b.faults) > 0 {
		return
	}
	body, err := own(item.Body, set)
	if err != nil {
		b.at(item.Line, item.Column, item.Name, err.Error())
		return
	}
	item.Body = body
}

func (b *builder) is(k kind, m member, name string) bool {
	if m.value.kind != k {
		b.at(m.line, m.column, m.name, "must be "+name)
	}
	return m.value.kind == k
}

// items returns what a list of the file has, which is called by the given word. What
// is left of the fields' checks is the API's business.
func (b *builder) items(word string, list, defaults *value) []Item {
	var out []Item
	total := 0
	known := map[string]int{} // lines
	for n, v := range list.items {
		b.path = []string{word, fmt.Sprintf("[%d]", n)}
		item, ok := b.item(v, defaults)
		if !ok {
			continue
		}
		if line, twice := known[item.Name]; twice {
			at := item.root.member("name")
			b.add(&value{line: at.line, column: at.column}, fmt.Sprintf("has the name of the %s in line %d", strings.TrimSuffix(word, "s"), line))
		}
		known[item.Name] = item.Line
		if total += len(item.Body); total > maxTotalBytes {
			b.add(v, fmt.Sprintf("the %s up to here have more than %d MiB", word, maxTotalBytes>>20))
			return nil
		}
		out = append(out, item)
	}
	return out
}

func (b *builder) item(v, defaults *value) (Item, bool) {
	if v.kind != mapping {
		b.add(v, "must be a mapping")
		return Item{}, false
	}
	item := Item{Line: v.line, Column: v.column, root: merge(defaults, v)}
	m := item.root.member("name")
	if m == nil {
		b.add(v, "name is required")
		return item, false
	}
	if err := json.Unmarshal(m.value.text, &item.Name); err != nil || m.value.kind != scalar || item.Name == "" {
		b.add(m.value, "name must be a string; put it in quotes")
		return item, false
	}
	body, ok := b.content(item.root).append(nil, MaxScheduleBytes)
	if !ok {
		b.add(v, fmt.Sprintf("is larger than %d KiB", MaxScheduleBytes>>10))
	}
	item.Body = body
	return item, ok
}

// content returns what is sent of an item: a calendar's name is in the path.
func (b *builder) content(root *value) *value {
	if b.path[0] != "calendars" {
		return root
	}
	out := *root
	out.members = slices.DeleteFunc(slices.Clone(root.members), func(m member) bool { return m.name == "name" })
	return &out
}
