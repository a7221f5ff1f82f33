package cron_test

import (
	"fmt"
	"time"

	robfig "github.com/robfig/cron/v3"

	"github.com/fencepost/fencepost/core/cron"
)

func Example() {
	berlin, err := cron.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := cron.Parse("30 2 * * *", cron.Options{Location: berlin})
	if err != nil {
		fmt.Println(err)
		return
	}
	// On 29 March 2026 the clock goes from 02:00 to 03:00.
	at := time.Date(2026, 3, 28, 0, 0, 0, 0, berlin)
	for range 3 {
		at = e.Next(at)
		fmt.Println(at.Format(time.RFC3339))
	}
	gap, overlap, why := e.Policies()
	fmt.Println(gap, overlap, why)
	// Output:
	// 2026-03-28T02:30:00+01:00
	// 2026-03-29T03:00:00+02:00
	// 2026-03-30T02:30:00+02:00
	// run_after first fixed: neither the minute nor the hour field begins with a star, so it follows the wall clock
}

func ExampleParse_refused() {
	for _, spec := range []string{"0 9 * * MONDAY", "0 0 31 2 *", "0 22-3 * * *"} {
		_, err := cron.Parse(spec, cron.Options{})
		fmt.Println(err)
	}
	// Output:
	// day of week field, column 9, "MONDAY": not a value of this field; names have three letters: MON
	// day of month field, column 5, "31": no year has such a day in these months; choose a day that the months have
	// hour field, column 3, "22-3": the range ends before it begins; split it: 22-23,0-3
}

// exactParser lets robfig/cron parse with this package: it takes the zone from
// the prefix of the spec.
type exactParser struct{}

func (exactParser) Parse(spec string) (robfig.Schedule, error) {
	name, rest, _ := cron.SplitZone(spec)
	loc, err := cron.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	return cron.Parse(rest, cron.Options{Location: loc})
}

// A user of robfig/cron keeps its runner and exchanges the parser.
func ExampleExpression_robfig() {
	runner := robfig.New(robfig.WithParser(exactParser{}), robfig.WithLocation(time.UTC))
	id, err := runner.AddFunc("TZ=America/New_York 30 2 * * sun", func() {})
	if err != nil {
		fmt.Println(err)
		return
	}
	next := runner.Entry(id).Schedule.Next(time.Date(2026, 3, 7, 0, 0, 0, 0, time.UTC))
	fmt.Println(next.Format(time.RFC3339))
	// Output:
	// 2026-03-08T03:00:00-04:00
}
