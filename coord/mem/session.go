package mem

import (
	"context"
	"errors"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord/internal/ledger"
)

// A session is a member's part of the hub.
type session struct {
	*ledger.Ledger
	hub *Hub
}

// errNotMember is returned to a killed or closed member that publishes.
var errNotMember = errors.New("the node is no member of the run any more")

// publish hands the message to all that are there, in one order for all.
func (s *session) publish(ctx context.Context, w ledger.Message) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if int(s.Self()) >= len(h.run) || h.run[s.Self()] != s {
		return errNotMember
	}
	for _, to := range h.run {
		if to != nil {
			to.Apply(s.Self(), w)
		}
	}
	return nil
}

// Close implements coord.Session. It does not wait.
func (s *session) Close(ctx context.Context) error {
	s.End(godwit.ErrClosed)
	// A context that is over must not turn an orderly end into a loss. An error says that
	// the session was closed before, or killed: nobody is to be told.
	_ = s.publish(context.WithoutCancel(ctx), ledger.Message{Kind: ledger.Leave})
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.removeLocked(s)
	return nil
}
