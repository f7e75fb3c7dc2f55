package run

import (
	"context"
	"errors"
	"sync"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// takes is what this program understands beyond plain frames.
const takes = wire.SupportsCodings | wire.SupportsLists | wire.SupportsS2 | wire.SupportsZstd

// A Mesh is by what a node connects to the others.
type Mesh struct {
	Network     transport.Network
	Listener    transport.Listener
	Run         string // its name
	Fingerprint string // of what nodes must have in common
	Secret      []byte // by which members prove that they are some
}

// Meet connects to the other members, until ctx or the session ends. If it fails
// and the session goes on, the others are told why, unless ctx was canceled: who
// did that knows a better reason.
func (r *Run) Meet(ctx context.Context, m Mesh) (map[godwit.NodeID]transport.Conn, error) {
	hello := wire.Hello{Run: m.Run, From: r.links.Self, Fingerprint: m.Fingerprint, Features: takes}
	var peers []transport.Peer
	for _, p := range r.members {
		peers = append(peers, transport.Peer{ID: p.ID, Addr: p.Addr, Incarnation: p.Incarnation})
		if p.ID == r.links.Self {
			hello.Incarnation = p.Incarnation
		}
	}
	meeting, end := whileOpen(ctx, r.session.Done())
	conns, err := transport.Mesh(meeting, m.Network, m.Listener, hello, m.Secret, peers)
	end()
	switch {
	case err == nil:
		return conns, nil
	case r.session.Err() != nil:
		return nil, r.sessionErr()
	case !errors.Is(ctx.Err(), context.Canceled):
		r.session.Fail(apart(err))
	}
	return nil, err
}

// apart makes an error of a connection that was not made one that blames no node: who tells of it need not be at fault, nor need the other be.
func apart(err error) error {
	var wrong *transport.Mismatch
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &wrong) {
		return &coord.PartitionError{Text: err.Error()}
	}
	return err
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
