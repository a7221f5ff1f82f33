package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/fencepost/fencepost/core/api"
)

const keyText = `key_[0-9a-f]{16}`

// TestLifeOfAKey: the secret is all that is on standard output, and works.
func TestLifeOfAKey(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	r := s.run("keys", "create", "deploy", "--scope", "read,write", "--expires-in", "90d")
	matches(t, "fp_[a-z2-7]{26}\n", r.out)
	matches(t, "made "+keyText+" \\(deploy\\) with the scopes read, write; it expires at "+timeText+"; its secret is shown this once\n", r.err)
	id := strings.Fields(r.err)[1]
	matches(t, keyText+"\ttest\tadmin\tactive \\(this one\\)\t"+timeText+"\t\t"+timeText+"\n"+
		id+"\tdeploy\tread,write\tactive\t"+timeText+"\t"+timeText+"\t\n", s.ok("keys", "list"))

	holder := *s
	holder.env = map[string]string{"FENCEPOST_URL": s.env["FENCEPOST_URL"], "FENCEPOST_API_KEY": strings.TrimSpace(r.out)}
	if out := holder.ok("schedules", "list"); out != "" {
		t.Errorf("list prints %q", out)
	}
	if r := holder.run("keys", "list"); r.code != 1 || r.err != "fencepost: the key does not have the scope admin\n" {
		t.Errorf("%+v", r)
	}
	own := strings.Fields(s.ok("keys", "list"))[0]
	if r := s.run("keys", "revoke", own); r.code != 1 || !strings.Contains(r.err, "revoke it with another key") {
		t.Errorf("%+v", r)
	}
	matches(t, "revoked "+id+"\n", s.ok("keys", "revoke", id))
	if r := holder.run("schedules", "list"); r.code != 1 || !strings.Contains(r.err, "the API key is not valid") {
		t.Errorf("%+v", r)
	}
	if r := s.run("keys", "revoke", "deploy"); r.code != 1 || r.err != "fencepost: no such key\n" {
		t.Errorf("%+v", r)
	}
	var list api.List[api.Key]
	if err := json.Unmarshal([]byte(s.ok("keys", "list", "--json")), &list); err != nil || len(list.Items) != 2 || list.Items[1].State != "revoked" {
		t.Errorf("%v %+v", err, list)
	}
	var made api.CreatedKey
	if err := json.Unmarshal([]byte(s.run("keys", "create", "x", "--scope", "worker", "--json").out), &made); err != nil || made.Secret == "" {
		t.Errorf("%v %+v", err, made)
	}
}

// TestKeysInTheDatabase: a tenant begins with access to the database alone.
func TestKeysInTheDatabase(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	bare := *s
	bare.env = map[string]string{"DATABASE_URL": s.url, "XDG_CONFIG_HOME": t.TempDir()}
	r := bare.run("keys", "create", "first", "--scope", "admin", "--tenant", "new")
	matches(t, "fp_[a-z2-7]{26}\n", r.out)
	matches(t, "made "+keyText+" \\(first\\) with the scopes admin for the tenant "+uuidText+"; its secret is shown this once\n", r.err)
	tenant := strings.TrimSuffix(strings.Fields(r.err)[10], ";")
	admin := *s
	admin.env = map[string]string{"FENCEPOST_URL": s.env["FENCEPOST_URL"], "FENCEPOST_API_KEY": strings.TrimSpace(r.out)}
	matches(t, keyText+"\tfirst\tadmin\tactive \\(this one\\)\t.*\n", admin.ok("keys", "list"))

	bare.env = map[string]string{}
	r = bare.run("keys", "create", "second", "--scope", "read", "--tenant", tenant, "--database-url", s.url, "--expires-in", "P30D")
	if r.code != 0 || strings.Count(admin.ok("keys", "list"), "\n") != 2 {
		t.Errorf("%+v %s", r, admin.ok("keys", "list"))
	}
	if out := s.ok("keys", "list"); strings.Contains(out, "second") {
		t.Errorf("another tenant sees it: %s", out)
	}
	if r := bare.run("keys", "create", "x", "--scope", "read", "--tenant", "new", "--database-url", "postgres://nobody:hush@127.0.0.1:1/x"); r.code != 1 ||
		r.out != "" || strings.Contains(r.err, "hush") {
		t.Errorf("%+v", r)
	}
}

func TestKeysMustMakeSense(t *testing.T) {
	t.Parallel()
	s := &shell{TB: t, env: map[string]string{}} // nothing is asked
	in := []string{"keys", "create", "x", "--database-url", "postgres://nobody@127.0.0.1:1/x", "--scope"}
	for want, args := range map[string][]string{
		"--scope must name some of admin, write, read, worker":                            {"keys", "create", "x"},
		`--database-url goes with --tenant, which is an id or "new"`:                      append(in, "read"),
		"--tenant needs --database-url or DATABASE_URL":                                   {"keys", "create", "x", "--scope", "read", "--tenant", "new"},
		`--tenant must be "new" or an id such as ` + api.DefaultTenant:                    append(in, "read", "--tenant", uuid.Nil.String()),
		`--expires-in must be a duration such as "90d"`:                                   append(in, "read", "--tenant", "new", "--expires-in", "0"),
		"scopes: must be some of admin, write, read, worker":                              append(in, "root", "--tenant", "new"),
		"expires_in: must be from 1m to 3650d; leave it out for a key that never expires": append(in, "read", "--tenant", "new", "--expires-in", "1s"),
		"name: has a control character":                                                   {"keys", "create", "a\nb", "--scope", "read", "--tenant", "new", "--database-url", "postgres://nobody@127.0.0.1:1/x"},
	} {
		if r := s.run(args...); r.code == 0 || !strings.HasPrefix(r.err, "fencepost: "+want) || r.out != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
}
