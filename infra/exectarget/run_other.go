//go:build !unix

package exectarget

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/fencepost/fencepost/core"
)

func lookUp(string) (*account, error) { return nil, errors.New("the exec target needs a Unix system") }

// Without process groups a command that has to stop would leave its children
// running, beside those of the next attempt.
func (t *Target) run(context.Context, job, *account, []string) (json.RawMessage, error) {
	return nil, core.Permanent(errors.New("the exec target needs a Unix system; use the http target here"))
}
