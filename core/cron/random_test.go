package cron_test

import (
	"archive/zip"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core/cron"
)

// zoneNames lists the embedded database. Monrovia is left to a test of its own:
// its change of 1972 fell into the middle of a minute.
func zoneNames(t testing.TB) []string {
	t.Helper()
	archive, err := zip.OpenReader("zoneinfo.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	var names []string
	for _, file := range archive.File {
		if file.Name != "Africa/Monrovia" && file.Name != "Liberia" {
			names = append(names, file.Name)
		}
	}
	return names
}

// randomChange returns a clock change between 1970 and 2100, or just a time
// where the zone has none in a few years.
func randomChange(r *rand.Rand, loc *time.Location) time.Time {
	at := time.Date(1970+r.IntN(130), time.Month(1+r.IntN(12)), 1, 0, 0, 0, 0, time.UTC)
	for range 2000 {
		next := at.Add(12 * time.Hour)
		if offsetOf(at, loc) != offsetOf(next, loc) {
			for next.Sub(at) > time.Minute {
				middle := at.Add(next.Sub(at) / 2).Truncate(time.Minute)
				if offsetOf(at, loc) == offsetOf(middle, loc) {
					at = middle
				} else {
					next = middle
				}
			}
			return next
		}
		at = next
	}
	return at
}

func offsetOf(at time.Time, loc *time.Location) int {
	_, offset := at.In(loc).Zone()
	return offset
}

// randomSpec returns five fields that meet a window of some days often enough.
func randomSpec(r *rand.Rand) string {
	date, weekday := "*", "*"
	switch r.IntN(6) {
	case 0:
		date = randomField(r, 1, 31, 6)
	case 1:
		weekday = randomField(r, 0, 6, 2)
	case 2:
		date, weekday = randomField(r, 1, 31, 8), randomField(r, 0, 6, 2)
	case 3:
		date = pick(r, "L", "LW", "L-1", "L-3", "15W", "1W", "31W", "L,15,1W", "?")
	case 4:
		weekday = pick(r, "0L", "5L", "0#1", "0#2", "6#4", "3#5", "1#2,2#3,5L", "?")
	}
	month := "*"
	if r.IntN(8) == 0 {
		month = randomField(r, 1, 12, 8)
	}
	return strings.Join([]string{randomField(r, 0, 59, 2), randomField(r, 0, 23, 4), date, month, weekday}, " ")
}

// randomField returns a star, a step, or a list of up to n elements.
func randomField(r *rand.Rand, low, high, n int) string {
	switch r.IntN(5) {
	case 0:
		return "*"
	case 1:
		return fmt.Sprintf("*/%d", 1+r.IntN(high))
	}
	elements := make([]string, 1+r.IntN(n))
	for i := range elements {
		a := low + r.IntN(high-low+1)
		b := a + r.IntN(high-a+1)
		elements[i] = pick(r, fmt.Sprint(a), fmt.Sprintf("%d-%d", a, b),
			fmt.Sprintf("%d-%d/%d", a, b, 1+r.IntN(9)), fmt.Sprintf("%d/%d", a, 1+r.IntN(high)))
	}
	return strings.Join(elements, ",")
}

func pick(r *rand.Rand, choices ...string) string { return choices[r.IntN(len(choices))] }

// TestRandomSpecs sees to it that the generator is refused for impossible dates
// only, and rarely.
func TestRandomSpecs(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	const total = 5000
	refused := 0
	for range total {
		spec := randomSpec(r)
		_, err := cron.Parse(spec, cron.Options{})
		if err == nil {
			continue
		}
		refused++
		var refusal *cron.ParseError
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Reason, "no year has such a day") {
			t.Errorf("Parse(%q): %v", spec, err)
		}
	}
	if refused > total/100 {
		t.Errorf("%d of %d specs refused", refused, total)
	}
}
