package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
)

// An authority signs certificates.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cluster"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// flags are those of a node with a certificate of the name.
func (a *authority) flags(name string) []string {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	priv, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return []string{
		"--tls-cert", a.write("cert.pem", "CERTIFICATE", der), "--tls-key", a.write("key.pem", "PRIVATE KEY", priv),
		"--tls-ca", filepath.Join(a.dir, "ca.pem"), "--tls-name", name,
	}
}

func TestARunIsSecuredByTLS(t *testing.T) {
	t.Parallel()
	flags := newAuthority(t).flags("godwit")
	p := start(t, with(append(flags, "--nodes", "2", "--json")...)...)
	began := p.until("start", isStart)
	r := p.until("the result", isResult).Result
	p.exits(cli.OK, limit)
	gone(t, began, 0)
	if r.Nodes != 2 || r.Test.At("MRR") <= 0 {
		t.Errorf("the result is %+v", r)
	}
}

func TestACertificateOfAnotherAuthorityIsRefused(t *testing.T) {
	t.Parallel()
	flags, others := newAuthority(t).flags("godwit"), newAuthority(t).flags("godwit")
	lead := start(t, with(append(flags, "--nodes", "2", "--await", "--listen", "127.0.0.1:0", "--etcd-listen", "127.0.0.1:0", "--join", "5s", "--json")...)...)
	w := lead.until("the call for nodes", func(e job.Event) bool { return e.Waiting != nil })
	code, _, errs := runAs(t, w.Waiting.Token, append([]string{"node", "--etcd", w.Waiting.Endpoints[0], "--run", w.Run, "--wait", "2s"}, others...)...)
	if code == 0 {
		t.Errorf("a stranger was let in:\n%s", errs)
	}
	lead.exits(cli.Lost, limit)
}
