package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fencepost/fencepost/core/api"
)

// execQueue is the queue of the built-in target that runs commands.
const execQueue = "exec"

// createFlags are the flags of schedules create.
type createFlags struct {
	in    api.ScheduleInput
	retry api.RetryInput

	command string
	url     string
	method  string
	body    string
	headers []string
	queue   string
	payload string

	// An empty value may be meant; these tell.
	bodyGiven, payloadGiven, attemptsGiven bool
}

func newSchedulesCreate(a *app) *cobra.Command {
	var f createFlags
	cmd := &cobra.Command{
		Use:   "create --name NAME --spec SPEC (--command COMMAND | --url URL | --queue QUEUE)",
		Short: "Create a schedule that runs a command, sends a request or feeds a queue",
		Example: `  fencepost schedules create --name nightly-report --spec "0 3 * * *" --time-zone Europe/Berlin --command "make report"
  fencepost schedules create --name ping --spec "every 15m" --url https://example.com/ping --method GET
  fencepost schedules create --name once --spec "in 3d" --queue mails --payload '{"to":"all"}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			changed := cmd.Flags().Changed
			f.bodyGiven, f.payloadGiven, f.attemptsGiven = changed("body"), changed("payload"), changed("max-attempts")
			var err error
			if f.in.Job, err = f.job(); err != nil {
				return err
			}
			if f.retry != (api.RetryInput{}) {
				f.in.Retry = &f.retry
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			s, err := c.Create(cmd.Context(), f.in)
			if err != nil {
				return err
			}
			return a.say(cmd, s, "created %s: %s%s%s", s.Name, s.ID, nextRun(s), hint(s))
		},
	}
	cmd.Flags().StringVar(&f.in.Name, "name", "", "unique name of the schedule")
	f.register(cmd.Flags())
	for _, name := range []string{"name", "spec"} {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
	offerPolicies(cmd)
	cmd.MarkFlagsOneRequired("command", "url", "queue")
	cmd.MarkFlagsMutuallyExclusive("command", "url", "queue")
	return cmd
}

func (f *createFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.in.Spec, "spec", "", `when: a cron expression, "every 15m", "at 2027-01-05T09:00" or "in 3d"`)
	flags.StringVar(&f.in.TimeZone, "time-zone", "", "IANA zone of the spec (default UTC)")
	flags.StringToStringVarP(&f.in.Labels, "label", "l", nil, "label to find it by, as key=value; can be repeated")
	flags.Lookup("label").DefValue = "" // not an empty list, in the help
	flags.StringVar(&f.command, "command", "", "run this shell command")
	flags.StringVar(&f.url, "url", "", "send a request to this URL")
	flags.StringVar(&f.method, "method", "", "method of the request (default POST)")
	flags.StringArrayVar(&f.headers, "header", nil, `header of the request, as "Name: value"; can be repeated`)
	flags.StringVar(&f.body, "body", "", "body of the request; an object or array is sent as JSON, anything else as text")
	flags.StringVar(&f.queue, "queue", "", "hand the job to the executors of this queue")
	flags.StringVar(&f.payload, "payload", "", "JSON that goes with the job")
	flags.StringVar(&f.in.Overlap, "overlap", "", "what becomes of a slot while a run is alive: skip, allow, queue_one or cancel_previous (default skip)")
	f.registerRules(flags)
	f.registerRetries(flags)
	flags.StringVar(&f.in.DSTGap, "dst-gap", "", "what clock changes skip: auto, run_after or skip (default auto)")
	flags.StringVar(&f.in.DSTOverlap, "dst-overlap", "", "what clock changes repeat: auto, first or both (default auto)")
	flags.StringVar(&f.in.CatchUpWithin, "catch-up-within", "", "how late a one-time schedule may be and still fire, such as 1h (default 0s)")
	flags.BoolVar(&f.in.Exact, "exact", false, "keep @hourly, @daily and their like on their nominal time")
	flags.StringVar(&f.in.Window, "window", "", "spread starts over this time after the slot, such as 5m (default 0s; 1h for @hourly, @daily and their like)")
}

// registerRetries adds the flags of how long and how often a run is tried.
func (f *createFlags) registerRetries(flags *pflag.FlagSet) {
	flags.StringVar(&f.in.Timeout, "timeout", "", "limit of one attempt, such as 90s; 0s is none (default 15m, 60s with --url)")
	flags.StringVar(&f.in.TotalTimeout, "total-timeout", "", "limit of a run with all its attempts, such as 2h; 0s is none (default 0s)")
	flags.IntVar(&f.retry.MaxAttempts, "max-attempts", 0, "attempts before a run is dead, the first included (default 5)")
	flags.StringVar(&f.retry.InitialDelay, "initial-delay", "", "delay after the first failed attempt (default 10s)")
	flags.StringVar(&f.retry.MaxDelay, "max-delay", "", "longest delay between attempts (default 1h)")
	flags.Float64Var(&f.retry.Multiplier, "multiplier", 0, "by how much each delay is longer than the one before (default 2)")
	flags.StringVar(&f.retry.Jitter, "jitter", "", "how much of a delay is random: equal (half) or full (default equal)")
}

// registerRules adds the flags of what limits a schedule.
func (f *createFlags) registerRules(flags *pflag.FlagSet) {
	flags.StringVar(&f.in.Misfire, "misfire", "", "what becomes of slots that an outage missed: run_once, skip or run_all (default run_once)")
	flags.StringVar(&f.in.Grace, "misfire-grace", "", "how late a slot may be and still be on time, such as 60s (default 1m)")
	flags.IntVar(&f.in.MisfireCap, "misfire-cap", 0, "how many missed slots run_all runs (default 1000)")
	flags.StringVar(&f.in.StartsAt, "starts-at", "", "no slots before this RFC 3339 time")
	flags.StringVar(&f.in.EndsAt, "ends-at", "", "no slots from this RFC 3339 time on")
	flags.StringSliceVar(&f.in.Calendars, "calendar", nil, "calendar in which slots are closed; can be repeated")
	flags.Int64Var(&f.in.MaxRuns, "max-runs", 0, "how often it runs before it is completed (default no limit)")
	flags.StringVar(&f.in.KeepCompleted, "keep-completed", "", "how long it stays once it will not fire again (default 30d)")
	flags.BoolVar(&f.in.DeleteAfterCompletion, "delete-after-completion", false, "delete it once it is completed")
}

// job builds the job of the one form that was chosen.
func (f *createFlags) job() (*api.JobInput, error) {
	if f.url == "" && (f.method != "" || len(f.headers) > 0 || f.bodyGiven) {
		return nil, usageError("--method, --header and --body go with --url only")
	}
	if f.attemptsGiven && f.retry.MaxAttempts < 1 {
		return nil, usageError("--max-attempts must be at least 1")
	}
	if f.queue == "" && f.payloadGiven {
		return nil, usageError("--payload goes with --queue only")
	}
	switch {
	case f.command != "":
		return commandJob(f.command)
	case f.url != "":
		return f.httpJob()
	case f.queue != "":
		job := &api.JobInput{Queue: f.queue}
		if f.payloadGiven {
			if !json.Valid([]byte(f.payload)) {
				return nil, usageError("--payload is not valid JSON")
			}
			job.Payload = json.RawMessage(f.payload)
		}
		return job, nil
	default:
		return nil, usageError("--command, --url or --queue is empty")
	}
}

func commandJob(command string) (*api.JobInput, error) {
	payload, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return nil, fmt.Errorf("encode the command: %w", err)
	}
	return &api.JobInput{Queue: execQueue, Payload: payload}, nil
}

func (f *createFlags) httpJob() (*api.JobInput, error) {
	request := &api.HTTPInput{Method: f.method, URL: f.url}
	for _, header := range f.headers {
		name, value, ok := strings.Cut(header, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, usageError(`--header must look like "Name: value"`)
		}
		if request.Headers == nil {
			request.Headers = map[string]string{}
		}
		request.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	if f.bodyGiven {
		var err error
		if request.Body, err = requestBody(f.body); err != nil {
			return nil, err
		}
	}
	return &api.JobInput{HTTP: request}, nil
}

func requestBody(text string) (json.RawMessage, error) {
	trimmed := strings.TrimSpace(text)
	if json.Valid([]byte(text)) && (trimmed[0] == '{' || trimmed[0] == '[') {
		return json.RawMessage(text), nil
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return nil, fmt.Errorf("encode the body: %w", err)
	}
	return raw, nil
}
