package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/api"
	"github.com/fencepost/fencepost/core/api/client"
	checker "github.com/fencepost/fencepost/core/check"
	"github.com/fencepost/fencepost/core/schedules"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/httptarget"
	"github.com/fencepost/fencepost/infra/sqs/sqstest"
)

// newChaos starts an installation: a database that can be killed, SQS, an API, two
// claimers and three executors.
func newChaos(t *testing.T, lasts time.Duration) *chaos {
	t.Helper()
	c := &chaos{rng: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)), dir: dataFolder(t)}
	c.server = startDatabase(t, c.dir)
	check(t, prepare(t.Context(), c.server.URL()))
	c.world = newWorld(t, c.server.URL())
	ctx, cancel := context.WithTimeout(context.Background(), lasts+chaosQuiet+5*time.Minute)
	t.Cleanup(cancel)
	c.ctx = ctx
	carried := c.sqs()
	c.front = carried.front
	c.front.Set("ReceiveMessage", shortPolls)
	c.sqsQueue, c.sqsEndpoint = carried.config.Queues[queue], c.front.URL
	c.serveAPI()
	for range 2 {
		c.claimers = append(c.claimers, c.part("claimer"))
	}
	for range 3 {
		c.executors = append(c.executors, c.part("executor"))
	}
	return c
}

// part starts a process of the product.
func (c *chaos) part(role string) *process {
	c.Helper()
	self, err := os.Executable()
	c.must(err)
	p := &process{w: c.world, name: role, log: &journal{}}
	p.cmd = exec.CommandContext(c.ctx, self, "up", "--roles", role, "--database-url", p.address(), "--sqs-queue", "http="+c.sqsQueue,
		"--allow-private", "--log-level", "error")
	p.cmd.Env = append(os.Environ(), roleVariable+"="+commandRole, "AWS_ENDPOINT_URL="+c.sqsEndpoint, "AWS_REGION="+sqstest.Region,
		"AWS_ACCESS_KEY_ID="+sqstest.KeyID, "AWS_SECRET_ACCESS_KEY="+sqstest.Secret)
	p.begin()
	c.Cleanup(func() { _ = p.cmd.Process.Kill() }) // it may have ended
	return p
}

// serveAPI serves the API of the installation and makes a client of it.
func (c *chaos) serveAPI() {
	c.Helper()
	targets := map[string]core.Target{"http": httptarget.New(httptarget.Config{AllowPrivate: true})}
	handler, err := api.New(api.Config{
		Service: schedules.New(c.db, region, targets), Keys: c.db, Ready: c.db.Ping, Clock: clock.System{}, Logger: quiet(),
	})
	c.must(err)
	server := httptest.NewServer(handler)
	c.Cleanup(server.Close)
	key, hash := api.NewKey()
	c.must(c.db.AddKey(c.ctx, core.APIKey{Hash: hash, TenantID: uuid.New(), Name: "chaos", Scopes: []string{"admin"}}))
	c.api, err = client.New(client.Config{URL: server.URL, Key: key, Patience: time.Minute, Tries: 20})
	c.must(err)
}

// create makes schedules that call the site.
func (c *chaos) create(n int) {
	c.Helper()
	c.site = &site{rng: rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))}
	server := httptest.NewServer(c.site)
	c.Cleanup(server.Close)
	for i := range n {
		in := api.ScheduleInput{
			Name: fmt.Sprint("chaos", i), Spec: []string{"* * * * *", "* * * * *", "*/30 * * * * *", "every 20s"}[i%4], TimeZone: []string{"", "Asia/Kolkata"}[i/4%2],
			Overlap: []string{"skip", "allow", "queue_one"}[i%3], Misfire: []string{"run_once", "skip", "run_all"}[i/3%3], Grace: "30s",
			Retry: &api.RetryInput{MaxAttempts: 5, InitialDelay: "1s", MaxDelay: "5s"}, Job: &api.JobInput{HTTP: &api.HTTPInput{URL: server.URL}},
		}
		if i%4 == 3 {
			in.Anchor = time.Now().UTC().Truncate(time.Minute).Format(time.RFC3339)
		}
		op := checker.Operation{Kind: checker.Create, Begin: time.Now()}
		got, err := c.api.Create(c.ctx, in)
		c.must(err)
		c.ids = append(c.ids, got.ID)
		c.answer(op, got.ID, &got, nil)
	}
}

// answer writes an operation down.
func (c *chaos) answer(op checker.Operation, id string, after *api.Schedule, err error) {
	var refused *client.Error
	op.Schedule, op.End, op.OK = id, time.Now(), err == nil
	op.Answered = err == nil || errors.As(err, &refused)
	if after != nil && err == nil {
		op.After = &checker.Schedule{}
		convert(c.T, after, op.After)
	}
	c.h.Operations = append(c.h.Operations, op)
}

// convert reads what the API wrote as the checker reads it.
func convert(t *testing.T, from, to any) {
	t.Helper()
	text, err := json.Marshal(from)
	check(t, err)
	check(t, json.Unmarshal(text, to))
}

// change has a client change something.
func (c *chaos) change() {
	id := c.ids[c.rng.IntN(len(c.ids))]
	op := checker.Operation{Begin: time.Now()}
	ctx, cancel := context.WithTimeout(c.ctx, 20*time.Second)
	defer cancel()
	var got api.Schedule
	var err error
	switch c.rng.IntN(4) {
	case 0:
		op.Kind = checker.Pause
		got, err = c.api.Pause(ctx, id)
	case 1:
		op.Kind = checker.Resume
		got, err = c.api.Resume(ctx, id)
	case 2:
		op.Kind = checker.Trigger
		_, err = c.api.Trigger(ctx, id, nil)
	case 3:
		op.Kind = checker.Edit
		got, err = c.api.Edit(ctx, id, api.ScheduleInput{Spec: []string{"* * * * *", "*/30 * * * * *"}[c.rng.IntN(2)]})
	}
	c.answer(op, id, &got, err)
}

// fault writes down what goes wrong until heal has made it right.
func (c *chaos) fault(kind string, heal func()) {
	f := checker.Fault{Kind: kind, Begin: time.Now()}
	heal()
	f.Heal = time.Now()
	c.h.Faults = append(c.h.Faults, f)
}

// strike lets one thing go wrong, and makes it right. All kinds have their turn.
func (c *chaos) strike() {
	i, k := c.rng.IntN(len(c.claimers)), c.rng.IntN(len(c.executors))
	if len(c.deck) == 0 {
		c.deck = c.rng.Perm(8)
	}
	kind := c.deck[0]
	c.deck = c.deck[1:]
	switch kind {
	case 0:
		c.fault("claimer killed", func() { c.claimers[i].kill(); c.claimers[i] = c.part("claimer") })
	case 1, 2:
		c.fault("executor killed", func() { c.executors[k].kill(); c.executors[k] = c.part("executor") })
	case 3:
		c.fault("executor ended", func() {
			c.must(c.executors[k].cmd.Process.Signal(syscall.SIGTERM))
			_ = c.executors[k].ended() // it says how by its log
			c.executors[k] = c.part("executor")
		})
	case 4:
		p, what := c.executors[k], "executor frozen"
		if c.rng.IntN(2) == 0 {
			p, what = c.claimers[i], "claimer frozen"
		}
		c.fault(what, func() { p.freeze(); time.Sleep(time.Duration(5+c.rng.IntN(35)) * time.Second); p.thaw() })
	case 5:
		c.fault("database killed", func() {
			killDatabase(c.T, c.dir)
			check(c.T, c.server.Stop(c.ctx)) // gives the folder up
			time.Sleep(time.Duration(c.rng.IntN(5)) * time.Second)
			c.server = startDatabase(c.T, c.dir)
			c.watch.Reset() // its connections are dead
		})
	case 6:
		c.fault("connections cut", func() {
			p := c.executors[k]
			if c.rng.IntN(2) == 0 {
				p = c.claimers[i]
			}
			c.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", p.name)
		})
	case 7:
		c.fault("queue gone", func() {
			c.front.Set("", sqstest.Drop)
			time.Sleep(time.Duration(3+c.rng.IntN(10)) * time.Second)
			c.front.Set("", nil)
		})
	}
}

// judge reads all through the API and prints what the checker says.
func (c *chaos) judge() {
	c.Helper()
	c.h.End = time.Now()
	for _, id := range c.ids {
		page := checker.Page{Schedule: id, Begin: time.Now()}
		for p := (client.Page{Limit: 50}); ; {
			got, err := c.api.Runs(c.ctx, id, client.RunFilter{}, p)
			c.must(err)
			for i := range got.Items {
				var r checker.Run
				convert(c.T, &got.Items[i], &r)
				c.h.Runs = append(c.h.Runs, r)
				page.Runs = append(page.Runs, r.ID)
			}
			if got.NextCursor == nil {
				break
			}
			p.Cursor = *got.NextCursor
		}
		c.h.Pages = append(c.h.Pages, page)
	}
	c.site.mu.Lock()
	c.h.Executions = append(c.h.Executions, c.site.log...)
	c.site.mu.Unlock()
	r, err := checker.Check(&c.h, chaosBounds)
	c.must(err)
	var text bytes.Buffer
	c.must(r.Print(&text))
	faults := map[string]int{}
	for _, f := range c.h.Faults {
		faults[f.Kind]++
	}
	c.Logf("%d runs, %d attempts, %d operations, faults %v\n%s", len(c.h.Runs), len(c.h.Executions), len(c.h.Operations), faults, &text)
	c.Log("skipped here: a full disk, slow and half-closed connections, clocks that are set")
	if !r.OK() {
		dir, err := os.MkdirTemp("", "fencepost-chaos-")
		c.must(err)
		c.must(c.h.Write(dir))
		c.Errorf("rules were broken: %v; the logs are in %s", r.Failed(), dir)
	}
}
