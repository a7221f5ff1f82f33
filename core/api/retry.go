package api

import (
	"encoding/json"
	"strconv"

	"github.com/fencepost/fencepost/core"
)

// RetryInput is what a body says of retries. Empty fields are not sent.
type RetryInput struct {
	_            struct{} `additionalProperties:"false"`
	MaxAttempts  int      `json:"max_attempts,omitempty" minimum:"1" maximum:"1000" doc:"Attempts before a run is dead, the first and those included whose executor died. Defaults to 5." example:"5"`
	InitialDelay string   `json:"initial_delay,omitempty" doc:"The delay after the first attempt. Defaults to 10s." example:"10s"`
	MaxDelay     string   `json:"max_delay,omitempty" doc:"The longest delay. Defaults to 1h." example:"1h"`
	Multiplier   float64  `json:"multiplier,omitempty" minimum:"1" maximum:"100" doc:"By how much each delay is longer than the one before. Defaults to 2." example:"2"`
	Jitter       string   `json:"jitter,omitempty" enum:"equal,full" doc:"How much of a delay is random: equal is half of it, full all of it. Defaults to equal." example:"equal"`
}

// Retry is what a schedule says of retries, its defaults included.
type Retry struct {
	MaxAttempts  int     `json:"max_attempts" doc:"Attempts before a run is dead, the first included."`
	InitialDelay string  `json:"initial_delay" doc:"The delay after the first attempt."`
	MaxDelay     string  `json:"max_delay" doc:"The longest delay."`
	Multiplier   float64 `json:"multiplier" doc:"By how much each delay is longer than the one before."`
	Jitter       string  `json:"jitter" enum:"equal,full" doc:"How much of a delay is random: half of it or all."`
}

func showRetry(s *core.Schedule) Retry {
	r := s.Rules.Retry.WithDefaults()
	return Retry{
		MaxAttempts: s.MaxAttempts, InitialDelay: core.FormatDuration(r.InitialDelay), MaxDelay: core.FormatDuration(r.MaxDelay),
		Multiplier: r.Multiplier, Jitter: string(r.Jitter),
	}
}

// retry decodes what a body says of retries.
func (d *decoder) retry(in *input, raw json.RawMessage) {
	object := d.object(raw, "retry")
	if object == nil {
		return
	}
	for i, name := range object.names {
		field, value := "retry."+name, object.values[i]
		switch name {
		case "max_attempts":
			in.MaxAttempts = d.integer(value, field)
		case "initial_delay":
			in.Retry.InitialDelay = d.duration(value, field)
		case "max_delay":
			in.Retry.MaxDelay = d.duration(value, field)
		case "multiplier":
			in.Retry.Multiplier = d.number(value, field)
		case "jitter":
			in.Retry.Jitter = (*core.Jitter)(d.text(value, field))
		default:
			d.unknown(field)
		}
	}
}

func (d *decoder) number(raw json.RawMessage, field string) *float64 {
	if d.isNull(raw, field) {
		return nil
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		d.add(field, "must be a number")
		return nil
	}
	return &n
}
