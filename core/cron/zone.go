package cron

import (
	"archive/zip"
	_ "embed" // for the zone database
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// zoneVersion is the release in zoneinfo.zip. Bring both up together, from
// lib/time of a Go release, and adjust the test that pins them.
const zoneVersion = "2025c"

// zoneArchive is the compiled IANA database that Go releases carry. The time
// package would prefer the host's copy to one linked into the program, and two
// hosts would then disagree on the next slot of the same schedule.
//
//go:embed zoneinfo.zip
var zoneArchive string

// zones returns the loader of each zone. It reads the archive once; a zone is
// decoded at first use and shared from then on.
var zones = sync.OnceValues(func() (map[string]func() (*time.Location, error), error) {
	archive, err := zip.NewReader(strings.NewReader(zoneArchive), int64(len(zoneArchive)))
	if err != nil {
		return nil, fmt.Errorf("read zone archive: %w", err)
	}
	loaders := make(map[string]func() (*time.Location, error), len(archive.File))
	for _, file := range archive.File {
		loaders[file.Name] = sync.OnceValues(func() (*time.Location, error) { return loadZone(file) })
	}
	return loaders, nil
})

// zoneLinks holds a legacy name and its target on each line, for those links of
// the database's backward file that have no history of their own in the archive.
//
//go:embed zonelinks.txt
var zoneLinks string

var linkTargets = sync.OnceValue(func() map[string]string {
	targets := make(map[string]string)
	for line := range strings.Lines(zoneLinks) {
		name, target, _ := strings.Cut(strings.TrimSpace(line), " ")
		targets[name] = target
	}
	return targets
})

// LinkTarget returns the zone that a legacy name stands for, such as
// America/New_York for EST5EDT, so that answers can show it. A name that is no
// link is returned as it is, whether it exists or not.
func LinkTarget(name string) string {
	if target, ok := linkTargets()[name]; ok {
		return target
	}
	return name
}

func loadZone(file *zip.File) (*time.Location, error) {
	r, err := file.Open()
	if err != nil {
		return nil, fmt.Errorf("open zone %s: %w", file.Name, err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read zone %s: %w", file.Name, err)
	}
	loc, err := time.LoadLocationFromTZData(file.Name, data)
	if err != nil {
		return nil, fmt.Errorf("decode zone %s: %w", file.Name, err)
	}
	return loc, nil
}

// ZoneVersion returns the release of the embedded IANA zone database, such as
// 2025c. It is the only one that [LoadLocation] uses.
func ZoneVersion() string { return zoneVersion }

// ZoneError says that a name is not in the zone database and what to use, in
// parts, so that an API can put each of them in its own field.
type ZoneError struct {
	// Name is the refused name, cut after 40 bytes.
	Name string
	// Hint says what to write instead. It is never empty.
	Hint string
}

// Error puts both parts in one line, for logs and terminals. Control characters
// in the name are escaped.
func (e *ZoneError) Error() string {
	return fmt.Sprintf("zone %q is not a name of the IANA database; %s", e.Name, e.Hint)
}

// LoadLocation returns the zone of an IANA name, legacy links included, from
// the embedded database; "" is UTC. What depends on the host (Local) or
// is not a zone (PST, +02:00) is refused with a [*ZoneError]. Calls with the
// same name return the same pointer. It is safe for concurrent use.
func LoadLocation(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	loaders, err := zones()
	if err != nil {
		return nil, err
	}
	if load, ok := loaders[name]; ok {
		return load()
	}
	return nil, &ZoneError{Name: shorten(name), Hint: suggestZone(name, loaders)}
}
