package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/local/up"
)

// addQueues gives up the flags of queues outside of it.
func addQueues(f *pflag.FlagSet, c *up.Config) {
	f.StringSliceVar(&c.WorkerQueues, "worker-queue", nil, "queue whose runs workers in any language lease over the API; can be repeated")
	f.StringToStringVar(&c.SQS, "sqs-queue", nil, "carry the runs of a queue through Amazon SQS, as http=URL; can be repeated")
	f.Lookup("sqs-queue").DefValue = "" // not an empty list, in the help
	f.StringVar(&c.DeadLetters, "dead-letter-queue", "", "name of an --sqs-queue that is told of each dead run")
}

// addLimits gives up the flags that bound what each tenant may do, and how much
// history is kept, and the one that shows what is done.
func addLimits(f *pflag.FlagSet, c *up.Config) {
	f.Float64Var(&c.Rate.PerSecond, "tenant-rate", 1000, "requests a second that each tenant has at this process's API; 0 is no limit")
	f.IntVar(&c.Rate.Burst, "tenant-burst", 0, "how many of them may come at once (default twice the rate)")
	f.IntVar(&c.Limits.Schedules, "tenant-schedules", 0, "about how many schedules each tenant may have (default no limit)")
	c.Limits.MinInterval = core.MinInterval
	f.Var(&durationFlag{&c.Limits.MinInterval}, "tenant-interval", "smallest time between two slots of a schedule, such as 1m")
	f.StringVar(&c.MetricsListen, "metrics-listen", "", "address of /metrics (default the API's, if that is on the loopback)")
	c.Keep = up.DefaultKeep
	f.Var(&durationFlag{&c.Keep}, "keep-history", "how long runs are kept once they have ended, from 1d to 366d; 30d on CockroachDB")
}

// durationFlag is a flag in the product's own notation of durations.
type durationFlag struct{ length *time.Duration }

// String returns the duration as the API shows it.
func (d *durationFlag) String() string { return core.FormatDuration(*d.length) }

// Set reads a duration.
func (d *durationFlag) Set(text string) error {
	length, err := core.ParseDuration(text)
	if err == nil {
		*d.length = length
	}
	return err
}

// Type names the kind of value for the help.
func (d *durationFlag) Type() string { return "duration" }
