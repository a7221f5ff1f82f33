package cron_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/cron"
)

// vector is one case of testdata/vectors.jsonl.gz, written by a brute-force
// oracle in another language.
type vector struct {
	ID    string   `json:"id"`
	Class string   `json:"class"`
	Spec  string   `json:"spec"`
	Zone  string   `json:"tz"`
	From  string   `json:"from"`
	Next  []string `json:"next"`
	Local []string `json:"local"`
	Kind  string   `json:"kind"`
}

func loadVectors(t testing.TB) []vector {
	t.Helper()
	file, err := os.Open("testdata/vectors.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	lines := bufio.NewScanner(unzipped)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return vectors
}

func TestVectors(t *testing.T) {
	t.Parallel()
	vectors := loadVectors(t)
	if want := 2600; len(vectors) != want {
		t.Fatalf("%d vectors, want %d", len(vectors), want)
	}
	for _, v := range vectors {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			v.check(t)
		})
	}
}

func (v vector) check(t *testing.T) {
	e, err := cron.Parse(v.Spec, cron.Options{Location: zone(t, v.Zone)})
	if v.Class == "never" {
		if err == nil {
			t.Fatalf("Parse(%q) took a spec that never fires", v.Spec)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	at := instant(t, v.From)
	var next, local, back []string
	for range v.Next {
		at = e.Next(at)
		next = append(next, at.UTC().Format(time.RFC3339))
		local = append(local, at.Format("2006-01-02T15:04-07:00"))
	}
	for at = at.Add(1); len(back) < len(v.Next); {
		at = e.Prev(at)
		back = append(back, at.UTC().Format(time.RFC3339))
	}
	slices.Reverse(back)
	if diff := cmp.Diff(v.Next, next); diff != "" {
		t.Errorf("%q in %s: UTC (-want +got)\n%s", v.Spec, v.Zone, diff)
	}
	if diff := cmp.Diff(v.Local, local); diff != "" {
		t.Errorf("%q in %s: local (-want +got)\n%s", v.Spec, v.Zone, diff)
	}
	if diff := cmp.Diff(v.Next, back); diff != "" {
		t.Errorf("%q in %s: backward (-want +got)\n%s", v.Spec, v.Zone, diff)
	}
	if gap, overlap, _ := e.Policies(); (v.Kind == "wildcard") != (gap == cron.GapSkip && overlap == cron.OverlapBoth) {
		t.Errorf("%q: policies %s and %s for a %s spec", v.Spec, gap, overlap, v.Kind)
	}
}
