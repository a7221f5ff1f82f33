package schedules

import (
	"fmt"
	"slices"

	"github.com/fencepost/fencepost/core"
)

// Match is what a caller demands of the version of the schedule that it changes.
// The zero value demands nothing.
type Match struct {
	// Set says that there is a demand: one of Versions, or, without any, what no
	// schedule meets.
	Set      bool
	Versions []int64
}

func (m Match) allows(version int64) bool { return !m.Set || slices.Contains(m.Versions, version) }

// If returns a service whose Edit, Pause, Resume and Delete demand a version:
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
		Message: fmt.Sprintf("the schedule has version %d; read it again, and decide anew", current),
	}
}
