package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/core/api/client"
	"github.com/fencepost/fencepost/local"
	"github.com/fencepost/fencepost/local/profile"
	"github.com/fencepost/fencepost/local/up"
)

func newUp(a *app) *cobra.Command {
	var c up.Config
	var roles, level string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run Fencepost: the API, a claimer and an executor in one process",
		Long: `Run Fencepost in one process until Ctrl-C.

The database is the one of --database-url or DATABASE_URL. Without either, up
starts one of its own: PostgreSQL if its programs are found, else cockroach, else
PostgreSQL in Docker. Its data stay in --data. The address and a key are written
to a profile that only you can read; the other commands use it.

With --roles, several processes share the work on one database. Give --allow-exec
and --allow-private to the api, which checks jobs, as well as to the executors.`,
		Example: "  fencepost up --allow-exec\n  fencepost up --database-url postgres://user@host/fencepost --roles claimer",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var l slog.Level
			if err := l.UnmarshalText([]byte(level)); err != nil {
				return usageError("--log-level must be debug, info, warn or error")
			}
			if c.DatabaseURL == "" {
				c.DatabaseURL = a.Getenv("DATABASE_URL")
			}
			c.Roles = strings.Split(roles, ",")
			c.Out, c.Version = a.Out, a.Version
			c.Logger = slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: l}))
			a.addProfile(&c)
			said := context.AfterFunc(cmd.Context(), func() {
				fmt.Fprintln(a.Out, "Stopping: jobs have 5 s to end. A second Ctrl-C stops at once.")
			})
			defer said() // a failed start stops nothing
			return up.Run(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.DatabaseURL, "database-url", "", "postgres:// URL (default $DATABASE_URL, else an embedded database)")
	f.StringVar(&c.DataDir, "data", "", "folder of the embedded database (default ~/.local/share/fencepost; root: /var/lib/fencepost)")
	f.StringVar(&c.Listen, "listen", "127.0.0.1:8080", "address of the API")
	f.StringVar(&roles, "roles", strings.Join(up.Roles(), ","), "what this process does")
	f.StringVar(&c.Region, "region", "local", "region of the rows that this process works on")
	f.BoolVar(&c.AllowExec, "allow-exec", false, "let schedules run commands on this machine")
	f.BoolVar(&c.AllowPrivate, "allow-private", false, "let schedules call private addresses")
	addQueues(f, &c)
	addLimits(f, &c)
	f.StringVar(&level, "log-level", "warn", "debug, info, warn or error; the log goes to standard error")
	return cmd
}

// addProfile lets up keep its address and key where the other commands look.
func (a *app) addProfile(c *up.Config) {
	c.SaveProfile = func(url, key string) (string, error) {
		path, err := profile.Path(a.Getenv)
		if err != nil {
			return "", err
		}
		// Without a readable profile there is nothing to keep.
		old, _ := profile.Read(path)
		return path, profile.Save(path, old.Renamed(url, key))
	}
	c.LoadKey = func(url string) string {
		if key := a.Getenv(client.EnvKey); key != "" {
			return key
		}
		path, err := profile.Path(a.Getenv)
		if err != nil {
			return ""
		}
		// Without a readable profile up makes a new key.
		p, _ := profile.Read(path)
		return cmp.Or(p.KeyFor(url), p.Key)
	}
	c.FirstStart = a.importSample
}

// importSample gives a new installation something to run.
func (a *app) importSample(ctx context.Context, url, key string) (string, error) {
	c, err := client.New(client.Config{URL: url, Key: key, Clock: a.Clock})
	if err != nil {
		return "", err
	}
	var report bytes.Buffer
	quiet := *a
	quiet.Out = &report
	if err := quiet.importCrontab(ctx, c, strings.NewReader(local.SampleCrontab), importFlags{source: "local/sample.crontab"}); err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSpace(report.String()), "\n")
	return "local/sample.crontab: " + lines[len(lines)-1], nil
}
