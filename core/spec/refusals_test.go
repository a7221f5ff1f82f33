package spec_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/spec"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, zone, field string }{
		{"", "", "spec"}, {"every", "", "spec"}, {"every 0s", "", "spec"}, {"every 500ms", "", "spec"}, {"every 1.0005s", "", "spec"},
		{"at", "", "spec"}, {"at tomorrow", "", "spec"}, {"at 2020-01-05T09:00", "", "spec"}, {"at 2027-02-30T09:00", "", "spec"},
		{"at 9999-12-31T23:59", "", "spec"}, {"in", "", "spec"}, {"in -3d", "", "spec"}, {"in 0s", "", "spec"}, {"60 * * * *", "", "spec"},
		{"at 2027-01-05T09:00 and 2027-01-05T08:00:00Z", "", "spec"}, {"at 2027-01-05T09:00 and soon", "", "spec"},
		{"TZ=Europe/Berlin every 5m", "Asia/Tokyo", "time_zone"}, {"TZ=Europe/Berlin 0 0 * * *", "Asia/Tokyo", "spec"},
		{"0 0 31 2 *", "", "spec"}, {strings.Repeat("*", 10_000), "", "spec"}, {"a\x00b", "", "spec"},
		{"* * * * *", "PST", "time_zone"}, {"* * * * *", "Local", "time_zone"}, {"* * * * *", "Mars/Olympus", "time_zone"},
	} {
		_, err := parse(c.text, c.zone)
		var ce *core.Error
		if !errors.As(err, &ce) || ce.Code != core.CodeInvalid || ce.Field != c.field {
			t.Errorf("%.40q in %q: %v, want an invalid %s", c.text, c.zone, err, c.field)
		}
	}
	for _, text := range []string{"* * * * *", "at 2027-01-05T09:00", "in 3d"} {
		if _, err := spec.Parse(&core.Schedule{Spec: text, Anchor: now}, now); err == nil {
			t.Errorf("%s with an anchor was accepted", text)
		}
	}
}

// translation finds what a refusal says to write.
var translation = regexp.MustCompile(`; write "([^"]+)"`)

// TestForeignSpecs: what other schedulers would write is refused with what to
// write here.
func TestForeignSpecs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"rate(5 minutes)":                          `spec: expression, column 1, "rate(5 minutes)": this is EventBridge's form; write "every 5m"`,
		" rate(1 day)":                             `spec: expression, column 2, "rate(1 day)": this is EventBridge's form; write "every 1d"`,
		"rate(often)":                              `spec: expression, column 1, "rate(often)": this is EventBridge's form; write "every" with a duration, such as "every 5m"`,
		"at(2027-01-05T09:00:00)":                  `spec: expression, column 1, "at(2027-01-05T09:00:00)": this is EventBridge's form; write "at 2027-01-05T09:00:00"`,
		"cron(0 10 * * ? *)":                       `spec: expression, column 1, "cron(0 10 * * ? *)": this is EventBridge's form; write "0 10 * * *"`,
		"cron(0 18 ? * MON-FRI *)":                 `spec: expression, column 1, "cron(0 18 ? * MON-FRI *)": this is EventBridge's form; write "0 18 * * MON-FRI"`,
		"cron(0 18 ? * 2-6 *)":                     `spec: expression, column 1, "cron(0 18 ? * 2-6 *)": this is EventBridge's form; write "0 18 * * 1-5"`,
		"cron(0 8 ? * 6L *)":                       `spec: expression, column 1, "cron(0 8 ? * 6L *)": this is EventBridge's form; write "0 8 * * 5L"`,
		"cron(0 8 1 * ? 2027)":                     `spec: expression, column 1, "cron(0 8 1 * ? 2027)": this is EventBridge's form; write "0 8 1 * *" and pause it outside of the year, for which there is no field`,
		"cron(0 8 1)":                              `spec: expression, column 1, "cron(0 8 1)": this is EventBridge's form; write minute, hour, day of month, month and day of week, such as 30 2 * * *`,
		"0 18 ? * MON-FRI *":                       `spec: expression, column 1, "0 18 ? * MON-FRI *": this is EventBridge's form; write "0 18 * * MON-FRI"`,
		"0 0 12 * * ?":                             `spec: expression, column 1, "0 0 12 * * ?": this is Quartz's form; write "0 12 * * *"`,
		"0/15 * * * * ?":                           `spec: expression, column 1, "0/15 * * * * ?": this is Quartz's form; write "0/15 * * * * *"`,
		"0 15 10 ? * 6#3":                          `spec: expression, column 1, "0 15 10 ? * 6#3": this is Quartz's form; write "15 10 * * 5#3"`,
		"0 15 10 ? * 2,4,7/2":                      `spec: expression, column 1, "0 15 10 ? * 2,4,7/2": this is Quartz's form; write "15 10 * * 1,3,6/2"`,
		"0 15 10 ? * L":                            `spec: expression, column 1, "0 15 10 ? * L": this is Quartz's form; write "15 10 * * 6"`,
		"0 15 10 ? * 6L 2027-2029":                 `spec: expression, column 1, "0 15 10 ? * 6L 2027-2029": this is Quartz's form; write "15 10 * * 5L" and pause it outside of the year, for which there is no field`,
		"30 0 12 1/5 * ? *":                        `spec: expression, column 1, "30 0 12 1/5 * ? *": this is Quartz's form; write "30 0 12 1/5 * *"`,
		"0 0 12 ? * SUN,TUE,SAT,L *x":              "",
		"0 15 10 ? * 6-1":                          `spec: expression, column 1, "0 15 10 ? * 6-1": this is Quartz's form; write "15 10 * * 5,6,0"`,
		"0 15 10 ? * FRI-TUE/2":                    `spec: expression, column 1, "0 15 10 ? * FRI-TUE/2": this is Quartz's form; write "15 10 * * 5,0,2"`,
		"cron(0 8 ? * 7-2,4 *)":                    `spec: expression, column 1, "cron(0 8 ? * 7-2,4 *)": this is EventBridge's form; write "0 8 * * 6,0,1,3"`,
		"TZ=Europe/Berlin at(2027-01-05T09:00:00)": `spec: expression, column 1, "TZ=Europe/Berlin at(2027-01-05T09:00:00)": this is EventBridge's form; write "CRON_TZ=Europe/Berlin at 2027-01-05T09:00:00"`,
		"CRON_TZ=Europe/Berlin cron(0 8 ? * 2 *)":  `spec: expression, column 1, "CRON_TZ=Europe/Berlin cron(0 8 ? * 2 *)": this is EventBridge's form; write "CRON_TZ=Europe/Berlin 0 8 * * 1"`,
	} {
		_, err := parse(text, "")
		if err == nil {
			t.Errorf("%s was taken", text)
			continue
		}
		if want == "" {
			continue
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Error(diff)
		}
		if instead := translation.FindStringSubmatch(want); instead != nil && instead[1] != "every" {
			if _, err := parse(instead[1], ""); err != nil {
				t.Errorf("the translation of %s is refused: %v", text, err)
			}
		}
	}
	for _, text := range []string{"15 30 2 * * *", "0 0 ? * SUN", "0 9 * * ?"} {
		if _, err := parse(text, ""); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
