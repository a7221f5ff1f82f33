package manifest_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/local/manifest"
)

func allLines(t *testing.T, r io.Reader) []manifest.JSONLine {
	t.Helper()
	var all []manifest.JSONLine
	lines := manifest.NewLines(r)
	for range 1000 {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	t.Fatal("the lines do not end")
	return nil
}

func TestLines(t *testing.T) {
	t.Parallel()
	fits := `{"name":"` + strings.Repeat("x", manifest.MaxScheduleBytes-len(`{"name":""}`)) + `"}`
	text := "\ufeff{\"name\":\"a\"}\r\n\n  \t\n {\"name\":\"b\"} \n{\"name\":\"\xff\"}\n{\"name\"\n[{}]\n" + fits + "\n" + fits + " \n" +
		strings.Repeat("x", 3*manifest.MaxScheduleBytes) + "\n{}{}\nnull\n{\"name\":\"last\"}"
	want := []manifest.JSONLine{
		{Number: 1, Body: []byte(`{"name":"a"}`)}, {Number: 4, Body: []byte(`{"name":"b"}`)},
		{Number: 5, Refused: "the line is not text in UTF-8"}, {Number: 6, Refused: "the line is not JSON"}, {Number: 7, Refused: "the line is not a JSON object"},
		{Number: 8, Body: []byte(fits)}, {Number: 9, Refused: "the line is longer than 256 KiB"}, {Number: 10, Refused: "the line is longer than 256 KiB"},
		{Number: 11, Refused: "the line is not JSON"}, {Number: 12, Refused: "the line is not a JSON object"}, {Number: 13, Body: []byte(`{"name":"last"}`)},
	}
	if diff := cmp.Diff(want, allLines(t, strings.NewReader(text))); diff != "" {
		t.Errorf("%.2000s", diff)
	}
	if diff := cmp.Diff(want, allLines(t, iotest.HalfReader(strings.NewReader(text)))); diff != "" {
		t.Errorf("%.2000s", diff)
	}
	endless := allLines(t, strings.NewReader(strings.Repeat("x", 2*manifest.MaxScheduleBytes)))
	if len(endless) != 1 || endless[0].Refused == "" {
		t.Errorf("%.2000v", endless)
	}
	if got := allLines(t, strings.NewReader("")); got != nil {
		t.Errorf("%v", got)
	}
}

func TestLinesFail(t *testing.T) {
	t.Parallel()
	lines := manifest.NewLines(io.MultiReader(strings.NewReader("{}\n"), iotest.ErrReader(io.ErrClosedPipe)))
	if line, err := lines.Next(); err != nil || line.Number != 1 {
		t.Errorf("%+v %v", line, err)
	}
	if _, err := lines.Next(); !errors.Is(err, io.ErrClosedPipe) || !strings.HasPrefix(err.Error(), "read line 2: ") {
		t.Error(err)
	}
}
