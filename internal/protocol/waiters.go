package protocol

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
)

// A waiter is a request that waits at this node until a key can be used or has left.
// The waiters of a key form a ring, in the order in which they came. A waiter has the
// fields of its wire.Record and no pointers: there may be millions.
type waiter struct {
	op, seq uint64
	next    uint32 // number of the next waiter in the ring
	index   uint32
	step    float32
	vals    uint32 // number of its values in Shard.vectors; 0: it has none
	origin  godwit.NodeID
	kind    wire.Kind // 0: it is being served
	hops    uint8
	coding  wire.Coding
	coming  bool
	odd     bool
	whole   bool
}

// wait queues a request until the key can be used here. The number of waiters is bounded
// by what the workers of all nodes may have outstanding.
func (s *Shard) wait(h *store.Header, r *wire.Record) {
	s.Stats.Waited++
	i := s.waiters.take()
	w := s.waiters.at(i)
	w.op, w.seq, w.index, w.step, w.origin, w.kind, w.hops, w.coding, w.coming, w.odd, w.whole = r.Op, r.Seq, r.Index, r.Step, r.Origin, r.Kind, r.Hops, r.Coding, r.Coming, r.Odd, r.Whole
	if len(r.Vals) > 0 {
		w.vals = s.vectors.add(r.Vals)
	}
	s.enqueue(s.sideOf(h), i)
	s.setNoted(h, false)
}

// enqueue puts a waiter behind the other waiters of a key.
func (s *Shard) enqueue(d *side, i uint32) {
	w := s.waiters.at(i)
	w.next = i
	if d.queue != 0 {
		last := s.waiters.at(d.queue)
		w.next, last.next = last.next, i
	}
	d.queue = i
}

// each calls do with the numbers of the waiters of a ring that ends with last, in
// their order, until do returns false. do may take the waiter that it is called
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

// takeQueue empties the queue of a key and returns its ring, for resume.
func (d *side) takeQueue() (last uint32) {
	last, d.queue = d.queue, 0
	return last
}

// serveQueue serves the requests that wait for a key, in order. A request that still
// cannot be served comes back into the queue. If comingFirst, the requests that the old
// owner passed on go first: they are the older ones.
func (s *Shard) serveQueue(out Out, k godwit.Key, comingFirst bool) {
	ref, _ := s.st.Find(k)
	h := s.st.Header(ref)
	if !hasSide(h) {
		return
	}
	s.resume(out, k, s.side(h).takeQueue(), comingFirst)
}

// resume serves the requests of a ring that takeQueue returned, and frees the ring. If
// comingFirst, the requests that the old owner passed on go first.
func (s *Shard) resume(out Out, k godwit.Key, last uint32, comingFirst bool) {
	if last == 0 {
		return
	}
	r := s.borrowRecord()
	if comingFirst {
		s.each(last, func(i uint32) bool {
			if w := s.waiters.at(i); w.coming {
				s.serveWaiter(out, k, w, r)
			}
			return true
		})
	}
	s.each(last, func(i uint32) bool {
		if w := s.waiters.at(i); w.kind != 0 {
			s.serveWaiter(out, k, w, r)
		}
		s.waiters.give(i)
		return true
	})
	s.returnRecord(r)
}

// serveWaiter makes a waiter a request again. r is memory for it.
func (s *Shard) serveWaiter(out Out, k godwit.Key, w *waiter, r *wire.Record) {
	s.recall(k, w, r)
	at := w.vals
	w.kind, w.vals = 0, 0
	s.request(out, r)
	if at != 0 {
		s.vectors.remove(at)
	}
}

// recall writes the record that a waiter was to r.
func (s *Shard) recall(k godwit.Key, w *waiter, r *wire.Record) {
	*r = wire.Record{}
	r.Kind, r.Key, r.Origin, r.Op, r.Index, r.Hops, r.Coming, r.Seq, r.Coding, r.Step, r.Odd, r.Whole = w.kind, k, w.origin, w.op, w.index, w.hops, w.coming, w.seq, w.coding, w.step, w.odd, w.whole
	if w.vals != 0 {
		r.Vals = s.vectors.list[w.vals-1]
	}
}

// borrowRecord returns a record that nobody else uses until returnRecord. Serving a
// waiter may serve other waiters, so there may be several at a time.
func (s *Shard) borrowRecord() *wire.Record {
	n := len(s.records)
	if n == 0 {
		return new(wire.Record)
	}
	r := s.records[n-1]
	s.records = s.records[:n-1]
	return r
}

func (s *Shard) returnRecord(r *wire.Record) { s.records = append(s.records, r) }

// vectors are the values of requests that wait, by their numbers, from 1.
type vectors struct {
	list [][]float32
	free []uint32
}

// add copies values and returns their number.
func (v *vectors) add(vals []float32) uint32 {
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

func (v *vectors) remove(i uint32) {
	v.list[i-1] = nil
	v.free = append(v.free, i)
}
