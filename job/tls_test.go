package job

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// certificate writes a certificate of a name that signed itself, with its key.
func certificate(t *testing.T, name string) *TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := &TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), CA: filepath.Join(dir, "cert.pem"), Name: name}
	for path, block := range map[string]*pem.Block{files.Cert: {Type: "CERTIFICATE", Bytes: der}, files.Key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// The nodes of a run with certificates speak TLS, whoever comes, and only with who has one.
func TestNodesOfARunWithCertificatesSpeakNothingElse(t *testing.T) {
	at, files := newMemory(t, 2), certificate(t, "godwit")
	ctx := timeout(t)
	own, err := files.Config()
	if err != nil {
		t.Fatal(err)
	}
	says := func(addr string, certificates []tls.Certificate) error {
		config := own.Clone()
		config.Certificates = certificates
		d := tls.Dialer{NetDialer: &net.Dialer{Timeout: 10 * time.Second}, Config: config}
		c, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			return err
		}
		_, err = c.Read(make([]byte, 1)) // whether a certificate is accepted, is told behind the handshake
		return err
	}
	asked := 0
	lead := Leader{Spec: tiny(2), Run: "r", Coordinator: at, NodeConfig: NodeConfig{TLS: files, Progress: func(e Event) {
		if e.Start == nil {
			return
		}
		for _, n := range e.Start.Nodes {
			asked++
			if err := says(n.Addr, own.Certificates); err != nil {
				t.Errorf("with a certificate, node %d says: %v", n.ID, err)
			}
			if err := says(n.Addr, nil); err == nil || !strings.Contains(err.Error(), "certificate required") {
				t.Errorf("without a certificate, node %d says: %v", n.ID, err)
			}
		}
	}}}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := Join(ctx, Joiner{Run: "r", Coordinator: at, NodeConfig: NodeConfig{TLS: files}}); err != nil {
			t.Error(err)
		}
	})
	_, err = Lead(ctx, lead)
	wg.Wait()
	if err != nil || asked != 2 {
		t.Errorf("%d nodes were asked, and the run ended with %v", asked, err)
	}
}
