package etcd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/etcd/server"
)

func TestDrainWaitsUntilAllNodesLeft(t *testing.T) {
	e := serve(t)
	s, err := e.Access().Join(t.Context(), coord.Config{Run: "r", Nodes: 1, Addr: "a:1"})
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := e.Access().Drain(short, "r"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a node: got %v, want that the time is over", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := e.Access().Drain(t.Context(), "r"); err != nil {
		t.Errorf("without a node: %v", err)
	}
}

func TestConfigurationIsWaitedFor(t *testing.T) {
	e := serve(t)
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := e.Access().Configuration(short, "r")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"r"`) {
		t.Errorf("without one: got %v, want that the time is over", err)
	}
	for _, want := range []string{"first", strings.Repeat("x", coord.MaxConfiguration)} {
		got := make(chan []byte)
		go func() {
			b, err := e.Access().Configuration(t.Context(), "r")
			if err != nil {
				t.Error(err)
			}
			got <- b
		}()
		if err := e.Access().Configure(t.Context(), "other", []byte("not this")); err != nil {
			t.Fatal(err)
		}
		if err := e.Access().Configure(t.Context(), "r", []byte(want)); err != nil {
			t.Fatal(err)
		}
		if b := <-got; string(b) != want {
			t.Errorf("got %.20q, want %.20q", b, want)
		}
		if err := e.Access().Forget(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Access().Configure(t.Context(), "r", make([]byte, coord.MaxConfiguration+1)); err == nil {
		t.Error("a configuration that is too long was taken")
	}
}

// A node that begins to wait at the etcd of a run that is ending finds the configuration that the next etcd at that address has, though that one
// counts its revisions from the beginning.
func TestAConfigurationIsFoundAtTheNextServerOfAnAddress(t *testing.T) {
	first, err := startServer(t.Context(), server.Config{Token: "a-token-of-both-servers"})
	if err != nil {
		t.Fatal(err)
	}
	a := first.Access()
	for range 20 {
		if err := a.Configure(t.Context(), "other", []byte("not this")); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	go func() {
		b, err := a.Configuration(ctx, "r")
		if err == nil && string(b) != "next" {
			err = fmt.Errorf("got %q", b)
		}
		got <- err
	}()
	time.Sleep(500 * time.Millisecond) // it waits, most likely; if it comes later, it finds the same
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(a.Endpoints[0])
	if err != nil {
		t.Fatal(err)
	}
	second, err := startServer(t.Context(), server.Config{Listen: u.Host, Token: a.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := a.Configure(t.Context(), "r", []byte("next")); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// secured is the way in to a server that speaks TLS.
func secured(e *ownServer, t *tls.Config) Access {
	a := e.Access()
	a.TLS = t
	return a
}

// secureServer starts an etcd that speaks TLS. It returns the authority that is
// trusted, and a certificate of a node.
func secureServer(t *testing.T) (e *ownServer, pool *x509.CertPool, pair tls.Certificate) {
	t.Helper()
	dir := t.TempDir()
	ca, caKey := certificate(t, dir, "ca", nil, nil)
	certificate(t, dir, "node", ca, caKey)
	files := &server.TLSFiles{Cert: filepath.Join(dir, "node.pem"), Key: filepath.Join(dir, "node.key"), CA: filepath.Join(dir, "ca.pem")}
	e, err := startServer(t.Context(), server.Config{TLS: files})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	if pair, err = tls.LoadX509KeyPair(files.Cert, files.Key); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(ca)
	return e, pool, pair
}

func TestOnlyNodesWithACertificateGetIn(t *testing.T) {
	e, pool, pair := secureServer(t)
	cfg := coord.Config{Run: "r", Nodes: 1, Addr: "a:1", Join: time.Second}
	if s, err := secured(e, &tls.Config{RootCAs: pool}).Join(t.Context(), cfg); !errors.Is(err, coord.ErrCoordinator) {
		t.Errorf("without certificate: got %v, %v; want %v", s, err, coord.ErrCoordinator)
	}
	cfg.Join = 0
	s, err := secured(e, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}).Join(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Barrier(t.Context(), "b"); err != nil {
		t.Error(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAServerSpeaksNoTLSOlderThanOnePointThree(t *testing.T) {
	e, pool, pair := secureServer(t)
	at := strings.TrimPrefix(e.Access().Endpoints[0], "https://")
	for version, speaks := range map[uint16]bool{tls.VersionTLS12: false, tls.VersionTLS13: true} {
		c, err := tls.Dial("tcp", at, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}, MaxVersion: version})
		if err == nil {
			_ = c.Close()
		}
		if (err == nil) != speaks {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
}

// Beside gRPC, etcd tells by HTTP how it is and how its process was started. Who has a certificate and no token hears nothing of that.
func TestACertificateAloneIsToldNothingByHTTP(t *testing.T) {
	e, pool, pair := secureServer(t)
	for _, http2 := range []bool{false, true} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, ForceAttemptHTTP2: http2}
		defer transport.CloseIdleConnections()
		for _, path := range []string{"/", "/metrics", "/debug/vars", "//debug/vars", "/debug", "/health", "/version", "/livez", "/livez/ping", "/readyz", "/readyz/data_corruption", "/config", "/members", "/v3/kv/range"} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				r, err := http.NewRequestWithContext(t.Context(), method, e.Access().Endpoints[0]+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := (&http.Client{Transport: transport, Timeout: limit}).Do(r)
				if err != nil {
					t.Fatal(err)
				}
				if answer.StatusCode != http.StatusNotFound {
					t.Errorf("%s %s: %s", method, path, answer.Status)
				}
				_ = answer.Body.Close()
			}
		}
	}
}

// Who has certificates tells an etcd nothing without TLS, whatever its address says: the token would be readable.
func TestWhoHasCertificatesTellsNobodyATokenInPlain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, pool, pair := secureServer(t)
	for _, at := range []string{"http://" + l.Addr().String(), "HTTP://" + l.Addr().String()} {
		a := Access{Endpoints: []string{"https://127.0.0.1:1", at}, TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, Token: "a-token-of-this-test"}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := a.Configuration(ctx, "r"); err == nil || !strings.Contains(err.Error(), at+" would be spoken to without TLS") || !strings.Contains(err.Error(), "https://"+l.Addr().String()) {
			t.Errorf("%s: %v", at, err)
		}
	}
	if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if c, err := l.Accept(); err == nil {
		_ = c.Close()
		t.Error("somebody came without TLS")
	}
}

// An etcd that cannot be spoken to is waited for, as it may be about to start. What
// is in the way is told in the end, with what to do about it.
func TestAnErrorAboutTimeSaysWhatIsInTheWay(t *testing.T) {
	dir := t.TempDir()
	ca, caKey := certificate(t, dir, "ca", nil, nil)
	certificate(t, dir, "node", ca, caKey)
	certificate(t, dir, "late", ca, caKey, -24*time.Hour)
	stranger, strangerKey := certificate(t, dir, "stranger", nil, nil)
	certificate(t, dir, "other", stranger, strangerKey)
	secure, err := startServer(t.Context(), server.Config{TLS: &server.TLSFiles{Cert: filepath.Join(dir, "node.pem"), Key: filepath.Join(dir, "node.key"), CA: filepath.Join(dir, "ca.pem")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = secure.Close() })
	plain := serve(t)
	trust := func(ca *x509.Certificate, cert string) *tls.Config {
		c := &tls.Config{RootCAs: x509.NewCertPool()}
		c.RootCAs.AddCert(ca)
		if cert != "" {
			pair, err := tls.LoadX509KeyPair(filepath.Join(dir, cert+".pem"), filepath.Join(dir, cert+".key"))
			if err != nil {
				t.Fatal(err)
			}
			c.Certificates = []tls.Certificate{pair}
		}
		return c
	}
	named := trust(ca, "node")
	named.ServerName = "elsewhere"
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(secure.Access().Endpoints[0], "https://"))
	const nobody = "127.0.0.1:1" // a port that no system gives away
	for what, x := range map[string]struct {
		at   string
		tls  *tls.Config
		says string
	}{
		"another authority":           {secure.Access().Endpoints[0], trust(stranger, "node"), "the authority that signed the certificate of etcd"},
		"another name":                {secure.Access().Endpoints[0], named, "the name that the certificate of etcd carries"},
		"no certificate":              {secure.Access().Endpoints[0], trust(ca, ""), "a certificate for clients"},
		"one of a stranger":           {secure.Access().Endpoints[0], trust(ca, "other"), "a certificate for clients"},
		"one that has expired":        {secure.Access().Endpoints[0], trust(ca, "late"), "expired certificate: have the certificate of this process made anew"},
		"in plain where TLS is":       {"127.0.0.1:" + port, nil, "it speaks TLS only"},
		"by TLS where it is in plain": {strings.TrimPrefix(plain.Access().Endpoints[0], "http://"), trust(ca, "node"), "does not speak TLS"},
		"where nobody listens":        {nobody, nil, "refused"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			at := Access{Endpoints: []string{x.at}, TLS: x.tls}
			_, err := at.Configuration(short, "r")
			if !errors.Is(err, coord.ErrCoordinator) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), x.says) || !strings.Contains(err.Error(), x.at) {
				t.Errorf("a configuration: %v, want an error that says %q", err, x.says)
			}
			_, err = at.Join(t.Context(), coord.Config{Run: "r", Nodes: 1, Addr: "a:1", Join: 300 * time.Millisecond})
			if !errors.Is(err, coord.ErrCoordinator) || !strings.Contains(err.Error(), x.says) {
				t.Errorf("a join: %v, want an error that says %q", err, x.says)
			}
		})
	}
}

// certificate writes name.pem and name.key for loopback, signed by ca, or by
// itself as an authority. It is valid now, or by so much later.
func certificate(t *testing.T, dir, name string, ca *x509.Certificate, caKey *ecdsa.PrivateKey, later ...time.Duration) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, d := range later {
		c.NotBefore, c.NotAfter = c.NotBefore.Add(d), c.NotAfter.Add(d)
	}
	if ca == nil {
		c.IsCA, c.BasicConstraintsValid = true, true
		c.KeyUsage |= x509.KeyUsageCertSign
		ca, caKey = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, ca, key.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, b := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: der},
		name + ".key": {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}
