package metrics

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A Config says what is served where.
type Config struct {
	// Addr is the host:port to listen at. Without a host that is loopback.
	Addr string
	// TLS, where set, has the server ask for certificates of those who come.
	TLS *tls.Config
	// Profiles has /debug/pprof/ be served as well.
	Profiles bool
	// Run and Self name the node, in the labels "run" and "node" of all its metrics.
	Run  string
	Self int // the node's number
	// Policy and Version are labels of the metric godwit_node_info.
	Policy, Version string
}

// A Server serves the metrics of one node. Any goroutine may use it.
type Server struct {
	http   http.Server
	listen net.Listener
	state  atomic.Pointer[string] // why the node is not ready; nil: it is
	done   chan struct{}
	err    error // of the server; set when done is closed
}

// How long a scrape may take, and a client may be silent.
const (
	scrapeTimeout = 30 * time.Second
	readTimeout   = 5 * time.Second  // in which all of a request comes
	writeTimeout  = 40 * time.Second // in which an answer is read; package pprof adds the time that a profile lasts
	idleTimeout   = 2 * time.Minute
	maxScrapes    = 4 // at a time; others are told to come later
)

// Loopback returns an address without a host as one of loopback.
func Loopback(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("metrics: address %q: %w; want host:port, or :port for loopback", addr, err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("metrics: address %q: want a port of 0 … 65535", addr)
	} else if host == "" {
		host = "127.0.0.1"
		port = strconv.FormatUint(n, 10)
	}
	return net.JoinHostPort(host, port), nil
}

// Serve begins to serve a node's metrics. The server must be closed before the node.
func Serve(n Node, c Config) (*Server, error) {
	addr, err := Loopback(c.Addr)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if c.TLS != nil {
		l = tls.NewListener(l, c.TLS)
	}
	s := &Server{listen: l, done: make(chan struct{})}
	s.Unready("the run has not begun")
	s.http = http.Server{Handler: s.handler(n, c), ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 16 << 10}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.err = fmt.Errorf("metrics: %w", err)
		}
	}()
	return s, nil
}

// Addr returns the address that the server listens at.
func (s *Server) Addr() string { return s.listen.Addr().String() }

// Ready has /readyz say that the node is part of the run.
func (s *Server) Ready() { s.state.Store(nil) }

// Unready has /readyz say why the node is not.
func (s *Server) Unready(why string) { s.state.Store(&why) }

// Close ends the server. It waits for answers that are under way up to the end of ctx, and then closes their connections. That is no error.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil && ctx.Err() != nil {
		err = s.http.Close()
	}
	<-s.done
	return errors.Join(err, s.err)
}

func (s *Server) handler(n Node, c Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(Registry(n, c), promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := s.state.Load(); why != nil {
			http.Error(w, *why, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	if c.Profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	}
	return mux
}

// Registry returns the metrics of a node and its process.
func Registry(n Node, c Config) *prometheus.Registry {
	c.Run, c.Policy, c.Version = label(c.Run), label(c.Policy), label(c.Version)
	labels := prometheus.Labels{"run": c.Run, "node": strconv.Itoa(c.Self)}
	r := prometheus.NewRegistry()
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "godwit_node_info", Help: "Which policy and version the node has; always 1.",
		ConstLabels: prometheus.Labels{"run": c.Run, "node": strconv.Itoa(c.Self), "policy": c.Policy, "version": c.Version}})
	info.Set(1)
	own := prometheus.WrapRegistererWith(labels, r)
	own.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.MustRegister(info, &collector{node: n, labels: labels, policy: c.Policy})
	return r
}
