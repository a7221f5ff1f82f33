package database

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencepost/fencepost/core"
)

// Trigger implements core.ScheduleStore.
func (d *DB) Trigger(ctx context.Context, tenant uuid.UUID, m core.Manual) (core.Run, error) {
	type row struct {
		Busy        bool
		Fence       *int64
		Queue       *string
		MaxAttempts *int32
		WakeAt      *time.Time
		CoversFrom  *time.Time
		CoversTo    *time.Time
		CreatedAt   *time.Time
	}
	rows, err := query[row](ctx, d, "trigger", d.region, pgID(tenant), pgID(m.ScheduleID), m.Fence, m.Slot, m.Key, nullText(string(m.Payload)), nullDuration(m.Within))
	switch {
	case isUnique(err): // the slot is another manual run's
		return core.Run{}, core.ErrChanged
	case err != nil:
		return core.Run{}, err
	case len(rows) == 0:
		return core.Run{}, core.ErrChanged
	case rows[0].Busy:
		return core.Run{}, core.ErrRunLive
	}
	r := rows[0]
	return core.Run{
		Key: d.key(m.ScheduleID, m.Slot), TenantID: tenant, State: core.RunQueued, Cause: core.CauseManual, Queue: fromNull(r.Queue),
		Fence: fromNull(r.Fence), MaxAttempts: int(fromNull(r.MaxAttempts)), WakeAt: utc(r.WakeAt),
		CoversFrom: utc(r.CoversFrom), CoversTo: utc(r.CoversTo), CreatedAt: utc(r.CreatedAt), Payload: m.Payload,
	}, nil
}

// CancelRun implements core.ScheduleStore.
func (d *DB) CancelRun(ctx context.Context, tenant uuid.UUID, key core.RunKey) (core.Run, error) {
	if key.Region != d.region {
		return core.Run{}, core.ErrNotFound
	}
	args := []any{d.region, pgID(tenant), pgID(key.ScheduleID), key.Slot}
	rows, err := query[runRow](ctx, d, "cancel_run", args...)
	if err != nil {
		return core.Run{}, err
	}
	if len(rows) > 0 {
		return d.run(rows[0]), nil
	}
	if rows, err = query[runRow](ctx, d, "get_run", args...); err != nil {
		return core.Run{}, err
	}
	if len(rows) == 0 {
		return core.Run{}, core.ErrNotFound
	}
	switch r := d.run(rows[0]); {
	case r.State == core.RunCanceled:
		return r, nil
	case !r.State.Final(): // it was made between the two statements
		return core.Run{}, core.ErrNotFound
	default:
		return r, core.ErrRunFinal
	}
}

// Reserve implements core.ScheduleStore.
func (d *DB) Reserve(ctx context.Context, tenant uuid.UUID, r core.Request) (core.Reservation, error) {
	type row struct {
		Request   []byte
		CreatedAt time.Time
		Slot      *time.Time
		Leased    []byte
	}
	rows, err := query[row](ctx, d, "reserve", d.region, pgID(tenant), r.Key[:], r.Body[:])
	if err != nil {
		return core.Reservation{}, err
	}
	if len(rows) != 1 || len(rows[0].Request) != len(r.Body) {
		return core.Reservation{}, fmt.Errorf("reserve: %d rows came back", len(rows))
	}
	got := core.Reservation{Request: r, At: rows[0].CreatedAt.UTC(), Slot: utc(rows[0].Slot)}
	copy(got.Body[:], rows[0].Request)
	got.Leased, err = leased(rows[0].Leased)
	return got, err
}

// NoteLease implements core.ScheduleStore.
func (d *DB) NoteLease(ctx context.Context, tenant uuid.UUID, key [32]byte, msgs []core.Message) ([]core.Message, error) {
	type row struct{ Leased []byte }
	text, err := json.Marshal(msgs)
	if err != nil {
		return nil, fmt.Errorf("note lease: %w", err)
	}
	rows, err := query[row](ctx, d, "note_lease", d.region, pgID(tenant), key[:], string(text))
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, core.ErrNotFound
	}
	return leased(rows[0].Leased)
}

func leased(text []byte) (msgs []core.Message, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(text, &msgs); err != nil {
		return nil, fmt.Errorf("read a lease: %w", err)
	}
	return msgs, nil
}

// DropReservations implements core.UpkeepStore. CockroachDB expires them by
// itself.
func (d *DB) DropReservations(ctx context.Context) (int, error) {
	if d.cockroach {
		return 0, nil
	}
	type row struct{ CreatedAt time.Time }
	rows, err := query[row](ctx, d, "drop_reservations", d.region)
	return len(rows), err
}

// isUnique reports whether a unique key refused a row.
func isUnique(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && pe.Code == "23505"
}
