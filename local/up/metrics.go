package up

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/fencepost/fencepost/core"
)

const metricsPath = "/metrics"

// checkMetrics refuses an address that is none.
func (c *Config) checkMetrics() error {
	if c.MetricsListen == "" {
		return nil
	}
	if _, err := net.ResolveTCPAddr("tcp", c.MetricsListen); err != nil {
		return core.Invalid("--metrics-listen", `is not an address such as "127.0.0.1:9090"`)
	}
	return nil
}

// withMetrics serves the metrics beside the API, without a key, where only this machine
// reaches it: how much an installation does is nobody else's business. Elsewhere
// --metrics-listen is to say where they are read.
func (p *process) withMetrics(h http.Handler, l net.Listener) http.Handler {
	address, ok := l.Addr().(*net.TCPAddr)
	if p.c.MetricsListen != "" || !ok || !address.IP.IsLoopback() {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == metricsPath {
			p.metrics.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// serveMetrics serves the metrics at an address of their own until ctx is done.
func (p *process) serveMetrics(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", p.c.MetricsListen)
	if err != nil {
		return fmt.Errorf("choose another address with --metrics-listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsPath, p.metrics)
	server := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
	ended := context.AfterFunc(ctx, func() { _ = server.Close() }) // who reads tries again
	defer ended()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
