package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/cron"
	"github.com/fencepost/fencepost/infra/database"
)

// doctorLimit bounds the look at a database that was named.
const doctorLimit = 10 * time.Second

// The outcomes of a check. Only problems change the exit code.
const (
	checkOK      = "ok"
	checkWarning = "warning"
	checkProblem = "problem"
)

// check is one line of the report.
type check struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// report is what doctor prints.
type report struct {
	OK     bool    `json:"ok"`
	Checks []check `json:"checks"`
}

func (r *report) ok(name, format string, args ...any) {
	r.Checks = append(r.Checks, check{Name: name, Status: checkOK, Detail: fmt.Sprintf(format, args...)})
}

// bad adds what is wrong and what to do about it.
func (r *report) bad(name, status, remedy, format string, args ...any) {
	r.Checks = append(r.Checks, check{name, status, fmt.Sprintf(format, args...), remedy})
	r.OK = r.OK && status != checkProblem
}

func newDoctor(a *app) *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check an installation, and say what to do about what is wrong",
		Long: `Check an installation: whether the API answers, versions, zone data, migrations,
clocks, partitions, who claims, what waits too long, and alerts. Each line is ok, a
warning, or a problem with its remedy.

doctor asks the API that the profile names, which shows what is the key's; with
--database-url or DATABASE_URL it looks at the whole database itself, and an API that
does not answer is a warning only. The exit code is 1 if there is a problem.`,
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
				return errors.New("there is a problem")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&url, "database-url", "", "look at this database itself (default $DATABASE_URL)")
	cmd.Flags().Bool(jsonFlag, false, "print the report as JSON")
	return cmd
}

func (a *app) printReport(cmd *cobra.Command, r *report) error {
	if asJSON(cmd) {
		return a.printJSON(r)
	}
	rows := make([][]string, len(r.Checks))
	for i, c := range r.Checks {
		detail := c.Detail
		if c.Remedy != "" {
			detail += "; " + c.Remedy
		}
		rows[i] = []string{c.Status, c.Name, detail}
	}
	return a.printTable([]string{"STATUS", "CHECK", "DETAIL"}, rows)
}

// examine makes all checks that it can.
func (a *app) examine(ctx context.Context, url string) *report {
	r := &report{OK: true}
	r.ok("version", "fencepost %s, %s %s/%s", a.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	r.ok("zone data", "IANA %s, embedded", cron.ZoneVersion())
	a.examineAPI(ctx, r, url != "")
	if url != "" {
		r.addDirect(ctx, url)
	}
	return r
}

// examineAPI asks the API. Unless it is optional, because the database is looked at
// anyway, one that cannot be asked is a problem, and what it sees of the database
// is reported.
func (a *app) examineAPI(ctx context.Context, r *report, optional bool) {
	status := checkProblem
	if optional {
		status = checkWarning
	}
	c, err := a.connect()
	if err != nil {
		r.bad("api", status, "", "%s", oneLine(err.Error()))
		return
	}
	if _, err := c.Ready(ctx); err != nil {
		r.bad("api", status, "", "%s", oneLine(err.Error()))
		return
	}
	sent := a.Clock.Now()
	info, err := c.Info(ctx)
	took := a.Clock.Now().Sub(sent)
	if err != nil {
		r.bad("api", status, "", "%s answers, but not to this key: %s", c.URL(), oneLine(err.Error()))
		return
	}
	if info.Version == a.Version {
		r.ok("api", "%s is ready, version %s", c.URL(), info.Version)
	} else {
		r.bad("api", checkWarning, "use the same release for both", "%s is ready, but version %s, and this program is %s", c.URL(), info.Version, a.Version)
	}
	if info.ZoneData == cron.ZoneVersion() {
		r.ok("zone data of the API", "IANA %s", info.ZoneData)
	} else {
		r.bad("zone data of the API", checkWarning, "previews of this program may differ from what runs: use the same release for both", "IANA %s", info.ZoneData)
	}
	if d := info.Database; d != nil {
		r.addClock("clock of the API", seconds(d.ClockOffset), seconds(d.RoundTrip))
		if !optional {
			r.addClock("clock of this machine", d.Time.Sub(sent.Add(took/2)), took)
		}
	}
	if !optional {
		r.addDatabase(info.Database)
		r.addOverdue("", info.Overdue, info.Database)
		r.addAlerts(info.Alerts)
	}
}

// addDirect looks at the database itself, at all tenants and regions.
func (r *report) addDirect(ctx context.Context, url string) {
	ctx, cancel := context.WithTimeoutCause(ctx, doctorLimit, errors.New("the database did not answer within 10 seconds"))
	defer cancel()
	// The region names no row here: what is of one is asked for by its name.
	db, err := database.Open(ctx, database.Config{URL: url, Region: "doctor", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.bad("database", checkProblem, "is the URL right, and the server up?", "%s", oneLine(err.Error()))
		return
	}
	defer db.Close()
	seen, err := db.Inspect(ctx)
	if err != nil {
		r.bad("database", checkProblem, "fencepost migrate prepares a new one", "%s", oneLine(err.Error()))
		return
	}
	d := api.NewDatabaseInfo(seen)
	r.addDatabase(d)
	r.addClock("clock of this machine", seen.ClockOffset, seen.RoundTrip)
	for _, region := range seen.Regions {
		late, err1 := db.OverdueIn(ctx, region.Name)
		alerts, err2 := db.AlertsIn(ctx, region.Name)
		if err := errors.Join(err1, err2); err != nil {
			r.bad("region "+region.Name, checkProblem, "", "cannot be looked at: %s", oneLine(err.Error()))
			continue
		}
		r.addOverdue(" in "+region.Name, api.NewOverdue(late), d)
		r.addDetailedAlerts(region.Name, alerts)
	}
}
