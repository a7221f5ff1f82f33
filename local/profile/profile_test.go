package profile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/local/profile"
)

// env is an environment of a test's own.
func env(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func TestProfilePath(t *testing.T) {
	t.Parallel()
	for want, vars := range map[string]map[string]string{
		"/x/fencepost/profile.json":         {"XDG_CONFIG_HOME": "/x", "HOME": "/h"},
		"/h/.config/fencepost/profile.json": {"XDG_CONFIG_HOME": "relative", "HOME": "/h"},
	} {
		if got, err := profile.Path(env(vars)); got != want || err != nil {
			t.Errorf("path is %q, want %q: %v", got, want, err)
		}
	}
}

func TestEnvironmentOverridesProfile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stored := profile.Profile{URL: "http://stored", Key: "fp_stored"}
	if err := profile.Save(filepath.Join(dir, "fencepost", "profile.json"), stored); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		url, key string
		want     profile.Profile
		fails    bool
	}{
		{"", "", stored, false},
		{"http://other", "fp_other", profile.Profile{URL: "http://other", Key: "fp_other"}, false},
		{"", "fp_other", profile.Profile{URL: "http://stored", Key: "fp_other"}, false},
		{"http://stored", "", stored, false},
		{"http://other", "", profile.Profile{URL: "http://other"}, true}, // the stored key is not for it
	} {
		got, err := profile.Load(env(map[string]string{"XDG_CONFIG_HOME": dir, "FENCEPOST_URL": c.url, "FENCEPOST_API_KEY": c.key}))
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.fails {
			t.Errorf("%q %q: %v %s", c.url, c.key, err, diff)
		}
	}
}

func TestNoProfile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := profile.Load(env(map[string]string{"XDG_CONFIG_HOME": dir})); !errors.Is(err, profile.ErrNone) {
		t.Error(err)
	}
	if _, err := profile.Load(env(map[string]string{"XDG_CONFIG_HOME": dir, "FENCEPOST_URL": "http://x"})); err == nil || !strings.Contains(err.Error(), "FENCEPOST_API_KEY") {
		t.Error(err)
	}
	if _, err := profile.Load(env(map[string]string{"XDG_CONFIG_HOME": dir, "FENCEPOST_API_KEY": "fp_x"})); !errors.Is(err, profile.ErrNone) {
		t.Error(err)
	}
}

func TestDamagedProfileIsNotRepeated(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "profile.json")
	for _, text := range []string{`{"url":"http://x","key":fp_secret}`, `"fp_secret"`, strings.Repeat("fp_secret", 10_000)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := profile.Read(path)
		if err == nil || strings.Contains(err.Error(), "fp_") || p.URL != "" || p.Key != "" {
			t.Errorf("%.20s: %+v %v", text, p, err)
		}
	}
}

func TestProfileIsPrivateAndWhole(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "fencepost")
	path := filepath.Join(dir, "profile.json")
	var writers sync.WaitGroup
	for _, key := range []string{"fp_a", "fp_b", "fp_c", "fp_d"} {
		writers.Go(func() {
			for range 20 {
				if err := profile.Save(path, profile.Profile{URL: strings.Repeat("u", 1000), Key: key}); err != nil {
					t.Error(err)
				}
				if p, err := profile.Read(path); err != nil || len(p.Key) != 4 || len(p.URL) != 1000 {
					t.Errorf("read %+v: %v", p, err)
				}
			}
		})
	}
	writers.Wait()
	for name, mode := range map[string]fs.FileMode{path: 0o600, dir: 0o700 | fs.ModeDir} {
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s has mode %v: %v", name, info.Mode(), err)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v are left over: %v", files, err)
	}
}

func TestFailedSaveLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "profile.json")
	if err := os.MkdirAll(filepath.Join(path, "a folder in its place"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := profile.Save(path, profile.Profile{}); err == nil {
		t.Error("a folder was overwritten")
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v are left over: %v", files, err)
	}
}

// TestRenamedKeepsKeys: a second installation does not cost the key of the
// first, which is stored nowhere else.
func TestRenamedKeepsKeys(t *testing.T) {
	t.Parallel()
	var p profile.Profile
	p = p.Renamed("http://a", "fp_a").Renamed("http://b", "fp_b").Renamed("http://c", "fp_c").Renamed("http://b", "fp_b2")
	for url, want := range map[string]string{"http://a": "fp_a", "http://b": "fp_b2", "http://c": "fp_c", "http://d": ""} {
		if got := p.KeyFor(url); got != want {
			t.Errorf("the key of %s is %q, want %q", url, got, want)
		}
	}
	if p.URL != "http://b" || p.Key != "fp_b2" {
		t.Errorf("the profile names %s", p.URL)
	}
}
