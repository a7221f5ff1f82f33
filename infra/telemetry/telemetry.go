// Package telemetry shows what the stages do in the form that Prometheus reads. It
// exists so that they tell of events in their own words and know no metrics.
//
// The series, beside those of Go and of the process:
//
//	fencepost_build_info{version}                      1
//	fencepost_due_timers_total                         timers that came due
//	fencepost_claim_duration_seconds                   claims, by how long they took
//	fencepost_claimed_runs_total{queue,state}          rows that claims made: queued, skipped
//	fencepost_held_runs_total{queue}                   runs that waited for a permit
//	fencepost_dispatched_runs_total{queue}             messages that a queue took
//	fencepost_undelivered_runs_total{queue}            messages that it refused
//	fencepost_republished_runs_total{queue}            messages sent again, since nobody started their runs
//	fencepost_retried_runs_total{queue}                runs whose next attempt came due
//	fencepost_lost_runs_total{queue}                   runs whose heartbeats stopped
//	fencepost_dead_runs_total{queue}                   runs that are dead
//	fencepost_start_lag_seconds{queue}                 first starts of slots, by how long after their time
//	fencepost_finished_attempts_total{queue,state}     attempts, by what became of the run
//	fencepost_lost_leases_total{queue}                 attempts that an executor could not keep
//	fencepost_stale_writes_refused_total{write}        heartbeats and finishes of a former holder
//	fencepost_live_attempts                            under way in the executor
//	fencepost_held_shards                              by the claimer
//	fencepost_failed_rounds_total{stage}               rounds that failed, of claimer or relay
//	fencepost_database_clock_ahead_seconds             the database's clock less this one
//	fencepost_http_request_duration_seconds{route,code}  requests of the API, by how long they took
//
// Queues are those of the installation, routes are patterns: no label has more values
// than somebody configured. None names a tenant or a schedule.
package telemetry

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fencepost/fencepost/core"
)

// lagBuckets are seconds, from what a start takes at best to the longest dispatch lease.
var lagBuckets = []float64{.005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 120, 300, 600}

// Metrics counts what it is told. Make it with New. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	counters map[core.EventKind]*prometheus.CounterVec // by queue
	due      prometheus.Counter
	claims   prometheus.Histogram
	claimed  *prometheus.CounterVec
	lag      *prometheus.HistogramVec
	finished *prometheus.CounterVec
	stale    *prometheus.CounterVec
	failed   *prometheus.CounterVec
	requests *prometheus.HistogramVec
	live     prometheus.Gauge
	shards   prometheus.Gauge
	ahead    prometheus.Gauge
}

// New returns metrics that know the version of the program.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), counters: map[core.EventKind]*prometheus.CounterVec{}}
	for kind, c := range map[core.EventKind]struct{ name, help string }{
		core.EventHeld:        {"held_runs_total", "Runs that waited for a permit of their queue's limit."},
		core.EventDispatched:  {"dispatched_runs_total", "Messages that a queue took."},
		core.EventUndelivered: {"undelivered_runs_total", "Messages that a queue refused; the sweep brings them again."},
		core.EventRepublished: {"republished_runs_total", "Messages sent again, since nobody started their runs."},
		core.EventRetried:     {"retried_runs_total", "Runs whose next attempt came due."},
		core.EventLost:        {"lost_runs_total", "Runs whose heartbeats stopped."},
		core.EventDead:        {"dead_runs_total", "Runs that are dead."},
		core.EventLeaseLost:   {"lost_leases_total", "Attempts that an executor could not keep."},
	} {
		m.counters[kind] = m.counter(c.name, c.help, "queue")
	}
	m.claimed = m.counter("claimed_runs_total", "Rows that claims made.", "queue", "state")
	m.finished = m.counter("finished_attempts_total", "Attempts that ended, by what became of the run.", "queue", "state")
	m.stale = m.counter("stale_writes_refused_total", "Writes of a former holder, which were refused.", "write")
	m.failed = m.counter("failed_rounds_total", "Rounds that failed.", "stage")
	m.due = m.counter("due_timers_total", "Timers that came due.").WithLabelValues()
	m.claims = register(m, prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "fencepost_claim_duration_seconds", Help: "How long claims took.", Buckets: prometheus.ExponentialBuckets(.001, 2, 14),
	}))
	m.lag = register(m, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "fencepost_start_lag_seconds", Help: "How long after their time the first attempts of slots started.", Buckets: lagBuckets,
	}, []string{"queue"}))
	m.requests = register(m, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "fencepost_http_request_duration_seconds", Help: "How long requests of the API took.", Buckets: prometheus.DefBuckets,
	}, []string{"route", "code"}))
	m.live = m.gauge("live_attempts", "Attempts under way in the executor.")
	m.shards = m.gauge("held_shards", "Shards that the claimer holds.")
	m.ahead = m.gauge("database_clock_ahead_seconds", "The database's clock less this machine's.")
	register(m, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "fencepost_build_info", Help: "The version of the program."}, []string{"version"})).
		WithLabelValues(version).Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func register[C prometheus.Collector](m *Metrics, c C) C {
	m.registry.MustRegister(c) // fails only for a name that is there twice
	return c
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return register(m, prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fencepost_" + name, Help: help}, labels))
}

func (m *Metrics) gauge(name, help string) prometheus.Gauge {
	return register(m, prometheus.NewGauge(prometheus.GaugeOpts{Name: "fencepost_" + name, Help: help}))
}

// Observe counts an event; it is a core.Observe.
func (m *Metrics) Observe(e core.Event) {
	switch e.Kind {
	case core.EventDue:
		m.due.Add(float64(e.N))
	case core.EventClaim:
		m.claims.Observe(e.Took.Seconds())
	case core.EventClaimed:
		m.claimed.WithLabelValues(e.Queue, string(e.State)).Add(float64(e.N))
	case core.EventStarted:
		if e.Took >= 0 {
			m.lag.WithLabelValues(e.Queue).Observe(e.Took.Seconds())
		}
	case core.EventFinished:
		m.finished.WithLabelValues(e.Queue, string(e.State)).Add(float64(e.N))
	case core.EventStale:
		m.stale.WithLabelValues(e.What).Add(float64(e.N))
	case core.EventFailed:
		m.failed.WithLabelValues(e.What).Inc()
	case core.EventRequest:
		m.requests.WithLabelValues(route(e.What), strconv.Itoa(e.N)).Observe(e.Took.Seconds())
	case core.EventLive:
		m.live.Set(float64(e.N))
	case core.EventShards:
		m.shards.Set(float64(e.N))
	case core.EventOffset:
		m.ahead.Set(e.Took.Seconds())
	default:
		if c, ok := m.counters[e.Kind]; ok && e.N > 0 {
			c.WithLabelValues(e.Queue).Add(float64(e.N))
		}
	}
}

// route names a request that no route fits, of which there is no end.
func route(pattern string) string {
	if pattern == "" {
		return "none"
	}
	return pattern
}

// ServeHTTP answers with the series as text.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}
