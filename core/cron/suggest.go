package cron

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// suggestZone says what a person who wrote name may have meant. It runs for
// refused names only and tries the surest guess first.
func suggestZone(name string, loaders map[string]func() (*time.Location, error)) string {
	if strings.EqualFold(name, "Local") {
		return "it depends on the host: name a place, such as Europe/Berlin"
	}
	if len(name) > maxTokenBytes {
		return "use a name such as Europe/Berlin"
	}
	if zone := abbreviation(strings.ToUpper(name)); zone != "" {
		return "use " + zone
	}
	if hint := offsetHint(name); hint != "" {
		return hint
	}
	wanted := plain(name)
	names := slices.Sorted(maps.Keys(loaders))
	for _, same := range []func(a, b string) bool{
		func(a, b string) bool { return a == b },
		func(a, b string) bool { return place(a) == place(b) },
		func(a, b string) bool { return len(a) > 3 && editDistance(a, b) == 1 },
		func(a, b string) bool { return len(a) > 5 && editDistance(a, b) == 2 },
	} {
		i := slices.IndexFunc(names, func(zone string) bool { return same(wanted, plain(zone)) })
		if i >= 0 {
			return "use " + names[i]
		}
	}
	return "use a name such as Europe/Berlin"
}

// plain folds what people get wrong in names.
func plain(name string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), " ", "_")
}

// place returns the part of a name behind the last slash.
func place(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// offsetHint answers names such as +02:00, UTC+2 and GMT-0530.
func offsetHint(name string) string {
	s := strings.TrimPrefix(strings.TrimPrefix(strings.ToUpper(name), "UTC"), "GMT")
	if s == "Z" {
		return "use UTC"
	}
	if s == "" || s[0] != '+' && s[0] != '-' {
		return ""
	}
	const general = "a bare offset knows no clock changes: name a place, such as Europe/Berlin"
	digits := strings.ReplaceAll(s[1:], ":", "")
	hours, minutes := digits, "00"
	if len(digits) > 2 {
		hours, minutes = digits[:len(digits)-2], digits[len(digits)-2:]
	}
	h, ok := number(hours)
	switch {
	case !ok || minutes != "00":
		return general
	case h == 0:
		return "use UTC"
	case s[0] == '+' && h <= 14:
		return fmt.Sprintf("%s, or Etc/GMT-%d, whose sign is reversed", general, h)
	case s[0] == '-' && h <= 12:
		return fmt.Sprintf("%s, or Etc/GMT+%d, whose sign is reversed", general, h)
	}
	return general
}

// abbreviation returns a large place that uses an abbreviation, or "". Several
// stand for more than one zone, which is why none of them is accepted.
func abbreviation(name string) string {
	switch name {
	case "PST", "PDT":
		return "America/Los_Angeles"
	case "MDT":
		return "America/Denver"
	case "CST", "CDT":
		return "America/Chicago"
	case "EDT":
		return "America/New_York"
	case "AST", "ADT":
		return "America/Halifax"
	case "BRT":
		return "America/Sao_Paulo"
	case "BST":
		return "Europe/London"
	case "WEST":
		return "Europe/Lisbon"
	case "CEST", "MEZ", "MESZ":
		return "Europe/Berlin"
	case "EEST":
		return "Europe/Athens"
	case "MSK":
		return "Europe/Moscow"
	case "IST":
		return "Asia/Kolkata"
	case "ICT":
		return "Asia/Bangkok"
	case "SGT":
		return "Asia/Singapore"
	case "HKT":
		return "Asia/Hong_Kong"
	case "JST":
		return "Asia/Tokyo"
	case "KST":
		return "Asia/Seoul"
	case "AWST":
		return "Australia/Perth"
	case "ACST", "ACDT":
		return "Australia/Adelaide"
	case "AEST", "AEDT":
		return "Australia/Sydney"
	case "NZST", "NZDT":
		return "Pacific/Auckland"
	}
	return ""
}

// editDistance counts the letters to change, add or drop between a and b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
