package protocol

import (
	"fmt"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
)

// A Holding is what a shard has of a key at a moment, for observers. Row is the shard's
// own memory.
type Holding struct {
	State   string // "absent", "owner", "tentative", "frozen", "replica" or "placeholder"
	Epoch   godwit.Epoch
	Row     []float32 // value and state; nil if absent
	Holders []godwit.NodeID
	Wanted  bool // by an active intent of this node, or because it learned that it uses the key
	Wished  bool // … by what it learned alone
	Idle    bool // a replica that stays although nothing wants it
}

// Main reports whether this is the main copy.
func (h *Holding) Main() bool { return h.State == "owner" || h.State == "tentative" }

// Holding returns what the shard has of a key. Holders are sorted.
func (s *Shard) Holding(k godwit.Key) (x Holding) {
	ref, ok := s.st.Find(k)
	if !ok {
		return Holding{State: absent.String()}
	}
	h := s.st.Header(ref)
	x = Holding{State: stateOf(h).role(), Epoch: h.Epoch, Row: s.st.Floats(ref)}
	x.Idle = s.Idle(k)
	x.Wanted = s.wants(h) > 0 && !x.Idle
	x.Wished = s.wants(h) == 1 && s.learner.Has(k)
	if x.Main() && hasSide(h) {
		m := s.main(h)
		for y := s.firstHolder(m); y != nil; y = s.nextHolder(m, y) {
			x.Holders = append(x.Holders, y.node)
		}
		slices.Sort(x.Holders)
	}
	return x
}

// Away returns the owner of a key as its home knows it, false if that is the home itself.
// It must be called on the home's shard.
func (s *Shard) Away(k godwit.Key) (godwit.NodeID, bool) {
	o, ok := s.dir.Away(k)
	return o.Node, ok
}

// Asks reports whether a pull of this node would ask another node for a key: it is not here,
// nobody makes it here, and it is not on its way here.
func (s *Shard) Asks(k godwit.Key) bool {
	away := !s.cfg.HomedHere(k)
	if away && s.countsOf(k).strangers == 0 {
		return true
	}
	if !away {
		if _, away = s.dir.Away(k); !away && s.held[frozen] == 0 {
			return false
		}
	}
	if ref, ok := s.st.Find(k); ok {
		return stateOf(s.st.Header(ref)) == frozen
	}
	return away
}

// Resting returns an error that says what is left to do in the shard, or what was
// forgotten there; nil if nothing. It is meant for a run in which nothing is under way at
// any node.
func (s *Shard) Resting() error {
	sides := 0
	var err error
	s.st.Each(func(ref store.Ref) {
		h := s.st.Header(ref)
		if stateOf(h) == owner && markOf(h) != s.cut.settled {
			err = fmt.Errorf("key %d has the mark of a cut to come", h.Key)
		}
		if !hasSide(h) {
			return
		}
		sides++
		switch d, st := s.side(h), stateOf(h); {
		case h.Meta&uint32(notedBit) != 0:
			err = fmt.Errorf("pushes to key %d count as noted, and no round is to take them", h.Key)
		case d.queue != 0:
			err = fmt.Errorf("%d requests still wait for key %d", s.waits(d), h.Key)
		case st != owner && !st.isReplica():
			err = fmt.Errorf("key %d is %v", h.Key, st)
		case st.isReplica() && st != fresh:
			err = fmt.Errorf("updates of key %d did not arrive", h.Key)
		case st == owner && s.main(h).holders == 0:
			err = fmt.Errorf("key %d is %v, nobody holds a replica, and it keeps a side", h.Key, st.role())
		case st != owner && d.want == 0:
			err = fmt.Errorf("key %d is %v, nobody wants it, and it keeps a side", h.Key, st.role())
		}
	})
	used := s.sides.used()
	switch {
	case err != nil:
		return err
	case len(s.cut.copies) > 0 || s.cut.sealed:
		return fmt.Errorf("a cut is under way, %d copies of rows are left", len(s.cut.copies))
	case used != sides:
		return fmt.Errorf("%d sides are in use, %d rows have one", used, sides)
	case len(s.due) > 0:
		return fmt.Errorf("%d keys are wanted and were not asked for", len(s.due))
	case len(s.dirty) > 0 || len(s.changed) > 0:
		return fmt.Errorf("%d replicas have updates, %d rows have holders that lack something", len(s.dirty), len(s.changed))
	case s.Parked():
		return fmt.Errorf("%d rows have holders that lack something, and rested", len(s.parked[0])+len(s.parked[1]))
	case len(s.roughs) > 0:
		return fmt.Errorf("%d rows have holders that have them rounded", len(s.roughs))
	}
	for i, c := range s.slots {
		if c.remote != 0 {
			return fmt.Errorf("%d requests count as on the network at slot %d", c.remote, i)
		}
	}
	return nil
}

// MaxHops is how often a request travels at the most in a run of nodes: after
// hints, to the home, from there, and once more for each move that it follows,
// of which there is one a node at a time.
func MaxHops(nodes int) uint8 { return uint8(min(hintHops+2+nodes, 255)) }
