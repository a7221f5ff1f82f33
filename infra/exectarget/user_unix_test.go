//go:build unix

package exectarget_test

import (
	"os"
	"os/user"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/exectarget"
)

// TestExecuteAsAUser: a command runs as the user that its crontab named, in the
// home and with the groups of that user, and never as another one instead.
func TestExecuteAsAUser(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	target := exectarget.New(exectarget.Config{Environ: []string{"HOME=/nowhere", "USER=x"}})
	const who = `printf '%s ' "$(id -un)" "$USER" "$LOGNAME" "$HOME"; pwd`
	check := func(u *user.User) {
		t.Helper()
		raw, err := target.Execute(t.Context(), execution(t, map[string]any{"command": who, "user": u.Username}))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Join([]string{u.Username, u.Username, u.Username, u.HomeDir, u.HomeDir + "\n"}, " ")
		if got := decode(t, raw).Output; got != want {
			t.Errorf("ran as %q, want %q", got, want)
		}
	}
	if _, err := os.Stat(me.HomeDir); err == nil { // there are users without
		check(me)
	}
	_, err = target.Execute(t.Context(), execution(t, map[string]any{"command": "id", "user": me.Username, "dir": "/"}))
	if err != nil {
		t.Error(err)
	}
	_, err = target.Execute(t.Context(), execution(t, map[string]any{"command": "id", "user": "no-such-user"}))
	if !core.IsPermanent(err) || !strings.Contains(err.Error(), "no-such-user") {
		t.Errorf("an unknown user: %v", err)
	}
	if os.Geteuid() != 0 {
		_, err = target.Execute(t.Context(), execution(t, map[string]any{"command": "id", "user": "root"}))
		if !core.IsPermanent(err) || !strings.Contains(err.Error(), "only root") {
			t.Errorf("another user without being root: %v", err)
		}
		return
	}
	other, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("this machine has no user nobody")
	}
	raw, err := target.Execute(t.Context(), execution(t, map[string]any{"command": "id -un; id -u; id -G", "user": "nobody", "dir": "/"}))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := other.GroupIds()
	if err != nil {
		t.Fatal(err)
	}
	if want := "nobody\n" + other.Uid + "\n" + strings.Join(groups, " ") + "\n"; decode(t, raw).Output != want {
		t.Errorf("ran as %q, want %q", decode(t, raw).Output, want)
	}
}

// TestExecuteKnowsItsUser: a service begins without HOME, USER and LOGNAME, and
// its commands get them as those of cron do.
func TestExecuteKnowsItsUser(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := exectarget.New(exectarget.Config{Environ: []string{}}).Execute(t.Context(), execution(t, map[string]any{"command": `echo "$USER $LOGNAME $HOME $PATH"`}))
	if err != nil {
		t.Fatal(err)
	}
	home := me.HomeDir
	if _, err := os.Stat(home); err != nil {
		home = ""
	}
	want := me.Username + " " + me.Username + " " + home + " /usr/local/bin:/usr/bin:/bin\n"
	if got := decode(t, raw).Output; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
