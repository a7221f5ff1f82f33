package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fencepost/fencepost/local/terminal"
)

// printJSON writes what the API answered, indented.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.Out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printLine writes one value as a line of JSON.
func (a *app) printLine(v any) error {
	e := json.NewEncoder(a.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printTable writes rows in columns under their headings for a person, and
// without both, with tabs between, for a program.
func (a *app) printTable(headings []string, rows [][]string) error {
	if !a.Terminal {
		return writeRows(a.Out, rows)
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	if err := writeRows(w, append([][]string{headings}, rows...)); err != nil {
		return err
	}
	return w.Flush()
}

// printFields writes one thing, a field a line. Fields without a value are left
// out.
func (a *app) printFields(fields [][2]string) error {
	rows := make([][]string, 0, len(fields))
	for _, f := range fields {
		if f[1] != "" {
			rows = append(rows, []string{f[0], f[1]})
		}
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	if err := writeRows(w, rows); err != nil {
		return err
	}
	return w.Flush()
}

func writeRows(w io.Writer, rows [][]string) error {
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = terminal.Printable(cell)
		}
		if _, err := fmt.Fprintln(w, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return nil
}

// shortText cuts a cell of a table.
func shortText(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

func showTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// compact shows JSON on one line.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return "" // nothing, as of a run without a result
	}
	return b.String()
}
