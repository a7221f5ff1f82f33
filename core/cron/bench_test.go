package cron_test

import (
	"slices"
	"testing"
	"time"

	robfig "github.com/robfig/cron/v3"

	"github.com/fencepost/fencepost/core/cron"
)

// benchmarks are specs that both libraries take, in a zone with clock changes.
func benchmarks() []struct{ name, spec string } {
	return []struct{ name, spec string }{
		{"EveryMinute", "* * * * *"},
		{"QuarterHour", "*/15 * * * *"},
		{"Daily", "30 2 * * *"},
		{"Workdays", "0 9 * * 1-5"},
		{"Monthly", "0 0 1 * *"},
		{"LeapDay", "0 0 29 2 *"},
	}
}

func BenchmarkNext(b *testing.B) {
	loc, err := cron.LoadLocation("America/New_York")
	if err != nil {
		b.Fatal(err)
	}
	from := time.Date(2026, 3, 7, 12, 34, 56, 0, loc)
	for _, bm := range benchmarks() {
		e, err := cron.Parse(bm.spec, cron.Options{Location: loc})
		if err != nil {
			b.Fatal(err)
		}
		r, err := robfig.ParseStandard("CRON_TZ=America/New_York " + bm.spec)
		if err != nil {
			b.Fatal(err)
		}
		for _, side := range []struct {
			name string
			s    robfig.Schedule
		}{{"fencepost", e}, {"robfig", r}} {
			b.Run(bm.name+"/"+side.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if side.s.Next(from).IsZero() {
						b.Fatal("no next time")
					}
				}
			})
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, bm := range benchmarks() {
		b.Run(bm.name+"/fencepost", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := cron.Parse(bm.spec, cron.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(bm.name+"/robfig", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := robfig.ParseStandard(bm.spec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVectors reports how long single calls take over all vectors, as the
// fastest of five so that other work on the machine does not count.
func BenchmarkVectors(b *testing.B) {
	type call struct {
		e    *cron.Expression
		from time.Time
	}
	var calls []call
	for _, v := range loadVectors(b) {
		if v.Class != "never" {
			calls = append(calls, call{mustParse(b, v.Spec, cron.Options{Location: zone(b, v.Zone)}), instant(b, v.From)})
		}
	}
	for name, method := range map[string]func(*cron.Expression, time.Time) time.Time{
		"Next": (*cron.Expression).Next, "Prev": (*cron.Expression).Prev,
	} {
		b.Run(name, func(b *testing.B) {
			durations := make([]time.Duration, len(calls))
			for b.Loop() {
				for i, c := range calls {
					durations[i] = time.Hour
					for range 5 {
						start := time.Now()
						method(c.e, c.from)
						durations[i] = min(durations[i], time.Since(start))
					}
				}
			}
			slices.Sort(durations)
			b.ReportMetric(float64(durations[len(durations)/2].Nanoseconds()), "p50-ns")
			b.ReportMetric(float64(durations[len(durations)*99/100].Nanoseconds()), "p99-ns")
			b.ReportMetric(float64(durations[len(durations)-1].Nanoseconds()), "max-ns")
		})
	}
}
