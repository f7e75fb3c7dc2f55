package node

import (
	"context"
	"errors"
	"sync"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// takes is what this program understands beyond plain frames.
const takes = wire.SupportsCodings | wire.SupportsLists | wire.SupportsS2 | wire.SupportsZstd

// meet connects to the other members, until ctx or the session ends. If it fails
// and the session goes on, the others are told why, unless ctx was canceled: who
// did that knows a better reason.
func (n *Node) meet(ctx context.Context) (map[godwit.NodeID]transport.Conn, error) {
	s := n.cfg.Session
	hello := wire.Hello{Run: n.cfg.Run, From: n.self, Fingerprint: n.cfg.Fingerprint(), Features: takes}
	var peers []transport.Peer
	for _, m := range s.Members() {
		peers = append(peers, transport.Peer{ID: m.ID, Addr: m.Addr, Incarnation: m.Incarnation})
		if m.ID == n.self {
			hello.Incarnation = m.Incarnation
		}
	}
	meeting, end := whileOpen(ctx, s.Done())
	conns, err := transport.Mesh(meeting, n.cfg.Network, n.cfg.Listener, hello, s.Secret(), peers)
	end()
	switch {
	case err == nil:
		return conns, nil
	case s.Err() != nil:
		return nil, n.sessionErr()
	case !errors.Is(ctx.Err(), context.Canceled):
		s.Fail(err)
	}
	return nil, err
}

// whileOpen returns a context that ends when done is closed, too, and what ends it
// and waits for that.
func whileOpen(ctx context.Context, done <-chan struct{}) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(); watch.Wait() }
}
