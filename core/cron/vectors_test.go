package cron_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
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
	loc, err := cron.LoadLocation(v.Zone)
	if err != nil {
		t.Fatal(err)
	}
	e, err := cron.Parse(v.Spec, cron.Options{Location: loc})
	if v.Class == "never" {
		if err == nil {
			t.Fatalf("Parse(%q) took a spec that never fires", v.Spec)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, v.From)
	if err != nil {
		t.Fatal(err)
	}
	var next, local []string
	for range v.Next {
		at = e.Next(at)
		next = append(next, at.UTC().Format(time.RFC3339))
		local = append(local, at.Format("2006-01-02T15:04-07:00"))
	}
	if diff := cmp.Diff(v.Next, next); diff != "" {
		t.Errorf("%q in %s: UTC (-want +got)\n%s", v.Spec, v.Zone, diff)
	}
	if diff := cmp.Diff(v.Local, local); diff != "" {
		t.Errorf("%q in %s: local (-want +got)\n%s", v.Spec, v.Zone, diff)
	}
}
