package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/tlsutil"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

// A Config says how to run an etcd in this process. The zero value is a server on
// loopback that leaves nothing behind.
type Config struct {
	// Dir is where the data is kept. Empty: in a temporary folder that Close
	// removes, and without syncing to disk. If the process is killed, the next
	// server of this kind on the machine removes it.
	Dir string
	// Listen is the host:port at which clients reach the server; empty is
	// 127.0.0.1:0, where port 0 is any free one.
	Listen string
	// Token is what every client must give: 16 … 256 printable characters of
	// ASCII, no blank and no colon ([CheckToken]). Empty: a new one, see [Server.Token].
	// Who listens to connections without TLS can read it.
	Token string
	// TLS, where set, makes the server and its clients prove who they are.
	TLS *TLSFiles
	// Log gets the server's errors; nil writes them to stderr as text.
	Log *slog.Logger
}

// TLSFiles names PEM files: the server's certificate and key, and the authority
// that must have signed the clients' certificates.
type TLSFiles struct {
	Cert, Key, CA string // paths of the files
}

// anyPort is where clients reach a server of which nothing else is said.
const anyPort = "127.0.0.1:0"

// quota bounds the data, in bytes: the messages of the last minutes, most of them
// about 100 bytes long. The server reserves a tenth more of address space, rounded
// up to 1 GiB (10 GiB without a quota), and takes memory only as it is used.
const quota = 896 << 20

// The log of writes is cut into files whose space is taken in advance: 64 MB, twice,
// unless it is said otherwise. The messages of a run need a fraction of that.
func init() { wal.SegmentSizeBytes = 4 << 20 }

// A Server is a running etcd of one member. It belongs to the goroutine that
// started it; Endpoints and Token may be called by any.
type Server struct {
	etcd      *embed.Etcd
	endpoints []string
	token     string
	dir       string             // of the data
	temp      *temporary         // nil: the data is kept
	end       context.CancelFunc // nothing is served any more
}

// How long a server may take. A file system that does not answer, such as one of a network, cannot be interrupted: what waits
// for it is left to itself, and goes on if it answers.
const (
	startTime = time.Minute
	closeTime = 30 * time.Second
	lastWord  = 500 * time.Millisecond // after the end of a context, to clean up
)

// Start starts a server and returns when it serves, or with an error that names
// the address at which it was to listen. It takes a minute at the most. The server must be closed.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("it does not serve after %v", startTime))
	defer cancel()
	var s *Server
	answered, err := waitFor(ctx, lastWord, func() (err error) {
		s, err = start(ctx, cfg)
		return err
	})
	if !answered {
		return nil, fmt.Errorf("coord: embedded etcd on %s: not ready: %w: %s", cmp.Or(cfg.Listen, anyPort), context.Cause(ctx), slow(cmp.Or(cfg.Dir, os.TempDir())))
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// slow says what a wait for etcd's data mostly comes from.
func slow(dir string) string {
	return fmt.Sprintf("its data are in %s, which has to be on a disk that answers (TMPDIR says where temporary data are)", dir)
}

// waitFor does something, and waits for it until a context has ended, and a little longer. It reports whether it was done by then: else it goes on, and
// is not waited for.
func waitFor(ctx context.Context, longer time.Duration, do func() error) (answered bool, err error) {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err = <-done:
		return true, err
	case <-ctx.Done():
	}
	select {
	case err = <-done:
		return true, err
	case <-time.After(longer):
		return false, nil
	}
}

// start is Start, which nobody may wait for any more when ctx has ended.
func start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Token == "" {
		cfg.Token = rand.Text()
	}
	life, end := context.WithCancel(context.Background())
	c, temp, err := cfg.embed(life)
	if err != nil {
		end()
		return nil, fmt.Errorf("coord: embedded etcd: %w", err)
	}
	s := &Server{token: cfg.Token, dir: c.Dir, temp: temp, end: end}
	if s.etcd, err = embed.StartEtcd(c); err != nil {
		end()
		_ = temp.remove() // there is an error to tell already
		return nil, fmt.Errorf("coord: embedded etcd on %s: %w", c.ListenClientUrls[0].Host, err)
	}
	select {
	case <-s.etcd.Server.ReadyNotify():
	case err = <-s.etcd.Err():
	case <-s.etcd.Server.StopNotify():
		err = errors.New("the server stopped while it started")
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil {
		err = context.Cause(ctx) // nobody waits for it
	}
	if err != nil {
		_ = s.close()
		return nil, fmt.Errorf("coord: embedded etcd on %s: not ready: %w", c.ListenClientUrls[0].Host, err)
	}
	s.endpoints = []string{c.ListenClientUrls[0].Scheme + "://" + reachable(s.etcd.Clients[0].Addr())}
	return s, nil
}

// embed fills in the server's own configuration. Nothing is served once life has ended.
func (cfg Config) embed(life context.Context) (c *embed.Config, temp *temporary, err error) {
	client := url.URL{Scheme: "http", Host: cfg.Listen}
	if client.Host == "" {
		client.Host = anyPort
	}
	if _, _, err := net.SplitHostPort(client.Host); err != nil {
		return nil, nil, fmt.Errorf("address %q: %w, want host:port", client.Host, err)
	}
	if err := CheckToken(cfg.Token); err != nil {
		return nil, nil, err
	}
	c = embed.NewConfig()
	c.GRPCAdditionalServerOptions = admission(life, cfg.Token)
	// What it serves beside gRPC (metrics, its command line) is for nobody: a
	// request in plain would have to give this as the name of the host.
	c.HostWhitelist = map[string]struct{}{rand.Text(): {}}
	// By TLS it asks for no name. Calls have paths of another form: /etcdserverpb.KV/Range.
	c.UserHandlers = map[string]http.Handler{}
	for _, path := range []string{"/{$}", "/{name}", "/debug/", "/livez/", "/readyz/"} {
		c.UserHandlers[path] = http.NotFoundHandler()
	}
	if cfg.TLS != nil {
		client.Scheme = "https"
		// A certificate proves that its holder belongs to the cluster, whatever
		// address it comes from: nodes may share a name (tcp.TLSFiles).
		c.ClientTLSInfo = transport.TLSInfo{CertFile: cfg.TLS.Cert, KeyFile: cfg.TLS.Key, TrustedCAFile: cfg.TLS.CA, ClientCertAuth: true, SkipClientSANVerify: true}
		c.TlsMinVersion = string(tlsutil.TLSVersion13)
		// It would be noticed at the first connection only.
		if _, err := c.ClientTLSInfo.ServerConfig(); err != nil {
			return nil, nil, fmt.Errorf("TLS: %w", err)
		}
	}
	// One member has no peers. So nothing listens for them: who speaks to a peer's
	// port is not asked who it is. An address is asked for all the same.
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	c.Name = "godwit"
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = nil, []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.QuotaBackendBytes = quota

	// With one member, elections are a formality, and short ones start faster.
	// They also bound the shortest lease from below, at 1.5 elections.
	c.TickMs, c.ElectionMs = 20, 200
	c.EnableGRPCGateway = false
	// Messages overwrite messages: of the history, only what a slow watch has still
	// to see is needed.
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModePeriodic, "5m"

	log := cfg.Log
	if log == nil {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	c.Dir = cfg.Dir
	if c.Dir == "" {
		if temp, err = newTemporary(); err != nil {
			return nil, nil, err
		}
		c.Dir = temp.data()
		c.UnsafeNoFsync = true // nothing is to survive the process
	}
	end := lastAct{log, c.Dir, temp}
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(errorCore{log.With("part", "etcd"), life}, zap.WithFatalHook(end), zap.WithPanicHook(end)))
	return c, temp, nil
}

// reachable is the address at which this machine reaches a listener.
func reachable(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if ok && t.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", fmt.Sprint(t.Port))
	}
	return a.String()
}

// Endpoints says where clients reach the server: http://host:port, or https://
// with TLS. If it listens on all addresses, that is the address for clients of this
// machine. The caller may keep the slice.
func (s *Server) Endpoints() []string { return slices.Clone(s.endpoints) }

// Token is what every client must give.
func (s *Server) Token() string { return s.token }

// Close stops the server and removes its temporary data. It is called once. To
// nodes that are still at work a closed server is a lost coordinator:
// Access.Drain of package coord/etcd waits for them to leave. It takes half a minute at the
// most: data on a file system that does not answer stays where it is, and the error names it.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	answered, err := waitFor(ctx, 0, s.close)
	if !answered {
		return fmt.Errorf("coord: embedded etcd: it has not ended %v after it was told to: %s", closeTime, slow(s.dir))
	}
	return err
}

func (s *Server) close() error {
	// First, or the graceful end would wait seconds for the watches of sessions and the renewals of their leases, which begin
	// again when they are ended.
	s.end()
	s.etcd.Server.HardStop()
	s.etcd.Close()
	return s.temp.remove()
}
