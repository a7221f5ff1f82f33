package crontab_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/robfig/cron/v3"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/local/crontab"
)

var update = flag.Bool("update", false, "write the golden files anew")

// judge knows the wrong specs and zones of the test data by heart.
func judge(spec, zone string) error {
	if zone == "Mars/Olympus" {
		return errors.New("judged to be no zone")
	}
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
		switch e := l.Entry; {
		case e != nil:
			fmt.Fprintf(&b, "%d [%s] %s", l.Number, strings.TrimSpace(e.Spec+" "+e.Zone), e.Command)
			for _, part := range [][2]string{{"user", e.User}, {"shell", e.Shell}, {"dir", e.Dir}, {"stdin", e.Stdin}} {
				if part[1] != "" {
					fmt.Fprintf(&b, " %s=%q", part[0], part[1])
				}
			}
			for _, name := range slices.Sorted(maps.Keys(e.Env)) {
				fmt.Fprintf(&b, " %s=%q", name, e.Env[name])
			}
			b.WriteByte('\n')
		case l.Ignored != "":
			fmt.Fprintf(&b, "%d - %s\n", l.Number, l.Ignored)
		case l.Setting != "":
			fmt.Fprintf(&b, "%d set: %s\n", l.Number, l.Setting)
		default:
			fmt.Fprintf(&b, "%d refused: %s\n", l.Number, l.Refused)
		}
	}
	return b.String()
}

func parse(text string, system bool) ([]crontab.Line, error) {
	return crontab.Parse(strings.NewReader(text), crontab.Options{System: system, Check: judge})
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
			lines, err := parse(string(text), name == "system")
			if err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for i, l := range lines {
				all.WriteString(l.Text + "\n")
				states := 0
				for _, set := range []bool{l.Entry != nil, l.Refused != "", l.Ignored != "", l.Setting != ""} {
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
		macro   = "1 refused: there is no such macro; there are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually"
		fields  = "1 refused: a schedule has five fields before the command"
		odd     = "1 refused: its fields hold a blank that is neither a space nor a tab, or a control character"
		nothing = "1 refused: there is no command; it comes after five fields or one macro"
		name    = "1 refused: the name of a variable has up to 64 letters, digits and underscores; entries below run without it"
		mail    = ": nothing is mailed; each run keeps the end of its output"
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
		{`* * * * * echo \\%x`, `1 [* * * * *] echo \\ stdin="x\n"`}, {"* * * * * cat%a b%%c", `1 [* * * * *] cat stdin="a b\n\nc\n"`},
		{`@daily cat %a\%b%`, `1 [@daily] cat  stdin="a%b\n"`}, {"@daily date %", "1 [@daily] date "}, {`@daily cat%\a\\%\`, `1 [@daily] cat stdin="\\a\\%\\\n"`},
		{`@daily cat%`, `1 [@daily] cat`}, {`@daily cat%%`, `1 [@daily] cat stdin="\n"`}, {`@daily cat% %`, `1 [@daily] cat stdin=" \n"`}, {`@daily cat%\`, `1 [@daily] cat stdin="\\"`},
		{"* * * * * %x", nothing}, {"* * * * *", nothing}, {"* * * * *  ", nothing}, {"@daily", nothing}, {"@daily \t", nothing},
		{"* * * * date", nothing}, {"* * * date", fields}, {"date", fields}, {"*", fields},
		{"@fortnightly date", macro}, {"@Daily date", macro}, {"@", macro}, {"@ daily date", macro}, {"@every 5m date", macro},
		{"@reboot date", "1 refused: @reboot cannot be imported: it has no time, and nothing starts with the machine here"},
		{"60 9 * * * date", "1 refused: judged to be wrong"}, {"60  9\t* * * date", "1 refused: judged to be wrong"},
		{"A=b", "1 set: A for the entries below"}, {"\tA=", "1 set: A for the entries below"}, {`"A" = 'b'`, "1 set: A for the entries below"},
		{`'A b'=c`, name}, {"0=* * * * * date", name}, {"A.B=c", name}, {"FENCEPOST_RUN_ID=x", "1 refused: variables that begin with FENCEPOST_ are set by Fencepost; entries below run without it"},
		{"cron_tz=UTC", "1 set: cron_tz for the entries below"},
		{"MAILTO=\"\"", "1 - MAILTO" + mail}, {"CONTENT_TYPE = text/plain", "1 - CONTENT_TYPE" + mail},
		{"RANDOM_DELAY=5", "1 - RANDOM_DELAY: times are exact; a schedule's window spreads its starts"}, {"LOGNAME=x", "1 - LOGNAME: no crontab can set it"},
		{"TZ=UTC", "1 set: time zone UTC for the entries below"}, {" CRON_TZ = Europe/Berlin", "1 set: time zone Europe/Berlin for the entries below"},
		{`"CRON_TZ"="UTC"`, "1 set: time zone UTC for the entries below"}, {"TZ=", "1 set: time zone UTC for the entries below"},
		{"TZ=Mars/Olympus", "1 refused: judged to be no zone"}, {"SHELL=bash", "1 refused: SHELL must be an absolute path"},
		{"HOME=~", "1 refused: HOME must be an absolute path; entries below keep the one before"},
		{`"A=b`, fields}, {"=b", fields},
		{`A="b`, "1 refused: the quotes of its value do not end; entries below run without it"}, {"A='b\"", "1 refused: the quotes of its value do not end; entries below run without it"},
		{`A="b" # c`, "1 refused: there is text after the quotes of its value; entries below run without it"}, {`A="b"` + "\v\f ", "1 set: A for the entries below"},
		{`SHELL="/bin/sh`, "1 refused: the quotes of its value do not end"}, {`CRON_TZ='UTC' x`, "1 refused: there is text after the quotes of its value"},
		{`"A=B"=c`, fields}, {`""=x`, name}, {"A B=c", fields},
		{"0\v9 * * * * date", odd}, {"0 9 * * *\u00a0date x", odd}, {"0 9 * * \x1b[1m date", odd},
		{"-*/5 * * * * date", "1 [*/5 * * * *] date"}, {"-@daily date", "1 [@daily] date"}, {"-", fields},
		{"@daily -n -q date -n", "1 [@daily] date -n"}, {"@daily -n", "1 [@daily] -n"},
		{"\ufeff@daily date", "1 [@daily] date"}, {"# \xe9", "1 - comment"},
		{"#", "1 - comment"}, {" \t# A=b", "1 - comment"}, {" \t", "1 - blank"}, {"\r", "1 - blank"},
		{"* * * * * echo \xff", "1 refused: it is not UTF-8 text"},
	}
	for _, tt := range tests {
		lines, err := parse(tt.line+"\n", false)
		if err != nil {
			t.Errorf("%q: %v", tt.line, err)
			continue
		}
		if diff := cmp.Diff(tt.want+"\n", report(lines)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.line, diff)
		}
	}
}

// TestSettingsHoldFromTheirLineOn: variables, zones and shells count for what is
// below them; what is wrong with a zone or a shell refuses the entries below until
// there is a good one.
func TestSettingsHoldFromTheirLineOn(t *testing.T) {
	t.Parallel()
	const text = `* * * * * a
A=1
B = "two  words"
TZ=Europe/Berlin
HOME=/srv
SHELL=/bin/bash
* * * * * b
A=
CRON_TZ=Mars/Olympus
60 9 * * * c
@daily d
@reboot e
CRON_TZ=
SHELL=bash
@daily f
SHELL = '/bin/zsh'
@daily g
`
	lines, err := parse(text, false)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(report(lines), "\n")
	var want []string
	for _, line := range []string{
		"1 [* * * * *] a", "2 set: A for the entries below", "3 set: B for the entries below", "4 set: time zone Europe/Berlin for the entries below",
		"5 set: HOME for the entries below", "6 set: SHELL for the entries below", "7 [* * * * * Europe/Berlin] b", "8 set: A for the entries below",
		"9 refused: judged to be no zone", "10 refused: the time zone above it was refused: CRON_TZ in line 9",
		"11 refused: the time zone above it was refused: CRON_TZ in line 9",
		"12 refused: @reboot cannot be imported: it has no time, and nothing starts with the machine here",
		"13 set: time zone Europe/Berlin for the entries below", "14 refused: SHELL must be an absolute path",
		"15 refused: the SHELL above it was refused: line 14", "16 set: SHELL for the entries below", "17 [@daily Europe/Berlin] g", "",
	} {
		want = append(want, line)
	}
	for i := range got {
		got[i], _, _ = strings.Cut(got[i], " shell=")
		got[i], _, _ = strings.Cut(got[i], " dir=")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	b, g := lines[6].Entry, lines[16].Entry
	if diff := cmp.Diff(map[string]string{"A": "1", "B": "two  words", "TZ": "Europe/Berlin", "HOME": "/srv"}, b.Env); diff != "" || b.Shell != "/bin/bash" || b.Dir != "/srv" {
		t.Errorf("%+v %s", b, diff)
	}
	if g.Env["A"] != "" || g.Shell != "/bin/zsh" || lines[0].Entry.Env["A"] != "" || !lines[11].Foreign || lines[10].Foreign {
		t.Errorf("%+v", g)
	}
}

// TestCronTZIsTheZoneAndTZAVariable: as in cronie a TZ moves no entry below a
// CRON_TZ. Alone it is both.
func TestCronTZIsTheZoneAndTZAVariable(t *testing.T) {
	t.Parallel()
	const text = `TZ=Mars/Olympus
@daily a
CRON_TZ=Asia/Tokyo
@daily b
TZ=America/New_York
@daily c
TZ=":no zone"
@daily d
TZ='
@daily e
CRON_TZ=
@daily f
CRON_TZ=Mars/Olympus
@daily g
TZ=UTC
@daily h
TZ=
@daily i
`
	lines, err := crontab.Parse(strings.NewReader(text), crontab.Options{Zone: "Africa/Cairo", Check: func(_, zone string) error {
		if zone == "Mars/Olympus" || zone == ":no zone" {
			return errors.New("no zone")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `1 refused: no zone
2 refused: the time zone above it was refused: TZ in line 1
3 set: time zone Asia/Tokyo for the entries below
4 [@daily Asia/Tokyo] b
5 set: TZ for the entries below; their times stay in the zone of CRON_TZ, line 3
6 [@daily Asia/Tokyo] c TZ="America/New_York"
7 set: TZ for the entries below; their times stay in the zone of CRON_TZ, line 3
8 [@daily Asia/Tokyo] d TZ=":no zone"
9 refused: the quotes of its value do not end; entries below run without it
10 [@daily Asia/Tokyo] e TZ=":no zone"
11 set: no zone for the entries below: TZ in line 7 was refused
12 refused: the time zone above it was refused: TZ in line 7
13 refused: no zone
14 refused: the time zone above it was refused: CRON_TZ in line 13
15 set: time zone UTC for the entries below
16 [@daily UTC] h TZ="UTC"
17 set: time zone Africa/Cairo for the entries below
18 [@daily Africa/Cairo] i TZ=""
`
	if diff := cmp.Diff(want, report(lines)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// TestSystemLinesNameAUser: with a user column the sixth field is one.
func TestSystemLinesNameAUser(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"* * * * * root date -u": `1 [* * * * *] date -u user="root"`, "@daily\twww-data\tdate": `1 [@daily] date user="www-data"`,
		"* * * * * /bin/x y": "1 refused: the sixth field is no user name; without --system there is none",
		"* * * * * root":     "1 refused: there is no command; it comes after five fields or one macro, and a user",
	} {
		lines, err := parse(line, true)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want+"\n", report(lines)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
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
		{"a hundred thousand lines", strings.Repeat("* * * * * x\n", 100_000), -1},
		{"a binary file", "* * * * * date\n\x7fELF\x02\x01\x00\x00", -1},
		{"a binary file that begins as text", strings.Repeat("#\n", 4_000) + "\x00", -1},
		{"a binary file with a long line", "\x7fELF\x02\x01\x00\x00" + longest + longest, -1},
	}
	for _, tt := range tests {
		lines, err := parse(tt.text, false)
		if tt.lines < 0 && (core.CodeOf(err) != core.CodeInvalid || lines != nil) || tt.lines >= 0 && (err != nil || len(lines) != tt.lines) {
			t.Errorf("%s: %d lines and error %v, want %d lines", tt.name, len(lines), err, tt.lines)
		}
	}
}

func TestParsePassesOnWhatReadingFailedWith(t *testing.T) {
	t.Parallel()
	errBroken := errors.New("the disk broke")
	lines, err := crontab.Parse(iotest.ErrReader(errBroken), crontab.Options{Check: judge})
	if !errors.Is(err, errBroken) || lines != nil {
		t.Errorf("%d lines and error %v, want none and the reader's", len(lines), err)
	}
}

func TestParseRefusesAZoneThatIsNone(t *testing.T) {
	t.Parallel()
	lines, err := crontab.Parse(strings.NewReader("@daily date\n"), crontab.Options{Zone: "Mars/Olympus", Check: judge})
	if err == nil || err.Error() != "judged to be no zone" || lines != nil {
		t.Errorf("%d lines and error %v", len(lines), err)
	}
}

func TestSampleIsAcceptedWhole(t *testing.T) {
	t.Parallel()
	f, err := os.Open("../sample.crontab")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	lines, err := crontab.Parse(f, crontab.Options{Check: func(spec, _ string) error {
		if spec == "" {
			return nil
		}
		_, err := cron.ParseStandard(spec)
		return err
	}})
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
		lines, err := parse(text, len(text)%2 == 0)
		if err != nil {
			return
		}
		for _, l := range lines {
			taken := l.Entry != nil
			if taken == (l.Refused+l.Ignored+l.Setting != "") || taken && (l.Entry.Command == "" || len(strings.Fields(l.Entry.Spec)) > 5) {
				t.Errorf("line %q became %+v", l.Text, l)
			}
		}
	})
}
