package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/cron"
	"github.com/fencepost/fencepost/infra/database"
)

// doctorLimit bounds the look at a database that was named.
const doctorLimit = 10 * time.Second

// What doctor finds normal. Leases are judged by the database's clock, so that an
// offset only makes claims late; a day without partition goes to the default one.
const (
	maxClockOffset   = 500 * time.Millisecond
	minPartitionDays = 2 * 24 * time.Hour
)

// The outcomes of a check. Only failed ones change the exit code.
const (
	checkOK     = "ok"
	checkWarn   = "warn"
	checkFailed = "failed"
)

// check is one line of the report.
type check struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Detail string `json:"detail"`
}

// report is what doctor prints.
type report struct {
	OK     bool    `json:"ok"`
	Checks []check `json:"checks"`
}

func (r *report) add(name, status, format string, args ...any) {
	r.Checks = append(r.Checks, check{name, status, fmt.Sprintf(format, args...)})
	r.OK = r.OK && status != checkFailed
}

func newDoctor(a *app) *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check an installation: versions, database, zone data, partitions, clock",
		Long: `Check an installation and say what is wrong with it. doctor asks the API that
the profile names; with --database-url or DATABASE_URL it looks at the database
itself, too. The exit code is 1 if a check failed; a warning does not count.`,
		Example: "  fencepost doctor\n  fencepost doctor --json --database-url postgres://user@host/fencepost",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if url == "" {
				url = a.Getenv("DATABASE_URL")
			}
			r := a.examine(cmd.Context(), url)
			if err := a.printReport(cmd, r); err != nil {
				return err
			}
			if !r.OK {
				return errors.New("at least one check failed")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&url, "database-url", "", "look at this database, too (default $DATABASE_URL)")
	cmd.Flags().Bool(jsonFlag, false, "print the report as JSON")
	return cmd
}

func (a *app) printReport(cmd *cobra.Command, r *report) error {
	if asJSON(cmd) {
		return a.printJSON(r)
	}
	rows := make([][]string, len(r.Checks))
	for i, c := range r.Checks {
		rows[i] = []string{c.Status, c.Name, c.Detail}
	}
	return a.printTable([]string{"STATUS", "CHECK", "DETAIL"}, rows)
}

// examine makes all checks that it can.
func (a *app) examine(ctx context.Context, url string) *report {
	r := &report{OK: true}
	r.add("version", checkOK, "fencepost %s, %s %s/%s", a.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	r.add("zone data", checkOK, "IANA %s, embedded", cron.ZoneVersion())
	seen := a.examineAPI(ctx, r, url != "")
	if url == "" {
		r.addDatabase("database", seen)
		return r
	}
	if seen != nil {
		r.addDatabase("database of the API", seen)
	}
	r.addDirect(ctx, url)
	return r
}

// examineAPI adds what the API says and returns what it sees of its database,
// nil if nothing. An API that cannot be asked is a failure unless the database
// is looked at anyway.
func (a *app) examineAPI(ctx context.Context, r *report, optional bool) *api.DatabaseInfo {
	status := checkFailed
	if optional {
		status = checkWarn
	}
	c, err := a.connect()
	if err != nil {
		r.add("api", status, "%s", oneLine(err.Error()))
		return nil
	}
	info, err := c.Info(ctx)
	if err != nil {
		r.add("api", status, "%s", oneLine(err.Error()))
		return nil
	}
	if info.Version != a.Version {
		r.add("api", checkWarn, "%s is version %s, this program is %s", c.URL(), info.Version, a.Version)
	} else {
		r.add("api", checkOK, "%s is version %s", c.URL(), info.Version)
	}
	if info.ZoneData != cron.ZoneVersion() {
		r.add("zone data of the API", checkWarn, "IANA %s; previews of this program may differ from what runs", info.ZoneData)
	} else {
		r.add("zone data of the API", checkOK, "IANA %s", info.ZoneData)
	}
	r.addOverdue(info.Overdue)
	return info.Database
}

// addOverdue says what waits too long, and for whom.
func (r *report) addOverdue(late []api.Overdue) {
	if len(late) == 0 {
		r.add("waiting", checkOK, "nothing has waited for more than a minute")
	}
	for _, o := range late {
		since := o.Since.Format(time.RFC3339)
		switch o.What {
		case "schedule":
			r.add("waiting", checkFailed, "%s due and not claimed, the oldest since %s: no claimer works; start one with fencepost up", plural(int(o.Count), "schedule is", "schedules are"), since)
		case string(core.RunQueued):
			r.add("waiting", checkFailed, "%s queued on %s since %s and not started: no executor serves this queue, or all are busy", plural(int(o.Count), "run is", "runs are"), o.Queue, since)
		default:
			r.add("waiting", checkFailed, "%s %s on %s since %s although the time is over: no claimer works", plural(int(o.Count), "run is", "runs are"), o.What, o.Queue, since)
		}
	}
}

// addDirect looks at the database itself.
func (r *report) addDirect(ctx context.Context, url string) {
	ctx, cancel := context.WithTimeoutCause(ctx, doctorLimit, errors.New("the database did not answer within 10 seconds"))
	defer cancel()
	// The region names no row here: nothing of a region is read.
	db, err := database.Open(ctx, database.Config{URL: url, Region: "doctor", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.add("database", checkFailed, "%s", oneLine(err.Error()))
		return
	}
	defer db.Close()
	seen, err := db.Inspect(ctx)
	if err != nil {
		r.add("database", checkFailed, "%s; fencepost migrate prepares a new one", oneLine(err.Error()))
		return
	}
	r.addDatabase("database", api.NewDatabaseInfo(seen))
}

// addDatabase judges what was seen of a database; nil is nothing.
func (r *report) addDatabase(name string, d *api.DatabaseInfo) {
	if d == nil {
		r.add(name, checkFailed, "does not answer")
		return
	}
	r.add(name, checkOK, "%s, schema %d, answers within %s", d.Server, d.Schema, seconds(d.RoundTrip).Round(time.Microsecond))
	offset, within := seconds(d.ClockOffset), seconds(d.RoundTrip)/2
	status := checkOK
	if offset.Abs() > maxClockOffset+within {
		status = checkWarn
	}
	r.add("clock", status, "%s is %+.3f s off, give or take %.3f s", name, d.ClockOffset, within.Seconds())
	if d.PartitionsUntil == nil {
		r.add("partitions", checkOK, "none needed")
		return
	}
	left := d.PartitionsUntil.Sub(d.Time)
	status = checkOK
	if left < minPartitionDays {
		status = checkWarn
	}
	r.add("partitions", status, "made until %s, %.1f days ahead", d.PartitionsUntil.Format(time.DateOnly), left.Hours()/24)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
