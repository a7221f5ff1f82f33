package manifest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/fencepost/fencepost/core/api"
)

// calendarFields returns what a calendar has in the form in which it can be put
// back.
func calendarFields(c *api.Calendar) []field {
	part := func(name string, v any, n int) field {
		text, err := json.Marshal(v)
		if err != nil {
			text = json.RawMessage("null") // not reached: these always have a form
		}
		return field{name: name, value: text, usual: n == 0}
	}
	return []field{
		{name: "time_zone", value: quote(c.TimeZone), usual: c.TimeZone == ""}, {name: "note", value: quote(c.Note), usual: c.Note == ""},
		part("dates", c.Dates, len(c.Dates)), part("ranges", c.Ranges, len(c.Ranges)), part("weekly", c.Weekly, len(c.Weekly)),
	}
}

// DiffCalendar returns the fields by which a calendar differs from the body that is
// to replace it, in the order in which they are read.
func DiffCalendar(old *api.Calendar, body json.RawMessage) ([]Change, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(body, &given); err != nil {
		return nil, fmt.Errorf("read the calendar: %w", err)
	}
	var changes []Change
	for _, f := range calendarFields(old) {
		before, after := map[string]string{}, map[string]string{}
		if !f.usual {
			before = flatten(f)
		}
		if text, ok := given[f.name]; ok {
			after = flatten(field{name: f.name, value: text})
		}
		names := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if before[name] != after[name] {
				changes = append(changes, Change{name, before[name], after[name]})
			}
		}
	}
	return changes, nil
}

// WriteCalendar writes a calendar without its name, as ReadCalendar takes it.
func WriteCalendar(w io.Writer, c *api.Calendar) error {
	node, err := calendarNode(c)
	if err != nil {
		return err
	}
	if len(node.Content) == 0 {
		node.Style = yaml.FlowStyle
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	return e.Encode(node)
}

// calendarNode returns the fields of a calendar that are not empty.
func calendarNode(c *api.Calendar) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range calendarFields(c) {
		if f.usual {
			continue
		}
		value, err := nodeOf(f.value)
		if err != nil {
			return nil, fmt.Errorf("write %s of calendar %q: %w", f.name, c.Name, err)
		}
		node.Content = append(node.Content, textNode(f.name), value)
	}
	return node, nil
}

// Calendars appends the section of calendars, which may be empty.
func (w *Writer) Calendars(all []api.Calendar) error {
	if len(all) == 0 {
		return nil
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, c := range all {
		node, err := calendarNode(&c)
		if err != nil {
			return err
		}
		node.Content = append([]*yaml.Node{textNode("name"), textNode(c.Name)}, node.Content...)
		list.Content = append(list.Content, node)
	}
	if err := w.begin("schedules: []\n"); err != nil {
		return err
	}
	e := yaml.NewEncoder(w.w)
	e.SetIndent(2)
	return e.Encode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{textNode("calendars"), list}})
}

// ReadCalendar reads a file in YAML or JSON that is one calendar, as the API takes
// it; Faults for a file that is wrong.
func ReadCalendar(r io.Reader) (json.RawMessage, error) {
	data, err := readAll(r)
	if err != nil {
		return nil, err
	}
	root, err := parse(data)
	if err != nil {
		return nil, err
	}
	if root.kind != mapping {
		return nil, Faults{{root.line, root.column, "", "must be a mapping with time_zone, note, dates, ranges and weekly"}}
	}
	body, ok := root.append(nil, MaxScheduleBytes)
	if !ok {
		return nil, Faults{{root.line, root.column, "", fmt.Sprintf("is larger than %d KiB", MaxScheduleBytes>>10)}}
	}
	return body, nil
}
