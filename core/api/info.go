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
	// Overdue and Alerts are nil if they could not be looked for.
	Overdue []Overdue `json:"overdue" nullable:"true" doc:"What of yours has waited for more than a minute: nothing, where all is well. Null: it could not be looked for."`
	Alerts  []Alert   `json:"alerts" nullable:"true" doc:"What of yours needs somebody, up to 100. Null: it could not be looked for."`
}

// Alert is what needs a person about one schedule. The details are in the log of
// the claimer.
type Alert struct {
	ScheduleID string    `json:"schedule_id"`
	Name       string    `json:"name" doc:"The name of the schedule."`
	Kind       string    `json:"kind" doc:"claim_refused: its slots cannot be stored as runs; it is tried again an hour later." example:"claim_refused"`
	Since      time.Time `json:"since"`
}

// Overdue is what waits too long, of one kind.
type Overdue struct {
	What  string    `json:"what" enum:"schedule,queued,running,retrying" doc:"schedule: due and not claimed; otherwise the state of runs that somebody should have ended." example:"queued"`
	Queue string    `json:"queue,omitempty" doc:"The queue of the runs." example:"reports"`
	Count int64     `json:"count"`
	Since time.Time `json:"since" doc:"Since when the oldest waits: queued runs from when they were queued, anything else from when somebody should have come."`
}

// DatabaseInfo is what the API sees of its database.
type DatabaseInfo struct {
	Server string    `json:"server" doc:"What the database calls itself." example:"PostgreSQL 15.18"`
	Schema int64     `json:"schema" doc:"The number of the last migration that was applied." example:"8"`
	Known  int64     `json:"schema_known" doc:"The number of the last migration that this release has." example:"8"`
	Time   time.Time `json:"time" doc:"The database's time of the look."`
	// ClockOffset is positive if the database's clock is ahead.
	ClockOffset float64 `json:"clock_offset_seconds" doc:"How far the database's clock is ahead of this process's."`
	RoundTrip   float64 `json:"round_trip_seconds" doc:"How long the database took to answer; the offset is known to half of it."`
	// PartitionsUntil is nil on a database that has none to make.
	PartitionsUntil *time.Time   `json:"partitions_until,omitempty" doc:"Until when days of history have their partition."`
	Regions         []RegionInfo `json:"regions" nullable:"false" doc:"The regions in which a claimer was ever at work."`
}

// RegionInfo is who works in a region.
type RegionInfo struct {
	Name     string `json:"name" example:"local"`
	Claimers int    `json:"claimers" doc:"How many claimers are alive." example:"2"`
	Shards   int    `json:"shards" doc:"How many of the 64 shards a claimer holds." example:"64"`
}

// NewDatabaseInfo puts what was seen of a database in the form of the API.
func NewDatabaseInfo(d core.DatabaseInfo) *DatabaseInfo {
	regions := make([]RegionInfo, len(d.Regions))
	for i, r := range d.Regions {
		regions[i] = RegionInfo(r)
	}
	return &DatabaseInfo{
		Server: d.Server, Schema: d.Schema, Known: d.Known, Time: d.Now, ClockOffset: d.ClockOffset.Seconds(), RoundTrip: d.RoundTrip.Seconds(),
		PartitionsUntil: optional(d.PartitionsUntil), Regions: regions,
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
	out := &infoOutput{Info{Version: a.version, ZoneData: cron.ZoneVersion()}}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, errReadyTimeout)
	defer cancel()
	if a.inspect != nil {
		seen, err := a.inspect(ctx)
		if err != nil {
			loggerOf(ctx).WarnContext(ctx, "database not inspected", "error", err)
			return out, nil
		}
		out.Body.Database = NewDatabaseInfo(seen)
	}
	late, err := a.service.Overdue(ctx, tenant)
	if err != nil {
		loggerOf(ctx).WarnContext(ctx, "overdue runs not looked for", "error", err)
		return out, nil
	}
	out.Body.Overdue = NewOverdue(late)
	alerts, err := a.service.Alerts(ctx, tenant)
	if err != nil {
		loggerOf(ctx).WarnContext(ctx, "alerts not looked for", "error", err)
		return out, nil
	}
	out.Body.Alerts = make([]Alert, len(alerts))
	for i, l := range alerts {
		out.Body.Alerts[i] = Alert{l.ScheduleID.String(), l.Name, l.Kind, l.OpenedAt.UTC()}
	}
	return out, nil
}

// NewOverdue puts what waits too long in the form of the API.
func NewOverdue(late []core.Overdue) []Overdue {
	out := make([]Overdue, len(late))
	for i, o := range late {
		out[i] = Overdue{cmp.Or(string(o.State), "schedule"), o.Queue, o.Count, o.Since.UTC()}
	}
	return out
}
