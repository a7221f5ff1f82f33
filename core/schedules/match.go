package schedules

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/fencepost/fencepost/core"
)

// Match is what a caller demands of the schedule that it changes. The zero value
// demands nothing.
type Match struct {
	// Exists demands that there be one, of whatever version.
	Exists bool
	// Set demands one of Versions, or, without any, what no schedule meets.
	Set      bool
	Versions []int64
}

// meets refuses a schedule of another version than what is demanded. Done says
// that all that is asked for is so already: then its version may be the next, as
// the same request, sent before, has made it.
func (m Match) meets(version int64, done bool) error {
	if !m.Set || slices.Contains(m.Versions, version) || done && slices.Contains(m.Versions, version-1) {
		return nil
	}
	return versionMismatch(version)
}

// If returns a service whose Edit, Put, Pause, Resume and Delete demand a version:
// one of another version is refused with core.CodePrecondition. A change that has
// been made already, as by the same request sent before, is none.
func (s *Service) If(m Match) *Service {
	with := *s
	with.match = m
	return &with
}

func versionMismatch(current int64) error {
	return &core.Error{
		Code: core.CodePrecondition, Kind: "version_mismatch", Field: "If-Match",
		Message: fmt.Sprintf("the current version is %d; read it again, and decide anew", current),
		Current: strconv.FormatInt(current, 10),
	}
}

// errNoVersion answers a demand where there is no schedule.
var errNoVersion = &core.Error{Code: core.CodePrecondition, Kind: "version_mismatch", Field: "If-Match", Message: "there is no schedule of this name"}
