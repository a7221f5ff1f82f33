package database_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/infra/database"
)

// The rules below keep one text right on both databases. PostgreSQL accepts what
// they forbid, so that tests on PostgreSQL alone would not see it.

var (
	comments     = regexp.MustCompile(`(?m)--.*$`)
	literals     = regexp.MustCompile(`'(?:[^']|'')*'`)
	placeholder  = regexp.MustCompile(`\$(\d+)(::[A-Z0-9]+(?:\[\])?)?`)
	mutationVerb = regexp.MustCompile(`\b(INSERT INTO|UPDATE|DELETE FROM)\s+([a-z_]+)\b`)
	orderedScan  = regexp.MustCompile(`(?s)FROM\s+(timers|runs|schedules)\s+AS\s+\w+\s+WHERE[^()]*(?:\([^()]*\)[^()]*)*?ORDER BY`)
	bounded      = regexp.MustCompile(`LIMIT (1001|10000|1000000)\b`)
	limit        = regexp.MustCompile(`LIMIT\s+(\S+)`)
)

// forbidden is what CockroachDB lacks or does otherwise.
var forbidden = map[string]*regexp.Regexp{
	"make_interval":                 regexp.MustCompile(`(?i)make_interval`),
	"advisory locks":                regexp.MustCompile(`(?i)advisory`),
	"LISTEN or NOTIFY":              regexp.MustCompile(`(?i)\b(LISTEN|NOTIFY|pg_notify)\b`),
	"DEFERRABLE":                    regexp.MustCompile(`(?i)DEFERRABLE`),
	"EXCLUDE constraints":           regexp.MustCompile(`\bEXCLUDE\b`),
	"NULLS NOT DISTINCT":            regexp.MustCompile(`(?i)NULLS\s+NOT\s+DISTINCT`),
	"ctid":                          regexp.MustCompile(`\bctid\b`),
	"MERGE":                         regexp.MustCompile(`\bMERGE\b`),
	"UPSERT":                        regexp.MustCompile(`\bUPSERT\b`),
	"TABLESAMPLE":                   regexp.MustCompile(`(?i)TABLESAMPLE`),
	"SERIAL":                        regexp.MustCompile(`(?i)\b(BIG|SMALL)?SERIAL\b`),
	"INT or INTEGER without a size": regexp.MustCompile(`\b(INT|INTEGER|BIGINT)\b`),
	"integer division":              regexp.MustCompile(`[\w)]\s*/\s*[\w(]`),
	"SELECT *":                      regexp.MustCompile(`SELECT\s+\*|RETURNING\s+\*`),
	"gen_random_uuid":               regexp.MustCompile(`gen_random_uuid`),
	"hashtext and its kind":         regexp.MustCompile(`\bhash\w+\(`),
	"a template verb":               regexp.MustCompile(`%[sdv]`),
}

// bare returns a statement without comments and string literals.
func bare(text string) string {
	return literals.ReplaceAllString(comments.ReplaceAllString(text, ""), "''")
}

// lint returns what is wrong with one statement.
func lint(text string) []string {
	sql := bare(text)
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if !strings.HasPrefix(text, "-- ") || !strings.Contains(comments.FindString(text)+text, "ndex") {
		complain("its comment does not say which index serves it")
	}
	for name, pattern := range forbidden {
		if pattern.MatchString(sql) {
			complain("uses %s", name)
		}
	}
	for _, m := range placeholder.FindAllStringSubmatch(sql, -1) {
		switch {
		case m[1] == "1" && m[2] != "":
			complain("casts the region, which is an enum on CockroachDB")
		case m[1] != "1" && m[2] == "" || m[1] == "1" && m[2] == "" && !strings.Contains(sql, "region = $1") && !strings.Contains(sql, "VALUES ($1"):
			complain("has $%s without a cast", m[1])
		}
	}
	seen := map[string]bool{}
	for _, m := range mutationVerb.FindAllStringSubmatch(sql, -1) {
		if m[2] == "SET" || m[2] == "of" || m[2] == "skip" {
			continue
		}
		if seen[m[2]] {
			complain("changes %s twice", m[2])
		}
		seen[m[2]] = true
	}
	if orderedScan.MatchString(sql) {
		for _, m := range limit.FindAllStringSubmatch(sql, -1) {
			if strings.HasPrefix(m[1], "$") && !bounded.MatchString(sql) {
				complain("scans with a LIMIT that is not a literal")
			}
		}
		if !limit.MatchString(sql) {
			complain("scans in order without a LIMIT")
		}
	}
	if strings.Count(strings.TrimSpace(sql), ";") != 1 {
		complain("is not exactly one statement with its semicolon")
	}
	return append(wrong, lintRegions(sql)...)
}

// tablesOf finds each use of a table with its alias.
var tablesOf = regexp.MustCompile(`\b(?:FROM|JOIN|UPDATE|USING)\s+(timers|runs|schedules|attempts|shard_leases|claimers|alerts|api_keys|calendars|backfills|backfill_slots|queues|permits)\s+AS\s+(\w+)`)

// lintRegions demands that every table in use is held to one region, by itself
// or through a table that is.
func lintRegions(sql string) []string {
	var wrong []string
	for _, m := range tablesOf.FindAllStringSubmatch(sql, -1) {
		held := regexp.MustCompile(`\b` + m[2] + `\.region\s*=\s*(\$1|\w+\.region)`)
		if !held.MatchString(sql) {
			wrong = append(wrong, fmt.Sprintf("does not hold %s AS %s to a region", m[1], m[2]))
		}
	}
	if strings.Contains(sql, " FROM ") && !strings.Contains(sql, "$1") && len(tablesOf.FindAllString(sql, -1)) > 0 {
		wrong = append(wrong, "names no region")
	}
	return wrong
}

// everywhere are the statements that look at all regions: a day of history is
// dropped for all of them, on PostgreSQL only, and people look after all of them.
var everywhere = map[string]bool{"day_alive": true, "hand_over_intervals": true, "regions": true}

func TestDialect(t *testing.T) {
	t.Parallel()
	all, err := database.Statements()
	if err != nil || len(all) < 20 {
		t.Fatalf("found %d statements, %v", len(all), err)
	}
	for name, text := range all {
		if name == "now" {
			continue // reads no table
		}
		for _, wrong := range lint(text) {
			if everywhere[name] && strings.Contains(wrong, "region") {
				continue
			}
			t.Errorf("%s.sql %s", name, wrong)
		}
	}
}

// TestDialectLint shows that the rules find what they are for.
func TestDialectLint(t *testing.T) {
	t.Parallel()
	const good = "-- Good. Index: runs_pkey.\nSELECT r.state FROM runs AS r WHERE r.region = $1 AND r.schedule_id = $2::UUID ORDER BY r.wake_at LIMIT 64;\n"
	if wrong := lint(good); len(wrong) > 0 {
		t.Fatalf("the good statement is refused: %q", wrong)
	}
	for name, c := range map[string]struct{ old, instead, want string }{
		"cast missing":       {"$2::UUID", "$2", "without a cast"},
		"cast of the region": {"region = $1", "region = $1::TEXT", "casts the region"},
		"limit not literal":  {"LIMIT 64", "LIMIT $3::INT8", "not a literal"},
		"no limit":           {"LIMIT 64", "", "without a LIMIT"},
		"no region":          {"r.region = $1 AND ", "$1 = '' AND ", "to a region"},
		"two mutations":      {"SELECT r.state FROM runs AS r", "WITH x AS (UPDATE runs AS r SET a = b WHERE r.region = $1) DELETE FROM runs AS r", "twice"},
		"make_interval":      {"r.state", "make_interval(secs => 1)", "make_interval"},
		"advisory lock":      {"r.state", "pg_advisory_lock(1)", "advisory"},
		"division":           {"r.state", "r.attempt / 2", "division"},
		"star":               {"r.state", "*", "SELECT *"},
		"integer type":       {"$2::UUID", "$2::INT", "without a size"},
		"no index named":     {"-- Good. Index: runs_pkey.", "-- Good.", "which index"},
		"two statements":     {"LIMIT 64;", "LIMIT 64; SELECT r.a FROM runs AS r WHERE r.region = $1;", "exactly one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong := lint(strings.Replace(good, c.old, c.instead, 1))
			if !strings.Contains(strings.Join(wrong, "; "), c.want) {
				t.Errorf("the rules say %q, want something with %q", wrong, c.want)
			}
		})
	}
}

// keyOrder is what the folders write differently: PostgreSQL's planner takes a
// leading region for selective as long as it has no statistics, and then reads
// a whole table instead of a key.
var keyOrder = strings.NewReplacer(
	"(id, region)", "(region, id)",
	"(tenant_id, key, region)", "(region, tenant_id, key)",
	"(schedule_id, scheduled_for, region)", "(region, schedule_id, scheduled_for)",
	"(schedule_id, scheduled_for, attempt, region)", "(region, schedule_id, scheduled_for, attempt)",
)

// TestMigrationFolders compares the two folders: both make the same tables with
// the same columns, and CockroachDB's has one statement a file, outside of a
// transaction.
func TestMigrationFolders(t *testing.T) {
	t.Parallel()
	tables := map[string]map[string]string{}
	for _, folder := range []string{"postgres", "cockroachdb"} {
		tables[folder] = map[string]string{}
		files, err := fs.Glob(database.MigrationFiles, "migrations/"+folder+"/*.sql")
		if err != nil || len(files) == 0 {
			t.Fatalf("no migrations in %s: %v", folder, err)
		}
		for _, f := range files {
			text, err := fs.ReadFile(database.MigrationFiles, f)
			if err != nil {
				t.Fatal(err)
			}
			if folder == "cockroachdb" {
				if n := strings.Count(bare(string(text)), ";"); n != 1 || !strings.Contains(string(text), "-- +goose NO TRANSACTION") {
					t.Errorf("%s has %d statements, or a transaction", f, n)
				}
			}
			for _, m := range regexp.MustCompile(`(?s)ALTER TABLE (\w+)(.*?);`).FindAllStringSubmatch(string(text), -1) {
				if strings.Contains(m[2], "ADD COLUMN") {
					tables[folder][m[1]+" later"] += strings.Join(strings.Fields(m[2]), " ")
				}
			}
			for _, m := range regexp.MustCompile(`(?s)CREATE TABLE (\w+) \((.*?)\n\)`).FindAllStringSubmatch(string(text), -1) {
				tables[folder][m[1]] = strings.ReplaceAll(keyOrder.Replace(strings.Join(strings.Fields(m[2]), " ")), "crdb_internal_region", "TEXT")
			}
		}
	}
	if len(tables["postgres"]) < 8 {
		t.Errorf("found only %d tables", len(tables["postgres"]))
	}
	for name, columns := range tables["postgres"] {
		if tables["cockroachdb"][name] != columns {
			t.Errorf("table %s differs:\n%s\n%s", name, columns, tables["cockroachdb"][name])
		}
	}
}

// TestReads: what changes something is never sent again blindly. FOR UPDATE
// counts as a change, to be on the safe side.
func TestReads(t *testing.T) {
	t.Parallel()
	all, err := database.Statements()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{
		"preload": true, "poll": true, "read_timers": true, "read_claimed": true, "read_finished": true, "get_schedule": true,
		"list_schedules": true, "named_schedules": true, "filter_schedules": true, "schedules_by_id": true,
		"filter_runs": true, "slot_row": true, "get_backfill": true, "list_backfills": true, "due_backfills": true, "slot_states": true, "overdue": true, "alerts": true, "regions": true, "completed": true, "runs_by_slot": true, "list_runs": true, "get_run": true, "list_attempts": true, "find_key": true, "list_keys": true, "count_schedules": true, "now": true, "day_alive": true, "inspect": true,
		"limited_queues": true, "list_limits": true, "read_permits": true,
		"calendars_of": true, "list_calendars": true, "calendar_users": true,
	}
	for name, text := range all {
		if got := database.Reads(text); got != want[name] {
			t.Errorf("%s: taken for a read: %t", name, got)
		}
	}
}
