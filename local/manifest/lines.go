package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// JSONLine is a line of a file of JSON lines.
type JSONLine struct {
	// Number counts from 1.
	Number int
	// Body is the schedule that the line describes; nil if it was refused.
	Body json.RawMessage
	// Refused says why the line cannot be sent.
	Refused string
}

// Lines reads a file of JSON lines, one at a time and with bounded memory,
// however long a line is.
type Lines struct {
	reader *bufio.Reader
	number int
}

// NewLines returns the lines of r.
func NewLines(r io.Reader) *Lines {
	return &Lines{reader: bufio.NewReaderSize(r, MaxScheduleBytes+len("\r\n")+1)}
}

// Next returns the next line that is not blank; io.EOF after the last. Any other
// error is r's.
func (l *Lines) Next() (JSONLine, error) {
	for {
		text, long, err := l.line()
		if err != nil {
			return JSONLine{}, err
		}
		if l.number == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors' mark of UTF-8
		}
		text = bytes.TrimSpace(text)
		line := JSONLine{Number: l.number}
		switch {
		case long:
			line.Refused = fmt.Sprintf("the line is longer than %d KiB", MaxScheduleBytes>>10)
		case len(text) == 0:
			continue
		case !utf8.Valid(text):
			line.Refused = "the line is not text in UTF-8"
		case !json.Valid(text):
			line.Refused = "the line is not JSON"
		case text[0] != '{':
			line.Refused = "the line is not a JSON object"
		default:
			line.Body = bytes.Clone(text)
		}
		return line, nil
	}
}

// line returns a line, valid until the next call, or says that it was too long
// and is gone.
func (l *Lines) line() (text []byte, long bool, err error) {
	l.number++
	for {
		text, err = l.reader.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			long = true
			continue
		case err == nil, errors.Is(err, io.EOF) && (len(text) > 0 || long):
			return text, long || len(bytes.TrimRight(text, "\r\n")) > MaxScheduleBytes, nil
		case errors.Is(err, io.EOF):
			return nil, false, io.EOF
		default:
			return nil, false, fmt.Errorf("read line %d: %w", l.number, err)
		}
	}
}
