package storetest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/core/policytest"
)

// RunPolicies plays each event of the policy table under each policy and holds the
// history that it leaves to the table. Subtests of one database share it by their
// regions.
func RunPolicies(t *testing.T, open Open) {
	events, err := policytest.Events()
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		e := &events[i]
		for _, c := range e.Cells {
			t.Run(fmt.Sprintf("%s/%s %s", e.Name, c.Misfire, c.Overlap), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, open(t))
				runs, err := policytest.Play(w.ctx, w.Store, w.Region, w.to, e, c)
				w.must(err)
				if diff := cmp.Diff(c.Rows, e.Rows(runs)); diff != "" {
					t.Errorf("rows (-want +got):\n%s", diff)
				}
				for _, wrong := range e.Faults(c, runs) {
					t.Error(wrong)
				}
			})
		}
	}
}
