package protocol

import (
	"fmt"
	"reflect"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
)

// A watch judges a cluster at every record and counts the rare things that a
// storm is meant to stress.
type watch struct {
	c     *cluster
	epoch map[godwit.Key]godwit.Epoch   // the greatest of a main copy
	since map[godwit.Key]godwit.Version // … and of its version
	hops  [16]int                       // served requests by how often they travelled
	rare  rare
	err   error // of a record that must not be where it is
}

// rare counts what is hard to get right. Tests assert that all of it happened.
type rare struct {
	Moves         int // transfers
	MovesToCopy   int // transfers to a replica
	MovesInFlight int // transfers to a replica whose update was not taken yet
	ThirdHop      int // requests that went further than hints lead
	Waited        int // requests that wait for a key
	RefreshFlight int // refreshes that do not contain the update in flight
	StaleRefresh  int // refreshes that are older than the copy
	Former        int // refreshes for a former replica
	DirtyDrop     int // drops with updates
	Sets          int // sets at a replica with updates in flight
	Refused       int
	Again         int // records that came a second time
	Full          int // times that a queue was full
	Rested        int // times that a node was said to rest
	Stalled       int // times that a node took no row that it had not asked for
	Denied        int // times that there was no room to ask for a row
}

func (a *rare) add(b rare) {
	sum, more := reflect.ValueOf(a).Elem(), reflect.ValueOf(b)
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + more.Field(i).Int())
	}
}

// before counts what a record meets.
func (w *watch) before(n *testNode, r *wire.Record) {
	k, st, d := r.Key, n.holding(r.Key), n.replicaAt(r.Key)
	if r.Hops > hintHops {
		w.rare.ThirdHop++
	}
	if st == owner && ask(r.Kind) && r.Op != 0 {
		w.hops[min(int(r.Hops), len(w.hops)-1)]++
	}
	if r.Coming && st != tentative {
		w.err = fmt.Errorf("M3: %v of key %d of node %d comes to node %d, where the key is %v", r.Kind, k, r.Origin, n.id, st)
	}
	switch r.Kind {
	case wire.Transfer:
		w.rare.Moves++
		if d != nil {
			w.rare.MovesToCopy++
			for _, h := range r.Holders {
				if h.Node == n.id && d.flight.present() && d.sent > h.Seq {
					w.rare.MovesInFlight++
				}
			}
		}
	case wire.Refresh:
		switch {
		case n.sideAt(k) == nil:
		case r.Seq < n.interest(k) || n.interest(k) == 0:
			w.rare.Former++
		case d != nil && r.Version < n.version(k):
			w.rare.StaleRefresh++
		case d != nil && d.flight.present() && d.sent > r.Seq:
			w.rare.RefreshFlight++
		}
	case wire.Delta, wire.End:
		if r.Kind == wire.End && r.Hops == 1 && len(r.Vals) > 0 {
			w.rare.DirtyDrop++
		}
	case wire.Refuse:
		w.rare.Refused++
	}
}

// after judges the key of a record that was just taken.
func (w *watch) after(r *wire.Record) error {
	if w.err != nil {
		return w.err
	}
	if r.Hops > MaxHops(len(w.c.nodes)) {
		return fmt.Errorf("%v of key %d from node %d travelled %d times", r.Kind, r.Key, r.Origin, r.Hops)
	}
	return w.key(r.Key)
}

// key judges one key at any moment: M1, M4, and that epochs grow.
func (w *watch) key(k godwit.Key) error {
	mains, olds := 0, 0
	for _, n := range w.c.nodes {
		switch n.holding(k) {
		case owner, tentative:
			mains++
			e := n.epoch(k)
			if e < w.epoch[k] {
				return fmt.Errorf("key %d is owned by node %d in epoch %d after it was in epoch %d", k, n.id, e, w.epoch[k])
			}
			w.epoch[k] = e
			if v := n.version(k); v < w.since[k] {
				return fmt.Errorf("key %d has version %d at node %d after it had version %d", k, v, n.id, w.since[k])
			}
			w.since[k] = n.version(k)
		case frozen:
			olds++
		}
	}
	if mains > 1 {
		return fmt.Errorf("key %d has %d main copies", k, mains)
	}
	if olds > 1 {
		return fmt.Errorf("M4: key %d is frozen at %d nodes", k, olds)
	}
	home := w.c.nodes[w.c.homes.Home(k)]
	if _, away := home.dir.Away(k); mains+olds == 0 && (away || home.holding(k) != absent) {
		return fmt.Errorf("M1: nobody has the row of key %d", k)
	}
	return nil
}

func (n *testNode) interest(k godwit.Key) uint64 {
	r, _ := n.st.Find(k)
	return n.interestOf(n.st.Header(r))
}

func (n *testNode) epoch(k godwit.Key) godwit.Epoch {
	if r, ok := n.st.Find(k); ok {
		return n.st.Header(r).Epoch
	}
	return 0
}

func (n *testNode) version(k godwit.Key) godwit.Version {
	if r, ok := n.st.Find(k); ok {
		return n.st.Header(r).Version
	}
	return 0
}

// full reports whether everything happened.
func (a rare) full() bool {
	v := reflect.ValueOf(a)
	for i := range v.NumField() {
		if v.Field(i).Int() == 0 {
			return false
		}
	}
	return true
}
