package calendar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/cron"
)

// The bounds of a calendar's parts.
const (
	maxDates     = 1000
	maxRanges    = 500
	maxWeekly    = 100
	maxNoteBytes = 500
	maxNameBytes = 63
)

// The forms of times on a zone's clocks.
const (
	dateForm   = "2006-01-02"
	minuteForm = "2006-01-02T15:04"
	secondForm = "2006-01-02T15:04:05"
)

// CheckName refuses a name that is not 1 to 63 lower-case letters, digits, dots,
// dashes and underscores, beginning with a letter or digit. field is what the
// caller calls it.
func CheckName(field, name string) error {
	ok := name != "" && len(name) <= maxNameBytes && !strings.ContainsRune("._-", rune(name[0]))
	for _, r := range name {
		ok = ok && (r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}
	if !ok {
		return core.Invalid(field, "must be 1 to %d lower-case letters, digits and . _ - beginning with a letter or digit", maxNameBytes)
	}
	return nil
}

func refuseZone(err error) error {
	var unknown *cron.ZoneError
	if errors.As(err, &unknown) {
		return core.Invalid("time_zone", "is not a name of the IANA database; %s", unknown.Hint)
	}
	return fmt.Errorf("load the time zone: %w", err)
}

// readOnce reads what does not come again.
func (c *Calendar) readOnce(from core.CalendarContent) error {
	switch {
	case len(from.Dates) > maxDates:
		return core.Invalid("dates", "has more than %d members; longer times are ranges", maxDates)
	case len(from.Ranges) > maxRanges:
		return core.Invalid("ranges", "has more than %d members", maxRanges)
	case len(from.Note) > maxNoteBytes:
		return core.Invalid("note", "is longer than %d bytes", maxNoteBytes)
	}
	for i, text := range from.Dates {
		at, err := time.Parse(dateForm, text)
		if err != nil {
			return core.Invalid(fmt.Sprintf("dates[%d]", i), "must be a date such as 2026-12-25")
		}
		c.once = append(c.once, span{at.Unix(), at.Unix() + day})
	}
	for i, r := range from.Ranges {
		field := fmt.Sprintf("ranges[%d]", i)
		begin, _, ok := wall(r.From)
		if !ok {
			return core.Invalid(field+".from", "must be a date such as 2026-12-24, or 2026-12-24T18:00 on the zone's clocks")
		}
		end, whole, ok := wall(r.To)
		if !ok {
			return core.Invalid(field+".to", "must be a date such as 2027-01-02, or 2027-01-02T06:00 on the zone's clocks")
		}
		if whole {
			end += day
		}
		if end <= begin {
			return core.Invalid(field+".to", "must not lie before from")
		}
		c.once = append(c.once, span{begin, end})
	}
	return nil
}

// wall reads a time on clocks; date says that it is a day without a time.
func wall(text string) (second int64, date, ok bool) {
	for _, form := range []string{dateForm, minuteForm, secondForm} {
		if at, err := time.Parse(form, text); err == nil {
			return at.Unix(), form == dateForm, true
		}
	}
	return 0, false, false
}

var days = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// readWeekly reads what comes again each week.
func (c *Calendar) readWeekly(all []core.ClosedWeekly) error {
	if len(all) > maxWeekly {
		return core.Invalid("weekly", "has more than %d members", maxWeekly)
	}
	for i, w := range all {
		field := fmt.Sprintf("weekly[%d]", i)
		if len(w.Days) == 0 {
			return core.Invalid(field+".days", "must name a day: sun, mon, tue, wed, thu, fri or sat")
		}
		begin, ok := clock(w.From, 0)
		if !ok {
			return core.Invalid(field+".from", "must be a time of day such as 18:00")
		}
		end, ok := clock(w.To, day)
		if !ok {
			return core.Invalid(field+".to", "must be a time of day such as 06:00, or 24:00")
		}
		if end <= begin {
			end += day
		}
		for _, name := range w.Days {
			n := slices.Index(days, name)
			if n < 0 {
				return core.Invalid(field+".days", "must be of sun, mon, tue, wed, thu, fri and sat")
			}
			c.closeWeekly(int64(n)*day+begin, int64(n)*day+end)
		}
	}
	return nil
}

// closeWeekly adds a span that may reach into the next week.
func (c *Calendar) closeWeekly(from, to int64) {
	switch {
	case from >= week:
		c.weekly = append(c.weekly, span{from - week, to - week})
	case to > week:
		c.weekly = append(c.weekly, span{from, week}, span{0, to - week})
	default:
		c.weekly = append(c.weekly, span{from, to})
	}
}

// clock reads a time of day as its second; empty is usual.
func clock(text string, usual int64) (int64, bool) {
	switch text {
	case "":
		return usual, true
	case "24:00":
		return day, true
	}
	for _, form := range []string{"15:04", "15:04:05"} {
		if at, err := time.Parse(form, text); err == nil {
			return int64(at.Hour()*3600 + at.Minute()*60 + at.Second()), true
		}
	}
	return 0, false
}
