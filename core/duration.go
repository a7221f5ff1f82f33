package core

import (
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// maxDuration keeps every sum of a time and a duration inside time.Duration.
const maxDuration = 40 * 366 * day

// ParseDuration reads the one duration grammar of the product: numbers with the
// units w, d, h, m, s and ms, such as "90s", "1h30m" or "3d", words such as
// "1 day" or "15 minutes", and ISO 8601 such as "P3D" or "PT90S" (weeks, days,
// hours, minutes, seconds; months and years have no fixed length and are
// refused). A day is 24 hours. The result is positive or zero.
func ParseDuration(s string) (time.Duration, error) {
	text := strings.TrimSpace(s)
	if len(text) == 0 || len(text) > 64 {
		return 0, Invalid("", `is not a duration; write it as "90s", "15m", "3d" or "P3D"`)
	}
	var d time.Duration
	var ok bool
	if text[0] == 'P' || text[0] == 'p' {
		d, ok = parseISODuration(strings.ToUpper(text[1:]))
	} else {
		d, ok = parseUnits(strings.ToLower(text))
	}
	if !ok {
		return 0, Invalid("", `is not a duration; write it as "90s", "15m", "3d" or "P3D"`)
	}
	if d%time.Millisecond != 0 {
		return 0, Invalid("", "is finer than a millisecond")
	}
	if d > maxDuration {
		return 0, Invalid("", "is longer than 40 years")
	}
	return d, nil
}

func parseISODuration(s string) (time.Duration, bool) {
	dayPart, timePart, hasTime := strings.Cut(s, "T")
	if s == "" || hasTime && timePart == "" {
		return 0, false
	}
	d, ok := sumUnits(dayPart, map[string]time.Duration{"W": 7 * day, "D": day})
	if !ok {
		return 0, false
	}
	t, ok := sumUnits(timePart, map[string]time.Duration{"H": time.Hour, "M": time.Minute, "S": time.Second})
	return d + t, ok
}

func parseUnits(s string) (time.Duration, bool) {
	units := map[string]time.Duration{"ms": time.Millisecond}
	for unit, names := range map[time.Duration]string{
		time.Second: "s sec secs second seconds",
		time.Minute: "m min mins minute minutes",
		time.Hour:   "h hr hrs hour hours",
		day:         "d day days",
		7 * day:     "w week weeks",
	} {
		for _, name := range strings.Fields(names) {
			units[name] = unit
		}
	}
	return sumUnits(s, units)
}

// sumUnits adds up pairs of a number and a unit, largest unit first.
func sumUnits(s string, units map[string]time.Duration) (time.Duration, bool) {
	var sum time.Duration
	last := time.Duration(1<<63 - 1)
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		end := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if end <= 0 || end > 18 {
			return 0, false
		}
		n, err := strconv.ParseFloat(s[:end], 64)
		if err != nil {
			return 0, false
		}
		s = strings.TrimSpace(s[end:])
		end = strings.IndexFunc(s, func(r rune) bool { return r == '.' || r == ' ' || '0' <= r && r <= '9' })
		if end < 0 {
			end = len(s)
		}
		unit, ok := units[s[:end]]
		if !ok || unit >= last || n*float64(unit) > float64(maxDuration)*2 {
			return 0, false
		}
		last = unit
		sum += time.Duration(n*float64(unit) + 0.5)
		s = s[end:]
	}
	return sum, true
}

// FormatDuration writes d in the grammar of ParseDuration, shortest exact form
// first: "3d", "1h30m", "90s", "1500ms".
func FormatDuration(d time.Duration) string {
	if d%time.Second != 0 {
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	if d == 0 {
		return "0s"
	}
	var b strings.Builder
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d / u.unit; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + u.name)
			d -= n * u.unit
		}
	}
	return b.String()
}
