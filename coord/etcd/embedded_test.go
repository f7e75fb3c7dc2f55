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
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/coord"
)

func TestEmbeddedLeavesNothingBehind(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	e, err := StartEmbedded(t.Context(), EmbeddedConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if fs, _ := os.ReadDir(os.TempDir()); len(fs) != 1 {
		t.Errorf("%d temporary folders while it runs, want 1", len(fs))
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if fs, _ := os.ReadDir(os.TempDir()); len(fs) != 0 {
		t.Errorf("%v is left behind", fs)
	}
}

func TestEmbeddedKeepsTheDataOfAGivenFolder(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 {
		e, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			err = Configure(t.Context(), e.Endpoints(), nil, "r", []byte("blob"))
		} else {
			var b []byte
			b, err = Configuration(t.Context(), e.Endpoints(), nil, "r")
			if string(b) != "blob" {
				t.Errorf("got %q, want what the first server was told", b)
			}
		}
		if err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestEmbeddedNamesTheAddressThatItCannotListenOn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("TMPDIR", t.TempDir())
	for _, addr := range []string{l.Addr().String(), "no port"} {
		if _, err := StartEmbedded(t.Context(), EmbeddedConfig{ClientAddr: addr}); err == nil || !strings.Contains(err.Error(), addr) {
			t.Errorf("%s: got %v, want an error that names it", addr, err)
		}
	}
	if fs, _ := os.ReadDir(os.TempDir()); len(fs) != 0 {
		t.Errorf("%v is left behind", fs)
	}
}

func TestDrainWaitsUntilAllNodesLeft(t *testing.T) {
	e := server(t)
	s, err := Join(t.Context(), e.Endpoints(), nil, coord.Config{Run: "r", Nodes: 1, Addr: "a:1"})
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := e.Drain(short, "r"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a node: got %v, want that the time is over", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := e.Drain(t.Context(), "r"); err != nil {
		t.Errorf("without a node: %v", err)
	}
}

func TestConfigurationIsWaitedFor(t *testing.T) {
	e := server(t)
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := Configuration(short, e.Endpoints(), nil, "r")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"r"`) {
		t.Errorf("without one: got %v, want that the time is over", err)
	}
	for _, want := range []string{"first", strings.Repeat("x", MaxConfiguration)} {
		got := make(chan []byte)
		go func() {
			b, err := Configuration(t.Context(), e.Endpoints(), nil, "r")
			if err != nil {
				t.Error(err)
			}
			got <- b
		}()
		if err := Configure(t.Context(), e.Endpoints(), nil, "other", []byte("not this")); err != nil {
			t.Fatal(err)
		}
		if err := Configure(t.Context(), e.Endpoints(), nil, "r", []byte(want)); err != nil {
			t.Fatal(err)
		}
		if b := <-got; string(b) != want {
			t.Errorf("got %.20q, want %.20q", b, want)
		}
		if err := Forget(t.Context(), e.Endpoints(), nil, "r"); err != nil {
			t.Fatal(err)
		}
	}
	if err := Configure(t.Context(), e.Endpoints(), nil, "r", make([]byte, MaxConfiguration+1)); err == nil {
		t.Error("a configuration that is too long was taken")
	}
}

func TestOnlyNodesWithACertificateGetIn(t *testing.T) {
	dir := t.TempDir()
	ca, caKey := certificate(t, dir, "ca", nil, nil)
	certificate(t, dir, "node", ca, caKey)
	files := &TLSFiles{Cert: filepath.Join(dir, "node.pem"), Key: filepath.Join(dir, "node.key"), CA: filepath.Join(dir, "ca.pem")}
	e, err := StartEmbedded(t.Context(), EmbeddedConfig{TLS: files})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	cfg := coord.Config{Run: "r", Nodes: 1, Addr: "a:1", Join: time.Second}
	if s, err := Join(t.Context(), e.Endpoints(), &tls.Config{RootCAs: pool}, cfg); !errors.Is(err, coord.ErrCoordinator) {
		t.Errorf("without certificate: got %v, %v; want %v", s, err, coord.ErrCoordinator)
	}
	cfg.Join = 0
	s, err := Join(t.Context(), e.Endpoints(), &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, cfg)
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

// certificate writes name.pem and name.key for loopback, signed by ca, or by
// itself as an authority.
func certificate(t *testing.T, dir, name string, ca *x509.Certificate, caKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
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
