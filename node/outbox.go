package node

import (
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// An outbox is the queue to one peer. Records are encoded into it under the
// shard's lock, so their order is the order in which things happened, and leave
// it in whole frames.
//
// Who has put something in, waits for the answer, and finds nobody writing
// writes it himself, as far as the network takes it without a wait: to hand over
// to another goroutine costs more than to send a small frame. What is large, has
// to wait or may be joined by more is left to the outbox's writer.
//
// It is bounded at the sources: workers and intents ask for so much only
// ([Limits]), and rounds leave refreshes and deltas for later (room). Answers
// always go in: there are no more of them than what the peer asked for, which is
// bounded there. So nobody who handles a frame ever waits for a socket. A peer
// that asks for more than it may and does not read ends the run.
type outbox struct {
	conn    transport.Conn
	shared  transport.Sharer // conn, if it can be read by turns
	view    godwit.View
	wake    chan struct{} // holds a token when the writer is to go on as the one who writes
	flushed func()        // of a virtual node: is told instead of the writer

	mu      preempt.Mutex
	enc     wire.Encoder
	sealed  []sealed // complete frames, oldest first
	buffers *buffers
	queued  int    // bytes in sealed and enc, and in the frame being written
	owing   int    // … of answers, in enc
	owed    int    // … in sealed and enc
	writing bool   // somebody writes, and will find what is put in meanwhile
	over    bool   // the farewell was taken out: nothing is, after it
	full    int    // length of a frame that waits for no more
	beat    []byte // a heartbeat, which goes before all else; nil: none

	// Of who writes.
	packer packer
	begun  []byte // the frame that the writer has to finish
	ready  bool   // … which has been through the packer
	size   int    // of the frame that was last, before

	// Counted by who writes.
	sent, plain, frames atomic.Uint64 // bytes, bytes before compression, frames
	beats               atomic.Uint64 // of the frames, heartbeats
}

// A sealed frame is complete.
type sealed struct {
	frame []byte
	owed  int // bytes of answers in it
}

// buffers are memory of frames that are sent, for those to come to any peer.
type buffers struct {
	preempt.Mutex
	free [][]byte
}

const maxBuffers = 32

func (b *buffers) take() []byte {
	b.Lock()
	defer b.Unlock()
	n := len(b.free)
	if n == 0 {
		return nil
	}
	buf := b.free[n-1]
	b.free = b.free[:n-1]
	return buf
}

func (b *buffers) give(buf []byte) {
	b.Lock()
	defer b.Unlock()
	if len(b.free) < maxBuffers && cap(buf) <= 2*frameBytes {
		b.free = append(b.free, buf)
	}
}

func newOutbox(c transport.Conn, view godwit.View, b *buffers) *outbox {
	o := &outbox{conn: c, view: view, buffers: b, wake: make(chan struct{}, 1), full: frameBytes}
	o.shared, _ = c.(transport.Sharer)
	o.enc.Plain = c != nil && c.Peer().Takes&wire.TakesCodings == 0
	if c == nil || c.Peer().Takes&wire.TakesLists != 0 {
		o.enc.Lists = &wire.Sent{}
	}
	o.enc.Reset(nil, view)
	return o
}

// add appends a record, under the lock. It reports whether that filled a frame,
// and then, whether there is nobody who writes it. The caller lets go of the
// lock and calls filled.
func (o *outbox) add(r *wire.Record) (full, idle bool) {
	before := o.enc.Len()
	o.enc.Append(r)
	after := o.enc.Len()
	o.queued += after - before
	if answers(r.Kind) {
		o.owing += after - before
		o.owed += after - before
	}
	if after < o.full {
		return false, false
	}
	o.seal()
	idle = !o.writing
	o.writing = true
	return true, idle
}

// answers reports whether a record is sent because its receiver asked for
// something. All others are bounded by what this node has under way, or those
// whose requests it passes on.
func answers(k wire.Kind) bool { return answerKinds>>k&1 != 0 }

const answerKinds = 1<<wire.PullReply | 1<<wire.Done | 1<<wire.Refresh | 1<<wire.Transfer | 1<<wire.Refuse | 1<<wire.Ack | 1<<wire.Dropped | 1<<wire.InUse | 1<<wire.Scanned | 1<<wire.SyncAck

// filled has a full frame sent: it need not wait for the rest.
func (o *outbox) filled(idle bool) {
	switch {
	case o.flushed != nil:
		o.flushed()
	case idle:
		o.wake <- struct{}{}
	}
}

// seal ends the frame that is being filled.
func (o *outbox) seal() {
	before := o.enc.Len()
	f := o.enc.Frame()
	o.queued += len(f) - before
	owed := min(o.owing, len(f)) // keys that follow each other take less than while the frame grew
	o.owed += owed - o.owing
	o.owing = 0
	o.sealed = append(o.sealed, sealed{f, owed})
	b := o.buffers.take()
	if b == nil && len(f) >= o.full { // the next will not be shorter
		b = make([]byte, 0, len(f)+len(f)/4)
	}
	o.enc.Reset(b, o.view)
}

// flush has what is there sent, by the caller where that is quick.
func (o *outbox) flush() {
	if o.flushed != nil {
		o.flushed()
		return
	}
	o.mu.Lock()
	if o.writing {
		o.mu.Unlock()
		return
	}
	f := o.next()
	o.writing = f != nil
	o.mu.Unlock()
	for i := 0; f != nil; i++ {
		if i == inline || len(f) > inlineBytes {
			o.begun = f
			o.wake <- struct{}{}
			return
		}
		f = o.pack(f)
		if sent, err := o.conn.TryFrame(f); !sent || err != nil { // an error comes again
			o.begun, o.ready = f, true
			o.wake <- struct{}{}
			return
		}
		f = o.wrote(f)
	}
}

// inline and inlineBytes bound what is sent by who has put it in: that many
// frames of that length.
const (
	inline      = 4
	inlineBytes = 16 << 10
)

// post has what is there sent by the writer.
func (o *outbox) post() {
	if o.flushed != nil {
		o.flushed()
		return
	}
	o.mu.Lock()
	idle := !o.writing && (len(o.sealed) > 0 || o.enc.Records() > 0)
	o.writing = o.writing || idle
	o.mu.Unlock()
	if idle {
		o.wake <- struct{}{}
	}
}

// room reports whether less than limit is queued.
func (o *outbox) room(limit int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queued < limit
}

// next takes the oldest frame out, and returns nil if there is none.
func (o *outbox) next() []byte {
	if o.over {
		return nil
	}
	if f := o.beat; f != nil {
		o.beat = nil
		return f
	}
	if len(o.sealed) == 0 {
		if o.enc.Records() == 0 {
			return nil
		}
		o.seal()
	}
	f := o.sealed[0]
	o.sealed = o.sealed[:copy(o.sealed, o.sealed[1:])]
	o.owed -= f.owed
	o.over = wire.IsFarewell(f.frame)
	return f.frame
}

// pack returns what is written for a frame, and counts it: before it leaves, so
// that whoever has seen what came of a frame finds it counted.
func (o *outbox) pack(frame []byte) []byte {
	o.size = len(frame)
	packed := o.compress(frame)
	add(&o.sent, uint64(len(packed)))
	add(&o.plain, uint64(o.size))
	add(&o.frames, 1)
	if wire.IsHeartbeat(frame) {
		add(&o.beats, 1)
	}
	return packed
}

// compress returns a frame as it travels. That takes a while, in which others can
// put records in.
func (o *outbox) compress(frame []byte) []byte {
	if !wire.IsData(frame) {
		return frame
	}
	p := o.packer.pack(frame)
	if p == nil {
		return frame
	}
	o.buffers.give(frame)
	return p
}

// wrote takes a written frame's buffer back and returns the next frame. If that
// is nil, the caller is no longer the one who writes.
func (o *outbox) wrote(frame []byte) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left(frame)
	f := o.next()
	o.writing = f != nil
	return f
}

// take moves the oldest frame of a virtual node to the memory of buf. It is
// empty if there is none.
func (o *outbox) take(buf []byte) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.next()
	if f == nil {
		return buf[:0]
	}
	f = o.pack(f)
	buf = append(buf[:0], f...)
	o.left(f)
	return buf
}

// left takes note that a frame is gone, and takes its buffer back.
func (o *outbox) left(frame []byte) {
	o.queued -= o.size - wire.DataLen
	if wire.IsData(frame) && wire.Compression(frame) == 0 { // else it is the packer's, or short
		o.buffers.give(frame)
	}
}

// write sends what others leave to it until stop is closed or the connection
// fails.
func (o *outbox) write(world host.World, stop <-chan struct{}) error {
	for world.Wait(o.wake, stop, nil) == 0 {
		f, ready := o.begun, o.ready
		o.begun, o.ready = nil, false
		if f == nil {
			o.mu.Lock()
			f = o.next()
			o.mu.Unlock()
		}
		for ; f != nil; ready = false {
			if !ready {
				f = o.pack(f)
			}
			if err := o.conn.WriteFrame(f); err != nil {
				return err
			}
			f = o.wrote(f)
		}
	}
	return nil
}

// A sender is one goroutine's way to send: it is the protocol's Out.
type sender struct {
	n       *Node
	touched []bool // peers to flush
	full    []bool // peers that there was no room for
	any     bool
	flooded godwit.NodeID // a peer for which too many answers are queued; NoNode: there is none
	records int           // sent to others
	clock   int64         // the time since when it sends without a flush; 0: not asked for yet

	// Who sends many records in a row keeps the queue that the last one went
	// into. Since others may have a shard and want the queue, he must then not
	// wait for a shard: he locks it with lock, which lets go of the queue if the
	// shard is taken. Nor may he wait for anything else before release.
	keeps bool
	kept  *outbox // locked
	left  int     // records until others get their turn
}

// maxKept is how many records in a row a sender keeps others out for.
const maxKept = 64

func (n *Node) sender() sender {
	return sender{n: n, touched: make([]bool, len(n.peers)), full: make([]bool, len(n.peers)), flooded: godwit.NoNode}
}

// keep begins a row of records, release ends it.
func (s *sender) keep() { s.keeps = true }

func (s *sender) release() {
	s.keeps = false
	s.letGo()
}

func (s *sender) letGo() {
	if o := s.kept; o != nil {
		s.kept = nil
		o.mu.Unlock()
	}
}

// lock locks a shard.
func (s *sender) lock(x *shard) {
	if s.kept == nil || !x.TryLock() {
		s.letGo()
		x.Lock()
	}
}

func (s *sender) Send(to godwit.NodeID, r *wire.Record) {
	if to == s.n.self {
		s.n.complete(to, *r)
		return
	}
	o := s.n.peers[to]
	if s.kept != o {
		s.letGo()
		o.mu.Lock()
		s.kept, s.left = o, maxKept
	}
	full, idle := o.add(r)
	if o.owed > s.n.limits.Owed {
		s.flooded = to
	}
	if s.left--; full || s.left == 0 || !s.keeps {
		s.letGo()
	}
	if full {
		o.filled(idle)
	}
	s.touch(to)
	s.records++
}

// touch notes that there is something to send to a peer.
func (s *sender) touch(to godwit.NodeID) { s.touched[to], s.any = true, true }

func (s *sender) Room(to godwit.NodeID) bool {
	ok := s.under(to, s.n.limits.Copies)
	s.full[to] = s.full[to] || !ok
	return ok
}

func (s *sender) Takes(to godwit.NodeID) bool { return s.under(to, s.n.limits.Answers) }

// under reports whether less than limit is queued for a peer. A queue that is kept is
// let go of before another is looked at: two senders that each kept what the other
// looks at would wait for ever.
func (s *sender) under(to godwit.NodeID, limit int) bool {
	o := s.n.peers[to]
	if s.kept != o {
		s.letGo()
		return o.room(limit)
	}
	return o.queued < limit
}

func (s *sender) Ask(to godwit.NodeID, floats int) bool { return s.n.asking.ask(to, costOf(floats)) }
func (s *sender) Got(to godwit.NodeID, floats int) {
	if s.n.asking.got(to, costOf(floats)) {
		s.n.pacer.askDue()
	}
}

// Now is the time of the first question since the last flush: close enough for
// lead times, and keys come by the thousand.
func (s *sender) Now() int64 {
	if s.clock == 0 {
		s.clock = s.n.Now()
	}
	return s.clock
}

// sole returns the only peer that a flush would send to; NoNode if there are more,
// or none.
func (s *sender) sole() godwit.NodeID {
	peer := godwit.NoNode
	for i, t := range s.touched {
		if t && peer != godwit.NoNode {
			return godwit.NoNode
		}
		if t {
			peer = godwit.NodeID(i)
		}
	}
	return peer
}

// flush has everything sent that this sender put in, by himself where that is
// quick.
func (s *sender) flush() { s.each((*outbox).flush) }

// post leaves the sending to others: he has other things to do, among them,
// perhaps, to put in more.
func (s *sender) post() { s.each((*outbox).post) }

func (s *sender) each(send func(*outbox)) {
	s.release()
	s.clock = 0
	if !s.any {
		return
	}
	s.any = false
	for i := range s.touched {
		if s.touched[i] {
			s.touched[i] = false
			send(s.n.peers[i])
		}
	}
}
