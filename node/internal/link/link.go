package link

import (
	"errors"
	"sync/atomic"

	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/packing"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// A Link is the way to one peer: a queue of records and frames, and the connection.
//
// A goroutine that has put something in and waits for the answer writes it itself if
// nobody else is writing, as far as the network takes it without a wait: to hand over to
// another goroutine costs more than to send a small frame. So does one that answers a peer, however
// long its frames are: they are in the caches of its processor. What is large else, has to wait or may
// be joined by more is left to the link's writer. Any goroutine may use a Link.
type Link struct {
	queue

	conn    transport.Conn
	shared  transport.InlineReader // conn, if it can be read by turns
	wake    chan struct{}          // holds a token when the writer is to go on as the one who writes
	flushed func()                 // of a simulated node: is told instead of the writer
	host    *host.Host
	pacer   transport.Pacer // conn, if the system knows its pace
	watch   stopwatch       // of a simulated node
	rests   atomic.Bool     // see Sender.Rests

	w      writing
	counts sent
}

// writing is what the goroutine knows that writes to the connection: one at a time
// (queue.writing).
type writing struct {
	packer packing.Packer
	begun  []byte // the frame that the writer has to finish
	ready  bool   // … which has been through the packer
	size   int    // of the frame that was last, before

	unmeasured int // bytes that the writer has written since it looked at the pace of the network
}

// sent is counted by who writes.
type sent struct {
	bytes, plain, frames atomic.Uint64 // plain: bytes before compression
	beats                atomic.Uint64 // of the frames, heartbeats
}

// Counts are what a link has sent.
type Counts struct {
	Bytes, Plain, Frames uint64             // bytes as they travel, before compression, and frames
	Lists, Saved         uint64             // lists of keys sent as their hash, and the bytes that this took off
	Queued               int                // bytes that have not left
	Kinds                [wire.Kinds]uint64 // bytes of records by their kind, before lists and compression
}

// Rest notes whether the workers of a peer read nothing before they ask for all that is new (SyncMark).
func (l *Link) Rest(rests bool) { l.rests.Store(rests) }

// Counts returns what the link has sent so far.
func (l *Link) Counts() Counts {
	c := Counts{Bytes: l.counts.bytes.Load(), Plain: l.counts.plain.Load(), Frames: l.counts.frames.Load()}
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Queued, c.Kinds = l.queued, l.kinds
	if x := l.enc.Lists; x != nil {
		c.Lists, c.Saved = x.Hits, x.Saved
	}
	return c
}

// Conn returns the connection, nil if the link is of a simulated node.
func (l *Link) Conn() transport.Conn { return l.conn }

// Shared returns the connection if those who wait may read it by turns, else nil.
func (l *Link) Shared() transport.InlineReader { return l.shared }

// filled has a full frame sent, which waits for no more records. Idle says that nobody wrote: the
// caller has claimed that, and hands it on to the writer.
func (l *Link) filled(idle bool) {
	switch {
	case l.flushed != nil:
		l.flushed()
	case idle:
		l.wake <- struct{}{}
	}
}

// inline and inlineBytes bound what is sent by who has put it in: that many
// frames of that length. Who has nothing else to do sends longer ones.
const (
	inline      = 4
	inlineBytes = 16 << 10
)

// Flush has what is there sent, by the caller where that is quick.
func (l *Link) Flush() { l.send(inlineBytes, false) }

// Drain has what is there sent, by the caller as far as the network takes it at once. If complete,
// it leaves the frame there that is being filled, unless others want it sent.
func (l *Link) Drain(complete bool) { l.send(wire.MaxFrame, complete) }

// send has frames sent, by the caller if they have most bytes at the most.
func (l *Link) send(most int, complete bool) {
	l.mu.Lock()
	l.want(!complete)
	if l.flushed != nil {
		l.mu.Unlock()
		l.flushed()
		return
	}
	if l.writing {
		l.mu.Unlock()
		return
	}
	f := l.next(complete)
	l.writing = f != nil
	l.mu.Unlock()
	for i := 0; f != nil; i++ {
		if i == inline || len(f) > most {
			l.w.begun = f
			l.wake <- struct{}{}
			return
		}
		f = l.pack(f)
		if sent, err := l.conn.TryFrame(f); !sent || err != nil { // an error comes again
			l.w.begun, l.w.ready = f, true
			l.wake <- struct{}{}
			return
		}
		f = l.wrote(f, complete)
	}
}

// Post has what is there sent by the writer.
func (l *Link) Post() {
	l.mu.Lock()
	l.want(true)
	if l.flushed != nil {
		l.mu.Unlock()
		l.flushed()
		return
	}
	idle := (len(l.sealed) > 0 || l.enc.Records() > 0) && l.claim()
	l.mu.Unlock()
	if idle {
		l.wake <- struct{}{}
	}
}

// Room reports whether less than limit bytes are queued.
func (l *Link) Room(limit int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.room(limit)
}

// Push puts in a whole frame that is to leave before all records, behind what was pushed before. Flush has it sent.
func (l *Link) Push(frame []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first(frame, 0)
}

// Answer is Push of a frame that the peer has asked for: it counts among the answers that are owed.
func (l *Link) Answer(frame []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first(frame, len(frame))
}

// Owes reports whether more than so many bytes of answers wait for the peer.
func (l *Link) Owes(limit int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owed > limit
}

// Goodbye puts in the last frame, and has it sent. Records that are put in later are not, nor is anything once it was taken out.
func (l *Link) Goodbye() {
	l.mu.Lock()
	l.last(wire.Goodbye(l.view))
	l.mu.Unlock()
	l.Flush()
}

// Beat puts in a heartbeat, in the place of one that has not left yet, and has it
// sent.
func (l *Link) Beat(h wire.Heartbeat) {
	l.mu.Lock()
	if l.beat == nil {
		l.queued += wire.HeartbeatLen
	}
	l.beat = h.Frame()
	l.mu.Unlock()
	l.Flush()
}

// Payload returns how many bytes of frames were handed to the connection,
// heartbeats not counted.
func (l *Link) Payload() uint64 {
	beats := l.counts.beats.Load() // before the sum, which only grows
	return l.counts.bytes.Load() - beats*wire.HeartbeatLen
}

// List answers the question of the peer for a list of keys that it lacks. The
// answer leaves before all else with the next Flush.
func (l *Link) List(question []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.enc.Lists == nil {
		return errors.New("asked for a list of keys, though it does not take any")
	}
	answer, err := l.enc.Lists.Answer(question)
	if err != nil {
		return err
	}
	l.first(answer, len(answer))
	return nil
}

// pack returns what is written for a frame, and counts it: before it leaves, so
// that whoever has seen what came of a frame finds it counted.
func (l *Link) pack(frame []byte) []byte {
	l.w.size = len(frame)
	packed := l.compress(frame)
	add(&l.counts.bytes, uint64(len(packed)))
	add(&l.counts.plain, uint64(l.w.size))
	add(&l.counts.frames, 1)
	if wire.IsHeartbeat(frame) {
		add(&l.counts.beats, 1)
	}
	return packed
}

// add is for counters with one writer.
func add(c *atomic.Uint64, n uint64) { c.Store(c.Load() + n) }

// compress returns a frame as it travels. That takes a while, in which others can
// put records in.
func (l *Link) compress(frame []byte) []byte {
	if !wire.IsData(frame) {
		return frame
	}
	p := l.w.packer.Pack(frame)
	if p == nil {
		return frame
	}
	l.buffers.give(frame)
	return p
}

// wrote takes a written frame's buffer back and returns the next frame. If that
// is nil, the caller is no longer the one who writes.
func (l *Link) wrote(frame []byte, complete bool) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left(frame)
	f := l.next(complete)
	l.writing = f != nil
	return f
}

// Take moves the oldest frame of a simulated node that is to leave to the memory of buf. It is
// empty if there is none.
func (l *Link) Take(buf []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.next(false)
	l.watch.taken(f != nil, l.host.Now(), &l.pace)
	if f == nil {
		return buf[:0]
	}
	f = l.pack(f)
	buf = append(buf[:0], f...)
	l.left(f)
	l.watch.bytes += len(f)
	return buf
}

// left takes note that a frame is gone, and takes its buffer back.
func (l *Link) left(frame []byte) {
	l.queued -= l.w.size
	if !wire.IsData(frame) {
		return
	}
	l.queued += wire.DataLen
	if wire.Compression(frame) == 0 { // else it is the packer's
		l.buffers.give(frame)
	}
}

// Write sends what others leave to it until the node stops or the connection fails.
// One goroutine calls it.
func (l *Link) Write(h *host.Host) error {
	for h.Wait(l.wake, h.Stop(), nil) == 0 {
		f, ready := l.w.begun, l.w.ready
		l.w.begun, l.w.ready = nil, false
		if f == nil {
			l.mu.Lock()
			f = l.next(false)
			l.mu.Unlock()
		}
		for ; f != nil; ready = false {
			if !ready {
				f = l.pack(f)
			}
			n := len(f)
			if err := l.conn.WriteFrame(f); err != nil {
				return err
			}
			l.measure(n)
			f = l.wrote(f, false)
		}
	}
	return nil
}

// measure asks now and then for the pace of the connection. The writer has written so many bytes.
func (l *Link) measure(wrote int) {
	l.w.unmeasured += wrote
	if l.w.unmeasured < measured || l.pacer == nil {
		return
	}
	l.w.unmeasured = 0
	rate, unsent := l.pacer.Pace()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unsent = unsent; rate > 0 {
		l.pace.measure(1e9 / float64(rate))
	}
}

// lookAgain asks again how much the system has not sent, if it had not sent everything: else nothing would be put in any more,
// and so nobody would ask.
func (l *Link) lookAgain() {
	l.mu.Lock()
	some := l.unsent > 0
	l.mu.Unlock()
	if !some {
		return
	}
	unsent := l.pacer.Unsent()
	l.mu.Lock()
	l.unsent = unsent
	l.mu.Unlock()
}
