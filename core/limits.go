package core

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// MaxConcurrency is the largest limit that a queue may have.
const MaxConcurrency = 1000

// AllTenants stands for every tenant in limits and permits.
var AllTenants = uuid.UUID{}

// Limit bounds how many runs of a queue are running at once: those of all tenants
// together, or those of one. Zero lets none start. Runs beyond it wait queued.
type Limit struct {
	Queue       string
	TenantID    uuid.UUID // AllTenants: of all
	Concurrency int
	// Running is how many runs of the tenant that asks hold a permit of it, and
	// Waiting how many wait in the queue, up to 10,000.
	Running int
	Waiting int
}

// Permit is the right of one run to be running under one limit. The run that has it
// is named in it; when that one is not running any more the permit is free, without
// anybody giving it back. Version is the one at which it was seen to be free.
type Permit struct {
	Queue    string
	TenantID uuid.UUID
	N        int
	Version  int64
}

// PermitView is a look at the permits for some messages.
type PermitView struct {
	// Under are the limits of each run that is queued under the message's fence and
	// has any, with N and Version zero.
	Under map[RunKey][]Permit
	// Free are free permits of these limits.
	Free []Permit
}

// AdmitOptions say which waiting runs to let go.
type AdmitOptions struct {
	Queues []string
	Most   int // of each queue
	// DispatchLease is until when they are left alone; zero makes them due at once
	// for a relay.
	DispatchLease time.Duration
}

// LimitStore keeps limits, permits and who waits for one. A permit is taken by Start;
// the rest only decides who gets to try.
type LimitStore interface {
	// LimitedQueues returns the queues that have a limit.
	LimitedQueues(ctx context.Context) ([]string, error)
	// Permits looks for permits for the runs of some deliveries.
	Permits(ctx context.Context, ds []Delivery) (PermitView, error)
	// Hold has queued runs wait, as far as they are queued under the fences given.
	// Sent again it changes nothing.
	Hold(ctx context.Context, msgs []Message) error
	// Admit lets waiting runs go for which there is room, those of tenants with
	// the fewest running first, and returns them to be published. Of two that look
	// at once one lets a run go.
	Admit(ctx context.Context, o AdmitOptions) ([]Claimed, error)
}

// LimitAdmin sets limits.
type LimitAdmin interface {
	// SetLimit makes or replaces a limit. It holds for runs that start from then
	// on; those that are running go on.
	SetLimit(ctx context.Context, l Limit) error
	// DropLimit ends a limit; ErrNotFound.
	DropLimit(ctx context.Context, queue string, tenant uuid.UUID) error
	// Limits returns a tenant's limits and those of all tenants, up to 1,000, by queue.
	Limits(ctx context.Context, tenant uuid.UUID) ([]Limit, error)
}

// Check refuses what cannot be a limit.
func (l *Limit) Check() error {
	switch {
	case l.Queue == "":
		return Invalid("queue", "is missing")
	case l.Concurrency < 0 || l.Concurrency > MaxConcurrency:
		return Invalid("concurrency", "must be from 0 to %d", MaxConcurrency)
	}
	return nil
}
