package database

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/core"
)

// Now implements core.ScheduleStore.
func (d *DB) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := d.retryRead(ctx, func() error { return d.pool.QueryRow(ctx, d.sql["now"]).Scan(&now) })
	return now.UTC(), translate("read the time", err)
}

// Create implements core.ScheduleStore.
func (d *DB) Create(ctx context.Context, s core.Schedule, nextAt, done time.Time) error {
	return d.exec(ctx, "create_schedule", d.region, pgID(s.ID), pgID(s.TenantID), s.Name, s.Spec, s.TimeZone, nullTime(s.Anchor),
		s.Job.Queue, string(s.Job.Payload), string(s.Misfire), s.MisfireGrace, string(s.Overlap), s.Window, s.Timeout,
		s.MaxAttempts, s.Paused, core.ShardOf(s.ID), nextAt, done,
		nullText(s.DSTGap), nullText(s.DSTOverlap), s.Exact, nullDuration(s.CatchUpWithin), writeLabels(s.Labels),
		s.FirstRunsLeft(), rulesText(s.Rules))
}

// scheduleRow is a whole schedule with its timer.
type scheduleRow struct {
	timerRow
	Payload   []byte
	CreatedAt time.Time
	UpdatedAt time.Time
	Labels    []byte
	LastState *string
}

// writeLabels returns labels as the database keeps them.
func writeLabels(labels map[string]string) string {
	if len(labels) == 0 {
		return "{}"
	}
	text, err := json.Marshal(labels)
	if err != nil {
		return "{}" // impossible: strings always have a form
	}
	return string(text)
}

// readLabels decodes what writeLabels encoded, nil for none.
func readLabels(text []byte) map[string]string {
	var labels map[string]string
	if err := json.Unmarshal(text, &labels); err != nil || len(labels) == 0 {
		return nil
	}
	return labels
}

func (d *DB) whole(r *scheduleRow) core.Scheduled {
	s := r.scheduled(d.region)
	s.Schedule.Job.Payload = r.Payload
	s.LastState = core.RunState(fromNull(r.LastState))
	s.Schedule.Labels = readLabels(r.Labels)
	s.Schedule.CreatedAt = r.CreatedAt.UTC()
	s.Schedule.UpdatedAt = r.UpdatedAt.UTC()
	return s
}

// Get implements core.ScheduleStore.
func (d *DB) Get(ctx context.Context, tenant, id uuid.UUID) (core.Scheduled, error) {
	rows, err := query[scheduleRow](ctx, d, "get_schedule", d.region, pgID(tenant), pgID(id))
	if err != nil {
		return core.Scheduled{}, err
	}
	if len(rows) == 0 {
		return core.Scheduled{}, core.ErrNotFound
	}
	found := []core.Scheduled{d.whole(&rows[0])}
	err = d.closings(ctx, found)
	return found[0], err
}

// settleRows returns the rows of an edit as arrays.
func settleRows(e core.Edit) *planned {
	return planRows([]core.Move{{ScheduleID: e.Schedule.ID, Rows: e.Settle}})
}

// Apply implements core.ScheduleStore.
func (d *DB) Apply(ctx context.Context, tenant uuid.UUID, e core.Edit) error {
	type row struct{ ID uuid.UUID }
	s, p := e.Schedule, settleRows(e)
	nextAt := &e.NextAt
	if !e.MoveTimer {
		nextAt = nil
	}
	rows, err := query[row](ctx, d, "apply_edit", d.region, pgID(tenant), pgID(s.ID), e.Version, e.Fence, e.ValidUntil,
		s.Name, s.Spec, s.TimeZone, nullTime(s.Anchor), s.Job.Queue, string(s.Job.Payload), s.MisfireGrace, string(s.Overlap),
		s.Window, s.Timeout, s.MaxAttempts, s.Paused, nextAt, nullTime(e.Done), string(e.OnBusy), nullTime(e.LastRun),
		p.slots, p.froms, p.counts, p.skipped, p.causes, p.reasons, p.queues, p.maxAttempts, string(s.Misfire),
		nullText(s.DSTGap), nullText(s.DSTOverlap), s.Exact, nullDuration(s.CatchUpWithin), writeLabels(s.Labels),
		e.RunsLeft, e.Keep, p.payloads, p.lates, rulesText(s.Rules), p.withins)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return core.ErrChanged
	}
	return nil
}

// Delete implements core.ScheduleStore. It is two statements in a transaction,
// since runs are both inserted and updated: the second sees the runs of every
// claim that held the timer before the first did.
func (d *DB) Delete(ctx context.Context, tenant uuid.UUID, e core.Edit) error {
	p := settleRows(e)
	id := pgID(e.Schedule.ID)
	err := d.inTx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, d.sql["delete_schedule"], d.region, pgID(tenant), id, e.Version, e.Fence, e.ValidUntil,
			p.slots, p.froms, p.counts, p.causes, p.reasons, p.queues, p.maxAttempts)
		if err != nil {
			return err
		}
		buried, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil {
			return err
		}
		if len(buried) == 0 {
			return core.ErrChanged
		}
		_, err = tx.Exec(ctx, d.sql["cancel_live"], d.region, pgID(tenant), id, core.ShardOf(e.Schedule.ID))
		return err
	})
	return translate("delete schedule", err)
}
