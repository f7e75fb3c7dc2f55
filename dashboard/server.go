package dashboard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/godwit-ps/godwit/dashboard/page"
)

// A Config says what is served where.
type Config struct {
	// Dir is the folder of a run's trace, or one with such folders. Runs that begin later are found.
	Dir string
	// Addr is the host:port to listen at; without a host, that is loopback.
	Addr string
	// TLS, where set, secures the connections. Without it, only loopback is listened at. Its own certificate is
	// shown; none is asked for, because browsers have the token.
	TLS *tls.Config
	// Live says that the runs there are under way: a node that is missing will come.
	Live bool
}

// A Server serves the dashboard. Any goroutine may use it.
type Server struct {
	http    http.Server
	listen  net.Listener
	door    *door
	runs    *runs
	ends    context.CancelFunc // the streams
	busy    chan struct{}      // has one element for each request that is worked on
	streams chan struct{}      // … and for each page that is open
	done    chan struct{}
	err     error // of the server; set when done is closed
}

// How long a request may take, and a browser may be silent.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
	writeTimeout  = 30 * time.Second
)

// Address returns an address without a host as one of loopback, or says what is wrong with it. Other machines are
// only listened to with TLS.
func Address(addr string, secured bool) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("address %q: %w; want host:port, or :port for loopback", addr, err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("address %q: want a port of 0 … 65535", addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); !secured && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", fmt.Errorf("address %q: other machines reach it, and could read what goes over the network: give the certificates of the run (--tls-cert, --tls-key, --tls-ca), or listen at 127.0.0.1 and come by \"ssh -L\"", addr)
	}
	return net.JoinHostPort(host, port), nil
}

// Serve begins to serve a folder.
func Serve(c Config) (*Server, error) {
	addr, err := Address(c.Addr, c.TLS != nil)
	if err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	s := &Server{listen: l, door: newDoor(l.Addr(), c.TLS), runs: newRuns(c.Dir, c.Live), busy: make(chan struct{}, mostRequests), streams: make(chan struct{}, mostStreams), done: make(chan struct{})}
	if c.TLS != nil {
		t := c.TLS.Clone()
		t.ClientAuth, t.NextProtos = tls.NoClientCert, []string{"http/1.1"}
		l = tls.NewListener(l, t)
	}
	ctx, ends := context.WithCancel(context.Background())
	s.ends = ends
	s.http = http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.err = fmt.Errorf("dashboard: %w", err)
		}
	}()
	return s, nil
}

// URL returns what to open in a browser. It has the token in it.
func (s *Server) URL() string {
	u := url.URL{Scheme: "http", Host: s.listen.Addr().String(), Path: "/", RawQuery: "token=" + s.door.token}
	if s.door.secured {
		u.Scheme = "https"
	}
	return u.String()
}

// Close ends the server. It waits for requests that are under way up to the end of ctx, and then closes their connections. That is no error.
func (s *Server) Close(ctx context.Context) error {
	s.ends()
	err := s.http.Shutdown(ctx)
	if err != nil && ctx.Err() != nil {
		err = s.http.Close()
	}
	<-s.done
	return errors.Join(err, s.err, s.runs.close(ctx))
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for path, answer := range map[string]func(*request) (any, error){
		"/api/runs": s.list, "/api/run": s.run, "/api/keys": s.keys, "/api/heat": s.heat, "/api/instant": s.instant, "/api/key/{key}": s.key,
		"/api/affinity": s.affinity, "/api/cluster": s.cluster, "/api/compare": s.compare, "/api/overview": s.overview, "/api/tour": s.tour,
	} {
		mux.Handle("GET "+path, s.answer(answer))
	}
	mux.HandleFunc("GET /events", s.stream)
	mux.Handle("GET /", files(page.Files()))
	return s.door.guard(mux)
}
