package cron

import (
	"fmt"
	"time"
	_ "time/tzdata" // for hosts without a zone database
)

// LoadLocation returns the zone of an IANA name; "" is UTC.
func LoadLocation(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, fmt.Errorf("load zone %q: depends on the host", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("load zone: %w", err)
	}
	return loc, nil
}

// ZoneVersion returns the version of the embedded zone database.
func ZoneVersion() string { return "2025c" }
