package tcp

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
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/internal/transporttest"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// hasty is the timeout that some tests wait for.
const hasty = 500 * time.Millisecond

// limit is when what should happen soon is held to hang, and the timeout of
// tests that do not wait for it.
const limit = 4 * time.Minute

func anyAddr() string { return "127.0.0.1:0" }

func TestTransport(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Setup {
		return transporttest.Setup{
			Network: Network{timeout: limit},
			Hasty:   Network{timeout: hasty},
			Timeout: 2 * hasty,
			Addr:    anyAddr,
			Raw:     func(addr string) (io.ReadWriteCloser, error) { return net.Dial("tcp", addr) },
			Below:   below,
		}
	})
}

func TestTransportWithTLS(t *testing.T) {
	cfg := newAuthority(t).node(t, "127.0.0.1")
	transporttest.Run(t, func(t *testing.T) transporttest.Setup {
		return transporttest.Setup{
			Network: Network{TLS: cfg, timeout: limit},
			Hasty:   Network{TLS: cfg, timeout: hasty},
			Timeout: 2 * hasty,
			Addr:    anyAddr,
			Raw: func(addr string) (io.ReadWriteCloser, error) {
				c := cfg.Clone()
				c.ServerName = "127.0.0.1"
				return tls.Dial("tcp", addr, c)
			},
			Below: below,
		}
	})
}

// below is the stream of a connection.
func below(c transport.Conn) io.ReadWriteCloser { return c.(*conn).stream }

// secret is that of the run.
var secret = []byte("what only members know")

// An authority signs certificates of nodes.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func writePEM(t *testing.T, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// issue makes a certificate, signed by parent or, where that is nil, by itself.
func issue(t *testing.T, c *x509.Certificate, parent *authority) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	signer, by := c, key
	if parent != nil {
		signer, by = parent.cert, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, signer, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	der, key := issue(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "test authority"},
		IsCA:    true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert: cert, key: key, file: writePEM(t, "ca.pem", "CERTIFICATE", der)}
}

// node makes the certificate of a node with the given IP address or name, and
// loads it.
func (a *authority) node(t *testing.T, name string) *tls.Config {
	t.Helper()
	c := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "node"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else {
		c.DNSNames = []string{name}
	}
	der, key := issue(t, c, a)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	files := TLSFiles{Cert: writePEM(t, "cert.pem", "CERTIFICATE", der), Key: writePEM(t, "key.pem", "PRIVATE KEY", keyDER), CA: a.file}
	cfg, err := files.Config()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// connect dials with one configuration a listener with the other, and returns
// the error of Dial and why the listener dropped the dialer, where either did.
func connect(t *testing.T, client, server *tls.Config) (dial, dropped error) {
	t.Helper()
	drops := make(chan error, 1)
	l, err := Network{TLS: server, timeout: limit, Dropped: func(_ string, err error) { drops <- err }}.Listen(anyAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		if c, err := l.Accept(ctx, transport.Hello{}, secret); err == nil {
			c.Close()
		}
	}()
	c, dial := Network{TLS: client, timeout: limit}.Dial(ctx, l.Addr(), transport.Hello{From: 1}, secret)
	if dial == nil {
		c.Close()
	} else {
		select {
		case dropped = <-drops:
		case <-ctx.Done():
			t.Error("the listener did not drop who could not connect")
		}
	}
	cancel()
	<-accepted
	return dial, dropped
}

func TestOnlyHoldersOfACertificateOfTheClusterConnect(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	good := ours.node(t, "127.0.0.1")
	bare := good.Clone()
	bare.Certificates = nil
	foreign := good.Clone()
	foreign.Certificates = theirs.node(t, "127.0.0.1").Certificates
	old := good.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	named := ours.node(t, "godwit")
	expecting := named.Clone()
	expecting.ServerName = "godwit"
	for _, c := range []struct {
		name           string
		client, server *tls.Config
		want           string // the dialer's error; "" connects
		passing        bool   // the error may pass
	}{
		{"both of the cluster", good, good, "", false},
		{"a client without a certificate", bare, good, "certificate required", false},
		{"a client of another authority", foreign, good, "remote error", false},
		{"a server of another authority", good, foreign, "unknown authority", false},
		{"a certificate for another host", good, named, "doesn't contain any IP SANs", false},
		{"one name for the whole cluster", expecting, named, "", false},
		{"TLS 1.2", old, good, "protocol version", false},
		{"a client without TLS", nil, good, "", true},
		{"a server without TLS", good, nil, "does not look like a TLS handshake", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dial, dropped := connect(t, c.client, c.server)
			if c.want == "" && !c.passing {
				if dial != nil {
					t.Fatalf("Dial: %v (dropped: %v)", dial, dropped)
				}
				return
			}
			if dial == nil || !strings.Contains(dial.Error(), c.want) {
				t.Fatalf("Dial: error %v, want … %s … (dropped: %v)", dial, c.want, dropped)
			}
			if dropped == nil {
				t.Error("the listener does not know why")
			}
			var m *transport.Mismatch
			if !c.passing && !errors.As(dial, &m) {
				t.Errorf("Dial: error %v is no Mismatch, so it will be tried again", dial)
			}
		})
	}
}

func TestTLSFilesNameTheFileAtFault(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	der, key := issue(t, &x509.Certificate{}, nil)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	lateDER, lateKey := issue(t, &x509.Certificate{NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}, nil)
	lateKeyDER, err := x509.MarshalPKCS8PrivateKey(lateKey)
	if err != nil {
		t.Fatal(err)
	}
	late, lateKeyFile := writePEM(t, "late.pem", "CERTIFICATE", lateDER), writePEM(t, "late.key", "PRIVATE KEY", lateKeyDER)
	cert, keyFile := writePEM(t, "cert.pem", "CERTIFICATE", der), writePEM(t, "key.pem", "PRIVATE KEY", keyDER)
	for _, c := range []struct {
		files TLSFiles
		want  string
	}{
		{TLSFiles{Cert: filepath.Join(dir, "none"), Key: keyFile, CA: cert}, filepath.Join(dir, "none")},
		{TLSFiles{Cert: cert, Key: empty, CA: cert}, empty},
		{TLSFiles{Cert: late, Key: lateKeyFile, CA: cert}, late + " is valid from"},
		{TLSFiles{Cert: cert, Key: keyFile, CA: filepath.Join(dir, "gone")}, filepath.Join(dir, "gone")},
		{TLSFiles{Cert: cert, Key: keyFile, CA: empty}, empty},
	} {
		if _, err := c.files.Config(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v does not name %s", err, c.want)
		}
	}
	if l, err := (Network{TLS: &tls.Config{}}).Listen(anyAddr()); err == nil {
		l.Close()
		t.Error("listens with TLS and no certificate")
	}
}

// answering is a server that answers everybody with the same bytes.
func answering(t *testing.T, b []byte) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", anyAddr())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 1000))
			c.Write(b)
			c.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return ln.Addr().String()
}

func TestWhoAnswersWithAnythingElseIsAMismatch(t *testing.T) {
	other, err := wire.AppendHello(nil, transport.Hello{})
	if err != nil {
		t.Fatal(err)
	}
	other[5] = wire.Version + 1
	var e wire.Encoder
	e.Reset(nil, 0)
	for _, c := range []struct {
		name, answer string
		want         string
	}{
		{"another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n", "claims a length"},
		{"another version", string(other), fmt.Sprintf("protocol version %d, this program speaks version %d", wire.Version+1, wire.Version)},
		{"another frame", string(e.Frame()), "frame type 1, want 6"},
	} {
		_, err := Network{timeout: limit}.Dial(t.Context(), answering(t, []byte(c.answer)), transport.Hello{}, secret)
		var m *transport.Mismatch
		if !errors.As(err, &m) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want a Mismatch with … %s …", c.name, err, c.want)
		}
	}
	// A dialer with TLS meets what has none: another protocol, or a node.
	secure := Network{TLS: newAuthority(t).node(t, "127.0.0.1"), timeout: limit}
	for _, answer := range [][]byte{[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), nonce()} {
		_, err := secure.Dial(t.Context(), answering(t, answer), transport.Hello{}, secret)
		var m *transport.Mismatch
		if !errors.As(err, &m) || !strings.Contains(err.Error(), "does not look like a TLS handshake") {
			t.Errorf("%.4q instead of TLS: error %v, want a Mismatch", answer, err)
		}
	}
	// Who hangs up may be about to start, so that is worth another attempt.
	_, err = Network{timeout: limit}.Dial(t.Context(), answering(t, nil), transport.Hello{}, secret)
	var m *transport.Mismatch
	if err == nil || errors.As(err, &m) {
		t.Errorf("nothing: error %v, want one that may pass", err)
	}
}

func TestAPeerOfAnotherVersionIsToldOurs(t *testing.T) {
	drops := make(chan error, 1)
	l, err := Network{timeout: limit, Dropped: func(_ string, err error) { drops <- err }}.Listen(anyAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b, err := wire.AppendHello(nil, transport.Hello{From: 1})
	if err != nil {
		t.Fatal(err)
	}
	b[5] = wire.Version + 1
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil || len(answer) < wire.HeaderLen || answer[5] != wire.Version {
		t.Errorf("answer % x, %v; want a frame of version %d", answer, err, wire.Version)
	}
	var v *wire.VersionError
	if err := <-drops; !errors.As(err, &v) {
		t.Errorf("dropped for %v, want a version", err)
	}
}

// A listener may be closed as soon as its last peer was accepted; what was
// accepted lives on.
func TestWhatWasAcceptedOutlivesTheListenerFromTheFirstMoment(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for i := range 300 {
		l, err := Network{}.Listen(anyAddr())
		if err != nil {
			t.Fatal(err)
		}
		dialed := make(chan transport.Conn, 1)
		go func() {
			c, err := Network{}.Dial(ctx, l.Addr(), transport.Hello{Run: "run", From: 1}, secret)
			if err != nil {
				t.Error(err)
			}
			dialed <- c
		}()
		c, err := l.Accept(ctx, transport.Hello{Run: "run", From: 0}, secret)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		d := <-dialed
		if d == nil {
			return
		}
		var e wire.Encoder
		e.Reset(nil, 1)
		if err := c.WriteFrame(e.Frame()); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		if _, err := d.ReadFrame(); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		c.Close()
		d.Close()
	}
}
