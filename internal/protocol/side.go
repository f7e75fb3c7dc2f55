package protocol

import (
	"unsafe"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/hint"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// A side is what a row has beside its header while something goes on with it. An
// owned row that nobody else wants has none. It fills a line of the processor's
// cache and has no pointers, like holders and waiters, of which it has numbers:
// there may be millions of them.
type side struct {
	want    uint32        // active intents of this node's workers
	queue   uint32        // the last of the requests that wait here; 0: none does
	holders uint32        // owner, tentative: the last of the holders; 0: there are none
	moved   godwit.NodeID // frozen: the new owner; placeholder: whose row counts as asked for ([Out]), NoNode: none does
	asked   placement.Ask // placeholder: what was asked for; frozen: what to ask for when it is gone
	noted   bool          // owner, tentative: is in Shard.changed; placeholder: is in Shard.due

	// replica
	dirty    bool      // updates to send
	weak     bool      // … which are held back: not on the list of the next round
	flush    bool      // … whatever their size
	flying   bool      // inFlight is there; an update or Set may have no difference
	ending   bool      // drain as soon as the update in flight is acknowledged
	draining bool      // the End is in flight: readable, no longer writable
	listed   bool      // is in Shard.unsettled
	means    uint8     // how many updates mean is of, up to known
	mean     float32   // norm of the updates sent; if the policy clips
	sub      store.Ref // the row without the updates that were not sent yet
	inFlight store.Ref // the difference that the update in flight makes, or what the Set will overwrite
	rest     store.Ref // of a Merger's update that was rounded, what was taken off, plus 1; 0: nothing
	first    uint64    // sequence number of the Interest; everything older belongs to a former replica
	sent     uint64    // sequence number of the update or Set in flight; 0: none
	acked    uint64    // the last update that the owner acknowledged; placeholder: when it was asked for
}

// closed reports whether writes to a replica wait: for the end of the replica,
// or behind a Set that waits.
func (d *side) closed() bool { return d.draining || d.queue != 0 }

// A holder is what the owner of a key knows of a node that holds a copy or waits
// for one. Those of a key form a ring, in the order in which they came.
type holder struct {
	seq     uint64         // the last of the node's updates that the row contains
	version godwit.Version // that the node's copy has, its own updates included
	full    godwit.Version // of the last refresh that brought all of the state
	next    uint32
	node    godwit.NodeID
	marks   uint8
	pace    uint8 // idleBits: refreshes since the node last showed that it uses its copy, up to maxIdle; above: rounds to wait before the next one
}

// marks of a holder.
const (
	unacked = 1 << iota // an update of the holder was taken and not acknowledged yet
	lags                // the last refresh did not bring all of the state
)

const idleBits = 2

func (x *holder) is(mark uint8) bool { return x.marks&mark != 0 }

// used notes that the node uses its copy.
func (x *holder) used() { x.pace = 0 }

// refreshed notes that the node is sent the row, and when it will be next.
func (x *holder) refreshed() {
	idle := x.pace & (1<<idleBits - 1)
	x.pace = (1<<idle-1)<<idleBits | min(idle+1, maxIdle)
}

// skips reports whether the holder is to be left out of a round, and counts that.
func (x *holder) skips() bool {
	if x.pace < 1<<idleBits {
		return false
	}
	x.pace -= 1 << idleBits
	return true
}

// A waiter is a request that waits for a key. Those of a key form a ring, in the
// order in which they came.
type waiter struct {
	op, seq uint64
	next    uint32
	index   uint32
	step    float32
	vals    uint32 // where in Shard.vals its values are, plus 1; 0: it has none
	origin  godwit.NodeID
	kind    wire.Kind
	hops    uint8
	coding  wire.Coding
	coming  bool
}

// A pool hands out numbered things, from 1. They are kept in chunks, so that they
// do not move and growing wastes little.
type pool[T any] struct {
	chunks []*[poolChunk]T
	made   uint32
	free   []uint32
}

const poolChunk = 16

func (p *pool[T]) at(n uint32) *T { return &p.chunks[(n-1)/poolChunk][(n-1)%poolChunk] }

// take returns the number of a zero thing. The next one is fetched to the
// processor's cache, where keys of one shard are handled one after the other.
func (p *pool[T]) take() uint32 {
	if l := len(p.free); l > 0 {
		n := p.free[l-1]
		p.free = p.free[:l-1]
		if l > 1 {
			hint.Write(unsafe.Pointer(p.at(p.free[l-2])), 1)
		}
		return n
	}
	if p.made%poolChunk == 0 {
		p.chunks = append(p.chunks, new([poolChunk]T))
	}
	p.made++
	return p.made
}

// give takes back what take returned.
func (p *pool[T]) give(n uint32) {
	var zero T
	*p.at(n) = zero
	p.free = append(p.free, n)
}

func (p *pool[T]) used() int { return int(p.made) - len(p.free) }

// bytes returns the memory that the pool takes.
func (p *pool[T]) bytes() int {
	return len(p.chunks)*int(unsafe.Sizeof([poolChunk]T{})) + 8*cap(p.chunks) + 4*cap(p.free)
}

// hasSide reports whether a row has a side.
func hasSide(h *store.Header) bool { return h.Meta>>stateBits != 0 }

// side returns the row's side, which must have one.
func (s *Shard) side(h *store.Header) *side { return s.sides.at(h.Meta >> stateBits) }

// sideOf returns the row's side, making one if needed.
func (s *Shard) sideOf(h *store.Header) *side {
	if !hasSide(h) {
		h.Meta |= s.sides.take() << stateBits
	}
	return s.side(h)
}

// tidy frees the side of a main copy with which nothing goes on.
func (s *Shard) tidy(h *store.Header) {
	if hasSide(h) {
		d := s.side(h)
		if st := stateOf(h); (st == owner || st == tentative) && d.want == 0 && d.holders == 0 && d.queue == 0 && !d.noted {
			s.dropSide(h)
		}
	}
}

func (s *Shard) dropSide(h *store.Header) {
	if hasSide(h) {
		d := s.side(h)
		s.land(d)
		s.dropRest(d)
		s.dropHolders(d)
		s.sides.give(h.Meta >> stateBits)
		h.Meta &= 1<<stateBits - 1
	}
}

// flight returns the difference that the update in flight makes, nil if none.
func (s *Shard) flight(d *side) []float32 {
	if !d.flying {
		return nil
	}
	return s.st.Floats(d.inFlight)
}

// land forgets the difference in flight.
func (s *Shard) land(d *side) {
	if d.flying {
		s.st.Free(d.inFlight)
		d.flying = false
	}
}

// rest returns what was taken off an update that was rounded.
func (s *Shard) rest(d *side) []float32 { return s.st.Floats(d.rest - 1) }

// --- holders ---

// firstHolder and nextHolder lead through the holders of a key, in their order,
// until they return nil.
func (s *Shard) firstHolder(d *side) *holder {
	if d.holders == 0 {
		return nil
	}
	return s.holders.at(s.holders.at(d.holders).next)
}

func (s *Shard) nextHolder(d *side, x *holder) *holder {
	if x == s.holders.at(d.holders) {
		return nil
	}
	return s.holders.at(x.next)
}

// holder returns what a key's owner knows of a node, nil if that is no holder.
func (s *Shard) holder(d *side, n godwit.NodeID) *holder {
	for x := s.firstHolder(d); x != nil; x = s.nextHolder(d, x) {
		if x.node == n {
			return x
		}
	}
	return nil
}

// addHolder adds a node that is no holder yet.
func (s *Shard) addHolder(d *side, n godwit.NodeID) *holder {
	i := s.holders.take()
	x := s.holders.at(i)
	x.node, x.next = n, i
	if d.holders != 0 {
		last := s.holders.at(d.holders)
		x.next, last.next = last.next, i
	}
	d.holders = i
	return x
}

// dropHolder forgets a node, which is a holder.
func (s *Shard) dropHolder(d *side, n godwit.NodeID) {
	before := d.holders
	for s.holders.at(s.holders.at(before).next).node != n {
		before = s.holders.at(before).next
	}
	b := s.holders.at(before)
	i := b.next
	b.next = s.holders.at(i).next
	switch {
	case i == before:
		d.holders = 0
	case i == d.holders:
		d.holders = before
	}
	s.holders.give(i)
}

// dropHolders forgets all.
func (s *Shard) dropHolders(d *side) {
	if d.holders == 0 {
		return
	}
	for i := s.holders.at(d.holders).next; ; {
		next := s.holders.at(i).next
		s.holders.give(i)
		if i == d.holders {
			break
		}
		i = next
	}
	d.holders = 0
}

// --- requests that wait ---

// wait keeps a request until the key is usable here. What waits is bounded by
// what the workers of all nodes may have outstanding.
func (s *Shard) wait(h *store.Header, r *wire.Record) {
	s.Stats.Waited++
	i := s.waiters.take()
	w := s.waiters.at(i)
	w.op, w.seq, w.index, w.step, w.origin, w.kind, w.hops, w.coding, w.coming = r.Op, r.Seq, r.Index, r.Step, r.Origin, r.Kind, r.Hops, r.Coding, r.Coming
	if len(r.Vals) > 0 {
		w.vals = s.vals.keep(r.Vals)
	}
	s.enqueue(s.sideOf(h), i)
}

// enqueue puts a waiter behind those of a key.
func (s *Shard) enqueue(d *side, i uint32) {
	w := s.waiters.at(i)
	w.next = i
	if d.queue != 0 {
		last := s.waiters.at(d.queue)
		w.next, last.next = last.next, i
	}
	d.queue = i
}

// each calls do with the numbers of the waiters of a ring that ends with one, in
// their order, until it returns false. do may take the one that it is called
// with out of the ring.
func (s *Shard) each(last uint32, do func(uint32) bool) {
	if last == 0 {
		return
	}
	for i := s.waiters.at(last).next; ; {
		next := s.waiters.at(i).next
		if !do(i) || i == last {
			return
		}
		i = next
	}
}

// waits returns how many requests wait for a key.
func (s *Shard) waits(d *side) (n int) {
	s.each(d.queue, func(uint32) bool { n++; return true })
	return n
}

// resume has what waited for a key go its way: a ring that is no side's any more,
// and is then gone. If comingFirst, requests that came over the old owner go first:
// they are the older ones.
func (s *Shard) resume(out Out, k godwit.Key, last uint32, comingFirst bool) {
	if last == 0 {
		return
	}
	r := s.lend()
	if comingFirst {
		s.each(last, func(i uint32) bool {
			if w := s.waiters.at(i); w.coming {
				s.resumed(out, k, w, r)
			}
			return true
		})
	}
	s.each(last, func(i uint32) bool {
		if w := s.waiters.at(i); w.kind != 0 {
			s.resumed(out, k, w, r)
		}
		s.waiters.give(i)
		return true
	})
	s.lent = append(s.lent, r)
}

// resumed takes the request of a waiter again. r is memory for it.
func (s *Shard) resumed(out Out, k godwit.Key, w *waiter, r *wire.Record) {
	s.recall(k, w, r)
	at := w.vals
	w.kind, w.vals = 0, 0
	s.request(out, r)
	if at != 0 {
		s.vals.forget(at)
	}
}

// recall makes a waiter the record that it was.
func (s *Shard) recall(k godwit.Key, w *waiter, r *wire.Record) {
	*r = wire.Record{}
	r.Kind, r.Key, r.Origin, r.Op, r.Index, r.Hops, r.Coming, r.Seq, r.Coding, r.Step = w.kind, k, w.origin, w.op, w.index, w.hops, w.coming, w.seq, w.coding, w.step
	if w.vals != 0 {
		r.Vals = s.vals.list[w.vals-1]
	}
}

// lend returns a record that nobody else uses until it is back in s.lent.
func (s *Shard) lend() *wire.Record {
	n := len(s.lent)
	if n == 0 {
		return new(wire.Record)
	}
	r := s.lent[n-1]
	s.lent = s.lent[:n-1]
	return r
}

// kept are the values of requests that wait.
type kept struct {
	list [][]float32
	free []uint32
}

// keep copies values and returns a number for them, from 1.
func (v *kept) keep(vals []float32) uint32 {
	own := append([]float32(nil), vals...)
	if n := len(v.free); n > 0 {
		i := v.free[n-1]
		v.free = v.free[:n-1]
		v.list[i-1] = own
		return i
	}
	v.list = append(v.list, own)
	return uint32(len(v.list))
}

func (v *kept) forget(i uint32) {
	v.list[i-1] = nil
	v.free = append(v.free, i)
}
