// Package local holds what the local form of Fencepost starts with: the sample
// schedules of a first start.
package local

import _ "embed"

// SampleCrontab is the crontab that a first start imports.
//
//go:embed sample.crontab
var SampleCrontab string
