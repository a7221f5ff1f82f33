package database_test

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/fencepost/fencepost/core"
	"github.com/fencepost/fencepost/infra/database"
)

// load fills the tables: 10,000 schedules with their timers, a finished run for
// each in every of 38 day partitions, and a few live runs;
// 10,000 keys, most of them of one tenant; 10,000 idempotency keys; and 100 limits with 100 permits each.
const load = `
INSERT INTO schedules (region, id, tenant_id, name, spec, time_zone, queue, payload, misfire, misfire_grace, overlap, spread, timeout,
                       max_attempts, paused, version, created_at, updated_at)
SELECT 'local', ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::UUID, $1::UUID, 'n' || n, '* * * * *', '', 'test', '{}', 'run_once',
       '1 min', 'skip', '0', '1 min', 5, false, 1, now(), now()
FROM generate_series(1, 10000) AS n;
INSERT INTO timers (region, shard, fire_at, schedule_id, tenant_id, fence, done, last_run)
SELECT 'local', (n % 64)::INT2, now() + n * INTERVAL '1 second', ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::UUID, $1::UUID, 1,
       now(), date_trunc('day', now())
FROM generate_series(1, 10000) AS n;
INSERT INTO runs (region, schedule_id, scheduled_for, tenant_id, shard, state, cause, queue, fence, max_attempts, wake_at, queued_at, created_at)
SELECT 'local', ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::UUID, date_trunc('day', now()) - d * INTERVAL '1 day', $1::UUID,
       (n % 64)::INT2, CASE WHEN d = 0 AND n % 100 = 0 THEN 'queued' ELSE 'succeeded' END, 'schedule', 'test', 65536, 5,
       CASE WHEN d = 0 AND n % 100 = 0 THEN now() END, now(), now()
FROM generate_series(1, 10000) AS n, generate_series(0, 37) AS d WHERE d = 0 OR n % 20 = 0;
INSERT INTO api_keys (region, hash, tenant_id, name, scopes, created_at)
SELECT 'local', sha256(n::TEXT::BYTEA), CASE WHEN n % 10 = 0 THEN gen_random_uuid() ELSE $1::UUID END, 'n' || n, 'read', now() FROM generate_series(1, 10000) AS n;
INSERT INTO idempotency_keys (region, tenant_id, key, request, created_at)
SELECT 'local', $1::UUID, sha256(n::TEXT::BYTEA), sha256(n::TEXT::BYTEA), now() FROM generate_series(1, 10000) AS n;
INSERT INTO attempts (region, schedule_id, scheduled_for, attempt, tenant_id, fence, finished_at, error)
SELECT 'local', ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::UUID, date_trunc('day', now()), 1, $1::UUID, 1, now(), ''
FROM generate_series(1, 10000) AS n;
INSERT INTO queues (region, name, tenant_id, concurrency, updated_at) SELECT 'local', 'q' || n, $1::UUID, 100, now() FROM generate_series(1, 100) AS n;
INSERT INTO permits (region, queue, tenant_id, n, version)
SELECT 'local', 'q' || q, $1::UUID, n, 1 FROM generate_series(1, 100) AS q, generate_series(1, 100) AS n;`

// plans returns each statement of the hot path with arguments and the indexes
// that have to serve it.
func plans(now time.Time, tenant uuid.UUID, analyzed bool) []struct {
	name string
	want []string
	args []any
} {
	var shards []int16
	var lows []time.Time
	for i := range int16(core.Shards) {
		shards, lows = append(shards, i), append(lows, now.Add(-time.Minute))
	}
	ids := make([]uuid.UUID, 500)
	slots, fences, texts := make([]time.Time, 500), make([]int64, 500), make([]string, 500)
	bools, ints, names := make([]bool, 500), make([]int32, 500), make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprint("n", 64*i+1)
	}
	spans, nils := make([]time.Duration, 500), make([]*string, 500)
	for i := range ids {
		ids[i] = uuid.MustParse(fmt.Sprintf("00000000-0000-7000-8000-%012x", 64*i%10000+1))
		slots[i], fences[i], texts[i], ints[i] = now.Truncate(24*time.Hour), 1, "skip", 5
	}
	hash := sha256.Sum256([]byte("1"))
	day := `runs_p\d+_(pkey|region_schedule_id_scheduled_for_idx\d*)`
	schedule := `schedules_(pkey|tenant_idx)`
	// Without statistics PostgreSQL takes a tenant for as selective as a key.
	keys, oneKey := "api_keys_(tenant_idx|id_key)", "api_keys_(tenant_idx|id_key)"
	if analyzed {
		keys, oneKey = "api_keys_tenant_idx", "api_keys_id_key"
	}
	gate := `runs_p\d+_region_queue_gate_tenant_id_queued_at_idx`
	wake := `runs_p\d+_region_shard_wake_at_idx`
	return []struct {
		name string
		want []string
		args []any
	}{
		{"preload", []string{"timers_pkey", "schedules_pkey"}, []any{region, shards, lows, time.Minute}},
		{"poll", []string{"timers_pkey"}, []any{region, shards, lows, time.Second}},
		{"read_timers", []string{"timers_schedule_key", "schedules_pkey"}, []any{region, ids}},
		{"claim", []string{"timers_pkey", day}, []any{
			region, int16(1), ids, slots, fences, slots, slots, slots, slots, texts, time.Second,
			ids, slots, slots, fences, bools, texts, texts, texts, ints, slots, bools, fences, spans, nils, slots, spans,
		}},
		{"cancel_previous", []string{`timers_(pkey|schedule_key)`, day}, []any{region, int16(1), ids, slots, fences, slots, slots}},
		{"start", []string{day, "schedules_pkey", "permits_pkey", "queues_pkey"}, []any{region, time.Second, ids, slots, fences, ids, ids, slots, fences, texts, ids, ints, fences}},
		{"start", []string{day, "schedules_pkey"}, []any{
			region, time.Second, ids, slots, fences, ids, ids[:0], slots[:0], fences[:0], texts[:0], ids[:0], ints[:0], fences[:0],
		}},
		{"read_permits", []string{day, "permits_pkey", "queues_pkey"}, []any{region, ids, slots, fences}},
		{"hold", []string{day}, []any{region, ids, slots, fences}},
		{"admit", []string{day, gate, "permits_pkey", "queues_pkey"}, []any{region, names[:5], 100, time.Second, ids[0]}},
		{"set_limit", nil, []any{region, "test", tenant, 1000}},
		{"drop_limit", []string{"queues_pkey"}, []any{region, "test", tenant}},
		{"limited_queues", []string{"queues_pkey"}, []any{region}},
		{"list_limits", []string{day, gate, "permits_pkey", "queues_pkey"}, []any{region, tenant}},
		{"heartbeat", []string{day}, []any{region, time.Second, ids, slots, fences}},
		{"finish", []string{day}, []any{region, ids, slots, fences, texts, texts, fences, texts, texts, ints}},
		{"nudge", []string{"timers_schedule_key"}, []any{region, ids}},
		{"sweep", []string{wake, day}, []any{region, shards, lows, []string{"test"}, shards, time.Second, time.Minute, time.Second, time.Minute, time.Second}},
		{"get_schedule", []string{schedule, "timers_schedule_key", day}, []any{region, tenant, ids[0]}},
		{"named_schedules", []string{"schedules_name_key", "timers_schedule_key"}, []any{region, tenant, names}},
		{"list_runs", []string{day}, []any{region, tenant, ids[0], now, 100, now.AddDate(0, 0, -9)}},
		{"slot_row", []string{day}, []any{region, tenant, ids[0], now.AddDate(0, 0, -9)}},
		{"filter_runs", []string{day}, []any{region, tenant, ids[0], now.AddDate(0, 0, -9), now, []string{"dead"}, 100}},
		{"completed", []string{"timers_purge_idx"}, []any{region}},
		{"overdue", []string{wake, "timers_pkey"}, []any{region, tenant, shards}},
		{"alerts", []string{"alerts_pkey", "timers_schedule_key", schedule}, []any{region, tenant}},
		{"runs_by_slot", []string{day}, []any{region, tenant, ids[0], slots[:100]}},
		{"list_schedules", []string{schedule, "timers_schedule_key", day}, []any{region, tenant, ids[0], 100}},
		{"count_schedules", []string{"schedules_(tenant_idx|name_key)"}, []any{region, tenant, 100}},
		{"filter_schedules", []string{schedule, "timers_schedule_key"}, []any{
			region, tenant, ids[0], 100, []string{"active"}, "test", "n", `{"a":"b"}`, []string{}, []string{}, []string{},
		}},
		{"schedules_by_id", []string{schedule, "timers_schedule_key", day}, []any{region, tenant, ids[:100]}},
		{"calendars_of", []string{"calendars_pkey"}, []any{region, ids[:2], texts[:2]}},
		{"list_calendars", []string{"calendars_pkey"}, []any{region, tenant}},
		{"calendar_users", []string{"schedules_calendars_idx"}, []any{region, tenant, "a", 100}},
		{"delete_calendar", []string{"calendars_pkey", "schedules_calendars_idx"}, []any{region, tenant, "a", int64(1)}},
		{"raise_fences", []string{"schedules_calendars_idx", "timers_schedule_key"}, []any{region, tenant, "a", ids[0]}},
		{"find_key", []string{"api_keys_pkey"}, []any{region, hash[:]}},
		{"mark_key_used", []string{"api_keys_pkey"}, []any{region, hash[:]}},
		{"list_keys", []string{keys}, []any{region, tenant, now, "key_0", 100}},
		{"revoke_key", []string{oneKey}, []any{region, tenant, "key_0"}},
		{"trigger", []string{schedule, "timers_schedule_key", day}, []any{region, tenant, ids[0], int64(1), now, []byte{1}, "{}", nil}},
		{"get_backfill", []string{"backfills_(pkey|schedule_idx)"}, []any{region, tenant, ids[0]}},
		{"list_backfills", []string{"backfills_(schedule_idx|pkey)"}, []any{region, tenant, ids[0]}},
		{"due_backfills", []string{"backfills_wake_idx"}, []any{region, shards}},
		{"advance_backfill", []string{"backfills_(pkey|schedule_idx)", schedule, "timers_schedule_key"}, []any{
			region, ids[0], int64(1), "running", 1, slots[:2], 0, 0, 0, slots[:2], slots[:2], false, time.Second, nil,
		}},
		{"cancel_backfill", []string{"backfills_(pkey|schedule_idx)"}, []any{region, tenant, ids[0]}},
		{"slot_states", []string{day}, []any{region, tenant, ids[0], slots[:100]}},
		{"drop_backfills", []string{"backfills_finished_idx"}, []any{region, now}},
		{"drop_attempts", []string{"attempts_age_idx"}, []any{region, now, now.AddDate(-1, 0, 0), ids[0], 0}},
		{"drop_tombstones", []string{"schedules_deleted_idx"}, []any{region, now}},
		{"note_lease", []string{"idempotency_keys_pkey"}, []any{region, tenant, []byte{1}, "[]"}},
		{"settle", []string{day}, []any{region, ids, slots, fences}},
		{"redrive", []string{schedule, "timers_schedule_key", day}, []any{region, tenant, ids[0], now, int64(1), nil}},
		{"cancel_run", []string{day}, []any{region, tenant, ids[0], now}},
	}
}

// runsByKey finds how a plan reads a day of runs through its primary key.
var runsByKey = regexp.MustCompile(`using runs_\w+pkey on runs_p(\d+) \w+\n\s+(Index Cond: .*)`)

var scansTable = regexp.MustCompile(`Seq Scan on (timers|runs\w*|schedules|api_keys)\b`)

// TestPlans holds the planner to the intended indexes, without statistics and
// with them, for plans with and without sight of the values.
func TestPlans(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil)
	all, err := database.Statements()
	w.must(err)
	conn, err := pgx.Connect(w.ctx, w.url)
	w.must(err)
	defer conn.Close(w.ctx)
	exec := func(text string) {
		t.Helper()
		_, err := conn.Exec(w.ctx, text)
		w.must(err)
	}
	now := w.now()
	for d := range 38 {
		day := now.Truncate(24*time.Hour).AddDate(0, 0, -d)
		exec(fmt.Sprintf("CREATE TABLE IF NOT EXISTS runs_p%s PARTITION OF runs FOR VALUES FROM ('%s') TO ('%s')",
			day.Format("20060102"), day.Format(time.RFC3339), day.AddDate(0, 0, 1).Format(time.RFC3339)))
	}
	exec(strings.ReplaceAll(load, "$1", "'"+w.tenant.String()+"'"))
	exec("SET enable_seqscan = off") // as on the pools of claimers and executors
	for _, step := range []string{"RESET plan_cache_mode", "ANALYZE"} {
		exec(step)
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			exec("SET plan_cache_mode = " + mode)
			for _, p := range plans(now, w.tenant, step == "ANALYZE") {
				rows, err := conn.Query(w.ctx, "EXPLAIN (COSTS OFF) "+all[p.name], p.args...)
				w.must(err)
				lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
				w.must(err)
				plan := strings.Join(lines, "\n")
				if found := scansTable.FindString(plan); found != "" {
					t.Errorf("%s, %s after %s: %s\n%s", p.name, mode, step, found, plan)
				}
				for _, cond := range runsByKey.FindAllStringSubmatch(plan, -1) {
					// A day to come is empty, and known to be: nothing is read there.
					if cond[1] <= now.Format("20060102") && !strings.Contains(cond[2], "scheduled_for") {
						t.Errorf("%s, %s after %s reads all runs of a schedule: %s\n%s", p.name, mode, step, cond[0], plan)
						break
					}
				}
				for _, want := range p.want {
					if !regexp.MustCompile(`using ` + want + `\b|on ` + want + `\b`).MatchString(plan) {
						t.Errorf("%s, %s after %s does not use %s\n%s", p.name, mode, step, want, plan)
					}
				}
			}
		}
	}
}
