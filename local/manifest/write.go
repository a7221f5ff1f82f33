package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/fencepost/fencepost/core/api"
)

// Line returns a schedule as one line of JSON, without its end, that has what a
// batch takes to make it again; fields that have their defaults are left out.
func Line(s *api.Schedule) (json.RawMessage, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range telling(s) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(quote(f.name)) + ":")
		if err := json.Compact(&b, f.value); err != nil {
			return nil, fmt.Errorf("write %s of %q: %w", f.name, s.Name, err)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Writer writes a file that Read takes back, a schedule at a time. It is not safe
// for concurrent use.
type Writer struct {
	w     io.Writer
	begun bool
}

// NewWriter returns a writer of an empty file.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write appends a schedule, without the fields that have their defaults.
func (w *Writer) Write(s *api.Schedule) error {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range telling(s) {
		value, err := nodeOf(f.value)
		if err != nil {
			return fmt.Errorf("write %s of %q: %w", f.name, s.Name, err)
		}
		node.Content = append(node.Content, textNode(f.name), value)
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{node}}); err != nil {
		return fmt.Errorf("write schedule %q: %w", s.Name, err)
	}
	if err := w.begin("schedules:\n"); err != nil {
		return err
	}
	_, err := w.w.Write(b.Bytes())
	return err
}

// Close ends the file; it does not close what it is written to.
func (w *Writer) Close() error { return w.begin("schedules: []\n") }

func (w *Writer) begin(text string) error {
	if w.begun {
		return nil
	}
	w.begun = true
	_, err := io.WriteString(w.w, text)
	return err
}

// nodeOf returns the YAML of a JSON value.
func nodeOf(raw json.RawMessage) (*yaml.Node, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return nextNode(d)
}

func nextNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if t == '{' {
			n.Kind = yaml.MappingNode
		}
		for d.More() { // names and values alike
			child, err := nextNode(d)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		_, err := d.Token() // the closing bracket
		return n, err
	case string:
		return textNode(t), nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: t.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(t)}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
}

// oldBool is what older readers of YAML take for true or false.
var oldBool = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off)$`)

// textNode returns a text: as a block if it has lines that a block keeps as they
// are, in quotes if it needs them.
func textNode(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	switch {
	case strings.Contains(text, "\n"):
		n.Style = yaml.DoubleQuotedStyle
		if fitsBlock(text) {
			n.Style = yaml.LiteralStyle
		}
	case oldBool.MatchString(text), strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// fitsBlock reports whether a literal block keeps a text: printable lines without
// blanks at their ends, the first of which is neither empty nor indented.
func fitsBlock(text string) bool {
	if text[0] == ' ' || text[0] == '\n' || strings.HasSuffix(text, "\n\n") {
		return false
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasSuffix(line, " ") || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return false
		}
	}
	return true
}
