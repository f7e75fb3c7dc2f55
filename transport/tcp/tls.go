package tcp

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"
)

// TLSFiles name the files (PEM) of a node's certificate and key and of the authority
// that signed the certificates of all nodes. No other authority is trusted, those of
// the operating system included.
//
// Every node dials and is dialed, so certificates must be good for client and
// server authentication, and must name the host or IP address under which the
// node is dialed. Where addresses come and go, let all certificates carry one
// name instead, such as "godwit".
type TLSFiles struct {
	Cert string `json:"cert"` // path of the certificate
	Key  string `json:"key"`  // path of its key
	CA   string `json:"ca"`   // path of the authority's certificates
	Name string `json:"name"` // that all certificates carry; empty: they name the addresses of their nodes
}

// Config reads the files and makes the configuration of a cluster whose nodes authenticate
// each other, by TLS 1.3. No files (nil) are no configuration (nil).
func (t *TLSFiles) Config() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("tcp: load certificate %s with key %s: %w", t.Cert, t.Key, err)
	}
	if now := time.Now(); now.Before(cert.Leaf.NotBefore) || now.After(cert.Leaf.NotAfter) { // nobody would accept it, and few say why
		return nil, fmt.Errorf("tcp: certificate %s is valid from %s to %s, and it is %s by the clock of this machine: have it made anew, or set the clock right",
			t.Cert, instant(cert.Leaf.NotBefore), instant(cert.Leaf.NotAfter), instant(now))
	}
	pem, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, fmt.Errorf("tcp: load the authority's certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tcp: load the authority's certificates: there is none in %s, want PEM", t.CA)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{cert},
		RootCAs:      pool,
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ServerName:   t.Name,
		// Small records at first help browsers; here they cost system calls.
		DynamicRecordSizingDisabled: true,
	}, nil
}

// instant returns a time as people and programs read it.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
