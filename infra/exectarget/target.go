// Package exectarget executes jobs as shell commands on this machine, and
// exists so that a crontab can move in line by line before anything of it is
// rewritten as a service.
package exectarget

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/core"
)

// Config tunes a Target. The zero value suits a machine of one's own.
type Config struct {
	// Environ is where commands get PATH, HOME, LANG, USER and LOGNAME from, in the
	// form of os.Environ; this process's user stands in for what is not there.
	// Nothing else of it reaches them: this process holds credentials. Defaults to
	// os.Environ().
	Environ []string
	// Grace is how long a command that has to stop may take after SIGTERM
	// before it gets SIGKILL. Defaults to 2 s.
	Grace time.Duration
}

const (
	defaultGrace = 2 * time.Second
	defaultPath  = "/usr/local/bin:/usr/bin:/bin"
)

// Target is the core.Target of the exec queue. Make it with New. It is safe for
// concurrent use; the executor bounds how many commands run at once.
type Target struct {
	base  map[string]string // environment of every command
	grace time.Duration
}

var _ core.Target = (*Target)(nil)

// New returns a target; it reads the environment once, here.
func New(cfg Config) *Target {
	if cfg.Environ == nil {
		cfg.Environ = os.Environ()
	}
	if cfg.Grace <= 0 {
		cfg.Grace = defaultGrace
	}
	base := map[string]string{"PATH": defaultPath}
	for _, line := range cfg.Environ {
		name, value, _ := strings.Cut(line, "=")
		if slices.Contains([]string{"PATH", "HOME", "LANG", "USER", "LOGNAME"}, name) {
			base[name] = value
		}
	}
	addUser(base)
	return &Target{base: base, grace: cfg.Grace}
}

// addUser sets what is missing of this process's user, as cron does: services
// begin without it.
func addUser(base map[string]string) {
	me, err := user.Current()
	if err != nil {
		return
	}
	own := map[string]string{"USER": me.Username, "LOGNAME": me.Username}
	if info, err := os.Stat(me.HomeDir); err == nil && info.IsDir() {
		own["HOME"] = me.HomeDir
	}
	for name, value := range own {
		base[name] = cmp.Or(base[name], value)
	}
}

// Check refuses a payload that Execute could not run on any machine.
func (t *Target) Check(payload json.RawMessage) error {
	_, err := parse(payload)
	return err
}

// Execute runs the command once, in the home directory unless the payload says
// otherwise, and returns {"exit_code":0,"output":"..."} with the last 8 KiB that
// it wrote. When ctx is done the command's process group gets SIGTERM and, after
// the grace, SIGKILL; a process that left the group is out of reach. A command
// that ends by itself may leave processes behind: they live on unheard.
func (t *Target) Execute(ctx context.Context, e core.Execution) (json.RawMessage, error) {
	j, err := parse(e.Payload)
	if err != nil {
		return nil, core.Permanent(fmt.Errorf("read payload: %w", err))
	}
	base := t.base
	var as *account
	if j.user != "" {
		if as, err = lookUp(j.user); err != nil {
			return nil, core.Permanent(fmt.Errorf("run as %s: %w", j.user, err))
		}
		base = maps.Clone(t.base)
		base["HOME"], base["USER"], base["LOGNAME"] = as.home, j.user, j.user
	}
	if j.dir == "" {
		j.dir = base["HOME"]
	}
	return t.run(ctx, j, as, environ(base, j, e))
}

// account is who a command runs as.
type account struct {
	uid, gid uint32
	groups   []uint32
	home     string
	// own says that this process runs as that user already.
	own bool
}

func environ(base map[string]string, j job, e core.Execution) []string {
	var env []string
	set := func(name, value string) { env = append(env, name+"="+value) }
	for name, value := range base {
		set(name, value)
	}
	set("SHELL", j.shell)
	for name, value := range j.env {
		set(name, value) // of two with one name the later counts
	}
	set("FENCEPOST_RUN_ID", e.Key.ID())
	set("FENCEPOST_SCHEDULE_ID", e.Key.ScheduleID.String())
	set("FENCEPOST_SCHEDULED_FOR", e.ScheduledFor().UTC().Format(time.RFC3339Nano))
	set("FENCEPOST_ATTEMPT", strconv.Itoa(e.Attempt))
	set("FENCEPOST_FENCE", strconv.FormatInt(e.Fence, 10))
	return env
}
