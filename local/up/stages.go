package up

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/core/executor"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/infra/exectarget"
	"github.com/fencepost/fencepost/infra/httptarget"
	"github.com/fencepost/fencepost/local/terminal"
)

// known are the queues that a schedule may name, with what checks their payloads:
// those of workers outside take any.
func (p *process) known() map[string]core.Target {
	t := p.targets()
	for _, name := range p.c.WorkerQueues {
		t[name] = core.Handler(nil)
	}
	return t
}

// targets are what this process can execute, by queue.
func (p *process) targets() map[string]core.Target {
	t := map[string]core.Target{"http": httptarget.New(httptarget.Config{AllowPrivate: p.c.AllowPrivate})}
	if p.c.AllowExec {
		t["exec"] = exectarget.New(exectarget.Config{})
	}
	return t
}

// stages returns the loops of the claimer and the executor roles. In one
// process the claimer hands runs to the executor through a queue; alone it
// leaves them in the database, where the executor's relay finds them.
func (p *process) stages(ctx context.Context) ([]func(context.Context) error, error) {
	targets := p.targets()
	names := slices.Sorted(maps.Keys(targets))
	queue, err := p.openQueues(ctx, names)
	if err != nil {
		return nil, err
	}
	p.desk = queue.desk
	run := p.relayToWorkers(queue)
	if p.c.has(RoleClaimer) {
		c, err := p.claimer(queue, names)
		if err != nil {
			return nil, err
		}
		run = append(run, c.Run)
	} else if local := queue.local(names); p.c.has(RoleExecutor) && len(local) > 0 {
		r, err := claimer.NewRelay(claimer.Config{
			Store: p.db, Clock: p.clock, Publisher: queue, Queues: local, Logger: p.c.Logger, Observe: p.metrics.Observe, PollEvery: 500 * time.Millisecond,
		}, func(name string) bool { return queue.inside.Len(name) <= roomy })
		if err != nil {
			return nil, err
		}
		run = append(run, r.Run)
	}
	if p.c.has(RoleExecutor) {
		e, err := executor.New(executor.Config{
			Store: p.db, Queue: queue, Publisher: queue, Clock: p.clock, Targets: targets, Logger: p.c.Logger, Observe: p.metrics.Observe,
			OnFinish: p.print, Grace: 3 * time.Second,
		})
		if err != nil {
			return nil, err
		}
		run = append(run, func(ctx context.Context) error { return errors.Join(e.Run(ctx), queue.close(ctx)) })
	}
	return run, nil
}

// claimer returns the claimer of this process, which publishes to SQS what is mapped
// to it, and to the executor beside it, if there is one, the rest.
func (p *process) claimer(queue *queues, names []string) (*claimer.Claimer, error) {
	c := claimer.Config{Store: p.db, Clock: p.clock, Owner: p.owner, Logger: p.c.Logger, Observe: p.metrics.Observe, DeadLetters: p.c.DeadLetters}
	c.Queues = slices.Collect(maps.Keys(p.c.SQS))
	if p.c.has(RoleExecutor) {
		c.Queues = append(c.Queues, queue.local(names)...)
	}
	if p.c.has(RoleAPI) {
		c.Queues = append(c.Queues, p.c.WorkerQueues...)
	}
	if len(c.Queues) > 0 {
		c.Publisher = queue
	}
	return claimer.New(c)
}

// relayToWorkers returns the loop that finds runs for the workers which ask at this
// process, while some do. A claimer beside needs none: it tells the desk itself.
func (p *process) relayToWorkers(queue *queues) []func(context.Context) error {
	if len(p.c.WorkerQueues) == 0 || !p.c.has(RoleAPI) || p.c.has(RoleClaimer) {
		return nil
	}
	r, err := claimer.NewRelay(claimer.Config{
		Store: p.db, Clock: p.clock, Publisher: queue.desk, Queues: p.c.WorkerQueues, Logger: p.c.Logger, Observe: p.metrics.Observe, PollEvery: 500 * time.Millisecond,
	}, queue.desk.Wanted)
	if err != nil {
		return nil // not reached: nothing is missing
	}
	return []func(context.Context) error{r.Run}
}

// roomy is how many messages may wait in a queue that still takes what a relay
// finds.
const roomy = 1000

func (p *process) handler() (http.Handler, error) {
	service, err := schedules.NewLimited(p.db, p.c.Region, p.known(), p.c.Limits)
	if err != nil {
		return nil, err
	}
	return api.New(api.Config{
		Service: service, Workers: p.desk, Keys: p.db, Ready: p.db.Ping, Inspect: p.db.Inspect, Clock: p.clock,
		Logger: p.c.Logger, Observe: p.metrics.Observe, Version: p.c.Version, Rate: p.c.Rate,
	})
}

// serveHTTP serves until ctx is done and then lets requests under way finish.
func (p *process) serveHTTP(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
		p.desk.Close() // who waits for runs waits no longer
	}
	limit, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), 2*time.Second, errors.New("shutting down http took too long"))
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		return server.Close()
	}
	return nil
}

// defaultTenant owns what the key of the profile makes.
var defaultTenant = uuid.MustParse(api.DefaultTenant)

// key returns an API key that the database knows: the one of an earlier start,
// or a new one.
func (p *process) key(ctx context.Context, url string) (string, error) {
	if p.c.LoadKey != nil {
		if key := p.c.LoadKey(url); key != "" {
			_, err := p.db.FindKey(ctx, api.HashKey(key))
			if err == nil || !errors.Is(err, core.ErrNotFound) {
				return key, err
			}
		}
	}
	key, hash := api.NewKey()
	return key, p.db.AddKey(ctx, core.APIKey{Hash: hash, TenantID: defaultTenant, Name: "up", Scopes: []string{"admin"}})
}

// reachable returns an address at which this machine reaches a listener: one
// that listens on all addresses is reached on the loopback.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return a.String()
}

// greet prints what matters, once the API answers.
func (p *process) greet(ctx context.Context, l net.Listener) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Fencepost %s: %s on %s\n", p.c.Version, strings.Join(p.c.Roles, ", "), p.kind)
	if p.c.DatabaseURL == "" {
		fmt.Fprintf(&b, "  data      %s\n", p.c.DataDir)
	}
	if l != nil {
		url := "http://" + reachable(l.Addr())
		key, err := p.key(ctx, url)
		if err != nil {
			return fmt.Errorf("make an API key: %w", err)
		}
		fmt.Fprintf(&b, "  API       %s\n", url)
		if p.c.SaveProfile != nil {
			path, err := p.c.SaveProfile(url, key)
			if err != nil {
				p.c.Logger.Warn("the other commands have no key; set HOME or XDG_CONFIG_HOME to a folder that can be written", "error", err)
			} else {
				fmt.Fprintf(&b, "  key       in %s\n", path)
			}
		}
		if p.fresh && p.c.AllowExec && p.c.FirstStart != nil {
			line, err := p.c.FirstStart(ctx, url, key)
			if err != nil {
				return fmt.Errorf("first start: %w", err)
			}
			fmt.Fprintf(&b, "  imported  %s\n", line)
		}
	}
	if p.c.AllowExec {
		b.WriteString("  exec      allowed: whoever has a key can run commands here\n")
	}
	b.WriteString("  stop      Ctrl-C\n")
	fmt.Fprint(p.c.Out, b.String())
	return nil
}

// print writes the line of one attempt.
func (p *process) print(r executor.Report) {
	what := string(r.State)
	if r.Error != "" {
		lines := strings.Split(strings.TrimSpace(r.Error), "\n")
		what += ": " + lines[0]
		if last := lines[len(lines)-1]; len(lines) > 1 {
			what += " ... " + last
		}
	}
	e := r.Execution
	fmt.Fprintf(p.c.Out, "%s  %s  %s  slot %s  attempt %d  took %s\n", p.clock.Now().UTC().Format(time.TimeOnly), terminal.Printable(e.Name), terminal.Printable(what),
		e.ScheduledFor().Format(time.RFC3339), e.Attempt, r.Took.Round(time.Millisecond))
}
