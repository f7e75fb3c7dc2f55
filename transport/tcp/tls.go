package tcp

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// LoadTLS makes the configuration of a cluster whose nodes authenticate each
// other: TLS 1.3, the node's own certificate and key, and the certificates of
// the authority that signed those of all nodes (all files PEM). No other
// authority is trusted, those of the operating system included.
//
// Every node dials and is dialed, so certificates must be good for client and
// server authentication, and must name the host or IP address under which the
// node is dialed. Where addresses come and go, let all certificates carry one
// name instead, such as "godwit", and set ServerName to it.
func LoadTLS(certFile, keyFile, caFile string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("tcp: load certificate %s with key %s: %w", certFile, keyFile, err)
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("tcp: load the authority's certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tcp: load the authority's certificates: there is none in %s, want PEM", caFile)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{cert},
		RootCAs:      pool,
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		// Small records at first help browsers; here they cost system calls.
		DynamicRecordSizingDisabled: true,
	}, nil
}
