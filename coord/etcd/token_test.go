package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/etcd/server"
)

// stranger is a client of etcd's own that gives what a says and nothing else.
func stranger(t *testing.T, a Access) *clientv3.Client {
	t.Helper()
	cl, err := a.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cl.Close() })
	return cl
}

// strange calls what a stranger may try, and returns the errors by name.
func strange(ctx context.Context, cl *clientv3.Client) map[string]error {
	errs := map[string]error{}
	_, errs["read"] = cl.Get(ctx, root, clientv3.WithPrefix())
	_, errs["write"] = cl.Put(ctx, keysOf("r").config(), "evil")
	_, errs["delete"] = cl.Delete(ctx, root, clientv3.WithPrefix())
	_, errs["transaction"] = cl.Txn(ctx).Then(clientv3.OpGet("k")).Commit()
	_, errs["compact"] = cl.Compact(ctx, 1)
	_, errs["lease"] = cl.Grant(ctx, 60)
	_, errs["leases"] = cl.Leases(ctx)
	_, errs["revoke"] = cl.Revoke(ctx, 1)
	_, errs["members"] = cl.MemberList(ctx)
	_, errs["add a member"] = cl.MemberAdd(ctx, []string{"http://127.0.0.1:1"})
	_, errs["add a user"] = cl.UserAdd(ctx, "root", "evil")
	_, errs["users"] = cl.UserList(ctx)
	_, errs["ask for etcd's users"] = cl.AuthStatus(ctx)
	_, errs["alarms"] = cl.AlarmList(ctx)
	_, errs["status"] = cl.Status(ctx, cl.Endpoints()[0])
	_, errs["hash"] = cl.HashKV(ctx, cl.Endpoints()[0], 0)
	for { // a stream that was refused before anything was sent on it only says that it is over
		if _, errs["renew"] = cl.KeepAliveOnce(ctx, 1); !errors.Is(errs["renew"], io.EOF) || ctx.Err() != nil {
			break
		}
	}
	snapshot, err := cl.Snapshot(ctx)
	if err == nil {
		_, err = io.ReadAll(snapshot)
	}
	errs["copy everything"] = err
	watch := <-cl.Watch(ctx, root, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	errs["watch"] = watch.Err()
	if watch.Created && !watch.Canceled {
		errs["watch"] = nil
	}
	return errs
}

func TestWhoHasNotTheTokenCanDoNothing(t *testing.T) {
	e := serve(t)
	if err := e.Access().Configure(t.Context(), "r", []byte("good")); err != nil {
		t.Fatal(err)
	}
	for what, token := range map[string]string{"none": "", "another": "A-TOKEN-THAT-IS-ANOTHER", "a part": e.Access().Token[:20], "more": e.Access().Token + "x"} {
		a := e.Access()
		a.Token = token
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		for call, err := range strange(ctx, stranger(t, a)) {
			if status.Code(err) != codes.Unauthenticated && !strings.Contains(fmt.Sprint(err), "the token of its run") {
				t.Errorf("with %s: %s: got %v, want that it is refused", what, call, err)
			}
		}
		cancel()
		says := "was given another"
		if token == "" {
			says = "was given none"
		}
		begin := time.Now()
		_, cerr := a.Configuration(t.Context(), "r")
		_, jerr := a.Join(t.Context(), coord.Config{Run: "r", Nodes: 1, Addr: "a:1", Join: limit})
		for _, err := range []error{cerr, jerr, a.Configure(t.Context(), "r", []byte("evil")), a.Forget(t.Context(), "r")} {
			if !errors.Is(err, coord.ErrAccess) || errors.Is(err, coord.ErrCoordinator) || !strings.Contains(err.Error(), a.Endpoints[0]) || !strings.Contains(err.Error(), says) {
				t.Errorf("with %s: got %v, want %q", what, err, says)
			}
			if token != "" && strings.Contains(fmt.Sprint(err), token) {
				t.Errorf("the error tells the token: %v", err)
			}
		}
		if d := time.Since(begin); d > limit {
			t.Errorf("with %s: it was refused after %v", what, d)
		}
	}
	if b, err := e.Access().Configuration(t.Context(), "r"); string(b) != "good" || err != nil {
		t.Errorf("the configuration became %q, %v", b, err)
	}
}

func TestACertificateAloneDoesNotReplaceTheToken(t *testing.T) {
	e, pool, pair := secureServer(t)
	a := secured(e, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}})
	if err := a.Configure(t.Context(), "r", []byte("good")); err != nil {
		t.Errorf("with both: %v", err)
	}
	a.Token = ""
	for call, err := range strange(t.Context(), stranger(t, a)) {
		if status.Code(err) != codes.Unauthenticated && !strings.Contains(fmt.Sprint(err), "the token of its run") {
			t.Errorf("%s: got %v, want that it is refused", call, err)
		}
	}
}

func TestWhatIsNoTokenIsSaidAtOnce(t *testing.T) {
	for _, token := range []string{":password", "user:", "a b", "\n"} {
		if _, err := (Access{Endpoints: []string{"127.0.0.1:1"}, Token: token}).Configuration(t.Context(), "r"); err == nil || errors.Is(err, coord.ErrCoordinator) {
			t.Errorf("%q: got %v, want that it is no token", token, err)
		}
	}
}

// foreign starts an etcd as somebody else does. With users, it has root:secret, who
// may do everything, and reader:secret, who may read; what it gives who has named
// himself holds for a second.
func foreign(t *testing.T, users bool) Access {
	t.Helper()
	c := embed.NewConfig()
	c.Dir = t.TempDir()
	at := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	c.Name, c.TickMs, c.ElectionMs, c.UnsafeNoFsync = "foreign", 20, 200, true
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{at}, []url.URL{at}
	c.ListenPeerUrls, c.AdvertisePeerUrls = nil, []url.URL{at}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.QuotaBackendBytes, c.AuthTokenTTL, c.BcryptCost = 64<<20, 1, 4
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Server.HardStop(); e.Close() })
	<-e.Server.ReadyNotify()
	if users {
		cl := v3client.New(e.Server)
		must := func(_ any, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(cl.RoleAdd(t.Context(), "readers"))
		must(cl.RoleGrantPermission(t.Context(), "readers", root, clientv3.GetPrefixRangeEnd(root), clientv3.PermissionType(clientv3.PermRead)))
		for user, role := range map[string]string{"root": "root", "reader": "readers"} {
			must(cl.UserAdd(t.Context(), user, "secret"))
			must(cl.UserGrantRole(t.Context(), user, role))
		}
		must(cl.AuthEnable(t.Context()))
		_ = cl.Close()
	}
	return Access{Endpoints: []string{"http://" + e.Clients[0].Addr().String()}}
}

func TestAnEtcdWithoutUsersIsOpenToAll(t *testing.T) {
	a := foreign(t, false)
	for _, token := range []string{"", "some-token-of-no-use", "user:password"} {
		a.Token = token
		s, err := a.Join(t.Context(), coord.Config{Run: "r", Nodes: 1, Addr: "a:1", Join: limit, TTL: ttl})
		if err != nil {
			t.Fatalf("with %q: %v", token, err)
		}
		if err := errors.Join(s.Barrier(t.Context(), "b"), s.Close(t.Context())); err != nil {
			t.Errorf("with %q: %v", token, err)
		}
	}
}

func TestAnEtcdWithUsersWantsOne(t *testing.T) {
	t.Parallel()
	a := foreign(t, true)
	for token, says := range map[string]string{
		"":                          "was given no user and password",
		"a-token-without-a-user":    "was given no user and password",
		"root:wrong":                "does not know this user",
		"nobody:secret":             "does not know this user",
		"reader:secret":             `may not read and write the keys that begin with "godwit/"`,
		"root:secret:with:a:colon:": "does not know this user",
	} {
		a.Token = token
		err := a.Configure(t.Context(), "r", []byte("x"))
		if !errors.Is(err, coord.ErrAccess) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), a.Endpoints[0]) {
			t.Errorf("with %q: got %v, want %q", token, err, says)
		}
	}
	a.Token = "root:secret"
	cfg := coord.Config{Run: "r", Nodes: 1, Addr: "a:1", Join: limit, TTL: 20 * time.Second}
	s, err := a.Join(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	// What etcd gave for the password does not hold as long as a third of the TTL,
	// after which the lease is renewed, nor until the next message.
	for range 3 {
		select {
		case <-s.Done():
			t.Fatal(s.Err())
		case <-time.After(3 * time.Second):
		}
		if err := s.Barrier(t.Context(), "b"); err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// An etcd with users that is about to start is waited for like any other, and not
// longer than wanted.
func TestAnEtcdWithUsersThatIsNotThereIsWaitedFor(t *testing.T) {
	a := Access{Endpoints: []string{"127.0.0.1:1"}, Token: "root:secret"}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := a.Configuration(short, "r"); !errors.Is(err, coord.ErrCoordinator) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v, want that the time is over and nobody listens", err)
	}
	reason := errors.New("somebody pressed a key")
	stopped, stop := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { stop(reason) })
	if _, err := a.Configuration(stopped, "r"); !errors.Is(err, reason) {
		t.Errorf("got %v, want %v", err, reason)
	}
}

// What does not pass is not waited for, unless there is another endpoint.
func TestWhatLastsIsToldAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, caKey := certificate(t, dir, "ca", nil, nil)
	certificate(t, dir, "node", ca, caKey)
	secure, err := startServer(t.Context(), server.Config{
		TLS: &server.TLSFiles{Cert: filepath.Join(dir, "node.pem"), Key: filepath.Join(dir, "node.key"), CA: filepath.Join(dir, "ca.pem")},
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer secure.Close()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "node.pem"), filepath.Join(dir, "node.key"))
	if err != nil {
		t.Fatal(err)
	}
	misnamed := secured(secure, &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}, ServerName: "elsewhere"})
	misnamed.TLS.RootCAs.AddCert(ca)
	plain := secure.Access()
	plain.Endpoints = []string{strings.Replace(plain.Endpoints[0], "https", "http", 1)}
	for says, a := range map[string]Access{"the name that the certificate of etcd carries": misnamed, "it speaks TLS only": plain} {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		_, err := a.Configuration(ctx, "r")
		_, jerr := a.Join(ctx, coord.Config{Run: "r", Nodes: 1, Addr: "a:1", Join: limit})
		for _, err := range []error{err, jerr} {
			if !errors.Is(err, coord.ErrCoordinator) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), a.Endpoints[0]) {
				t.Errorf("got %v, want %q before the time is over", err, says)
			}
		}
		cancel()
	}
	starting, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer starting.Close()
	go func() { // until it is closed
		for c, err := starting.Accept(); err == nil; c, err = starting.Accept() {
			_ = c.Close()
		}
	}()
	for _, other := range []string{"127.0.0.1:1", starting.Addr().String()} {
		a := misnamed
		a.Endpoints = append(slices.Clone(a.Endpoints), other) // an etcd that may be about to start
		ctx, cancel := context.WithTimeout(t.Context(), 3*probeInterval)
		if _, err := a.Configuration(ctx, "r"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with another endpoint, %s: got %v, want that it is waited for", other, err)
		}
		cancel()
	}
}
