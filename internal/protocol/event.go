package protocol

import "github.com/godwit-ps/godwit"

// An Event is something that became of a key at this node. Of one key, this node's events come
// in their order. Those of all nodes are in order by (Epoch, node): an epoch has one owner, who
// says Arrived (or Created) first and Left last.
type Event struct {
	Key   godwit.Key
	Kind  EventKind
	Peer  godwit.NodeID // the other node that has to do with it; else this one
	Epoch godwit.Epoch  // of the key's ownership, as far as this node knows it
}

// An EventKind says what became of a key. The numbers are part of the format of traces
// (package telemetry/trace): none is used anew.
type EventKind uint8

const (
	Created   EventKind = 1 + iota // the home made the main copy, which nobody had touched
	Arrived                        // the main copy came from Peer
	Left                           // the main copy went to Peer, with the next epoch
	Copied                         // a replica was set up, with a row of Peer
	Refreshed                      // Peer, the owner, sent a newer row of a replica
	DropBegun                      // a replica is given up: its last update was sent
	Ended                          // a replica is gone
	Wanted                         // the first of this node's intents for the key became due
	Unwanted                       // … and the last one ended
	Asked                          // the key or a copy was asked of Peer
	Refused                        // … and Peer gives neither
)

// tell tells the observer what became of a key. Where there is none, it costs one branch.
func (s *Shard) tell(kind EventKind, k godwit.Key, peer godwit.NodeID, e godwit.Epoch) {
	if s.cfg.Tell != nil {
		s.cfg.Tell(Event{Key: k, Kind: kind, Peer: peer, Epoch: e})
	}
}
