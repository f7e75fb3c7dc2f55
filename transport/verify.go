package transport

import (
	"fmt"

	"github.com/godwit-ps/godwit"
)

// A Mismatch says that the other side of a connection is not the peer that was
// meant, and why; to try again would not help. Its text continues "the node at
// this address …".
type Mismatch struct {
	Err error // continues "the node at this address …"
}

func (m *Mismatch) Error() string { return m.Err.Error() }
func (m *Mismatch) Unwrap() error { return m.Err }

func mismatch(format string, args ...any) error { return &Mismatch{fmt.Errorf(format, args...)} }

// Verify returns a *Mismatch unless peer is what node self should be connected
// to: of the same run and model, knowing whom it talks to, node self.To, where
// that is not godwit.NoNode, and the process that is the member of this number.
func Verify(self, peer Hello, incarnation uint64) error {
	switch {
	case peer.Run != self.Run:
		return mismatch("belongs to run %q, not to %q", peer.Run, self.Run)
	case self.To != godwit.NoNode && peer.From != self.To:
		return mismatch("is node %d, not node %d", peer.From, self.To)
	case peer.To != self.From:
		return mismatch("takes node %d for node %d", self.From, peer.To)
	case peer.Incarnation != incarnation:
		return mismatch("is not the process that joined the run (incarnation %d, want %d)", peer.Incarnation, incarnation)
	case peer.Fingerprint != self.Fingerprint:
		return mismatch("runs a different model or configuration (fingerprint %s, here %s): with node.Config.Fingerprint as that of coord.Config, nodes are told in what they differ when they join", peer.Fingerprint, self.Fingerprint)
	}
	return nil
}
