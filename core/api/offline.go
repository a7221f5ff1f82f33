package api

import (
	"encoding/json"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/schedules"
)

// Decoded is a schedule as a body has it, for programs that plan without a server.
type Decoded struct{ in input }

// Fields returns what the body sets.
func (d Decoded) Fields() schedules.Fields { return d.in.Fields }

// Problem returns an error about the schedule as the API answers it, with the
// fields named as the body has them.
func (d Decoded) Problem(err error) *Problem { return problemOf(asSent(err, d.in)) }

// DecodeSchedule reads a body as POST /v1/schedules takes it. The error is a
// *Problem with all that is wrong.
func DecodeSchedule(body json.RawMessage) (Decoded, error) {
	in, err := decodeItem(body)
	if err != nil {
		return Decoded{}, problemOf(err)
	}
	return Decoded{in}, nil
}

// DecodeCalendar reads a body as PUT /v1/calendars/{name} takes it. The error is a
// *Problem.
func DecodeCalendar(body json.RawMessage) (core.CalendarContent, error) {
	content, err := decodeCalendar(body)
	if err != nil {
		return content, problemOf(err)
	}
	return content, nil
}
