package job

import (
	"strings"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit/internal/certtest"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// The nodes of a run with certificates speak TLS, whoever comes, and only with who has one.
func TestNodesOfARunWithCertificatesSpeakNothingElse(t *testing.T) {
	at, own := newMemory(t, 2), certtest.SelfSigned(t, "godwit")
	files := &tcp.TLSFiles{Cert: own.Cert, Key: own.Key, CA: own.Cert, Name: "godwit"}
	ctx := timeout(t)
	config, err := files.Config()
	if err != nil {
		t.Fatal(err)
	}
	without := config.Clone()
	without.Certificates = nil
	asked := 0
	lead := Leader{Spec: tiny(2), Run: "r", Coordinator: at, NodeConfig: NodeConfig{TLS: files, Progress: func(e Event) {
		if e.Start == nil {
			return
		}
		for _, n := range e.Start.Nodes {
			asked++
			if err := certtest.Accepted(ctx, n.Addr, config); err != nil {
				t.Errorf("with a certificate, node %d says: %v", n.ID, err)
			}
			if err := certtest.Accepted(ctx, n.Addr, without); err == nil || !strings.Contains(err.Error(), "certificate required") {
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
