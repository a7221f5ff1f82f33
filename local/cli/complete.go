package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core/api/client"
)

// completeLimit bounds how long a shell waits for names.
const completeLimit = time.Second

// completeNames offers the names of schedules to the shell. It is silent about an
// API that does not answer.
func (a *app) completeNames(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if cmd.Args != nil && cmd.Args(cmd, append(args, begun)) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp // it takes no more
	}
	c, err := a.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, completeLimit, errors.New("names took too long"))
	defer cancel()
	found, err := c.Schedules(ctx, client.ScheduleFilter{NamePrefix: begun}, client.Page{Limit: 50})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]cobra.Completion, len(found.Items))
	for i, s := range found.Items {
		names[i] = cobra.CompletionWithDesc(s.Name, s.Spec)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
