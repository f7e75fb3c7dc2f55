package run

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/node/internal/link"
)

// A Session is what the end of a run needs of a coord.Session.
type Session interface {
	Done() <-chan struct{}
	Err() error
	Fail(err error)
}

// A Run is what a node knows of the end of its run, and by what it ends it. Any goroutine
// may use it.
type Run struct {
	host    *host.Host
	links   *link.Links
	session Session
	cause   func(lost *coord.MemberError) error // why a peer was lost
	members []coord.Member                      // by id
	parting *parting
	closing atomic.Bool // this node is being closed: connections that end have lost nobody
}

// New returns the run of a node that is about to start. Cause is that of the coord.Session. Members are all of the run, by id.
func New(h *host.Host, ls *link.Links, s Session, cause func(lost *coord.MemberError) error, members []coord.Member) *Run {
	return &Run{host: h, links: ls, session: s, cause: cause, members: members, parting: newParting(ls.Nodes())}
}

// causeWait is for how long the end of a connection waits for a better reason.
const causeWait = 500 * time.Millisecond

// Watch ends the run for this node when the session ends. It returns then, or when the
// node's goroutines are to end.
func (r *Run) Watch() {
	if r.host.Wait(r.session.Done(), r.host.Stop(), nil) != 0 {
		return
	}
	r.over()
}

// over ends the run for this node because the session has ended.
func (r *Run) over() { r.host.Fail(r.host.Lost(r.sessionErr())) }

// sessionErr is why the session is over, as what operations return.
func (r *Run) sessionErr() error {
	err := r.session.Err()
	var m *coord.MemberError
	if errors.As(err, &m) && !errors.Is(err, godwit.ErrPeerLost) {
		err = fmt.Errorf("%w: %w", godwit.ErrPeerLost, err) // who failed is lost to the others
	}
	return err
}

// Lost is told that the connection to a peer ended. If the peer did not say goodbye,
// it is lost. Its session, or another's, may be about to say why, which is better
// to know than that a connection ended: Lost waits for that for half a second.
func (r *Run) Lost(peer godwit.NodeID, cause error) {
	if r.parting.isComplete() || r.host.Sleep(causeWait, r.host.Done(), r.parting.all) >= 0 {
		r.parting.gone(peer)
		return
	}
	r.end(peer, "connection ended", cause)
}

// Broke ends the run because of what a peer sent or did not send.
func (r *Run) Broke(peer godwit.NodeID, err error) { r.end(peer, "broke the protocol", err) }

// end ends the run because of a peer.
func (r *Run) end(peer godwit.NodeID, what string, cause error) {
	if r.closing.Load() || r.parting.isComplete() {
		return
	}
	lost := &coord.MemberError{Member: r.members[peer], Err: fmt.Errorf("%w: %s: %w", godwit.ErrPeerLost, what, cause)}
	r.host.Fail(r.cause(lost))
	r.session.Fail(lost)
}

// Split ends the run because nodes do not reach each other, unless it has ended.
func (r *Run) Split(v *coord.PartitionError) {
	if r.parting.isComplete() || r.host.Err() != nil {
		return
	}
	r.host.Fail(r.host.Lost(v))
	r.session.Fail(v)
}

// Fail ends the run because of an error of this node. It waits for nothing, and may be called
// under a shard's lock: a goroutine tells the others.
func (r *Run) Fail(err error) {
	r.host.Fail(err)
	r.host.Go(func() { r.session.Fail(err) })
}

// Close ends the run for this node: whoever waits gets godwit.ErrClosed, and the node's
// goroutines end. It is called once.
func (r *Run) Close() {
	r.closing.Store(true)
	r.host.Fail(godwit.ErrClosed)
	r.host.Halt()
}
