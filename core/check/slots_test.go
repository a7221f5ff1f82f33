package check_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the vectors

	"github.com/fencepost/fencepost/core/check"
)

// TestSlots holds the oracle to the vectors of core/cron, which another oracle made.
func TestSlots(t *testing.T) {
	t.Parallel()
	f, err := os.Open("../cron/testdata/vectors.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	judged := 0
	for lines := bufio.NewScanner(z); lines.Scan(); {
		var v struct {
			ID, Class, Spec, TZ string
			From                time.Time
			Next                []time.Time
		}
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		if v.Class == "ext" || len(v.Next) == 0 || v.Next[len(v.Next)-1].Sub(v.From) > 8*24*time.Hour {
			continue
		}
		judged++
		got, err := check.SlotsOf(&check.Schedule{Spec: v.Spec, TimeZone: v.TZ}, v.From.Add(time.Nanosecond), v.Next[len(v.Next)-1].Add(time.Nanosecond))
		if err != nil || !slices.EqualFunc(v.Next, got, time.Time.Equal) {
			t.Errorf("%s: %s in %s after %s: %v, %v; want %v", v.ID, v.Spec, v.TZ, v.From, got, err, v.Next)
		}
	}
	if judged < 1000 {
		t.Errorf("only %d vectors were judged", judged)
	}
	t.Logf("%d vectors", judged)
}

// TestOtherSlots: intervals count from their anchor, and single times come once.
func TestOtherSlots(t *testing.T) {
	t.Parallel()
	anchor := at(-90)
	for _, tt := range []struct {
		spec string
		from float64
		want []float64
	}{
		{"every 1m", 0, []float64{30, 90}}, {"every 1m", 30, []float64{30, 90}}, {"every 1m", 31, []float64{90}}, {"every 90s", -500, []float64{-450, -360, -270, -180, -90, 0, 90}},
		{"at " + at(50).Format(time.RFC3339), 0, []float64{50}}, {"at " + at(50).Format(time.RFC3339), 51, nil},
		{"*/40 * * * * *", 0, []float64{0, 40, 60, 100}}, {"0-30/20 * * * * MON-fri", 61, []float64{80}},
	} {
		got, err := check.SlotsOf(&check.Schedule{Spec: tt.spec, TimeZone: "UTC", Anchor: &anchor}, at(tt.from), at(119))
		var want []time.Time
		for _, s := range tt.want {
			want = append(want, at(s))
		}
		if err != nil || !slices.EqualFunc(want, got, time.Time.Equal) {
			t.Errorf("%s from %g: %v, %v; want %v", tt.spec, tt.from, got, err, want)
		}
	}
	for _, spec := range []string{"", "* * * *", "60 * * * *", "* 5-3 * * *", "*/0 * * * *", "every x", "at noon", "* * * * ?"} {
		if got, err := check.SlotsOf(&check.Schedule{Spec: spec}, at(0), at(1)); err == nil {
			t.Errorf("%q: %v", spec, got)
		}
	}
	if _, err := check.SlotsOf(&check.Schedule{Spec: "* * * * *", TimeZone: "Mars/Base"}, at(0), at(1)); err == nil || !strings.Contains(err.Error(), "Mars") {
		t.Error(err)
	}
}
