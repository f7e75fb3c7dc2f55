package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/protocol"
	"github.com/godwit-ps/godwit/protocol/intent"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/wire"
)

// A worker is the godwit.Worker of one goroutine of the training program.
type worker struct {
	n    *Node
	id   godwit.WorkerID
	out  sender
	rec  wire.Record // scratch
	ops  *ops
	miss []int     // positions of a call that were not served at once
	row  []float32 // scratch

	waits bool // the call waits for what it asks for

	filtering filtering
	residual  residual
	forms     []godwit.Form // of the positions in miss; none: raw
	unissued  int           // positions in miss that a request failed to issue
	after     tick          // what is being requested waits for this
	reserved  int           // keys of it that no operation has yet

	samplers []*sampler
	watching []*sampling.Sampler // those that want to hear of direct accesses

	clock   atomic.Int64
	next    atomic.Int64  // the clock at which the pacer has something to do for this worker
	ahead   atomic.Int64  // the window that the pacer acts on
	late    atomic.Uint64 // announced accesses that found their key on its way
	missed  atomic.Uint64 // … although they were announced in time
	excused atomic.Int64  // until this clock, intents were announced too late

	inbox struct { // announced intents that the pacer has not seen
		sync.Mutex
		spans []span
	}
	held atomic.Int64 // keys in inbox and plan

	scans scans

	// of the pacer
	plan       intent.Plan
	timer      intent.Timer
	missedSeen uint64

	// Of tables with bounded staleness; tick is set by the worker only.
	tick     atomic.Uint64 // as the clock, if the node has a bound
	era      godwit.Clock  // the clock at which the tick's era began
	barriers uint64        // that the worker saw the end of
	need     tick          // the horizon that the worker waits for; under the bound's lock
	granted  chan struct{} // holds a token when it is there

	count counters
}

// counters of keys by where an access was served. Only the worker adds to them.
type counters struct {
	pull, push  [4]atomic.Uint64 // by protocol.Place; the last is "waited for a key on its way"
	sample      [4]atomic.Uint64 // of the samplers' pulls
	calls, slow atomic.Uint64    // calls, and those that sent a message or waited
	waiting     atomic.Int64     // nanoseconds that calls waited

	held, heldNanos atomic.Uint64 // calls that waited for a bound, and how long
}

const waited = 3 // in counters

type span struct {
	keys       []godwit.Key
	start, end godwit.Clock
}

func (n *Node) newWorker(i int) (*worker, error) {
	w := &worker{n: n, id: godwit.WorkerID{Node: n.self, Local: i}, out: n.sender(), ops: newOps(i), granted: make(chan struct{}, 1)}
	w.ops.bound = n.bound
	w.next.Store(int64(godwit.Forever))
	return w, w.makeSamplers()
}

func (w *worker) ID() godwit.WorkerID  { return w.id }
func (w *worker) Model() *godwit.Model { return w.n.model }

// fail makes the error of an operation.
func (w *worker) fail(what string, keys []godwit.Key, err error) error {
	e := &godwit.OpError{Op: what, Worker: w.id, Peer: godwit.NoNode, Keys: len(keys), Err: err}
	if len(keys) > 0 {
		e.First, e.Last = keys[0], keys[len(keys)-1]
	}
	return e
}

func (w *worker) check(what string, keys []godwit.Key, buf int) error {
	floats := 0
	t := &w.n.tables[0]
	for _, k := range keys {
		if !t.has(k) {
			if t = w.n.table(k); t == nil {
				_, err := w.n.model.Floats(keys)
				return w.fail(what, keys, err)
			}
		}
		floats += t.dim
	}
	if buf >= 0 && floats != buf {
		return w.fail(what, keys, fmt.Errorf("%w: %d floats, the values of the keys have %d", godwit.ErrLength, buf, floats))
	}
	return nil
}

func (w *worker) Pull(ctx context.Context, keys []godwit.Key, dst []float32) error {
	w.waits = true
	h, err := w.PullAsync(ctx, keys, dst)
	return w.finish(ctx, h, err)
}

func (w *worker) Push(ctx context.Context, keys []godwit.Key, push []float32) error {
	w.waits = true
	h, err := w.PushAsync(ctx, keys, push)
	return w.finish(ctx, h, err)
}

func (w *worker) Set(ctx context.Context, keys []godwit.Key, vals []float32) error {
	w.waits = true
	h, err := w.SetAsync(ctx, keys, vals)
	return w.finish(ctx, h, err)
}

func (w *worker) Localize(ctx context.Context, keys []godwit.Key) error {
	w.waits = true
	h, err := w.LocalizeAsync(ctx, keys)
	return w.finish(ctx, h, err)
}

// finish waits for what the same goroutine has just begun.
func (w *worker) finish(ctx context.Context, h godwit.Handle, err error) error {
	w.waits = false
	if err != nil || h == 0 {
		return err
	}
	return w.Wait(ctx, h)
}

func (w *worker) PullAsync(ctx context.Context, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	h, err := w.access(ctx, "pull", wire.Pull, keys, dst, &w.count.pull)
	w.watched(keys)
	return h, err
}

// watched tells the samplers that want to hear of it what was pulled.
func (w *worker) watched(keys []godwit.Key) {
	for _, s := range w.watching {
		s.Accessed(keys)
	}
}

func (w *worker) PushAsync(ctx context.Context, keys []godwit.Key, push []float32) (godwit.Handle, error) {
	return w.access(ctx, "push", wire.Push, keys, push, &w.count.push)
}

// access serves what can be served here and requests the rest. It counts in c.
func (w *worker) access(ctx context.Context, what string, kind wire.Kind, keys []godwit.Key, buf []float32, c *[4]atomic.Uint64) (godwit.Handle, error) {
	if err := w.check(what, keys, len(buf)); err != nil {
		return 0, err
	}
	if err := w.n.failed(); err != nil {
		return 0, w.fail(what, keys, err)
	}
	if w.n.windows != nil {
		if err := w.inWindow(ctx, what, keys); err != nil {
			return 0, err
		}
	}
	if b := w.n.bound; b != nil && kind == wire.Pull {
		if err := b.admit(ctx, w, what, keys); err != nil {
			return 0, err
		}
	}
	return w.serve(ctx, what, kind, keys, buf, c)
}

// serve is access to what may be accessed now.
func (w *worker) serve(ctx context.Context, what string, kind wire.Kind, keys []godwit.Key, buf []float32, c *[4]atomic.Uint64) (godwit.Handle, error) {
	w.forms = w.forms[:0]
	if kind == wire.Push && w.residual.some() {
		buf = w.withKept(keys, buf)
	}
	served, ok := w.local(kind, keys, buf)
	if !ok {
		return 0, w.fail(what, keys, w.n.failed())
	}
	if kind == wire.Pull && (w.n.hot != nil || w.n.onRead) {
		if err := w.reads(keys); err != nil {
			return 0, err
		}
	}
	add(&w.count.calls, 1)
	for p := protocol.AtOwner; p <= protocol.AtReplica; p++ {
		if served[p] > 0 {
			add(&c[p], served[p])
		}
	}
	if kind == wire.Push {
		if len(w.miss) > 0 || len(w.filtering.took) > 0 {
			return w.push(ctx, what, keys, buf, c)
		}
		return 0, nil
	}
	if len(w.miss) == 0 {
		return 0, nil
	}
	return w.request(ctx, what, kind, keys, buf, c)
}

// add is for counters with one writer.
func add(c *atomic.Uint64, n uint64) { c.Store(c.Load() + n) }

// request sends, or leaves waiting, the positions in w.miss: pairs of position
// and offset.
func (w *worker) request(ctx context.Context, what string, kind wire.Kind, keys []godwit.Key, buf []float32, c *[4]atomic.Uint64) (godwit.Handle, error) {
	o, err := w.begin(ctx, what, keys, buf, kind)
	if err != nil {
		return 0, err
	}
	add(&w.count.slow, 1)
	o.expect(w.n.model, keys, w.miss)
	w.rec = wire.Record{Kind: kind, Op: o.id}
	t := &w.n.tables[0]
	if w.n.bound != nil || w.n.windows != nil {
		w.follow(o, kind, keys)
	}
	var away, queued uint64
	for m := 0; m < len(w.miss); m += 2 {
		if m%admitted == 0 {
			if err := w.admit(ctx, keys, w.miss[m:min(m+admitted, len(w.miss))]); err != nil {
				o.abandon()
				w.unissued = (len(w.miss) - m) / 2
				w.issued(o, w.unissued)
				return 0, w.blamed(what, keys, err)
			}
			if w.out.records >= maxRequests {
				w.out.records = 0
				w.out.post()
			}
			w.out.keep()
		}
		i, off := w.miss[m], w.miss[m+1]
		k := keys[i]
		w.rec.Key, w.rec.Index, w.rec.Seq = k, uint32(i), 0
		if kind == wire.Push || kind == wire.Set {
			if !t.has(k) {
				t = w.n.table(k)
			}
			w.rec.Vals = buf[off : off+t.dim]
			if len(w.forms) > 0 {
				f := w.forms[m/2]
				w.rec.Coding, w.rec.Step = wire.Coding(f.Coding), f.Step
			}
		}
		s := w.n.shard(k)
		w.out.lock(s)
		if s.closed {
			s.Unlock()
			w.out.release()
			return 0, w.fail(what, keys, w.n.failed())
		}
		if kind <= wire.Push && w.after == 0 && s.Pass(&w.out, &w.rec) {
			s.Unlock()
			away++
			continue
		}
		before, late := s.Stats.Waited, s.Stats.Late
		w.ask(s, &w.rec)
		if s.Stats.Late != late {
			add(&w.late, 1)
			if w.clock.Load() >= w.excused.Load() {
				add(&w.missed, 1)
			}
		}
		if s.Stats.Waited != before {
			queued++
		} else {
			away++
		}
		s.noteWork(w.n, k)
		s.Unlock()
	}
	if c != nil {
		add(&c[protocol.Elsewhere], away)
		add(&c[waited], queued)
	}
	id := o.id
	w.issued(o, 0)
	return godwit.Handle(id), nil
}

// maxRequests is after how many requests of a call the first of them leave.
const maxRequests = 1024

// issued ends the issuing of an operation's keys, of which some were not issued.
func (w *worker) issued(o *op, not int) {
	if o.issued(w.ops, not) {
		w.ops.finish(o)
	}
	if w.waits {
		w.out.flush()
	} else {
		w.out.post()
	}
}

// admitted is how many positions and offsets are issued before the queues are
// looked at again.
const admitted = 2 * 64

// A behindError says which node has not taken what was sent to it.
type behindError struct {
	peer godwit.NodeID
	err  error
}

func (e *behindError) Error() string { return "waiting for room in the queue: " + e.err.Error() }
func (e *behindError) Unwrap() error { return e.err }

// blamed makes the error of an operation that waited for room.
func (w *worker) blamed(what string, keys []godwit.Key, err error) error {
	e := w.fail(what, keys, err).(*godwit.OpError)
	var b *behindError
	if errors.As(err, &b) {
		e.Peer = b.peer
	}
	return e
}

// admit waits while a node that one of the missed keys goes to is behind.
// Nodes that are not asked for anything hold nobody up.
func (w *worker) admit(ctx context.Context, keys []godwit.Key, miss []int) error {
	w.out.release()
	behind := false
	for _, p := range w.n.peers {
		behind = behind || p != nil && !p.room(requestRoom)
	}
	if !behind {
		return nil
	}
	w.out.flush()
	for m := 0; m < len(miss); m += 2 {
		to := w.n.blame(keys[miss[m]])
		if to == godwit.NoNode {
			continue
		}
		if err := w.n.peers[to].admit(ctx, w.n.world, w.n.done); err != nil {
			if e := w.n.failed(); e != nil {
				return e
			}
			return &behindError{to, err}
		}
	}
	return nil
}

// begin opens an operation; it waits while this worker has too much under way.
func (w *worker) begin(ctx context.Context, what string, keys []godwit.Key, buf []float32, kind wire.Kind) (*op, error) {
	dst := buf
	if kind != wire.Pull {
		dst = nil
	}
	for {
		if o := w.ops.begin(what, dst); o != nil {
			return o, nil
		}
		w.ops.reap()
		if o := w.ops.begin(what, dst); o != nil {
			return o, nil
		}
		switch w.pause(ctx, w.ops.moved) {
		case 1:
			return nil, w.fail(what, keys, fmt.Errorf("waiting for earlier operations: %w", context.Cause(ctx)))
		case 2:
			return nil, w.fail(what, keys, w.n.failed())
		}
	}
}

func (w *worker) SetAsync(ctx context.Context, keys []godwit.Key, vals []float32) (godwit.Handle, error) {
	if err := w.check("set", keys, len(vals)); err != nil {
		return 0, err
	}
	if w.n.windows != nil && len(keys) > 0 {
		if err := w.inWindow(ctx, "set", keys); err != nil {
			return 0, err
		}
	}
	w.n.forgetKept(keys) // now that the set is on its way
	return w.all(ctx, "set", wire.Set, keys, vals)
}

func (w *worker) LocalizeAsync(ctx context.Context, keys []godwit.Key) (godwit.Handle, error) {
	if err := w.check("localize", keys, -1); err != nil {
		return 0, err
	}
	return w.all(ctx, "localize", wire.Localize, keys, nil)
}

// all requests every key of a call.
func (w *worker) all(ctx context.Context, what string, kind wire.Kind, keys []godwit.Key, buf []float32) (godwit.Handle, error) {
	if err := w.n.failed(); err != nil {
		return 0, w.fail(what, keys, err)
	}
	if len(keys) == 0 {
		return 0, nil
	}
	w.every(keys)
	return w.request(ctx, what, kind, keys, buf, nil)
}

// every notes all positions of a call as not served.
func (w *worker) every(keys []godwit.Key) {
	w.miss, w.forms = w.miss[:0], w.forms[:0]
	off := 0
	for i, k := range keys {
		w.miss = append(w.miss, i, off)
		off += w.n.model.Dim(k)
	}
}

func (w *worker) Wait(ctx context.Context, hs ...godwit.Handle) error {
	var first error
	for _, h := range hs {
		if h == 0 {
			continue
		}
		o := w.ops.find(uint64(h))
		if o == nil || o.given() {
			continue // waited for already
		}
		select {
		case <-o.done:
			w.ops.end(o)
			continue
		default:
		}
		if o.after != 0 {
			if err := w.awaited(o); err != nil {
				if first == nil {
					first = err
				}
				continue
			}
		}
		var err error
		switch w.pause(ctx, o.done) {
		case 0:
			w.ops.end(o)
			continue
		case 1:
			err = context.Cause(ctx)
			if o.after != 0 {
				err = fmt.Errorf("%w: %w", w.delayed(o), err)
			}
		case 2:
			err = w.n.failed()
		}
		if e := w.giveUp(o, err); e != nil && first == nil {
			first = e
		}
	}
	return first
}

// pause waits for what a call needs, the call's context, or the end of the run:
// 0, 1 or 2.
func (w *worker) pause(ctx context.Context, done <-chan struct{}) int {
	defer w.waitedSince(w.n.world.Now())
	return w.n.world.Wait(done, ctx.Done(), w.n.done)
}

// waitedSince counts time as waited.
func (w *worker) waitedSince(began int64) {
	w.count.waiting.Store(w.count.waiting.Load() + w.n.world.Now() - began)
}

func (w *worker) giveUp(o *op, cause error) error {
	if !o.abandon() {
		<-o.done
		w.ops.end(o)
		return nil
	}
	o.mu.Lock()
	e := &godwit.OpError{Op: o.what, Worker: w.id, First: o.first, Last: o.last, Keys: o.keys, Err: cause}
	o.mu.Unlock()
	e.Peer = w.n.blame(e.First) // takes a shard's lock, which goes before the operation's
	return e
}

func (w *worker) PullIfLocal(k godwit.Key, dst []float32) bool {
	return w.pullHere(k, dst) != protocol.Elsewhere
}

// pullHere reads a value that is here and says where it stood.
func (w *worker) pullHere(k godwit.Key, dst []float32) protocol.Place {
	t := w.n.table(k)
	if t == nil || len(dst) != t.dim || w.n.failed() != nil {
		return protocol.Elsewhere
	}
	if b := w.n.bound; b != nil && !b.readable(w) && !b.reaches(b.need(w, []godwit.Key{k})) {
		return protocol.Elsewhere
	}
	s := w.n.shard(k)
	h := s.Look(k)
	var p protocol.Place
	var ok bool
	if t.query != nil {
		p, ok = w.query(s, h, t, k, dst)
	} else {
		p, ok = s.pull(h, k, dst)
	}
	if !ok {
		return protocol.Elsewhere
	}
	return p
}

func (w *worker) Intent(keys []godwit.Key, start, end godwit.Clock) error {
	if err := w.check("intent", keys, -1); err != nil || w.n.onRead {
		return err
	}
	return w.announce(keys, start, end)
}

// announce has the pacer act on keys when it is time to.
func (w *worker) announce(keys []godwit.Key, start, end godwit.Clock) error {
	if end <= start || end <= w.Clock() || len(keys) == 0 || len(w.n.peers) == 1 {
		return nil
	}
	if w.held.Add(int64(len(keys))) > maxIntents {
		w.held.Add(-int64(len(keys)))
		return w.fail("intent", keys, fmt.Errorf("%w: %d keys are announced already; announce less far ahead", godwit.ErrFull, w.held.Load()))
	}
	own := append(make([]godwit.Key, 0, len(keys)), keys...)
	start = max(start, 0) // clocks begin there; and less leaves no room for the window
	w.inbox.Lock()
	w.inbox.spans = append(w.inbox.spans, span{own, start, end})
	first := int64(start)-w.ahead.Load() < w.next.Load() // under the lock: the pacer may be about to set both
	w.inbox.Unlock()
	if first {
		w.n.pacer.wakeUp()
	}
	return nil
}

func (w *worker) Advance() godwit.Clock {
	c := w.clock.Add(1)
	if w.n.bound != nil {
		w.n.bound.advance(w, godwit.Clock(c))
	}
	if c >= w.next.Load() {
		w.n.pacer.wakeUp()
	}
	return godwit.Clock(c)
}

func (w *worker) Clock() godwit.Clock { return godwit.Clock(w.clock.Load()) }

func (w *worker) WaitSync(ctx context.Context) error {
	if err := w.n.failed(); err != nil {
		return w.fail("wait-sync", nil, err)
	}
	if len(w.n.peers) == 1 {
		return nil
	}
	if err := w.pushKept(ctx, "wait-sync"); err != nil {
		return err
	}
	d := w.n.pacer.drain()
	switch w.pause(ctx, d.done) {
	case 1:
		return w.fail("wait-sync", nil, context.Cause(ctx))
	case 2:
		return w.fail("wait-sync", nil, w.n.failed())
	}
	return nil
}

func (w *worker) Barrier(ctx context.Context) error {
	defer w.waitedSince(w.n.world.Now())
	if b := w.n.bound; b != nil {
		b.enter(w)
	}
	if err := w.n.barrier.wait(ctx, w.n, w.id.Local); err != nil {
		return w.fail("barrier", nil, err)
	}
	w.barriers++
	return nil
}
