// Package ledger is the state that every session has of its run: who is a member,
// who arrived at which barrier, who asked for a stop, and why the run ended. It is a
// replicated state machine.
//
// A [Ledger] is a function of the messages of all nodes in the one order that the
// coordinator gives them ([Ledger.Apply], [Ledger.Lost]); it knows nothing of
// how they travel, and it has no goroutine. A [Roster] is what
// stands before it, until all nodes have arrived.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
)

// A Publish hands a message of this node to all members, this one included, in one
// order for all. It returns when the message has its place in that order, or with
// an error if it may have none.
type Publish func(ctx context.Context, w Message) error

// A Ledger is one session's state of a sealed run. It implements coord.Session
// but for Close. Its methods may be called by any number of goroutines, but
// Apply and Lost in the order of the run.
type Ledger struct {
	// Silent returns the error of a coordinator that is lost if that is why a peer was: where this node has heard nothing of it for most of the
	// lease, neither has the peer, which ended first. It is set before the session is used; nil: the coordinator is always there.
	Silent func(lost *coord.MemberError) error

	self     godwit.NodeID
	members  []coord.Member
	secret   []byte
	lease    time.Duration
	publish  Publish
	stopping chan struct{}
	done     chan struct{}

	mu          sync.Mutex // guards all below; never held while publishing
	view        godwit.View
	gone        []bool // by id: left orderly
	collectives map[collective]*progress
	open        map[use]*gathering
	reason      string
	err         error // not nil exactly if done is closed
}

// New returns the state of node self of a run that was just sealed. Members and
// secret are those of the roster at the seal. lease is after how long without a sign of
// life the coordinator takes the node for lost.
func New(self godwit.NodeID, members []coord.Member, secret []byte, lease time.Duration, publish Publish) *Ledger {
	return &Ledger{
		self:        self,
		members:     members,
		secret:      secret,
		lease:       lease,
		publish:     publish,
		stopping:    make(chan struct{}),
		done:        make(chan struct{}),
		view:        1,
		gone:        make([]bool, len(members)),
		collectives: map[collective]*progress{},
		open:        map[use]*gathering{},
	}
}

// Self implements coord.Session.
func (l *Ledger) Self() godwit.NodeID { return l.self }

// Members implements coord.Session.
func (l *Ledger) Members() []coord.Member { return slices.Clone(l.members) }

// Secret implements coord.Session.
func (l *Ledger) Secret() []byte { return slices.Clone(l.secret) }

// Lease implements coord.Session.
func (l *Ledger) Lease() time.Duration { return l.lease }

// Stopping implements coord.Session.
func (l *Ledger) Stopping() <-chan struct{} { return l.stopping }

// Done implements coord.Session.
func (l *Ledger) Done() <-chan struct{} { return l.done }

// View implements coord.Session.
func (l *Ledger) View() godwit.View {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view
}

// StopReason implements coord.Session.
func (l *Ledger) StopReason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}

// Err implements coord.Session.
func (l *Ledger) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Apply applies the next message of the run, sent by node from. What cannot be (a
// message of no member, an arrival at a barrier that is over) has no effect.
func (l *Ledger) Apply(from godwit.NodeID, w Message) {
	if int(from) >= len(l.members) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch w.Kind {
	case Barrier, Exchange:
		l.arriveLocked(from, w)
	case Stop:
		if !closed(l.stopping) {
			l.reason = w.Text
			close(l.stopping)
		}
	case Fail:
		l.endLocked(l.told(from, w))
	case Partition:
		l.endLocked(&coord.PartitionError{Text: w.Text})
	case Leave:
		l.leaveLocked(from)
	}
}

// Lost notes that a member is gone without having left.
func (l *Ledger) Lost(id godwit.NodeID, cause string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := l.lossLocked(id, errors.New(cause))
	if lost == nil {
		return
	}
	l.gone[id] = true
	l.view++
	l.endLocked(lost)
}

// Loss is the error of a session that loses a member for a cause; nil: there is none, or it is gone already.
func (l *Ledger) Loss(id godwit.NodeID, cause error) *coord.MemberError {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lossLocked(id, cause)
}

func (l *Ledger) lossLocked(id godwit.NodeID, cause error) *coord.MemberError {
	if int(id) >= len(l.members) || l.gone[id] {
		return nil
	}
	return &coord.MemberError{Member: l.members[id], Err: fmt.Errorf("%w: %w", godwit.ErrPeerLost, cause)}
}

// End ends the run for this session, for a reason that does not come from the
// order of the run. The first end counts.
func (l *Ledger) End(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endLocked(err)
}

// Expired is the error of a session whose own lease was lost.
func (l *Ledger) Expired(cause error) error {
	return l.blame(l.self, fmt.Errorf("%w: %w", godwit.ErrPeerLost, cause))
}

// RequestStop implements coord.Session.
func (l *Ledger) RequestStop(ctx context.Context, reason string) error {
	if closed(l.stopping) {
		return nil
	}
	if err := l.Err(); err != nil {
		return fmt.Errorf("request to stop: %w", err)
	}
	err := l.publish(ctx, Message{Kind: Stop, Text: clip(reason)})
	if err != nil {
		return fmt.Errorf("request to stop: %w", l.orEnd(err))
	}
	select {
	case <-l.stopping:
		return nil
	case <-l.done:
		return fmt.Errorf("request to stop: %w", l.Err())
	case <-ctx.Done():
		return fmt.Errorf("request to stop: %w", context.Cause(ctx))
	}
}

// Cause implements coord.Session.
func (l *Ledger) Cause(lost *coord.MemberError) error {
	if l.Silent != nil {
		if err := l.Silent(lost); err != nil {
			return err
		}
	}
	return lost
}

// Fail implements coord.Session.
func (l *Ledger) Fail(err error) {
	if err == nil {
		err = errors.New("no cause given")
	}
	m := Message{Kind: Fail, Text: clip(err.Error())}
	var partition *coord.PartitionError
	var lost *coord.MemberError
	switch {
	case errors.As(err, &partition):
		m, err = Message{Kind: Partition, Text: clip(partition.Text)}, partition
	case errors.As(err, &lost) && errors.Is(lost, godwit.ErrPeerLost) && slices.Contains(l.members, lost.Member):
		m, err = Message{Kind: Fail, Lost: &lost.Member.ID, Text: clip(lost.Error())}, l.Cause(lost)
	default:
		err = l.blame(l.self, fmt.Errorf("%w: %w", coord.ErrFailed, err))
	}
	// Before the others are told, so that this session shows the error itself
	// and not the text of it that comes back.
	l.End(err)
	// If the others cannot be told, they will see this node's lease expire.
	ctx, cancel := context.WithTimeout(context.Background(), l.lease)
	defer cancel()
	_ = l.publish(ctx, m)
}

// told returns the error of what a member says of a failure: of its own, or of a member that it has lost.
func (l *Ledger) told(from godwit.NodeID, w Message) error {
	if w.Lost == nil || int(*w.Lost) >= len(l.members) {
		return l.blame(from, fmt.Errorf("%w: %s", coord.ErrFailed, w.Text))
	}
	// The text says who was lost, too, for members that do not know the field.
	text := strings.TrimPrefix(w.Text, fmt.Sprintf("%v: %v: ", l.members[*w.Lost], godwit.ErrPeerLost))
	return l.blame(*w.Lost, fmt.Errorf("%w: %s (as %v says)", godwit.ErrPeerLost, text, l.members[from]))
}

func (l *Ledger) blame(id godwit.NodeID, err error) error {
	return &coord.MemberError{Member: l.members[id], Err: err}
}

// orEnd prefers the end of the run as the explanation of a failed operation.
func (l *Ledger) orEnd(err error) error {
	if end := l.Err(); end != nil {
		return end
	}
	return err
}

func (l *Ledger) endLocked(err error) {
	if l.err == nil {
		l.err = err
		close(l.done)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
