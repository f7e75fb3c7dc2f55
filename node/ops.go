package node

import (
	"slices"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/tick"
	"github.com/godwit-ps/godwit/transport"
)

// An op is an operation of a worker that could not be completed at once. Its
// slot is used again when all replies are in, also if nobody waits any more.
type op struct {
	id   uint64
	what string        // for errors
	done chan struct{} // holds one token when the operation is complete

	mu     preempt.Mutex
	left   int // replies missing, and one while keys are still being issued
	dst    []float32
	offs   []uint32               // where in dst the value of a position goes
	gone   bool                   // the caller gave up: drop what comes
	from   godwit.NodeID          // the only node that was asked; NoNode: there are more, or none
	reads  transport.InlineReader // the connection that the waiting worker may be reading
	keys   int
	first  godwit.Key
	last   godwit.Key
	floats int // asked for

	after    tick.Tick // it waits for this tick, somewhere
	settles  tick.Tick // a push or set that this node's settled tick waits for: when it began; 0: none
	deadline uint64    // … that the worker waits for when its clock is greater; 0: does not

	token chan<- struct{} // gets a token when the operation is complete that was given up; nil: none does
}

// ops are the outstanding operations of one worker. The worker's goroutine
// begins and ends them; any goroutine completes them.
//
// An id is worker<<48 | generation<<16 | slot: replies carry it back. A handle is
// an id with some bits of the node's above it, so that a handle of another worker
// is seldom taken for one of this.
type ops struct {
	mu     preempt.Mutex
	slots  []*op
	free   []uint16
	gen    uint64
	worker uint64
	open   int
	most   int          // that may be open
	room   int64        // bytes that may be under way,
	asked  atomic.Int64 // … and that are: keys that were issued and not answered, by costOf
	short  atomic.Bool  // the worker waits for some of them
	// Those that wait for a tick are not among these. Their worker may have to go
	// on before they can be complete, so none of its others may wait for them.
	ahead struct{ ops, floats int }
	moved chan struct{} // holds one token when something completed

	settling tick.Pending[tick.Tick] // what a tick waits for, by its tick
	windowed tick.Pending[uint64]    // what the worker waits for, by its deadline
	bound    *bound                  // wants to hear when the oldest of settling completed
}

const (
	slotBits = 16
	genBits  = 32
)

func (n *Node) newOps(worker int) *ops {
	room := int64(n.links.Limits.Asked) / int64(n.cfg.Workers+1) // and one for what Close pushes
	return &ops{worker: uint64(worker), most: n.links.Limits.Ops, room: room, moved: make(chan struct{}, 1)}
}

// begin opens an operation, or returns nil if too many are open.
func (t *ops) begin(what string, dst []float32) *op {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open >= t.most {
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
	o.what, o.left, o.dst, o.gone, o.from, o.keys, o.floats = what, 1, dst, false, godwit.NoNode, 0, 0
	o.after, o.settles, o.deadline, o.token = 0, 0, 0, nil
	o.mu.Unlock()
	return o
}

// full reports whether there are too many to begin another one.
func (t *ops) full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ahead.ops >= t.most || t.ahead.floats > aheadFloats
}

// ask counts keys that are about to be issued, unless there is no room for them.
// The first may always be.
func (t *ops) ask(cost int64) bool {
	if asked := t.asked.Load(); asked > 0 && asked+cost > t.room {
		return false
	}
	t.asked.Add(cost)
	return true
}

// got takes note that keys were answered.
func (t *ops) got(cost int64) {
	if left := t.asked.Add(-cost); left <= t.room/2 && t.short.Load() {
		t.signal()
	}
}

// delay notes that an operation that was just begun waits for a tick.
func (t *ops) delay(o *op, at tick.Tick) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o.after = at
	t.open--
	t.ahead.ops++
	t.ahead.floats += o.floats
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

// began reports whether an id is of an operation of this worker, which may be over.
func (t *ops) began(id uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	slot, gen := int(id&(1<<slotBits-1)), uint32(id>>slotBits)
	return id>>(slotBits+genBits) == t.worker && slot < len(t.slots) && gen != 0 && int32(gen-uint32(t.gen)) <= 0
}

// follow notes, of a push or set that is about to be sent, the tick that must
// not be settled before it is complete, and the clock up to which the worker does
// not wait for it.
func (t *ops) follow(o *op, k godwit.Key, at tick.Tick, settles bool, deadline uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if settles {
		o.settles = at
		t.settling.Add(at, k)
	}
	if o.deadline = deadline; deadline != 0 {
		t.windowed.Add(deadline, k)
	}
}

// over ends that.
func (t *ops) over(o *op) {
	t.mu.Lock()
	if o.settles != 0 {
		t.settling.Remove(o.settles)
	}
	if o.deadline != 0 {
		t.windowed.Remove(o.deadline)
	}
	t.mu.Unlock()
	if o.settles != 0 && t.bound != nil {
		t.bound.stir()
	}
}

// oldest returns the tick of the oldest push that a tick waits for.
func (t *ops) oldest() (tick.Tick, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u, ok := t.settling.First()
	return u.At, ok
}

// overdue returns a key of the pushes whose deadline is before a clock.
func (t *ops) overdue(clock uint64) (godwit.Key, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u, ok := t.windowed.First()
	return u.Key, ok && u.At < clock
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
func (o *op) issued(not int) bool {
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
	if o.after == 0 {
		t.open--
	} else {
		t.ahead.floats -= o.floats
		t.ahead.ops--
		t.bound.asked.Add(-int64(o.keys))
	}
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

// complete delivers replies of a node to the operation that they all belong to.
func (n *Node) complete(from godwit.NodeID, rs ...wire.Record) {
	var t *ops
	switch w := int(rs[0].Op >> (slotBits + genBits)); {
	case w < len(n.workers):
		t = n.workers[w].ops
	case w == len(n.workers):
		t = n.closer.ops
	default:
		return
	}
	o := t.find(rs[0].Op)
	if o == nil {
		return
	}
	if o.after == 0 {
		t.got(n.costOf(rs))
	}
	if o.reply(rs) {
		t.finish(o, from)
	}
}

// costOf returns what the keys of replies counted when they were issued.
func (n *Node) costOf(rs []wire.Record) (cost int64) {
	for i := range rs {
		if r := &rs[i]; r.Kind == wire.PullReply {
			cost += link.CostOf(len(r.Vals))
		} else {
			cost += link.CostOf(n.model.RowLen(r.Key))
		}
	}
	return cost
}

// finish marks an operation complete, by what a node sent: its waiter goes on,
// or, if the waiter gave up, the slot is free again.
func (t *ops) finish(o *op, from godwit.NodeID) {
	if o.settles != 0 || o.deadline != 0 {
		t.over(o)
	}
	o.mu.Lock()
	gone, expected, token := o.gone, from == o.from, o.token
	o.mu.Unlock()
	if gone {
		t.end(o)
		if token != nil {
			token <- struct{}{}
		}
		return
	}
	o.done <- struct{}{}
	if !expected {
		o.recall()
	}
	t.signal()
}
