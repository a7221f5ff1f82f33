package api

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/cron"
)

// Info is what an installation is made of, for those who look into it.
type Info struct {
	Version  string `json:"version" doc:"The release that answers." example:"1.4.0"`
	ZoneData string `json:"zone_data" doc:"The release of the IANA time zone database that decides about slots." example:"2025c"`
	// Database is nil if it does not answer.
	Database *DatabaseInfo `json:"database,omitempty" doc:"The database, if it answers."`
	Overdue  []Overdue     `json:"overdue" nullable:"false" doc:"What of yours has waited for more than a minute. Nothing, where all is well."`
}

// Overdue is what waits too long, of one kind.
type Overdue struct {
	What  string    `json:"what" enum:"schedule,queued,running,retrying" doc:"schedule: due and not claimed; otherwise the state of runs that somebody should have ended." example:"queued"`
	Queue string    `json:"queue,omitempty" doc:"The queue of the runs." example:"reports"`
	Count int64     `json:"count"`
	Since time.Time `json:"since" doc:"Since when the oldest waits."`
}

// DatabaseInfo is what the API sees of its database.
type DatabaseInfo struct {
	Server string    `json:"server" doc:"What the database calls itself." example:"PostgreSQL 15.18"`
	Schema int64     `json:"schema" doc:"The number of the last migration." example:"8"`
	Time   time.Time `json:"time" doc:"The database's time of the look."`
	// ClockOffset is positive if the database's clock is ahead.
	ClockOffset float64 `json:"clock_offset_seconds" doc:"How far the database's clock is ahead of this process's."`
	RoundTrip   float64 `json:"round_trip_seconds" doc:"How long the database took to answer; the offset is known to half of it."`
	// PartitionsUntil is nil on a database that has none to make.
	PartitionsUntil *time.Time `json:"partitions_until,omitempty" doc:"Until when days of history have their partition."`
}

// NewDatabaseInfo puts what was seen of a database in the form of the API.
func NewDatabaseInfo(d core.DatabaseInfo) *DatabaseInfo {
	return &DatabaseInfo{
		Server: d.Server, Schema: d.Schema, Time: d.Now, ClockOffset: d.ClockOffset.Seconds(), RoundTrip: d.RoundTrip.Seconds(),
		PartitionsUntil: optional(d.PartitionsUntil),
	}
}

type infoOutput struct{ Body Info }

func (a *api) addInfo() {
	handle(a, operation{scope: scopeRead, Operation: huma.Operation{
		OperationID: "getInfo", Method: http.MethodGet, Path: "/v1/info", Tags: []string{"probes"},
		Summary: "Tell which versions are in use", Description: "fencepost doctor makes a report of it.",
	}}, a.info)
}

func (a *api) info(ctx context.Context, tenant uuid.UUID, _ *struct{}) (*infoOutput, error) {
	out := &infoOutput{Info{Version: a.version, ZoneData: cron.ZoneVersion(), Overdue: []Overdue{}}}
	if a.inspect == nil {
		return out, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, errReadyTimeout)
	defer cancel()
	seen, err := a.inspect(ctx)
	if err != nil {
		loggerOf(ctx).WarnContext(ctx, "database not inspected", "error", err)
		return out, nil
	}
	out.Body.Database = NewDatabaseInfo(seen)
	late, err := a.service.Overdue(ctx, tenant)
	if err != nil {
		loggerOf(ctx).WarnContext(ctx, "overdue runs not looked for", "error", err)
	}
	for _, o := range late {
		out.Body.Overdue = append(out.Body.Overdue, Overdue{cmp.Or(string(o.State), "schedule"), o.Queue, o.Count, o.Since.UTC()})
	}
	return out, nil
}
