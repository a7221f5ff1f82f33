package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/core/claimer"
	"github.com/fencepost/fencepost/core/executor"
	"github.com/fencepost/fencepost/infra/clock"
	"github.com/fencepost/fencepost/infra/database"
	"github.com/fencepost/fencepost/infra/inprocess"
	"github.com/fencepost/fencepost/infra/sqs"
	"github.com/fencepost/fencepost/infra/sqs/sqstest"
	"github.com/fencepost/fencepost/local/cli"
)

// The environment of a stage that runs as a process of its own.
const (
	roleVariable    = "FENCEPOST_E2E_ROLE"
	urlVariable     = "FENCEPOST_E2E_URL"
	journalVariable = "FENCEPOST_E2E_JOURNAL"
	// These two are empty unless messages come through SQS.
	sqsVariable      = "FENCEPOST_E2E_SQS_QUEUE"
	endpointVariable = "FENCEPOST_E2E_SQS_ENDPOINT"

	jobTimeVariable = "FENCEPOST_E2E_JOB_TIME"

	claimerRole  = "claimer"
	executorRole = "executor"
	commandRole  = "command" // the command line of the product
)

const (
	// jobTime is how long each job of an executor process takes, unless its
	// environment says otherwise.
	jobTime = 100 * time.Millisecond
	// deadly is the payload of a job that kills the executor which tries it.
	deadly = `{"kill": true}`
	// processLease is the lease of runs and of messages between processes.
	processLease = 6 * time.Second
)

// runRole is the main function of such a process. It ends with its standard
// input, so that none outlives the tests.
func runRole(role string) int {
	if role == commandRole {
		return cli.Main()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is what counts
		cancel()
	}()
	db, err := database.Open(ctx, database.Config{URL: os.Getenv(urlVariable), Region: region, ClaimPool: true})
	if err == nil {
		defer db.Close()
		switch role {
		case claimerRole:
			err = runClaimer(ctx, db)
		case executorRole:
			err = runExecutor(ctx, db, os.Getenv(journalVariable))
		default:
			err = fmt.Errorf("no such role: %s", role)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// runClaimer claims and publishes to nobody: executors find the runs in the
// database.
func runClaimer(ctx context.Context, db *database.DB) error {
	c, err := claimer.New(claimer.Config{Store: db, Clock: clock.System{}, Owner: uuid.NewString(), ShardLease: processLease, Logger: toStderr()})
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// runExecutor relays runs from the database to itself, and writes down when
// each attempt begins, ends and has been recorded.
func runExecutor(ctx context.Context, db *database.DB, journal string) error {
	out, err := os.OpenFile(journal, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	write := func(what string, e core.Execution) {
		fmt.Fprintf(out, "%s %s %d\n", what, e.Key.ID(), e.Attempt)
	}
	var g errgroup.Group
	box, err := receiveFrom(ctx, db, &g)
	if err != nil {
		return err
	}
	takes, err := time.ParseDuration(cmp.Or(os.Getenv(jobTimeVariable), jobTime.String()))
	if err != nil {
		return err
	}
	job := targetFunc(func(ctx context.Context, e core.Execution) error {
		write("begin", e)
		if string(e.Payload) == deadly {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if err := (clock.System{}).Sleep(ctx, takes); err != nil {
			if errors.Is(err, executor.ErrLeaseLost) {
				write("lost", e)
			}
			return err
		}
		write("end", e)
		return nil
	})
	ex, err := executor.New(executor.Config{
		Store: db, Queue: box, Clock: clock.System{}, Targets: map[string]core.Target{queue: job}, Lease: processLease, Concurrency: 10,
		OnFinish: func(r executor.Report) { write("recorded", r.Execution) }, Logger: toStderr(),
	})
	if err != nil {
		return err
	}
	g.Go(func() error { return ex.Run(ctx) })
	return errors.Join(g.Wait(), out.Close())
}

// receiveFrom returns where an executor process finds its messages: SQS, or a queue
// of its own that it fills from the database.
func receiveFrom(ctx context.Context, db *database.DB, g *errgroup.Group) (core.Consumer, error) {
	if address := os.Getenv(sqsVariable); address != "" {
		return sqs.NewConsumer(ctx, sqs.Config{
			AWS: sqstest.Config(os.Getenv(endpointVariable)), Queues: map[string]string{queue: address}, Clock: clock.System{}, Wait: time.Second,
			Visibility: 4 * time.Second, Logger: toStderr(),
		})
	}
	box, err := inprocess.New(inprocess.Config{Queues: []string{queue}})
	if err != nil {
		return nil, err
	}
	relay, err := claimer.NewRelay(claimer.Config{
		Store: db, Clock: clock.System{}, Publisher: box, Queues: []string{queue}, DispatchLease: processLease, Logger: toStderr(),
	}, func(name string) bool { return box.Len(name) < 1000 })
	if err != nil {
		return nil, err
	}
	g.Go(func() error { return relay.Run(ctx) })
	return box, nil
}

func toStderr() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }

// process is a stage that runs as a process of its own.
type process struct {
	w       *world
	cmd     *exec.Cmd
	stdin   io.Closer
	journal string
	name    string // of its sessions at the database
	log     *journal
}

// process starts a stage, with more of an environment if need be. It is asked to
// end when the test does.
func (w *world) process(role string, environment ...string) *process {
	w.Helper()
	self, err := os.Executable()
	w.must(err)
	p := &process{w: w, journal: filepath.Join(w.TempDir(), "journal"), name: role + uuid.NewString(), log: &journal{}}
	p.cmd = exec.CommandContext(w.ctx, self)
	p.cmd.Env = append(os.Environ(), roleVariable+"="+role, urlVariable+"="+p.address(), journalVariable+"="+p.journal,
		sqsVariable+"="+w.sqsQueue, endpointVariable+"="+w.sqsEndpoint)
	p.cmd.Env = append(p.cmd.Env, environment...)
	p.begin()
	return p
}

// address is the database's, with the process's name.
func (p *process) address() string {
	p.w.Helper()
	address, err := url.Parse(p.w.url)
	p.w.must(err)
	values := address.Query()
	values.Set("application_name", p.name)
	address.RawQuery = values.Encode()
	return address.String()
}

// begin starts the process.
func (p *process) begin() {
	p.w.Helper()
	p.cmd.Stderr = io.MultiWriter(p.w.log, p.log)
	p.cmd.WaitDelay = time.Second
	var err error
	p.stdin, err = p.cmd.StdinPipe()
	p.w.must(err)
	p.w.must(p.cmd.Start())
	p.w.Cleanup(func() {
		_ = p.stdin.Close() // a killed process has none
		_ = p.cmd.Wait()    // a killed process ends with an error
	})
}

// kill ends the process at once, as kill -9 does, and waits until it is gone.
func (p *process) kill() {
	p.w.Helper()
	p.w.must(p.cmd.Process.Kill())
	_ = p.cmd.Wait() // its error says that it was killed
}

// ended waits until the process has ended by itself.
func (p *process) ended() error {
	p.w.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	return signal(p.w, "the process ends", ended)
}

// freeze stops the process in the middle of whatever it does, as a host does that
// swaps or a laptop that sleeps.
func (p *process) freeze() {
	p.w.Helper()
	p.w.must(p.cmd.Process.Signal(syscall.SIGSTOP))
}

// thaw lets it go on.
func (p *process) thaw() {
	p.w.Helper()
	p.w.must(p.cmd.Process.Signal(syscall.SIGCONT))
}

// gone waits until the database has ended the sessions of a killed process: a
// statement that had arrived is done all the same.
func (p *process) gone() {
	p.w.Helper()
	p.w.until("the sessions of the killed process end", func() bool {
		return p.w.count("pg_stat_activity WHERE application_name = $1", p.name) == 0
	})
}

// entry is a line of an executor's journal.
type entry struct {
	what string // begin, end, lost or recorded
	key  core.RunKey
}

// wrote counts what executors wrote down so far, over all of them.
func (w *world) wrote(executors ...*process) map[entry]int {
	w.Helper()
	out := map[entry]int{}
	for _, p := range executors {
		text, err := os.ReadFile(p.journal)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		w.must(err)
		// The last line may be half written.
		whole := text[:bytes.LastIndexByte(text, '\n')+1]
		for line := range strings.Lines(string(whole)) {
			words := strings.Fields(line)
			key, err := core.ParseRunID(words[1])
			w.must(err)
			out[entry{words[0], key}]++
		}
	}
	return out
}

// keys returns the runs for which an executor wrote such a line, each with the
// number of lines.
func keys(lines map[entry]int, what string) map[core.RunKey]int {
	out := map[core.RunKey]int{}
	for e, n := range lines {
		if e.what == what {
			out[e.key] = n
		}
	}
	return out
}
