package cli

import (
	"cmp"
	"time"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
)

// What doctor finds normal. Leases are judged by the database's clock, so that an
// offset only makes claims late; a day without partition goes to the default one.
const (
	maxClockOffset   = 500 * time.Millisecond
	minPartitionDays = 2 * 24 * time.Hour
)

// maxDoctorLines bounds what is said of each kind of trouble.
const maxDoctorLines = 20

// addDatabase judges what was seen of a database; nil is nothing.
func (r *report) addDatabase(d *api.DatabaseInfo) {
	if d == nil {
		r.bad("database", checkProblem, "look at it yourself with --database-url", "does not answer the API")
		return
	}
	r.ok("database", "%s, answers within %s", d.Server, seconds(d.RoundTrip).Round(time.Microsecond))
	switch {
	case d.Schema < d.Known:
		r.bad("migrations", checkProblem, "run fencepost migrate", "the schema is number %d, this release needs %d", d.Schema, d.Known)
	case d.Schema > d.Known:
		r.bad("migrations", checkWarning, "finish the update to the newer release", "the schema is number %d, this release knows %d", d.Schema, d.Known)
	default:
		r.ok("migrations", "the schema is number %d, the newest that this release knows", d.Schema)
	}
	r.addPartitions(d)
	r.addClaimers(d.Regions)
}

func (r *report) addPartitions(d *api.DatabaseInfo) {
	if d.PartitionsUntil == nil {
		r.ok("partitions", "none needed")
		return
	}
	const remedy = "a running fencepost up makes them each hour, fencepost migrate at once; the log of up says what stands in the way"
	left := d.PartitionsUntil.Sub(d.Time)
	until, days := d.PartitionsUntil.Format(time.DateOnly), left.Hours()/24
	switch {
	case left <= 0:
		r.bad("partitions", checkProblem, remedy, "none since %s: history goes to the default partition, which is never dropped", until)
	case left < minPartitionDays:
		r.bad("partitions", checkWarning, remedy, "made until %s, %.1f days ahead", until, days)
	default:
		r.ok("partitions", "made until %s, %.1f days ahead", until, days)
	}
}

// addClaimers says who works, and what nobody works on.
func (r *report) addClaimers(regions []api.RegionInfo) {
	const remedy = "start one with fencepost up --roles claimer"
	if len(regions) == 0 {
		r.bad("claimers", checkProblem, remedy, "none has ever been at work: nothing runs")
	}
	for _, region := range regions {
		has := plural(region.Claimers, "claimer is", "claimers are")
		switch {
		case region.Claimers == 0:
			r.bad("claimers", checkProblem, remedy+" --region "+region.Name, "none is alive in %s: nothing runs there", region.Name)
		case region.Shards < core.Shards:
			r.bad("claimers", checkWarning, "the others are taken within 15 s of the end of who held them: look again",
				"%s alive in %s, %d of %d shards are held", has, region.Name, region.Shards, core.Shards)
		default:
			r.ok("claimers", "%s alive in %s, all %d shards are held", has, region.Name, core.Shards)
		}
	}
}

// addClock judges how far the database's clock is ahead of another one.
func (r *report) addClock(name string, ahead, roundTrip time.Duration) {
	within := roundTrip / 2
	side := "behind"
	if ahead < 0 {
		side = "ahead of"
	}
	const says = "%.3f s %s the database's, give or take %.3f s"
	if ahead.Abs() > maxClockOffset+within {
		r.bad(name, checkWarning, "let NTP set both; the database's decides when schedules run", says, ahead.Abs().Seconds(), side, within.Seconds())
		return
	}
	r.ok(name, says, ahead.Abs().Seconds(), side, within.Seconds())
}

// addOverdue says what waits too long, and for whom. Nil is that nobody knows.
func (r *report) addOverdue(where string, late []api.Overdue, d *api.DatabaseInfo) {
	if late == nil {
		r.bad("waiting", checkWarning, "", "could not be looked for")
		return
	}
	if len(late) == 0 {
		r.ok("waiting", "nothing has waited for more than a minute%s", where)
	}
	for i, o := range late {
		if i == maxDoctorLines {
			r.bad("waiting", checkProblem, "", "%d more kinds of it%s", len(late)-i, where)
			break
		}
		runs, since := plural(int(o.Count), "run is", "runs are"), o.Since.Format(time.RFC3339)
		if d != nil {
			since += " (for " + core.FormatDuration(d.Time.Sub(o.Since).Truncate(time.Second)) + ")"
		}
		switch o.What {
		case "schedule":
			r.bad("waiting", checkProblem, "no claimer takes them: see the lines about claimers, and their logs",
				"%s due%s, the first since %s", plural(int(o.Count), "schedule is", "schedules are"), where, since)
		case string(core.RunQueued):
			r.bad("waiting", checkProblem, serve(o.Queue), "%s queued on %s%s, the first since %s", runs, o.Queue, where, since)
		default:
			r.bad("waiting", checkProblem, "no claimer takes them back: see the lines about claimers, and their logs",
				"%s %s on %s%s, the first overdue since %s", runs, o.What, o.Queue, where, since)
		}
	}
}

// serve says what serves a queue on which runs wait.
func serve(queue string) string {
	switch queue {
	case execQueue:
		return "no executor runs commands, or all are busy: start one with fencepost up --roles executor --allow-exec"
	case "http":
		return "no executor sends requests, or all are busy: start one with fencepost up --roles executor"
	default:
		return "no executor serves this queue, or all are busy: start one that does, or let the schedules name another"
	}
}

// addAlerts says which schedules need somebody. Nil is that nobody knows.
func (r *report) addAlerts(alerts []api.Alert) {
	if alerts == nil {
		r.bad("alerts", checkWarning, "", "could not be looked for")
		return
	}
	if len(alerts) == 0 {
		r.ok("alerts", "none is open")
	}
	for i, l := range alerts {
		if i == maxDoctorLines {
			r.bad("alerts", checkProblem, "", "%d more", len(alerts)-i)
			break
		}
		r.addAlert(l.Kind, l.Name, "", l.ScheduleID, l.Since, "")
	}
}

func (r *report) addDetailedAlerts(region string, alerts []core.Alert) {
	if len(alerts) == 0 {
		r.ok("alerts", "none is open in %s", region)
	}
	for i, l := range alerts {
		if i == maxDoctorLines {
			r.bad("alerts", checkProblem, "", "%d more in %s", len(alerts)-i, region)
			break
		}
		r.addAlert(l.Kind, l.Name, " in "+region, l.ScheduleID.String(), l.OpenedAt, ": "+oneLine(l.Detail))
	}
}

func (r *report) addAlert(kind, name, where, id string, since time.Time, detail string) {
	what, remedy := "has the alert "+kind, ""
	if kind == core.AlertClaimRefused {
		what, remedy = "cannot be claimed and is tried again each hour", "edit it, or look into the log of the claimer"
	}
	r.bad("alerts", checkProblem, remedy, "schedule %s%s (%s) %s, since %s%s", cmp.Or(name, "without a name"), where, id, what, since.Format(time.RFC3339), detail)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
