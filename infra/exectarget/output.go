package exectarget

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/fencepost/fencepost/core"
)

const outputBytes = 8 << 10

// tail is a writer that keeps the last outputBytes. It is not safe for
// concurrent use: os/exec copies both outputs in one goroutine.
type tail struct {
	buf []byte
	cut bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if extra := len(t.buf) - outputBytes; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
		t.cut = true
	}
	return len(p), nil
}

// text returns what is kept as text that JSON and the database can hold.
func (t *tail) text() string {
	b := t.buf
	for n := 0; t.cut && n < utf8.UTFMax && len(b) > 0 && !utf8.RuneStart(b[0]); n++ {
		b = b[1:]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD")
}

// last returns the end of s, from the start of a rune, in at most n bytes.
func last(s string, n int) string {
	from := max(len(s)-max(n, 0), 0)
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return s[from:]
}

type result struct {
	ExitCode int    `json:"exit_code"`
	Output   string `json:"output"`
}

// encode writes r with as much of its output as fits into core.MaxResultBytes:
// escapes can make JSON six times as long as the text.
func encode(r result) (json.RawMessage, error) {
	n := sort.Search(len(r.Output), func(n int) bool {
		raw, err := marshal(result{r.ExitCode, last(r.Output, n+1)})
		return err != nil || len(raw) > core.MaxResultBytes
	})
	return marshal(result{r.ExitCode, last(r.Output, n)})
}

func marshal(r result) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, fmt.Errorf("write result: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// withOutput adds the end of the output to err, in at most core.MaxErrorBytes.
func withOutput(err error, output string) error {
	end := last(strings.TrimSpace(output), core.MaxErrorBytes-len(err.Error())-len(": "))
	if end == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, end)
}
