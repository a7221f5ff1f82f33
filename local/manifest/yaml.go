package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parse reads the one document of a file.
func parse(data []byte) (*value, error) {
	if json.Valid(data) {
		data = plainEscapes(data)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, Faults{{1, 1, "", "the file is empty"}}
	}
	if err == nil {
		if err = decoder.Decode(&second); err == nil {
			return nil, Faults{{max(second.Line, 1), 1, "", "the file has a second document; put each into a file of its own"}}
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, Faults{explain(data, err)}
	}
	b := builder{done: map[*yaml.Node]*value{}}
	root := b.build(document.Content[0])
	if len(b.faults) > 0 {
		return nil, b.faults
	}
	return root, nil
}

// plainEscapes replaces the escapes of JSON that the parser does not know: \/ and
// characters beyond the basic plane.
func plainEscapes(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); i++ {
		switch {
		case data[i] != '\\': // a backslash is never the last byte of JSON
			out = append(out, data[i])
			continue
		case data[i+1] == '/':
			out = append(out, '/')
		case data[i+1] == 'u' && i+12 <= len(data) && data[i+6] == '\\':
			high, errHigh := strconv.ParseUint(string(data[i+2:i+6]), 16, 32)
			low, errLow := strconv.ParseUint(string(data[i+8:i+12]), 16, 32)
			if r := utf16.DecodeRune(rune(high), rune(low)); errHigh == nil && errLow == nil && r != utf8.RuneError {
				out = utf8.AppendRune(out, r)
				i += 10
				break
			}
			fallthrough
		default:
			out = append(out, data[i], data[i+1])
		}
		i++
	}
	return out
}

var (
	lineOf     = regexp.MustCompile(`^line (\d+): `)
	tabIndent  = regexp.MustCompile(`^ *\t`)
	bareValue  = regexp.MustCompile("^\\s*(?:- +)?[^\\s#'\"]+: +([*@%`])(?:[^\\pL\\pN_-]|$)|^\\s*(?:- +)?[^\\s#'\"]+: +([@%`])")
	nearbyRows = []int{0, 1, -1} // the parser is off by one at times
)

// explain makes a fault of a syntax error, with the remedy of the usual ones.
func explain(data []byte, err error) Fault {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := lineOf.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1]) // it is digits
		message = strings.TrimPrefix(message, m[0])
	}
	lines := strings.Split(string(data), "\n")
	for _, near := range nearbyRows {
		n := line + near
		if n < 1 || n > len(lines) {
			continue
		}
		text := lines[n-1]
		if tabIndent.MatchString(text) {
			return Fault{n, strings.IndexByte(text, '\t') + 1, "", "the line is indented with a tab; YAML takes blanks only"}
		}
		if m := bareValue.FindStringSubmatchIndex(text); m != nil {
			at := max(m[2], m[4])
			return Fault{n, at + 1, "", fmt.Sprintf("a value that begins with %c needs quotes", text[at])}
		}
	}
	return Fault{line, 1, "", message}
}

// builder makes values of nodes, each once, however many aliases it has.
type builder struct {
	faults Faults
	path   []string
	done   map[*yaml.Node]*value // of the nodes that have anchors
}

func (b *builder) at(line, column int, field, message string) {
	if len(b.faults) < maxFaults {
		b.faults = append(b.faults, Fault{line, column, field, message})
	}
}

// add reports a fault of the value at the current path.
func (b *builder) add(v *value, message string) {
	b.at(v.line, v.column, b.field(), message)
}

// field returns the current path, such as schedules[2].job.
func (b *builder) field() string {
	return strings.ReplaceAll(strings.Join(b.path, "."), ".[", "[")
}

// build returns the value of a node; what is wrong in it becomes null.
func (b *builder) build(n *yaml.Node) *value {
	if n.Kind == yaml.AliasNode {
		target, ok := b.done[n.Alias]
		if ok && target != nil {
			return target
		}
		b.at(n.Line, n.Column, b.field(), "is an alias of something that it is in")
		return &value{line: n.Line, column: n.Column, text: json.RawMessage("null")}
	}
	b.remember(n, nil)
	v := &value{line: n.Line, column: n.Column, text: json.RawMessage("null")}
	switch n.Kind {
	case yaml.MappingNode:
		b.mapping(v, n)
	case yaml.SequenceNode:
		v.kind = sequence
		for i, child := range n.Content {
			b.path = append(b.path, fmt.Sprintf("[%d]", i))
			v.items = append(v.items, b.child(v, child))
			b.path = b.path[:len(b.path)-1]
		}
	default:
		v.text = b.scalar(v, n)
	}
	if tag := n.ShortTag(); n.Kind != yaml.ScalarNode && tag != "!!map" && tag != "!!seq" {
		b.add(v, "has a tag, which means nothing here")
	}
	b.remember(n, v)
	n.Content = nil // it is not needed any more, and large
	return v
}

// remember keeps what an alias may ask for; v is nil while it is being built.
func (b *builder) remember(n *yaml.Node, v *value) {
	if n.Anchor != "" {
		b.done[n] = v
	}
}

// child builds a part of v. The depth of nested aliases is bounded here, that of
// the text by the parser.
func (b *builder) child(v *value, n *yaml.Node) *value {
	if len(b.path) > maxDepth {
		b.at(n.Line, n.Column, b.path[0], fmt.Sprintf("is nested deeper than %d levels", maxDepth))
		return &value{line: n.Line, column: n.Column, text: json.RawMessage("null")}
	}
	part := b.build(n)
	if part.depth >= maxDepth {
		b.at(n.Line, n.Column, b.path[0], fmt.Sprintf("is nested deeper than %d levels", maxDepth))
		return &value{line: n.Line, column: n.Column, text: json.RawMessage("null")}
	}
	v.depth = max(v.depth, part.depth+1)
	return part
}

func (b *builder) mapping(v *value, n *yaml.Node) {
	v.kind = mapping
	known := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		name := key.Value
		b.path = append(b.path, name)
		m := member{name: name, line: n.Content[i].Line, column: n.Content[i].Column}
		at := &value{line: m.line, column: m.column}
		switch {
		case key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge":
			b.add(at, "merge keys are not taken; use defaults, or an alias of a whole value")
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			b.add(at, "a key must be a string; put it in quotes")
		case known[name]:
			b.add(at, "is there twice")
		}
		known[name] = true
		b.remember(key, &value{line: key.Line, column: key.Column, text: quote(name)})
		m.value = b.child(v, n.Content[i+1])
		v.members = append(v.members, m)
		b.path = b.path[:len(b.path)-1]
	}
}

// jsonNumber is what a number must look like: YAML knows other forms, and in some
// of them 010 is 8.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// scalar returns the JSON of a scalar.
func (b *builder) scalar(v *value, n *yaml.Node) json.RawMessage {
	if n.Style == 0 && jsonNumber.MatchString(n.Value) { // to YAML a huge one is a text
		return json.RawMessage(n.Value)
	}
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!timestamp":
		return quote(n.Value)
	case "!!int", "!!float":
		if jsonNumber.MatchString(n.Value) {
			return json.RawMessage(n.Value)
		}
		b.add(v, "is not a plain decimal number; write it so, or put it in quotes")
	case "!!bool":
		switch strings.ToLower(n.Value) {
		case "true", "false":
			return json.RawMessage(strings.ToLower(n.Value))
		}
		b.add(v, "must be true or false")
	case "!!null":
	case "!!merge":
		b.add(v, "must be put in quotes")
	default:
		b.add(v, "has a tag, which means nothing here")
	}
	return json.RawMessage("null")
}
