//go:build !unix

package exectarget

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/fencepost/fencepost/core"
)

// Without process groups a command that has to stop would leave its children
// running, beside those of the next attempt.
func (t *Target) run(context.Context, job, []string) (json.RawMessage, error) {
	return nil, core.Permanent(errors.New("the exec target needs a Unix system; use the http target here"))
}
