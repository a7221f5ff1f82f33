package crontab_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/robfig/cron/v3"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/local/crontab"
)

var update = flag.Bool("update", false, "write the golden files anew")

// judge knows the wrong specs of the test data by heart.
func judge(spec string) error {
	switch spec {
	case "60 9 * * *", "0 24 * * *", "0 0 31 2 *", "0 0 * * MONDAY", "*/0 * * * *", "5-1 * * * *":
		return errors.New("judged to be wrong")
	}
	return nil
}

// report tells what became of each line.
func report(lines []crontab.Line) string {
	var b strings.Builder
	for _, l := range lines {
		switch {
		case l.Entry != nil:
			fmt.Fprintf(&b, "%d [%s] %s\n", l.Number, l.Entry.Spec, l.Entry.Command)
		case l.Ignorable:
			fmt.Fprintf(&b, "%d -\n", l.Number)
		default:
			fmt.Fprintf(&b, "%d refused: %s\n", l.Number, l.Refused)
		}
	}
	return b.String()
}

func TestParseReportsEveryLineOfAFile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"user", "system", "broken"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("testdata", name+".crontab"))
			if err != nil {
				t.Fatal(err)
			}
			lines, err := crontab.Parse(strings.NewReader(string(text)), judge)
			if err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for i, l := range lines {
				all.WriteString(l.Text + "\n")
				states := 0
				for _, set := range []bool{l.Entry != nil, l.Refused != "", l.Ignorable} {
					if set {
						states++
					}
				}
				if l.Number != i+1 || states != 1 {
					t.Errorf("line %d: number %d, %d states, want one", i+1, l.Number, states)
				}
			}
			if diff := cmp.Diff(string(text), all.String()); diff != "" {
				t.Errorf("the lines together (-want +got):\n%s", diff)
			}
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(report(lines)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), report(lines)); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseReadsALine(t *testing.T) {
	t.Parallel()
	const (
		percent = `1 refused: the command has a % that ends it and begins its input, which is not supported yet; write \% for the character itself`
		ignored = "1 refused: not applied: commands run without this variable"
		zone    = "1 refused: time zones are not supported yet; the entries below it are left out"
		macro   = "1 refused: there is no such macro; there are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually"
		fields  = "1 refused: a schedule has five fields before the command"
		nothing = "1 refused: there is no command; it comes after five fields or one macro"
	)
	tests := []struct{ line, want string }{
		{"* * * * * date", "1 [* * * * *] date"},
		{" \t*/5\t 1-3,5   *\tjan  mon-fri \t date  -u  ", "1 [*/5 1-3,5 * jan mon-fri] date  -u  "},
		{"* * * * * date # no comment", "1 [* * * * *] date # no comment"},
		{"* * * * * A=b date", "1 [* * * * *] A=b date"},
		{"* * * * * date\r", "1 [* * * * *] date"},
		{"@daily date", "1 [@daily] date"}, {"  @annually\tdate", "1 [@annually] date"}, {"@midnight date", "1 [@midnight] date"},
		{`* * * * * date +\%F\%T`, "1 [* * * * *] date +%F%T"},
		{`* * * * * echo a\b\\c\`, `1 [* * * * *] echo a\b\\c\`},
		{`* * * * * echo \\\%`, `1 [* * * * *] echo \\%`},
		{`* * * * * echo \\%`, percent}, {"* * * * * date +%F", percent}, {"@daily date %", percent}, {"* * * * * %x", percent},
		{"* * * * *", nothing}, {"* * * * *  ", nothing}, {"@daily", nothing}, {"@daily \t", nothing},
		{"* * * * date", nothing}, {"* * * date", fields}, {"date", fields}, {"*", fields},
		{"@fortnightly date", macro}, {"@Daily date", macro}, {"@", macro}, {"@ daily date", macro}, {"@every 5m date", macro},
		{"@reboot date", "1 refused: @reboot has no time; nothing starts with the machine here"},
		{"60 9 * * * date", "1 refused: judged to be wrong"}, {"60  9\t* * * date", "1 refused: judged to be wrong"},
		{"A=b", ignored}, {"A = b", ignored}, {"\tA=", ignored}, {`"A" = 'b'`, ignored}, {`'A b'=c`, ignored}, {"MAILTO=\"\"", ignored},
		{"0=* * * * * date", ignored}, {"cron_tz=UTC", ignored},
		{"TZ=UTC", zone}, {" CRON_TZ = Europe/Berlin", zone}, {`"CRON_TZ"=UTC`, zone},
		{`"A=b`, fields}, {"=b", fields},
		{"#", "1 -"}, {" \t# A=b", "1 -"}, {" \t", "1 -"}, {"\r", "1 -"},
		{"* * * * * echo \xff", "1 refused: it is not UTF-8 text"}, {"* * * * * echo \x00", "1 refused: it is not UTF-8 text"},
	}
	for _, tt := range tests {
		lines, err := crontab.Parse(strings.NewReader(tt.line+"\n"), judge)
		if err != nil {
			t.Errorf("%q: %v", tt.line, err)
			continue
		}
		if diff := cmp.Diff(tt.want+"\n", report(lines)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.line, diff)
		}
	}
}

func TestParseRefusesEntriesBelowAZone(t *testing.T) {
	t.Parallel()
	const text = "* * * * * a\nTZ=UTC\n* * * * * b\nA=b\nCRON_TZ=\n60 9 * * * c\n@daily d"
	lines, err := crontab.Parse(strings.NewReader(text), judge)
	if err != nil {
		t.Fatal(err)
	}
	const want = `1 [* * * * *] a
2 refused: time zones are not supported yet; the entries below it are left out
3 refused: the time zone of line 2 is not supported yet
4 refused: not applied: commands run without this variable
5 refused: time zones are not supported yet; the entries below it are left out
6 refused: judged to be wrong
7 refused: the time zone of line 5 is not supported yet
`
	if diff := cmp.Diff(want, report(lines)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestParseIsBounded(t *testing.T) {
	t.Parallel()
	longest := "# " + strings.Repeat("x", crontab.MaxLineBytes-2)
	tests := []struct {
		name, text string
		lines      int // negative: refused
	}{
		{"nothing", "", 0},
		{"the longest line", longest + "\r\n" + longest, 2},
		{"a longer line", "#\n" + longest + "x\n", -1},
		{"a longer line at the end", longest + "x", -1},
		{"a far longer line", longest + longest, -1},
		{"the most lines", strings.Repeat("#\n", crontab.MaxLines), crontab.MaxLines},
		{"more lines", strings.Repeat("#\n", crontab.MaxLines+1), -1},
	}
	for _, tt := range tests {
		lines, err := crontab.Parse(strings.NewReader(tt.text), judge)
		if tt.lines < 0 && (core.CodeOf(err) != core.CodeInvalid || lines != nil) || tt.lines >= 0 && (err != nil || len(lines) != tt.lines) {
			t.Errorf("%s: %d lines and error %v, want %d lines", tt.name, len(lines), err, tt.lines)
		}
	}
}

func TestParsePassesOnWhatReadingFailedWith(t *testing.T) {
	t.Parallel()
	errBroken := errors.New("the disk broke")
	lines, err := crontab.Parse(iotest.ErrReader(errBroken), judge)
	if !errors.Is(err, errBroken) || lines != nil {
		t.Errorf("%d lines and error %v, want none and the reader's", len(lines), err)
	}
}

func TestSampleIsAcceptedWhole(t *testing.T) {
	t.Parallel()
	f, err := os.Open("../sample.crontab")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	lines, err := crontab.Parse(f, func(spec string) error {
		_, err := cron.ParseStandard(spec)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	entries, minutely := 0, 0
	for _, l := range lines {
		if l.Refused != "" {
			t.Errorf("line %d is refused: %s", l.Number, l.Refused)
		}
		if l.Entry != nil {
			entries++
			if l.Entry.Spec == "* * * * *" {
				minutely++
			}
		}
	}
	if entries < 5 || minutely < 2 {
		t.Errorf("%d entries, %d of each minute, want at least 5 and 2", entries, minutely)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("* * * * * date\nTZ=UTC\n@daily x\\%\n# c\n")
	f.Add("'a'=b\r\n\"\n@\n  =")
	f.Fuzz(func(t *testing.T, text string) {
		lines, err := crontab.Parse(strings.NewReader(text), judge)
		if err != nil {
			return
		}
		for _, l := range lines {
			taken := l.Entry != nil
			if taken == (l.Refused != "" || l.Ignorable) || taken && (l.Entry.Command == "" || len(strings.Fields(l.Entry.Spec)) > 5) {
				t.Errorf("line %q became %+v", l.Text, l)
			}
		}
	})
}
