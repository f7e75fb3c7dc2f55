package operation

import (
	"slices"
	"unsafe"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/hint"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/tick"
	"github.com/godwit-ps/godwit/transport"
)

// An Op is an operation of a worker that could not be completed at once. Its
// slot is used again when all replies are in, also if nobody waits any more.
type Op struct {
	ID    uint64        // replies carry it
	What  string        // for errors
	Done  chan struct{} // holds one token when the operation is complete
	After tick.Tick     // it waits for this tick, somewhere; 0: for none
	Began int64         // when its keys began to be issued, by host.Host.Now; 0: its latency is not measured

	settles  tick.Tick // a push or set that this node's settled tick waits for: when it began; 0: none
	deadline uint64    // … that the worker waits for when its clock is greater; 0: does not

	side int8 // of a cut, of a push or set: 1 and 2 are even and odd; 0 of others

	mu    preempt.Mutex
	left  int // replies missing, and one while keys are still being issued
	dst   []float32
	offs  []uint32               // where in dst the value goes of the request with an index
	gone  bool                   // the caller gave up: drop what comes
	from  godwit.NodeID          // the only node that was asked; NoNode: there are more, or none
	reads transport.InlineReader // the connection that the waiting worker may be reading
	span  Span
	token chan<- struct{} // gets a token when the operation is complete that was given up; nil: none does
}

// A Span is the keys that an operation asked for.
type Span struct {
	Keys        int
	First, Last godwit.Key // by their positions in the call
	floats      int
}

// Span returns the keys that the operation asked for.
func (o *Op) Span() Span {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.span
}

// Reads reports whether the operation is to bring values.
func (o *Op) Reads() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dst != nil
}

// Lend has the operation give a token back when it completes after it was given up.
func (o *Op) Lend(token chan<- struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.token = token
}

// Expect notes that replies for positions of the call will come: pairs of
// position and offset, in the order of the indexes of the requests. The values of keys of the
// call are at these offsets.
func (o *Op) Expect(m *godwit.Model, keys []godwit.Key, miss []int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(miss) / 2
	o.offs = slices.Grow(o.offs[:0], n)[:n]
	first, last := miss[0], miss[0]
	sole := m.Tables() == 1
	for i := range o.offs {
		pos := miss[2*i]
		o.offs[i] = uint32(miss[2*i+1])
		if !sole {
			o.span.floats += m.Dim(keys[pos])
		}
		first, last = min(first, pos), max(last, pos)
	}
	if sole {
		o.span.floats += n * m.Dim(keys[first])
	}
	o.span.First, o.span.Last = keys[first], keys[last]
	o.span.Keys = n
	o.left += n
}

// reply takes replies and reports whether the last was among them.
func (o *Op) reply(rs []wire.Record) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range rs {
		if r := &rs[i]; r.Kind == wire.PullReply {
			o.got(r.Index, r.Vals)
		}
	}
	o.left -= len(rs)
	return o.left == 0
}

// replyBatch is reply of the first n replies of a batch.
func (o *Op) replyBatch(b *wire.Batch, n int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if b.Kind == wire.PullReply && b.Floats > 0 {
		for i, index := range b.Indexes[:n] {
			if j := i + ahead; j < n {
				o.prefetch(b.Indexes[j], b.Floats)
			}
			o.got(index, b.Vals(i))
		}
	}
	o.left -= n
	return o.left == 0
}

// ahead is how many replies before a value is copied its place is fetched into the processor's
// cache. Of a call of many keys these are far apart, as the keys come shard by shard.
const ahead = 8

func (o *Op) prefetch(index uint32, floats int) {
	if int(index) < len(o.offs) && int(o.offs[index]) < len(o.dst) {
		hint.Write(unsafe.Pointer(&o.dst[o.offs[index]]), uintptr(4*floats))
	}
}

// got copies the value of a position to where it goes, unless the caller gave up.
func (o *Op) got(index uint32, vals []float32) {
	if o.gone || int(index) >= len(o.offs) {
		return
	}
	if off := int(o.offs[index]); off+len(vals) <= len(o.dst) {
		copy(o.dst[off:], vals)
	}
}

// issued ends the issuing of keys, of which some were not issued; it reports
// whether all replies are in.
func (o *Op) issued(not int) bool {
	o.mu.Lock()
	o.left -= 1 + not
	last := o.left == 0
	o.mu.Unlock()
	return last
}

// Abandon makes replies to come harmless for the caller's buffer. It reports
// false if the operation is complete after all.
func (o *Op) Abandon() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left == 0 {
		return false
	}
	o.gone, o.dst = true, nil
	return true
}

// abandoned reports whether the caller gave the operation up.
func (o *Op) abandoned() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gone
}

// Asked notes which node was asked.
func (o *Op) Asked(from godwit.NodeID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.from = from
}

// From returns the only node that was asked; NoNode: there are more, or none.
func (o *Op) From() godwit.NodeID {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.from
}

// Read notes which connection the waiting worker is reading.
func (o *Op) Read(c transport.InlineReader) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reads = c
}

// recall has the waiting worker read its connection no longer, as the operation was completed
// in another way.
func (o *Op) recall() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reads != nil {
		o.reads.Interrupt()
	}
}
