package operation

import (
	"fmt"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/histogram"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// Tables are the outstanding operations of a node's workers, and of two more, by which
// the node itself pushes.
type Tables struct {
	// Settled is told when the oldest update that a tick waits for may have reached its
	// main copy. It is set once, before the first operation; nil: nobody wants to know.
	Settled func()

	model *godwit.Model
	cost  int64 // of the longest row, by link.CostOf
	each  []*Table
	sides [2]atomic.Int64 // pushes and sets that are not complete, by the side of cuts that they are of
	ahead atomic.Int64    // keys that were asked for ahead and have not come
	Most  int64           // such keys that the node may have

	now     func() int64
	latency []histogram.Shared // by the only node that was asked, and of operations of which that is not known
	last    []histogram.Shared // of the latter, by the node that answered last
}

// others is how many workers a node has beside those of the program.
const others = 2

// New returns the operations of the workers of a node, and of two more.
func New(m *godwit.Model, node godwit.NodeID, workers int, limits host.Limits) *Tables {
	ts := &Tables{model: m, Most: int64(limits.Ahead)}
	for i := range m.Tables() {
		ts.cost = max(ts.cost, link.CostOf(m.TableRowLen(i)))
	}
	for i := range workers + others {
		ts.each = append(ts.each, &Table{all: ts, node: node, worker: uint64(i), most: limits.Ops, Room: int64(limits.Asked) / int64(workers+1), moved: make(chan struct{}, 1)})
	}
	return ts
}

// Measure has the latency of operations be measured, in a run of so many nodes. It is called
// before the first operation, at the most once.
func (ts *Tables) Measure(now func() int64, nodes int) {
	ts.now, ts.latency, ts.last = now, make([]histogram.Shared, nodes+1), make([]histogram.Shared, nodes+1)
}

// Latency returns how many microseconds operations took that only this peer was asked for; those
// of NoNode waited for a key on its way here, or for several peers.
func (ts *Tables) Latency(peer godwit.NodeID) histogram.Counts {
	return ts.latency[min(int(peer), len(ts.latency)-1)].Counts()
}

// LatencyLast returns how many microseconds operations took that this peer was the last to answer, of
// those that Latency counts for NoNode.
func (ts *Tables) LatencyLast(peer godwit.NodeID) histogram.Counts {
	return ts.last[min(int(peer), len(ts.last)-1)].Counts()
}

// answered measures an operation that is complete: only this node was asked, or NoNode, and that one
// answered last.
func (ts *Tables) answered(asked, last godwit.NodeID, began int64) {
	if ts.now == nil {
		return
	}
	took := uint64(max(0, ts.now()-began)) / 1000
	ts.latency[min(int(asked), len(ts.latency)-1)].Observe(took)
	if asked == godwit.NoNode {
		ts.last[min(int(last), len(ts.last)-1)].Observe(took)
	}
}

// Of returns the operations of a worker.
func (ts *Tables) Of(worker int) *Table { return ts.each[worker] }

// Complete delivers replies of a node to the operation that they all belong to.
func (ts *Tables) Complete(from godwit.NodeID, rs ...wire.Record) {
	t, o := ts.find(rs[0].Op)
	if o == nil {
		return
	}
	if o.After == 0 {
		var cost int64
		for i := range rs {
			cost += ts.costOf(rs[i].Kind, rs[i].Key, len(rs[i].Vals))
		}
		t.Got(cost)
	}
	if o.reply(rs) {
		t.finish(o, from)
	}
}

// CompleteBatch is Complete of the first n replies of a batch.
func (ts *Tables) CompleteBatch(from godwit.NodeID, b *wire.Batch, n int) {
	t, o := ts.find(b.Op)
	if o == nil {
		return
	}
	if o.After == 0 {
		cost := int64(n) * ts.costOf(b.Kind, b.Keys[0], b.Floats)
		if b.Kind != wire.PullReply && ts.model.Tables() > 1 {
			cost = 0
			for _, k := range b.Keys[:n] {
				cost += ts.costOf(b.Kind, k, b.Floats)
			}
		}
		t.Got(cost)
	}
	if o.replyBatch(b, n) {
		t.finish(o, from)
	}
}

// find returns the open operation of an id, and its worker's.
func (ts *Tables) find(id uint64) (*Table, *Op) {
	w := int(id >> (slotBits + genBits))
	if w >= len(ts.each) {
		return nil, nil
	}
	t := ts.each[w]
	return t, t.find(id)
}

// costOf returns what the key of a reply counted when it was issued.
func (ts *Tables) costOf(kind wire.Kind, k godwit.Key, floats int) int64 {
	if kind != wire.PullReply {
		floats = ts.model.RowLen(k)
	}
	return link.CostOf(floats)
}

// A Table is the outstanding operations of one worker. The worker's goroutine
// begins and ends them; any goroutine completes them.
//
// An id is worker<<48 | generation<<16 | slot: replies carry it back. A handle is
// an id with some bits of the node's above it, so that a handle of another worker
// is seldom taken for one of this.
type Table struct {
	Room int64 // bytes that may be under way

	all    *Tables
	node   godwit.NodeID
	worker uint64
	most   int           // operations that may be open
	asked  atomic.Int64  // bytes that are under way: keys that were issued and not answered, by link.CostOf
	short  atomic.Bool   // the worker waits for some of them
	moved  chan struct{} // holds one token when something completed

	mu    preempt.Mutex
	slots []*Op
	free  []uint16
	gen   uint64
	open  int
	// Those that wait for a tick are not among these. Their worker may have to go
	// on before they can be complete, so none of its others may wait for them.
	ahead    struct{ ops, floats int }
	settling tick.Pending[tick.Tick] // what a tick waits for, by its tick
	windowed tick.Pending[uint64]    // what the worker waits for, by its deadline
}

const (
	slotBits = 16
	genBits  = 32

	// handleNode is where a handle has bits of its node, above the worker of the id.
	handleNode = slotBits + genBits + 13

	aheadFloats = 16 << 20 // that one worker may have asked for ahead and not got
)

// Moved holds a token when something completed since it was last taken.
func (t *Table) Moved() <-chan struct{} { return t.moved }

// Open returns how many operations are open, those that wait for a tick not counted.
func (t *Table) Open() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}

// Free reports whether Begin opens another operation.
func (t *Table) Free() bool { return t.Open() < t.most }

// Takes reports whether another operation of so many keys may be begun and issued at once.
func (t *Table) Takes(keys int) bool {
	return t.Free() && t.UnderWay()+int64(keys)*t.all.cost <= t.Room
}

// Ahead returns how many operations wait for a tick.
func (t *Table) Ahead() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ahead.ops
}

// Ahead returns how many keys the workers of the node have asked for ahead.
func (ts *Tables) Ahead() int64 { return ts.ahead.Load() }

// UnderWay returns the bytes of keys that were issued and not answered.
func (t *Table) UnderWay() int64 { return t.asked.Load() }

// Short reports whether the worker waits for room.
func (t *Table) Short() bool { return t.short.Load() }

// Wait says whether the worker waits for room.
func (t *Table) Wait(short bool) { t.short.Store(short) }

// Reserve takes room for keys that are asked for ahead, which Delay gives to an
// operation. It does not wait for some: the worker itself may have to go on before there
// is any.
func (t *Table) Reserve(keys int) error {
	if t.full() {
		t.Reap()
		if t.full() {
			return fmt.Errorf("%w: this worker has as much outstanding as it may that waits for clocks; wait for some of it first", godwit.ErrFull)
		}
	}
	if n := t.all.ahead.Add(int64(keys)); n > t.all.Most {
		t.Return(keys)
		return fmt.Errorf("%w: pulls of %d keys wait for clocks, of all workers of the node at most %d may; ask less far ahead", godwit.ErrFull, n, t.all.Most)
	}
	return nil
}

// Return gives reserved room back.
func (t *Table) Return(keys int) { t.all.ahead.Add(-int64(keys)) }

// Handle returns the handle of an operation's id.
func (t *Table) Handle(id uint64) godwit.Handle {
	return godwit.Handle(id | uint64(t.node)<<handleNode)
}

// Get returns the open operation that a handle names, nil if it is over or the worker has
// given it up. It reports false if this worker never began such a one.
func (t *Table) Get(h godwit.Handle) (o *Op, ok bool) {
	id := uint64(h) & (1<<handleNode - 1)
	if t.Handle(id) != h || !t.began(id) {
		return nil, false
	}
	if o = t.find(id); o != nil && o.abandoned() {
		o = nil
	}
	return o, true
}

// Begin opens an operation, or returns nil if too many are open.
func (t *Table) Begin(what string, dst []float32) *Op {
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
		t.slots = append(t.slots, &Op{Done: make(chan struct{}, 1)})
	}
	t.open++
	t.gen = t.gen%(1<<genBits-1) + 1
	o := t.slots[slot]
	o.mu.Lock()
	o.ID = t.worker<<(slotBits+genBits) | t.gen<<slotBits | uint64(slot)
	o.What, o.left, o.dst, o.gone, o.from, o.span = what, 1, dst, false, godwit.NoNode, Span{}
	o.Began = 0
	o.After, o.settles, o.deadline, o.side, o.token = 0, 0, 0, 0, nil
	o.mu.Unlock()
	return o
}

// full reports whether there are too many to begin another one.
func (t *Table) full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ahead.ops >= t.most || t.ahead.floats > aheadFloats
}

// Ask counts keys that are about to be issued, unless there is no room for them.
// The first may always be.
func (t *Table) Ask(cost int64) bool {
	if asked := t.asked.Load(); asked > 0 && asked+cost > t.Room {
		return false
	}
	t.asked.Add(cost)
	return true
}

// Got takes note that keys were answered.
func (t *Table) Got(cost int64) {
	if left := t.asked.Add(-cost); left <= t.Room/2 && t.short.Load() {
		t.signal()
	}
}

// Changes notes that an operation that was just begun is a push or set, and of which side of cuts.
func (ts *Tables) Changes(o *Op, odd bool) {
	o.side = 1
	if odd {
		o.side = 2
	}
	ts.sides[o.side-1].Add(1)
}

// Changing returns how many pushes and sets of a side of cuts are not complete.
func (ts *Tables) Changing(odd bool) int64 {
	if odd {
		return ts.sides[1].Load()
	}
	return ts.sides[0].Load()
}

// Delay notes that an operation that was just begun waits for a tick.
func (t *Table) Delay(o *Op, at tick.Tick) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o.After = at
	t.open--
	t.ahead.ops++
	t.ahead.floats += o.span.floats
}

// find returns the open operation of an id.
func (t *Table) find(id uint64) *Op {
	t.mu.Lock()
	defer t.mu.Unlock()
	slot := int(id & (1<<slotBits - 1))
	if id == 0 || slot >= len(t.slots) || t.slots[slot].ID != id { // the id of an operation that is over is 0
		return nil
	}
	return t.slots[slot]
}

// began reports whether an id is of an operation of this worker, which may be over.
func (t *Table) began(id uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	slot, gen := int(id&(1<<slotBits-1)), uint32(id>>slotBits)
	return id>>(slotBits+genBits) == t.worker && slot < len(t.slots) && gen != 0 && int32(gen-uint32(t.gen)) <= 0
}

// Follow notes, of a push or set that is about to be sent, the tick that must
// not be settled before it is complete, and the clock up to which the worker does
// not wait for it.
func (t *Table) Follow(o *Op, k godwit.Key, at tick.Tick, settles bool, deadline uint64) {
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

// over ends what Follow noted of an operation.
func (t *Table) over(o *Op) {
	t.mu.Lock()
	if o.settles != 0 {
		t.settling.Remove(o.settles)
	}
	if o.deadline != 0 {
		t.windowed.Remove(o.deadline)
	}
	t.mu.Unlock()
	if o.settles != 0 && t.all.Settled != nil {
		t.all.Settled()
	}
}

// Oldest returns the tick of the oldest push that a tick waits for.
func (t *Table) Oldest() (tick.Tick, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u, ok := t.settling.First()
	return u.At, ok
}

// Overdue returns a key of the pushes whose deadline is before a clock.
func (t *Table) Overdue(clock uint64) (godwit.Key, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u, ok := t.windowed.First()
	return u.Key, ok && u.At < clock
}

// Reap frees completed operations that nobody has waited for.
func (t *Table) Reap() {
	t.mu.Lock()
	var done []*Op
	for _, o := range t.slots {
		select {
		case <-o.Done:
			done = append(done, o)
		default:
		}
	}
	t.mu.Unlock()
	for _, o := range done {
		t.End(o)
	}
}

// End frees the slot of a completed operation.
func (t *Table) End(o *Op) {
	t.mu.Lock()
	if o.After == 0 {
		t.open--
	} else {
		t.ahead.floats -= o.span.floats
		t.ahead.ops--
		t.all.ahead.Add(-int64(o.span.Keys))
	}
	t.free = append(t.free, uint16(o.ID&(1<<slotBits-1)))
	o.ID, o.dst = 0, nil
	t.mu.Unlock()
	t.signal()
}

func (t *Table) signal() {
	select {
	case t.moved <- struct{}{}:
	default:
	}
}

// Issued ends the issuing of an operation's keys, of which some were not issued.
func (t *Table) Issued(o *Op, not int) {
	if o.issued(not) {
		t.finish(o, godwit.NoNode)
	}
}

// finish marks an operation complete, by what a node sent: its waiter goes on,
// or, if the waiter gave up, the slot is free again.
func (t *Table) finish(o *Op, from godwit.NodeID) {
	if o.settles != 0 || o.deadline != 0 {
		t.over(o)
	}
	if o.side != 0 {
		t.all.sides[o.side-1].Add(-1)
	}
	o.mu.Lock()
	gone, expected, token, asked, began := o.gone, from == o.from, o.token, o.from, o.Began
	o.mu.Unlock()
	if began != 0 && o.After == 0 {
		t.all.answered(asked, from, began)
	}
	if gone {
		t.End(o)
		if token != nil {
			token <- struct{}{}
		}
		return
	}
	o.Done <- struct{}{}
	if !expected {
		o.recall()
	}
	t.signal()
}
