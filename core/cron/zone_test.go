package cron_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost/fencepost/core/cron"
)

// TestZoneVersion pins the archive to the release that it claims to be.
func TestZoneVersion(t *testing.T) {
	t.Parallel()
	archive, err := os.ReadFile("zoneinfo.zip")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(archive)
	if got, want := hex.EncodeToString(sum[:]), "8f55634d05f8bca1f7bc7c69c5933428c69357e0bdf565e5ba224e3f88ff12e8"; got != want {
		t.Errorf("zoneinfo.zip has the hash %s, want %s", got, want)
	}
	if got, want := cron.ZoneVersion(), "2025c"; got != want {
		t.Errorf("ZoneVersion() = %q, want %q", got, want)
	}
}

// TestZoneArchiveOrigin compares the archive with that of the Go toolchain, as
// long as both have the same release.
func TestZoneArchiveOrigin(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("no go command: %v", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "lib", "time")
	script, err := os.ReadFile(filepath.Join(dir, "update.bash"))
	if err != nil {
		t.Skipf("no zone sources in the toolchain: %v", err)
	}
	if !bytes.Contains(script, []byte("DATA="+cron.ZoneVersion()+"\n")) {
		t.Skipf("the toolchain has another release than %s", cron.ZoneVersion())
	}
	want, err := os.ReadFile(filepath.Join(dir, "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("zoneinfo.zip")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("zoneinfo.zip differs from the %s archive of the toolchain", cron.ZoneVersion())
	}
}

func TestLoadLocation(t *testing.T) {
	t.Parallel()
	names := zoneNames(t)
	if len(names) < 590 {
		t.Errorf("only %d zones", len(names))
	}
	for _, name := range names {
		loc, err := cron.LoadLocation(name)
		if err != nil {
			t.Errorf("LoadLocation(%q): %v", name, err)
			continue
		}
		if loc.String() != name {
			t.Errorf("LoadLocation(%q) is named %q", name, loc)
		}
		if again, _ := cron.LoadLocation(name); again != loc {
			t.Errorf("LoadLocation(%q) was decoded twice", name)
		}
	}
	for _, name := range []string{"", "UTC"} {
		if loc, err := cron.LoadLocation(name); loc != time.UTC || err != nil {
			t.Errorf("LoadLocation(%q) = %v, %v; want UTC", name, loc, err)
		}
	}
}

// TestLinkTarget compares each legacy name with its target by their clocks.
func TestLinkTarget(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"EST5EDT": "America/New_York", "CET": "Europe/Brussels", "US/Pacific": "America/Los_Angeles", "Asia/Calcutta": "Asia/Kolkata",
		"Zulu": "Etc/UTC", "Europe/Berlin": "Europe/Berlin", "UTC": "UTC", "": "", "Mars/Olympus": "Mars/Olympus",
	} {
		if got := cron.LinkTarget(name); got != want {
			t.Errorf("LinkTarget(%q) = %q, want %q", name, got, want)
		}
	}
	links := 0
	for _, name := range zoneNames(t) {
		target := cron.LinkTarget(name)
		if target == name {
			continue
		}
		links++
		if cron.LinkTarget(target) != target {
			t.Errorf("%s leads to %s, which is a link", name, target)
		}
		a, b := zone(t, name), zone(t, target)
		for at := time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2040; at = at.AddDate(0, 0, 20) {
			if offsetOf(at, a) != offsetOf(at, b) {
				t.Errorf("%s and %s differ at %s", name, target, at)
				break
			}
		}
	}
	if want := 160; links < want {
		t.Errorf("%d links, want at least %d", links, want)
	}
}

func TestZoneRefusals(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Local":                    "it depends on the host: name a place, such as Europe/Berlin",
		"local":                    "it depends on the host: name a place, such as Europe/Berlin",
		"PST":                      "use America/Los_Angeles",
		"pdt":                      "use America/Los_Angeles",
		"CEST":                     "use Europe/Berlin",
		"IST":                      "use Asia/Kolkata",
		"+02:00":                   "a bare offset knows no clock changes: name a place, such as Europe/Berlin, or Etc/GMT-2, whose sign is reversed",
		"UTC-5":                    "a bare offset knows no clock changes: name a place, such as Europe/Berlin, or Etc/GMT+5, whose sign is reversed",
		"GMT+0530":                 "a bare offset knows no clock changes: name a place, such as Europe/Berlin",
		"+99":                      "a bare offset knows no clock changes: name a place, such as Europe/Berlin",
		"+00:00":                   "use UTC",
		"Z":                        "use UTC",
		"utc":                      "use UTC",
		"europe/berlin":            "use Europe/Berlin",
		"Europe/Berlin ":           "use Europe/Berlin",
		"AMERICA/NEW_YORK":         "use America/New_York",
		"America/New York":         "use America/New_York",
		"New York":                 "use America/New_York",
		"Berlin":                   "use Europe/Berlin",
		"Europe/Tokyo":             "use Asia/Tokyo",
		"Europe/Berln":             "use Europe/Berlin",
		"Mars/Olympus":             "use a name such as Europe/Berlin",
		"../../etc/passwd":         "use a name such as Europe/Berlin",
		"\x00":                     "use a name such as Europe/Berlin",
		strings.Repeat("A/", 5000): "use a name such as Europe/Berlin",
	} {
		loc, err := cron.LoadLocation(name)
		var refusal *cron.ZoneError
		if !errors.As(err, &refusal) {
			t.Errorf("LoadLocation(%.40q) = %v, %v; want a refusal", name, loc, err)
			continue
		}
		if refusal.Hint != want {
			t.Errorf("LoadLocation(%.40q): hint %q, want %q", name, refusal.Hint, want)
		}
		if len(err.Error()) > 300 || !strings.Contains(err.Error(), want) {
			t.Errorf("LoadLocation(%.40q): error %q", name, err)
		}
	}
}
