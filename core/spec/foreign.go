package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/cron"
)

// Other schedulers write specs that look alike and mean something else: Quartz
// and EventBridge count weekdays from 1 for Sunday. They are refused with their
// translation, never guessed at.

var call = regexp.MustCompile(`(?is)^\s*(rate|cron|at)\s*\((.*)\)\s*$`)

// foreign returns what to write instead of another scheduler's spec, "" for
// anything else.
func foreign(text string) string {
	if len(text) > maxForeignBytes {
		return ""
	}
	const eventBridge = "EventBridge"
	if m := call.FindStringSubmatch(text); m != nil {
		inner := strings.TrimSpace(m[2])
		switch strings.ToLower(m[1]) {
		case "rate":
			d, err := core.ParseDuration(inner)
			if err != nil || d < core.MinInterval {
				return notOurs(text, eventBridge, `"every" with a duration, such as "every 5m"`)
			}
			return notOurs(text, eventBridge, strconv.Quote("every "+core.FormatDuration(d)))
		case "at":
			return notOurs(text, eventBridge, strconv.Quote("at "+inner))
		}
		fields := strings.Fields(inner)
		if len(fields) != 6 {
			return notOurs(text, eventBridge, "minute, hour, day of month, month and day of week, such as 30 2 * * *")
		}
		return notOurs(text, eventBridge, translate(fields[:5], fields[5]))
	}
	if _, rest, prefixed := cron.SplitZone(text); prefixed {
		text = rest // neither of the others has such a prefix: count what follows
		if len(strings.Fields(text)) == 6 {
			return "" // seconds first, as ours may have
		}
	}
	fields := strings.Fields(text)
	switch {
	case len(fields) == 7:
		return notOurs(text, "Quartz", translate(fields[:6], fields[6]))
	case len(fields) == 6 && (fields[2] == "?" || fields[4] == "?"):
		return notOurs(text, eventBridge, translate(fields[:5], fields[5]))
	case len(fields) == 6 && (fields[3] == "?" || fields[5] == "?"):
		return notOurs(text, "Quartz", translate(fields, "*"))
	}
	return ""
}

const maxForeignBytes = 256

func notOurs(text, whose, instead string) string {
	token := strings.TrimSpace(text)
	if len(token) > maxTokenBytes {
		token = strings.ToValidUTF8(token[:maxTokenBytes], "")
	}
	return fmt.Sprintf("expression, column %d, %q: this is %s's form; write %s",
		len(text)-len(strings.TrimLeft(text, " \t\r\n"))+1, token, whose, instead)
}

// translate returns fields without their year, question marks and weekdays that
// count from 1.
func translate(fields []string, year string) string {
	out := strings.Split(strings.Join(fields, " "), " ")
	for i := range out {
		if out[i] == "?" {
			out[i] = "*"
		}
	}
	last := len(out) - 1
	out[last] = weekdays(out[last])
	if len(out) == 6 && out[0] == "0" {
		out = out[1:]
	}
	text := strconv.Quote(strings.Join(out, " "))
	if year != "*" && year != "?" {
		text += " and pause it outside of the year, for which there is no field"
	}
	return text
}

var weekdayNumber = regexp.MustCompile(`[A-Za-z]+|[#/]\d+|\d+`)

// weekdays moves the numbers of a weekday field, 1 for Sunday, to those of cron,
// 0 for Sunday. Steps and the count behind # are no weekdays.
func weekdays(field string) string {
	if strings.EqualFold(field, "L") {
		return "6" // alone it is Saturday
	}
	return weekdayNumber.ReplaceAllStringFunc(field, func(part string) string {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || n > 7 {
			return part
		}
		return strconv.Itoa(n - 1)
	})
}
