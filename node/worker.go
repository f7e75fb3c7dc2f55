package node

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/filtering"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/operation"
	"github.com/godwit-ps/godwit/node/internal/planner"
	"github.com/godwit-ps/godwit/node/internal/scan"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/staleness"
	"github.com/godwit-ps/godwit/node/internal/tick"
	"github.com/godwit-ps/godwit/sampling"
)

// A worker is the godwit.Worker of one goroutine of the training program.
type worker struct {
	n  *Node
	id godwit.WorkerID
	single
	out   link.Sender
	rec   wire.Record // scratch
	ops   *operation.Table
	send  func()        // out.flush
	rows  shards.Access // that are here
	order shards.Order  // of a call that asks for many keys
	waits bool          // the call waits for what it asks for

	filters  *filtering.Pipeline
	forms    []godwit.Encoding // of the positions in miss; none: raw
	unissued int               // positions in miss that a request failed to issue
	after    tick.Tick         // what is being requested waits for this
	reserved int               // keys of it that no operation has yet
	token    chan<- struct{}   // while the worker flushes: where to give back the right to

	samplers []*sampler
	watching []*sampling.Sampler // those that want to hear of direct accesses

	clock   *tick.Clock
	intents *planner.Announcer

	scans *scan.Scans

	waiter *staleness.Waiter // of reads of tables with bounded staleness

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

func (n *Node) newWorker(i int) (*worker, error) {
	w := &worker{n: n, id: godwit.WorkerID{Node: n.self, Local: i}, clock: n.clocks[i], intents: n.planner.Of(i), out: n.links.Sender(), rows: n.rows.Access(), ops: n.ops.Of(i), waiter: staleness.NewWaiter(n.clocks[i])}
	w.filters = n.filters.Pipeline(w.id)
	w.scans = n.questions.Worker(w.id, &w.out)
	w.send = w.out.Flush
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
	t := w.n.rows.First()
	for _, k := range keys {
		if !t.Has(k) {
			if t = w.n.rows.Table(k); t == nil {
				_, err := w.n.model.Floats(keys)
				return w.fail(what, keys, err)
			}
		}
		floats += t.Dim
	}
	if buf > maxFloats {
		return w.fail(what, keys, fmt.Errorf("%w: %d floats, one call takes at most %d: make several", godwit.ErrLength, buf, int64(maxFloats)))
	}
	if buf >= 0 && floats != buf {
		return w.fail(what, keys, fmt.Errorf("%w: %d floats, the values of the keys have %d", godwit.ErrLength, buf, floats))
	}
	return nil
}

func (w *worker) Pull(ctx context.Context, keys []godwit.Key, dst []float32) error {
	w.enter()
	defer w.leave()
	w.waits = true
	h, err := w.pullAsync(ctx, keys, dst)
	return w.finish(ctx, h, err)
}

func (w *worker) Push(ctx context.Context, keys []godwit.Key, push []float32) error {
	w.enter()
	defer w.leave()
	w.waits = true
	h, err := w.pushAsync(ctx, keys, push)
	return w.finish(ctx, h, err)
}

func (w *worker) Set(ctx context.Context, keys []godwit.Key, vals []float32) error {
	w.enter()
	defer w.leave()
	w.waits = true
	h, err := w.setAsync(ctx, keys, vals)
	return w.finish(ctx, h, err)
}

func (w *worker) Localize(ctx context.Context, keys []godwit.Key) error {
	w.enter()
	defer w.leave()
	w.waits = true
	h, err := w.localizeAsync(ctx, keys)
	return w.finish(ctx, h, err)
}

// finish waits for what the same goroutine has just begun.
func (w *worker) finish(ctx context.Context, h godwit.Handle, err error) error {
	w.waits = false
	if err == nil && h != 0 {
		err = w.wait(ctx, h)
	}
	w.out.Flush()
	return err
}

func (w *worker) PullAsync(ctx context.Context, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	w.enter()
	defer w.leave()
	return w.pullAsync(ctx, keys, dst)
}

func (w *worker) pullAsync(ctx context.Context, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
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
	w.enter()
	defer w.leave()
	return w.pushAsync(ctx, keys, push)
}

func (w *worker) pushAsync(ctx context.Context, keys []godwit.Key, push []float32) (godwit.Handle, error) {
	return w.access(ctx, "push", wire.Push, keys, push, &w.count.push)
}

// access serves what can be served here and requests the rest. It counts in c.
func (w *worker) access(ctx context.Context, what string, kind wire.Kind, keys []godwit.Key, buf []float32, c *[4]atomic.Uint64) (godwit.Handle, error) {
	if err := w.check(what, keys, len(buf)); err != nil {
		return 0, err
	}
	if err := w.n.Err(); err != nil {
		return 0, w.fail(what, keys, err)
	}
	if kind == wire.Push {
		if fs, ok := godwit.FiltersOf(ctx); ok {
			if err := w.filters.Check(fs, keys); err != nil {
				return 0, w.fail(what, keys, err)
			}
		}
	}
	if w.n.windows != nil {
		if err := w.inWindow(ctx, what, keys); err != nil {
			return 0, err
		}
	}
	if b := w.n.bound; b != nil && kind == wire.Pull && !b.Allows(w.waiter, keys) {
		if err := w.awaitBound(ctx, what, keys); err != nil {
			return 0, err
		}
	}
	return w.serve(ctx, what, kind, keys, buf, c)
}

// serve is access to what may be accessed now.
func (w *worker) serve(ctx context.Context, what string, kind wire.Kind, keys []godwit.Key, buf []float32, c *[4]atomic.Uint64) (godwit.Handle, error) {
	w.forms = w.forms[:0]
	if kind == wire.Push && w.filters.Residual().Some() {
		buf = w.filters.AddKept(keys, buf)
	}
	served, ok := w.rows.Serve(kind, keys, buf)
	if !ok {
		return 0, w.fail(what, keys, w.n.Err())
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
		if len(w.rows.Miss) > 0 || w.filters.Took() {
			return w.push(ctx, what, keys, buf, c)
		}
		return 0, nil
	}
	if len(w.rows.Miss) == 0 {
		return 0, nil
	}
	return w.request(ctx, what, kind, keys, buf, c)
}

// add is for counters with one writer.
func add(c *atomic.Uint64, n uint64) { c.Store(c.Load() + n) }

func (w *worker) SetAsync(ctx context.Context, keys []godwit.Key, vals []float32) (godwit.Handle, error) {
	w.enter()
	defer w.leave()
	return w.setAsync(ctx, keys, vals)
}

func (w *worker) setAsync(ctx context.Context, keys []godwit.Key, vals []float32) (godwit.Handle, error) {
	if err := w.check("set", keys, len(vals)); err != nil {
		return 0, err
	}
	if w.n.windows != nil && len(keys) > 0 {
		if err := w.inWindow(ctx, "set", keys); err != nil {
			return 0, err
		}
	}
	if !w.n.filters.Kept() {
		return w.all(ctx, "set", wire.Set, keys, vals)
	}
	took := w.n.filters.Overwrite(keys)
	w.unissued = len(keys)
	h, err := w.all(ctx, "set", wire.Set, keys, vals)
	if err == nil {
		w.unissued = 0
	}
	filtering.Forget(took, len(keys)-w.unissued)
	return h, err
}

func (w *worker) LocalizeAsync(ctx context.Context, keys []godwit.Key) (godwit.Handle, error) {
	w.enter()
	defer w.leave()
	return w.localizeAsync(ctx, keys)
}

func (w *worker) localizeAsync(ctx context.Context, keys []godwit.Key) (godwit.Handle, error) {
	if err := w.check("localize", keys, -1); err != nil {
		return 0, err
	}
	return w.all(ctx, "localize", wire.Localize, keys, nil)
}

func (w *worker) PullIfLocal(k godwit.Key, dst []float32) bool {
	if w.inside { // it waits for nothing, and others need not hear of it
		w.misused()
	}
	return w.pullHere(k, dst) != protocol.Elsewhere
}

// pullHere reads a value that is here and says where it stood.
func (w *worker) pullHere(k godwit.Key, dst []float32) protocol.Place {
	t := w.n.rows.Table(k)
	if t == nil || len(dst) != t.Dim || w.n.Err() != nil {
		return protocol.Elsewhere
	}
	if b := w.n.bound; b != nil && !b.Allows(w.waiter, []godwit.Key{k}) {
		return protocol.Elsewhere
	}
	p, ok := w.rows.Read(t, k, dst)
	if !ok {
		return protocol.Elsewhere
	}
	return p
}

func (w *worker) Intent(keys []godwit.Key, start, end godwit.Clock) error {
	w.enter()
	defer w.leave()
	return w.intent(keys, start, end)
}

func (w *worker) intent(keys []godwit.Key, start, end godwit.Clock) error {
	if err := w.check("intent", keys, -1); err != nil || w.n.onRead {
		return err
	}
	return w.announce(keys, start, end)
}

// announce has the planner act on keys when it is time to.
func (w *worker) announce(keys []godwit.Key, start, end godwit.Clock) error {
	if err := w.n.Err(); err != nil {
		return w.fail("intent", keys, err)
	}
	if w.n.links.Alone() {
		return nil
	}
	if err := w.intents.Announce(keys, start, end, w.count.calls.Load()); err != nil {
		return w.fail("intent", keys, err)
	}
	return nil
}

func (w *worker) Advance() godwit.Clock {
	w.enter()
	defer w.leave()
	c := w.clock.Advance()
	if w.n.bound != nil {
		w.n.bound.Advance(w.clock)
	}
	w.intents.Advanced(c)
	return c
}

func (w *worker) Clock() godwit.Clock { return w.clock.Now() }

func (w *worker) WaitSync(ctx context.Context) error {
	w.enter()
	defer w.leave()
	if err := w.n.Err(); err != nil {
		return w.fail("wait-sync", nil, err)
	}
	if w.n.links.Alone() {
		return nil
	}
	if err := w.pushKept(ctx, "wait-sync"); err != nil {
		return err
	}
	switch w.pause(ctx, w.n.loop.Sync.Begin()) {
	case 1:
		return w.fail("wait-sync", nil, context.Cause(ctx))
	case 2:
		return w.fail("wait-sync", nil, w.n.Err())
	}
	return nil
}

func (w *worker) Barrier(ctx context.Context) error {
	w.enter()
	defer w.leave()
	defer w.waitedSince(w.n.Now())
	if b := w.n.bound; b != nil {
		b.Enter(w.clock)
	}
	if err := w.n.barrier.Wait(ctx, w.id.Local); err != nil {
		return w.fail("barrier", nil, err)
	}
	w.clock.Crossed()
	return nil
}

func (w *worker) Scan(ctx context.Context, first, end godwit.Key, home godwit.NodeID) iter.Seq2[godwit.Key, error] {
	return func(yield func(godwit.Key, error) bool) {
		w.enter()
		defer w.leave()
		w.scans.Each(ctx, first, end, home, func(k godwit.Key, err error) bool { // which may use the worker
			w.leave()
			defer w.enter()
			return yield(k, err)
		})
	}
}
