package node

import (
	"slices"
	"sync"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/wire"
)

// An op is an operation of a worker that could not be completed at once. Its
// slot is used again when all replies are in, also if nobody waits any more.
type op struct {
	id   uint64
	what string        // for errors
	done chan struct{} // holds one token when the operation is complete

	mu     sync.Mutex
	left   int // replies missing, and one while keys are still being issued
	dst    []float32
	offs   []uint32 // where in dst the value of a position goes
	gone   bool     // the caller gave up: drop what comes
	keys   int
	first  godwit.Key
	last   godwit.Key
	floats int // asked for
}

// ops are the outstanding operations of one worker. The worker's goroutine
// begins and ends them; any goroutine completes them.
//
// An id is worker<<48 | generation<<16 | slot: replies carry it back.
type ops struct {
	mu     sync.Mutex
	slots  []*op
	free   []uint16
	gen    uint64
	worker uint64
	open   int
	floats int           // asked for and not got
	moved  chan struct{} // holds one token when something completed
}

const (
	slotBits = 16
	genBits  = 32
)

func newOps(worker int) *ops {
	return &ops{worker: uint64(worker), moved: make(chan struct{}, 1)}
}

// begin opens an operation, or returns nil if too many are open.
func (t *ops) begin(what string, dst []float32) *op {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open >= maxOps || t.floats > workerWindow/4 {
		return nil
	}
	var slot uint16
	if n := len(t.free); n > 0 {
		slot, t.free = t.free[n-1], t.free[:n-1]
	} else {
		slot = uint16(len(t.slots))
		t.slots = append(t.slots, &op{done: make(chan struct{}, 1)})
	}
	t.open++
	t.gen = t.gen%(1<<genBits-1) + 1
	o := t.slots[slot]
	o.mu.Lock()
	o.id = t.worker<<(slotBits+genBits) | t.gen<<slotBits | uint64(slot)
	o.what, o.left, o.dst, o.gone, o.keys, o.floats = what, 1, dst, false, 0, 0
	o.mu.Unlock()
	return o
}

// find returns the open operation of an id.
func (t *ops) find(id uint64) *op {
	t.mu.Lock()
	defer t.mu.Unlock()
	slot := int(id & (1<<slotBits - 1))
	if slot >= len(t.slots) || t.slots[slot].id != id {
		return nil
	}
	return t.slots[slot]
}

// expect notes that replies for positions of the call will come: pairs of
// position and offset. The values of keys of the call are at these offsets.
func (o *op) expect(m *godwit.Model, keys []godwit.Key, miss []int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.offs = slices.Grow(o.offs[:0], len(keys))[:len(keys)]
	for i := 0; i < len(miss); i += 2 {
		o.offs[miss[i]] = uint32(miss[i+1])
		o.floats += m.Dim(keys[miss[i]])
	}
	o.first, o.last = keys[miss[0]], keys[miss[len(miss)-2]]
	o.keys = len(miss) / 2
	o.left += o.keys
}

// reply takes replies and reports whether the last was among them.
func (o *op) reply(rs []wire.Record) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range rs {
		r := &rs[i]
		if !o.gone && r.Kind == wire.PullReply && int(r.Index) < len(o.offs) {
			if off := int(o.offs[r.Index]); off+len(r.Vals) <= len(o.dst) {
				copy(o.dst[off:], r.Vals)
			}
		}
	}
	o.left -= len(rs)
	return o.left == 0
}

// issued ends the issuing of keys, of which some were not issued; it reports
// whether all replies are in.
func (o *op) issued(t *ops, not int) bool {
	t.mu.Lock()
	t.floats += o.floats
	t.mu.Unlock()
	o.mu.Lock()
	o.left -= 1 + not
	last := o.left == 0
	o.mu.Unlock()
	return last
}

// abandon makes replies to come harmless for the caller's buffer. It reports
// false if the operation is complete after all.
func (o *op) abandon() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left == 0 {
		return false
	}
	o.gone, o.dst = true, nil
	return true
}

// given reports whether the caller gave the operation up.
func (o *op) given() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gone
}

// reap frees completed operations that nobody has waited for.
func (t *ops) reap() {
	t.mu.Lock()
	var done []*op
	for _, o := range t.slots {
		select {
		case <-o.done:
			done = append(done, o)
		default:
		}
	}
	t.mu.Unlock()
	for _, o := range done {
		t.end(o)
	}
}

// end frees the slot of a completed operation.
func (t *ops) end(o *op) {
	t.mu.Lock()
	t.floats -= o.floats
	t.open--
	t.free = append(t.free, uint16(o.id&(1<<slotBits-1)))
	o.id, o.dst = 0, nil
	t.mu.Unlock()
	t.signal()
}

func (t *ops) signal() {
	select {
	case t.moved <- struct{}{}:
	default:
	}
}

// complete delivers replies to the operation that they all belong to.
func (n *Node) complete(rs ...wire.Record) {
	w := int(rs[0].Op >> (slotBits + genBits))
	if w >= len(n.workers) {
		return
	}
	t := n.workers[w].ops
	o := t.find(rs[0].Op)
	if o == nil || !o.reply(rs) {
		return
	}
	t.finish(o)
}

// finish marks an operation complete: its waiter goes on, or, if the waiter
// gave up, the slot is free again.
func (t *ops) finish(o *op) {
	o.mu.Lock()
	gone := o.gone
	o.mu.Unlock()
	if gone {
		t.end(o)
		return
	}
	o.done <- struct{}{}
	t.signal()
}
