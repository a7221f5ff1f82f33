package calendar_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/calendar"
)

func parse(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestClosed(t *testing.T) {
	t.Parallel()
	berlin := func(c core.CalendarContent) core.CalendarContent {
		c.TimeZone = "Europe/Berlin"
		return c
	}
	dates := core.CalendarContent{Dates: []string{"2026-12-25", "2026-12-26"}}
	weekend := core.CalendarContent{Weekly: []core.ClosedWeekly{{Days: []string{"sat", "sun"}}}}
	nights := core.CalendarContent{Weekly: []core.ClosedWeekly{{Days: []string{"fri", "sat"}, From: "22:00", To: "06:00"}}}
	small := core.CalendarContent{Weekly: []core.ClosedWeekly{{Days: []string{"sun"}, From: "02:00", To: "03:00"}}}
	freeze := core.CalendarContent{Ranges: []core.ClosedRange{{From: "2026-12-23T18:00", To: "2027-01-01"}, {From: "2026-12-20", To: "2026-12-20"}}}
	for name, c := range map[string]struct {
		content core.CalendarContent
		at      string
		closed  bool
		until   string // empty: for ever
	}{
		"before a date":                     {dates, "2026-12-24T23:59:59Z", false, "2026-12-25T00:00:00Z"},
		"neighboring dates are one":         {dates, "2026-12-25T00:00:00Z", true, "2026-12-27T00:00:00Z"},
		"a date in its zone":                {berlin(dates), "2026-12-24T23:00:00Z", true, "2026-12-26T23:00:00Z"},
		"after the last date":               {dates, "2026-12-27T00:00:00Z", false, ""},
		"nothing is closed":                 {core.CalendarContent{}, "2026-12-27T00:00:00Z", false, ""},
		"a range begins at its time":        {freeze, "2026-12-23T17:59:59.999Z", false, "2026-12-23T18:00:00Z"},
		"a range ends with its last date":   {freeze, "2026-12-23T18:00:00Z", true, "2027-01-02T00:00:00Z"},
		"a range of one date":               {freeze, "2026-12-20T12:00:00Z", true, "2026-12-21T00:00:00Z"},
		"weekend":                           {weekend, "2026-12-05T00:00:00Z", true, "2026-12-07T00:00:00Z"},
		"sunday":                            {weekend, "2026-12-06T00:00:00Z", true, "2026-12-07T00:00:00Z"},
		"working days":                      {weekend, "2026-12-07T00:00:00Z", false, "2026-12-12T00:00:00Z"},
		"a night into the next week":        {nights, "2026-12-06T05:59:59Z", true, "2026-12-06T06:00:00Z"},
		"the evening after":                 {nights, "2026-12-06T22:00:00Z", false, "2026-12-11T22:00:00Z"},
		"before 1970":                       {weekend, "1969-12-27T10:00:00Z", true, "1969-12-29T00:00:00Z"},
		"what a gap skips is never closed":  {berlin(small), "2026-03-29T01:00:00Z", false, "2026-04-05T00:00:00Z"},
		"what comes twice is closed twice":  {berlin(small), "2026-10-25T00:00:00Z", true, "2026-10-25T01:00:00Z"},
		"the second time":                   {berlin(small), "2026-10-25T01:00:00Z", true, "2026-10-25T02:00:00Z"},
		"and open again":                    {berlin(small), "2026-10-25T02:00:00Z", false, "2026-11-01T01:00:00Z"},
		"up to a change nothing is certain": {berlin(small), "2026-10-20T00:00:00Z", false, "2026-10-25T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, err := calendar.New("k", c.content)
			if err != nil {
				t.Fatal(err)
			}
			var until time.Time
			if c.until != "" {
				until = parse(t, c.until)
			}
			if closed, got := k.Closed(parse(t, c.at)); closed != c.closed || !got.Equal(until) || k.Name() != "k" {
				t.Errorf("closed %v until %s, want %v until %s", closed, got, c.closed, until)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	weekly := func(w core.ClosedWeekly) core.CalendarContent {
		return core.CalendarContent{Weekly: []core.ClosedWeekly{w}}
	}
	ranges := func(from, to string) core.CalendarContent {
		return core.CalendarContent{Ranges: []core.ClosedRange{{From: from, To: to}}}
	}
	for name, c := range map[string]struct {
		content core.CalendarContent
		field   string
	}{
		"zone":                {core.CalendarContent{TimeZone: "PST"}, "time_zone"},
		"date":                {core.CalendarContent{Dates: []string{"2026-12-25", "2026-02-30"}}, "dates[1]"},
		"too many dates":      {core.CalendarContent{Dates: make([]string, 1001)}, "dates"},
		"too many ranges":     {core.CalendarContent{Ranges: make([]core.ClosedRange, 501)}, "ranges"},
		"too many windows":    {core.CalendarContent{Weekly: make([]core.ClosedWeekly, 101)}, "weekly"},
		"range without from":  {ranges("", "2026-12-25"), "ranges[0].from"},
		"an instant":          {ranges("2026-12-24T00:00:00Z", "2026-12-25"), "ranges[0].from"},
		"range to nowhere":    {ranges("2026-12-24", "later"), "ranges[0].to"},
		"range backwards":     {ranges("2026-12-24", "2026-12-23"), "ranges[0].to"},
		"empty range":         {ranges("2026-12-24T10:00", "2026-12-24T10:00"), "ranges[0].to"},
		"no day":              {weekly(core.ClosedWeekly{}), "weekly[0].days"},
		"unknown day":         {weekly(core.ClosedWeekly{Days: []string{"Sunday"}}), "weekly[0].days"},
		"time of day":         {weekly(core.ClosedWeekly{Days: []string{"sun"}, From: "25:00"}), "weekly[0].from"},
		"end of day":          {weekly(core.ClosedWeekly{Days: []string{"sun"}, To: "6"}), "weekly[0].to"},
		"the whole week":      {weekly(core.ClosedWeekly{Days: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}}), "weekly"},
		"a week from anytime": {weekly(core.ClosedWeekly{Days: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}, From: "07:00", To: "07:00"}), "weekly"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := calendar.New("k", c.content)
			var e *core.Error
			if !errors.As(err, &e) || e.Field != c.field || e.Code != core.CodeInvalid {
				t.Errorf("got %v, want a refusal of %s", err, c.field)
			}
		})
	}
	for name, ok := range map[string]bool{"de-holidays": true, "2026.freeze_x": true, "": false, "-a": false, "A": false, "a b": false, "ä": false, "a/b": false} {
		if err := calendar.CheckName("name", name); (err == nil) != ok {
			t.Errorf("name %q: %v", name, err)
		}
	}
}

// TestClosedIsWhatTheClocksShow compares with a look at the clocks each minute,
// across the clock changes of several zones: the answer is right, and holds as
// long as it says.
func TestClosedIsWhatTheClocksShow(t *testing.T) {
	t.Parallel()
	names := []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia"}).Draw(t, "zone")
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		hour := rapid.IntRange(0, 23)
		n, from, to := rapid.IntRange(0, 6).Draw(t, "day"), hour.Draw(t, "from"), hour.Draw(t, "to")
		clock := func(h int) string { return time.Date(2000, 1, 1, h, 30, 0, 0, time.UTC).Format("15:04") }
		begin := time.Date(2011, 12, 27, 0, 0, 0, 0, time.UTC)
		if rapid.Bool().Draw(t, "spring") {
			begin = time.Date(2018, 10, 25, 0, 0, 0, 0, time.UTC)
		}
		date := begin.AddDate(0, 0, rapid.IntRange(0, 7).Draw(t, "date")).Format("2006-01-02")
		k, err := calendar.New("k", core.CalendarContent{
			TimeZone: zone, Dates: []string{date}, Weekly: []core.ClosedWeekly{{Days: []string{names[n]}, From: clock(from), To: clock(to)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		shows := func(at time.Time) bool {
			local := at.In(loc)
			minutes, first, last := local.Hour()*60+local.Minute(), from*60+30, to*60+30
			today, yesterday := int(local.Weekday()) == n, (int(local.Weekday())+6)%7 == n
			weekly := today && minutes >= first && (minutes < last || last <= first) || yesterday && last <= first && minutes < last
			return weekly || local.Format("2006-01-02") == date
		}
		var holds time.Time
		was := false
		for at := begin; at.Before(begin.AddDate(0, 0, 9)); at = at.Add(10 * time.Minute) {
			closed, until := k.Closed(at)
			if closed != shows(at) {
				t.Fatalf("at %s the clocks show %s: closed is %v", at, at.In(loc), closed)
			}
			if at.Before(holds) && closed != was {
				t.Fatalf("at %s closed is %v, which was to hold until %s", at, was, holds)
			}
			if !until.IsZero() && !until.After(at) {
				t.Fatalf("at %s the answer holds until %s", at, until)
			}
			was, holds = closed, until
			if until.IsZero() {
				holds = core.Forever
			}
		}
	})
}
