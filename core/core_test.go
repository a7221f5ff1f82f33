package core_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/fencepost/fencepost/core"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "15m": 15 * time.Minute, "72h": 72 * time.Hour, "3d": 72 * time.Hour, "P3D": 72 * time.Hour,
		"1h30m": 90 * time.Minute, "PT1H30M": 90 * time.Minute, "P1W": 7 * 24 * time.Hour, "1 day": 24 * time.Hour,
		"15 minutes": 15 * time.Minute, "1500ms": 1500 * time.Millisecond, "0s": 0, "1.5h": 90 * time.Minute, "2w": 14 * 24 * time.Hour,
		" 5 s ": 5 * time.Second, "P1DT12H": 36 * time.Hour, "1 hour 30 min": 90 * time.Minute,
	} {
		got, err := core.ParseDuration(text)
		if err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "s", "5", "-5s", "5x", "1m1h", "1m2m", "P", "PT", "P1M", "P1Y", "1..5s", "1e9h", "99999999d", "5s5", "∞", "１s",
		"1000000000000000000000s", "P3", "3d-1h", "PT1H30", "NaNs", "0x5s",
	} {
		if got, err := core.ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %s, want an error", text, got)
		}
	}
}

func TestFormatDurationIsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(10*365*24*time.Hour/time.Millisecond)).Draw(t, "ms")) * time.Millisecond
		got, err := core.ParseDuration(core.FormatDuration(d))
		if err != nil || got != d {
			t.Fatalf("%s is written %q and read as %s, %v", d, core.FormatDuration(d), got, err)
		}
	})
}

func key(t *rapid.T) core.RunKey {
	var id uuid.UUID
	copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	return core.RunKey{
		Region: rapid.StringMatching(`[a-z0-9-]{1,30}`).Draw(t, "region"), ScheduleID: id,
		Slot: time.UnixMicro(rapid.Int64Range(0, 253_000_000_000_000_000).Draw(t, "slot")).UTC(),
	}
}

func TestRunIDIsReversible(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := key(t)
		got, err := core.ParseRunID(k.ID())
		if err != nil || got != k {
			t.Fatalf("%s reads back as %+v, %v; want %+v", k.ID(), got, err, k)
		}
	})
	for _, bad := range []string{"", "run_", "run_0", "x", "run_!!!!", "RUN_00", string(make([]byte, 1000)), "run_" + string(make([]byte, 60))} {
		if _, err := core.ParseRunID(bad); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("ParseRunID(%q) = %v, want ErrNotFound", bad, err)
		}
	}
}

func FuzzParseRunID(f *testing.F) {
	f.Add(core.RunKey{Region: "local", Slot: time.Unix(0, 0).UTC()}.ID())
	f.Fuzz(func(t *testing.T, s string) {
		k, err := core.ParseRunID(s)
		if err == nil && k.ID() != s {
			t.Errorf("%q and %q name the same run", s, k.ID())
		}
	})
}

func TestMessageRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := core.Message{Key: key(t), Fence: rapid.Int64().Draw(t, "fence")}
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var got core.Message
		if err := json.Unmarshal(b, &got); err != nil || cmp.Diff(m, got) != "" {
			t.Fatalf("%s reads back as %+v, %v", b, got, err)
		}
		var fields map[string]any
		if err := json.Unmarshal(b, &fields); err != nil || len(fields) != 3 {
			t.Fatalf("the message %s is more than key, fence and version", b)
		}
	})
	var m core.Message
	if err := json.Unmarshal([]byte(`{"v":2,"run":"run_","fence":1}`), &m); err == nil {
		t.Error("a message of an unknown version was read")
	}
}

// TestShardsAreEven also pins the hash: stored shards must stay where they are.
func TestShardsAreEven(t *testing.T) {
	t.Parallel()
	counts := make([]float64, core.Shards)
	const n = 64_000
	for i := range n {
		counts[core.ShardOf(uuid.MustParse(fmt.Sprintf("018f0000-0000-7000-8000-%012x", i)))]++
	}
	for shard, c := range counts {
		if math.Abs(c-n/core.Shards) > 150 { // mean 1,000, nearly five sigma
			t.Errorf("shard %d has %.0f of %d schedules", shard, c, n)
		}
	}
	if got := core.ShardOf(uuid.MustParse("018f0000-0000-7000-8000-000000000001")); got != 44 {
		t.Errorf("the shard of a schedule moved: %d", got)
	}
}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	wrapped := fmt.Errorf("claim: %w", &core.Error{Code: core.CodeConflict, Kind: "run_live", Message: "x"})
	if core.CodeOf(wrapped) != core.CodeConflict || !errors.Is(wrapped, core.ErrRunLive) || errors.Is(wrapped, core.ErrNameTaken) {
		t.Errorf("code %q of %v", core.CodeOf(wrapped), wrapped)
	}
	if core.CodeOf(errors.New("x")) != core.CodeInternal || core.CodeOf(nil) != "" {
		t.Error("an error without a code is not internal, or nil is one")
	}
}
