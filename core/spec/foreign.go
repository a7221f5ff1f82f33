package spec

import (
	"fmt"
	"regexp"
	"slices"
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
	zone, rest, prefixed := cron.SplitZone(text)
	front := "" // EventBridge has the zone elsewhere, but people put it in front
	if prefixed {
		front = "CRON_TZ=" + zone + " "
	} else {
		rest = text
	}
	if m := call.FindStringSubmatch(rest); m != nil {
		inner := strings.TrimSpace(m[2])
		switch strings.ToLower(m[1]) {
		case "rate":
			d, err := core.ParseDuration(inner)
			if err != nil || d < core.MinInterval {
				return notOurs(text, eventBridge, `"every" with a duration, such as "every 5m"`)
			}
			return notOurs(text, eventBridge, strconv.Quote(front+"every "+core.FormatDuration(d)))
		case "at":
			return notOurs(text, eventBridge, strconv.Quote(front+"at "+inner))
		}
		fields := strings.Fields(inner)
		if len(fields) != 6 {
			return notOurs(text, eventBridge, "minute, hour, day of month, month and day of week, such as 30 2 * * *")
		}
		return notOurs(text, eventBridge, translate(front, fields[:5], fields[5]))
	}
	if prefixed {
		if len(strings.Fields(rest)) == 6 {
			return "" // seconds first, as ours may have
		}
	}
	fields := strings.Fields(rest)
	switch {
	case len(fields) == 7:
		return notOurs(text, "Quartz", translate(front, fields[:6], fields[6]))
	case len(fields) == 6 && (fields[2] == "?" || fields[4] == "?"):
		return notOurs(text, eventBridge, translate(front, fields[:5], fields[5]))
	case len(fields) == 6 && (fields[3] == "?" || fields[5] == "?"):
		return notOurs(text, "Quartz", translate(front, fields, "*"))
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
func translate(front string, fields []string, year string) string {
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
	text := strconv.Quote(front + strings.Join(out, " "))
	if year != "*" && year != "?" {
		text += " and pause it outside of the year, for which there is no field"
	}
	return text
}

var (
	weekdayNumber = regexp.MustCompile(`[A-Za-z]+|[#/]\d+|\d+`)
	weekdayRange  = regexp.MustCompile(`^([A-Za-z]+|\d)-([A-Za-z]+|\d)(/\d+)?$`)
)

// weekdays moves the numbers of a weekday field, 1 for Sunday, to those of cron,
// 0 for Sunday. Steps and the count behind # are no weekdays. A range that goes
// past Saturday becomes a list.
func weekdays(field string) string {
	if strings.EqualFold(field, "L") {
		return "6" // alone it is Saturday
	}
	items := strings.Split(field, ",")
	for i, item := range items {
		if m := weekdayRange.FindStringSubmatch(item); m != nil {
			if list := pastSaturday(m[1], m[2], m[3]); list != "" {
				items[i] = list
				continue
			}
		}
		items[i] = weekdayNumber.ReplaceAllStringFunc(item, func(part string) string {
			if n, ok := weekday(part); ok && part[0] <= '9' {
				return strconv.Itoa(n)
			}
			return part
		})
	}
	return strings.Join(items, ",")
}

// pastSaturday returns the days of a range that ends before it begins, with its
// step if it has one; "" for any other range.
func pastSaturday(first, last, step string) string {
	from, ok1 := weekday(first)
	to, ok2 := weekday(last)
	every := 1
	if step != "" {
		every, _ = strconv.Atoi(step[1:]) // digits, so few that they fit
	}
	if !ok1 || !ok2 || from <= to || every < 1 {
		return ""
	}
	var days []string
	for day := from; day <= to+7; day += every {
		days = append(days, strconv.Itoa(day%7))
	}
	return strings.Join(days, ",")
}

// weekday returns the number that cron gives to a day, by the other schedulers'
// number or by its name.
func weekday(text string) (int, bool) {
	if n, err := strconv.Atoi(text); err == nil {
		return n - 1, n >= 1 && n <= 7
	}
	n := slices.Index([]string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}, strings.ToUpper(text))
	return n, n >= 0
}
