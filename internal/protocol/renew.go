package protocol

import (
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
)

// This file is how a copy that waited gets what it lacks before it is used again (R9): rounds refresh a copy that its node does
// not use more and more rarely, and come rarely themselves where steps are short.

// A coarseTime is a time of Out.Now in units of 16 µs, modulo 2¹⁶, which is one second: a copy that has waited longer may look
// younger than it is, and is not renewed then.
type coarseTime uint16

const coarseBits = 14

func coarseOf(now int64) coarseTime { return coarseTime(now >> coarseBits) }

// oldAfter is after how many times as long as a copy takes to come without news of the owner a replica is renewed. After less, more is
// asked than is gained where copies change all the time.
const oldAfter = 4

// renew asks for what a replica lacks that a worker is about to use, if its node has heard nothing of the owner for long. So it is
// hardly older than one that is set up anew.
func (s *Shard) renew(out Out, h *store.Header) {
	d, now := s.replica(h), coarseOf(out.Now())
	if age := now - d.heard; age <= coarseTime(min(oldAfter*s.lead>>coarseBits, 1<<15)) {
		return
	}
	d.heard = now // it asks once until it hears something
	s.Stats.Renewals++
	s.send(out, s.next(h.Key, 0), wire.Record{Kind: wire.Renew, Key: h.Key, Origin: s.cfg.Self, Hops: 1})
}

// renewal brings a holder up to date. Where there is no room for that, a round does.
func (s *Shard) renewal(out Out, h *store.Header, ref store.Ref, r *wire.Record) {
	if !hasSide(h) {
		s.Stats.Stale++ // the holder has given its copy up since
		return
	}
	x := s.holder(s.main(h), r.Origin)
	if x == nil {
		s.Stats.Stale++
		return
	}
	x.used()
	if out.Room(x.node) {
		s.freshen(out, h, ref, x, false)
	}
}
