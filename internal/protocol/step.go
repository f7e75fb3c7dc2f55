package protocol

import (
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
)

// Step takes one record from another node. For a reply the caller has to
// complete the operation; everything else is done when Step returns. An error
// means that the other node does not keep to the protocol.
func (s *Shard) Step(out Out, from godwit.NodeID, r *wire.Record) error {
	if err := s.cfg.check(from, r); err != nil {
		return err
	}
	switch r.Kind {
	case wire.Pull, wire.Push, wire.Set, wire.Localize, wire.Interest, wire.Wish, wire.Delta, wire.End:
		s.request(out, r)
		return nil
	case wire.PullReply, wire.Done:
		s.Replied(from, r.Key)
		return nil
	case wire.Transfer:
		return s.transfer(out, from, r)
	case wire.Claim:
		return s.claim(out, r)
	case wire.Release:
		s.release(out, r)
		return nil
	case wire.Drained:
		s.drained(out, r)
		return nil
	case wire.Refresh, wire.Ack, wire.Dropped, wire.Refuse:
		return s.answer(out, from, r)
	case wire.Bid:
		s.bid(out, from, r)
		return nil
	case wire.BidReply:
		s.bidAnswered(out, r)
		return nil
	}
	return fmt.Errorf("protocol: node %d sends %v, which no key takes", from, r.Kind)
}

// answer takes an owner's answer to a node that holds or wants a copy.
func (s *Shard) answer(out Out, from godwit.NodeID, r *wire.Record) error {
	ref, ok := s.st.Find(r.Key)
	if !ok || !hasSide(s.st.Header(ref)) {
		s.Stats.Stale++
		return nil
	}
	h := s.st.Header(ref)
	switch r.Kind {
	case wire.Refresh:
		records := s.exchanged(h, r)
		if err := s.refresh(out, h, ref, from, r); err != nil {
			return err
		}
		s.weigh(out, r.Key, records)
	case wire.Ack:
		records := s.exchanged(h, r)
		s.ack(out, h, ref, r)
		s.weigh(out, r.Key, records)
	case wire.Dropped:
		s.dropped(out, h, from, r)
	case wire.Refuse:
		s.refused(out, h, from)
	}
	return nil
}

// check refuses a record that does not fit the model.
func (c *Config) check(from godwit.NodeID, r *wire.Record) error {
	if !c.Model.Has(r.Key) {
		return fmt.Errorf("protocol: node %d sends %v of key %d, the model has keys 0 … %d", from, r.Kind, r.Key, c.Model.Keys()-1)
	}
	want := 0
	switch r.Kind {
	case wire.Claim:
		if home := c.Homes.Home(r.Key); home != c.Self || r.Origin != from {
			return fmt.Errorf("protocol: node %d claims key %d for node %d at node %d, its home is node %d", from, r.Key, r.Origin, c.Self, home)
		}
	case wire.Release:
		if home := c.Homes.Home(r.Key); home != from {
			return fmt.Errorf("protocol: node %d releases key %d, its home is node %d", from, r.Key, home)
		}
	case wire.PullReply:
		if want = c.Model.Dim(r.Key); len(r.Vals) == c.Model.RowLen(r.Key) {
			return nil
		}
	case wire.Push, wire.Set:
		want = c.Model.Dim(r.Key)
	case wire.Delta, wire.Transfer:
		want = c.Model.RowLen(r.Key)
	case wire.Refresh:
		if want = c.Model.RowLen(r.Key); len(r.Vals) == c.Model.Fresh(r.Key) {
			return nil
		}
	case wire.End:
		if want = len(r.Vals); want != 0 {
			want = c.Model.RowLen(r.Key)
		}
	}
	if len(r.Vals) != want {
		return fmt.Errorf("protocol: node %d sends %v of key %d with %d floats, want %d", from, r.Kind, r.Key, len(r.Vals), want)
	}
	return nil
}
