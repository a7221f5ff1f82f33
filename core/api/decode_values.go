package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/fencepost/fencepost/core"
)

// string reads a string, whatever it holds.
func (d *decoder) string(raw json.RawMessage, field string) *string {
	if d.isNull(raw, field) {
		return nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		d.add(field, "must be a string")
		return nil
	}
	return &text
}

func (d *decoder) boolean(raw json.RawMessage, field string) *bool {
	if d.isNull(raw, field) {
		return nil
	}
	on := string(raw) == "true"
	if !on && string(raw) != "false" {
		d.add(field, "must be true or false")
		return nil
	}
	return &on
}

// text reads a string that the database can store.
func (d *decoder) text(raw json.RawMessage, field string) *string {
	text := d.string(raw, field)
	if text == nil {
		return nil
	}
	if why := badEscape(raw); why != "" {
		d.add(field, why)
		return nil
	}
	return text
}

func (d *decoder) integer(raw json.RawMessage, field string) *int {
	if d.isNull(raw, field) {
		return nil
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil {
		d.add(field, "must be a whole number")
		return nil
	}
	return &n
}

func (d *decoder) duration(raw json.RawMessage, field string) *time.Duration {
	if raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9' {
		d.add(field, `must be a string with a unit, such as "90s"`)
		return nil
	}
	text := d.text(raw, field)
	if text == nil {
		return nil
	}
	length, err := core.ParseDuration(*text)
	if err != nil {
		d.add(field, problemOf(err).Detail)
		return nil
	}
	return &length
}

func (d *decoder) instant(raw json.RawMessage, field string) *time.Time {
	text := d.text(raw, field)
	if text == nil {
		return nil
	}
	t, ok := parseTime(*text)
	if !ok {
		d.add(field, `must be a time such as "2027-01-05T09:00:00Z"`)
		return nil
	}
	return &t
}

// bound reads an instant of whole seconds, or the empty string for none.
func (d *decoder) bound(raw json.RawMessage, field string) *time.Time {
	if string(raw) == `""` {
		return new(time.Time)
	}
	t := d.instant(raw, field)
	if t != nil && (t.Nanosecond() != 0 || t.IsZero() || !t.Before(core.Forever)) {
		d.add(field, "must be a whole second before the year 9999, or an empty string for none")
		return nil
	}
	return t
}

// texts reads a list of up to most strings.
func (d *decoder) texts(raw json.RawMessage, field string, most int) *[]string {
	out := []string{}
	for i, item := range d.list(raw, field, 0, most) {
		if text := d.text(item, fmt.Sprintf("%s[%d]", field, i)); text != nil {
			out = append(out, *text)
		}
	}
	return &out
}

// list takes an array apart that has from least to most items.
func (d *decoder) list(raw json.RawMessage, field string, least, most int) []json.RawMessage {
	if d.isNull(raw, field) {
		return nil
	}
	if raw[0] != '[' {
		d.add(field, "must be an array")
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	_, err := decoder.Token() // the bracket
	var items []json.RawMessage
	for err == nil && decoder.More() && len(items) <= most {
		var item json.RawMessage
		err = decoder.Decode(&item)
		items = append(items, item)
	}
	if err != nil || len(items) < least || len(items) > most {
		d.add(field, fmt.Sprintf("must have from %d to %d items", least, most))
		return nil
	}
	return items
}

// labels reads an object of strings.
func (d *decoder) labels(raw json.RawMessage, field string) *map[string]string {
	object := d.object(raw, field)
	if object == nil {
		return nil
	}
	labels := make(map[string]string, len(object.names))
	for i, name := range object.names {
		if value := d.text(object.values[i], field+"."+shorten(name)); value != nil {
			labels[name] = *value
		}
	}
	return &labels
}
