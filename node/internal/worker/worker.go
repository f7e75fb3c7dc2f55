package worker

import (
	"context"
	"fmt"
	"iter"
	"math"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/ahead"
	"github.com/godwit-ps/godwit/node/internal/cut"
	"github.com/godwit-ps/godwit/node/internal/filtering"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/operation"
	"github.com/godwit-ps/godwit/node/internal/planner"
	"github.com/godwit-ps/godwit/node/internal/round"
	"github.com/godwit-ps/godwit/node/internal/samplers"
	"github.com/godwit-ps/godwit/node/internal/scan"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/tick"
	"github.com/godwit-ps/godwit/node/internal/watch"
)

// A Worker is the godwit.Worker of one goroutine of the training program.
type Worker struct {
	g  *Group // what all workers of the node share
	id godwit.WorkerID
	single
	clock   *tick.Clock
	out     link.Sender
	rows    shards.Access      // that are here
	ops     *operation.Table   // that could not be completed at once
	intents *planner.Announcer // what it announces by
	filters *filtering.Pipeline
	scans   *scan.Scans
	age     round.Age     // of what came from other nodes last
	fetcher ahead.Fetcher // of values of what it announced for its next steps, and is elsewhere
	samples samplers.Samplers
	req     request
	turn    link.Turn // between steps
	count   counters
	teacher *shards.Teacher // is told of accesses that were not announced, or not in time; nil: the policy learns nothing from them
	party   cut.Party       // as cuts see the worker
	tally   watch.Tally     // of its accesses of traced keys
	marks   host.Marks      // in traces of the runtime
}

// A request is what a worker knows, beside the operation, of a call by which it asks others.
type request struct {
	asks     shards.Requests   // scratch
	send     func()            // has sent what is in the worker's sender
	whole    bool              // it asks for rows
	waits    bool              // the call waits for what it asks for
	order    shards.Order      // of a call that asks for many keys
	forms    []godwit.Encoding // of the positions that are missed; none: raw
	unissued int               // positions that a request failed to issue
	after    tick.Tick         // what is being requested waits for this; 0: for none
	reserved int               // keys of it that no operation has yet
	token    chan<- struct{}   // while the worker pushes what filters left: where to give back the right to
}

// counters are what a worker did. Only the worker adds to them.
type counters struct {
	direct      watch.Accesses // keys of calls
	sample      watch.Accesses // … of the samplers' pulls
	calls, slow atomic.Uint64  // calls, and those that sent a message or waited
	waiting     atomic.Int64   // nanoseconds that calls waited
	asking      int64          // … and that they took, without that, for keys that were elsewhere; of the worker's goroutine

	held, heldNanos atomic.Uint64 // calls that waited for a bound, and how long
	waits           watch.Waits   // what waiting consists of
}

func (w *Worker) ID() godwit.WorkerID  { return w.id }
func (w *Worker) Model() *godwit.Model { return w.g.Model }

// maxFloats bounds the values of a call, to 16 GiB: an operation keeps offsets of 32 bits.
const maxFloats = math.MaxUint32

// fail makes the error of an operation.
func (w *Worker) fail(what string, keys []godwit.Key, err error) error {
	return w.failAt(godwit.NoNode, what, keys, err)
}

// failAt makes the error of an operation that waited for a peer.
func (w *Worker) failAt(peer godwit.NodeID, what string, keys []godwit.Key, err error) error {
	e := &godwit.OpError{Op: what, Worker: w.id, Peer: peer, Keys: len(keys), Err: err}
	if len(keys) > 0 {
		e.First, e.Last = keys[0], keys[len(keys)-1]
	}
	return e
}

// check says what is wrong with the keys of a call, or with the number of floats that come
// with them; -1: none do.
func (w *Worker) check(what string, keys []godwit.Key, buf int) error {
	floats, t := 0, w.g.Rows.First()
	for rest := keys; len(rest) > 0; {
		n := t.Run(rest)
		if n == 0 {
			if t = w.g.Rows.Table(rest[0]); t == nil {
				_, err := w.g.Model.Floats(keys)
				return w.fail(what, keys, err)
			}
			continue
		}
		floats += n * t.Dim
		rest = rest[n:]
	}
	if buf > maxFloats {
		return w.fail(what, keys, fmt.Errorf("%w: %d floats, one call takes at most %d: make several", godwit.ErrLength, buf, int64(maxFloats)))
	}
	if buf >= 0 && floats != buf {
		return w.fail(what, keys, fmt.Errorf("%w: %d floats, the values of the keys have %d", godwit.ErrLength, buf, floats))
	}
	return nil
}

func (w *Worker) Pull(ctx context.Context, keys []godwit.Key, dst []float32) error {
	w.enter()
	defer w.leave()
	w.req.waits = true
	h, err := w.pullAsync(ctx, keys, dst)
	return w.finish(ctx, h, err)
}

func (w *Worker) Push(ctx context.Context, keys []godwit.Key, push []float32) error {
	w.enter()
	defer w.leave()
	w.req.waits = true
	h, err := w.pushAsync(ctx, keys, push)
	return w.finish(ctx, h, err)
}

func (w *Worker) Set(ctx context.Context, keys []godwit.Key, vals []float32) error {
	w.enter()
	defer w.leave()
	w.req.waits = true
	h, err := w.setAsync(ctx, keys, vals)
	return w.finish(ctx, h, err)
}

func (w *Worker) Localize(ctx context.Context, keys []godwit.Key) error {
	w.enter()
	defer w.leave()
	w.req.waits = true
	h, err := w.localizeAsync(ctx, keys)
	return w.finish(ctx, h, err)
}

// finish waits for what the same goroutine has just begun.
func (w *Worker) finish(ctx context.Context, h godwit.Handle, err error) error {
	w.req.waits = false
	if err == nil && h != 0 {
		err = w.wait(ctx, h)
	}
	w.out.Flush()
	return err
}

func (w *Worker) PullAsync(ctx context.Context, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	w.enter()
	defer w.leave()
	return w.pullAsync(ctx, keys, dst)
}

func (w *Worker) pullAsync(ctx context.Context, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	h, err := w.access(ctx, "pull", wire.Pull, keys, dst, &w.count.direct)
	w.samples.Accessed(keys)
	return h, err
}

func (w *Worker) PushAsync(ctx context.Context, keys []godwit.Key, push []float32) (godwit.Handle, error) {
	w.enter()
	defer w.leave()
	return w.pushAsync(ctx, keys, push)
}

func (w *Worker) pushAsync(ctx context.Context, keys []godwit.Key, push []float32) (godwit.Handle, error) {
	return w.access(ctx, "push", wire.Push, keys, push, &w.count.direct)
}

// access serves what can be served here and requests the rest. It counts in c.
func (w *Worker) access(ctx context.Context, what string, kind wire.Kind, keys []godwit.Key, buf []float32, c *watch.Accesses) (godwit.Handle, error) {
	if err := w.check(what, keys, len(buf)); err != nil {
		return 0, err
	}
	if err := w.g.Host.Err(); err != nil {
		return 0, w.fail(what, keys, err)
	}
	if kind == wire.Push {
		if fs, ok := godwit.FiltersOf(ctx); ok {
			if err := w.filters.Check(fs, keys); err != nil {
				return 0, w.fail(what, keys, err)
			}
		}
	}
	if err := w.inWindow(ctx, what, keys); err != nil {
		return 0, err
	}
	if b := w.g.Bound; b != nil && kind == wire.Pull && !b.Allows(b.Waiter(w.id.Local), keys) {
		if err := w.awaitBound(ctx, what, keys); err != nil {
			return 0, err
		}
	}
	if kind == wire.Pull {
		if err := w.awaitAge(ctx, what, keys); err != nil {
			return 0, err
		}
	}
	return w.serve(ctx, what, kind, keys, buf, c)
}

// serve is access to what may be accessed now.
func (w *Worker) serve(ctx context.Context, what string, kind wire.Kind, keys []godwit.Key, buf []float32, c *watch.Accesses) (godwit.Handle, error) {
	w.req.forms = w.req.forms[:0]
	if kind == wire.Push && w.filters.Residual().Some() {
		buf = w.filters.AddKept(keys, buf)
	}
	w.g.Watch.Accessed(keys)
	w.tally.Accessed(keys)
	if !w.rows.Serve(kind, keys, buf) {
		return 0, w.fail(what, keys, w.g.Host.Err())
	}
	if kind == wire.Pull && (w.g.Hot != nil || w.g.onRead) {
		if err := w.reads(keys); err != nil {
			return 0, err
		}
	}
	if kind == wire.Pull && w.teacher != nil && w.rows.Served[protocol.AtReplica] > 0 {
		w.teacher.Pulled(keys)
	}
	add(&w.count.calls, 1)
	if t, ok := w.rows.Sole(); ok {
		c.Served(t, &w.rows.Served)
	} else {
		for _, p := range w.rows.Parts() {
			c.Served(p.Table, &p.Served)
		}
	}
	w.tally.Missed(keys, w.rows.Miss)
	if len(w.rows.Miss) == 0 && (kind != wire.Push || !w.filters.Took()) {
		return 0, nil
	}
	defer w.asked(w.g.Host.Now(), w.count.waiting.Load())
	w.req.order.Misses(w.g.Rows, keys, w.rows.Miss)
	if kind == wire.Push {
		return w.push(ctx, what, keys, buf, c)
	}
	if w.fetcher.Any() {
		if err := w.takeFetched(ctx, keys, buf, c); err != nil || len(w.rows.Miss) == 0 {
			return 0, err
		}
	}
	return w.request(ctx, what, kind, keys, buf, c)
}

// asked counts time since then, when the worker had waited for so long in all, as taken for keys that are elsewhere: what it did not wait of it. A step
// takes as long wherever its keys are.
func (w *Worker) asked(since, waiting int64) {
	w.count.asking += w.g.Host.Now() - since - (w.count.waiting.Load() - waiting)
}

// add is for counters with one writer.
func add(c *atomic.Uint64, n uint64) { c.Store(c.Load() + n) }

func (w *Worker) SetAsync(ctx context.Context, keys []godwit.Key, vals []float32) (godwit.Handle, error) {
	w.enter()
	defer w.leave()
	return w.setAsync(ctx, keys, vals)
}

func (w *Worker) setAsync(ctx context.Context, keys []godwit.Key, vals []float32) (godwit.Handle, error) {
	err := w.check("set", keys, len(vals))
	if err == nil && len(keys) > 0 {
		err = w.inWindow(ctx, "set", keys)
	}
	if err != nil {
		return 0, err
	}
	if !w.g.Filters.Kept() {
		return w.all(ctx, "set", wire.Set, keys, vals)
	}
	took, err := w.overwrite(ctx, keys)
	if err != nil {
		return 0, err
	}
	defer func() { w.g.Filters.Right() <- struct{}{} }()
	w.req.unissued = len(keys)
	h, err := w.all(ctx, "set", wire.Set, keys, vals)
	if err == nil {
		w.req.unissued = 0
	}
	filtering.Forget(took, len(keys)-w.req.unissued)
	return h, err
}

func (w *Worker) LocalizeAsync(ctx context.Context, keys []godwit.Key) (godwit.Handle, error) {
	w.enter()
	defer w.leave()
	return w.localizeAsync(ctx, keys)
}

func (w *Worker) localizeAsync(ctx context.Context, keys []godwit.Key) (godwit.Handle, error) {
	if err := w.check("localize", keys, -1); err != nil {
		return 0, err
	}
	return w.all(ctx, "localize", wire.Localize, keys, nil)
}

func (w *Worker) PullIfLocal(k godwit.Key, dst []float32) bool {
	if w.inside { // it waits for nothing, and others need not hear of it
		w.enter()
		w.leave()
	}
	p, _ := w.pullHere(k, dst)
	return p != protocol.Elsewhere
}

// pullHere reads a value that is here and says where it stood, and in which table.
func (w *Worker) pullHere(k godwit.Key, dst []float32) (p protocol.Place, table int) {
	t := w.g.Rows.Table(k)
	if t == nil || len(dst) != t.Dim || w.g.Host.Err() != nil {
		return protocol.Elsewhere, 0
	}
	_, late := w.overdue()
	if b := w.g.Bound; late || w.age.Over(w.clock.Now()) != nil || b != nil && !b.Allows(b.Waiter(w.id.Local), []godwit.Key{k}) {
		return protocol.Elsewhere, 0
	}
	p, _ = w.rows.Read(t, k, dst) // elsewhere, too, once the node was closed
	return p, t.Index
}

func (w *Worker) Intent(keys []godwit.Key, start, end godwit.Clock) error {
	w.enter()
	defer w.leave()
	return w.intent(keys, start, end)
}

func (w *Worker) intent(keys []godwit.Key, start, end godwit.Clock) error {
	if err := w.check("intent", keys, -1); err != nil || w.g.onRead {
		return err
	}
	return w.announce(keys, start, end)
}

// announce has the planner act on keys when it is time to.
func (w *Worker) announce(keys []godwit.Key, start, end godwit.Clock) error {
	if err := w.g.Host.Err(); err != nil {
		return w.fail("intent", keys, err)
	}
	if w.g.Links.Alone() {
		return nil
	}
	w.intents.Announcing(len(keys), start, end, w.count.calls.Load())
	step, other := w.fetcher.Announced(keys, start, end)
	err := w.intents.Announce(step, start, end, true)
	if err == nil {
		err = w.intents.Announce(other, start, end, false)
	}
	if err != nil {
		return w.fail("intent", keys, err)
	}
	return nil
}

func (w *Worker) Advance() godwit.Clock {
	w.enter()
	defer w.leave()
	c := w.clock.Advance()
	if w.g.Bound != nil {
		w.g.Bound.Advance(w.clock)
	}
	w.party.Advance()
	w.age.Advanced(c)
	w.intents.Advanced(c, w.count.waiting.Load())
	w.fetcher.Advanced(w.count.waiting.Load(), w.count.asking)
	w.tally.Advanced(c, false)
	w.marks.Step()
	w.turn.Give(w.g.Links, len(w.g.workers))
	return c
}

func (w *Worker) Clock() godwit.Clock { return w.clock.Now() }

func (w *Worker) Lookahead() godwit.Clock { return godwit.Clock(w.intents.Window()) }

func (w *Worker) WaitSync(ctx context.Context) error {
	return w.waitSync(ctx, "wait-sync", func() <-chan struct{} { return w.g.Rounds.Sync.Begin(w.id.Local) })
}

func (w *Worker) SyncAll(ctx context.Context) error {
	return w.g.Rounds.Sync.All(w.id.Local, func(half string, begin func() <-chan struct{}) error { return w.waitSync(ctx, half, begin) }, func() error { return w.meet(ctx, "sync-all") })
}

// waitSync pushes what filters left, and waits for what begin returns.
func (w *Worker) waitSync(ctx context.Context, call string, begin func() <-chan struct{}) error {
	w.enter()
	defer w.leave()
	if err := w.g.Host.Err(); err != nil {
		return w.fail(call, nil, err)
	}
	if err := w.pushKept(ctx, call); err != nil {
		return err
	}
	if err := w.until(ctx, call, nil, begin(), watch.ForSync, reason("")); err != nil {
		return err
	}
	w.fetcher.Synced()
	return nil
}

func (w *Worker) Barrier(ctx context.Context) error { return w.meet(ctx, "barrier") }

// meet waits for all workers of the run, which have to come by the same call.
func (w *Worker) meet(ctx context.Context, call string) error {
	w.enter()
	defer w.leave()
	defer w.waitedSince(w.g.Host.Now(), watch.ForBarrier)
	defer w.marks.Wait(watch.ForBarrier.Region()).End()
	w.party.Barrier(w.nextEra())
	defer w.party.Unpark()
	if err := w.g.Barrier.Wait(ctx, w.id.Local, call); err != nil {
		return w.fail("barrier", nil, err)
	}
	w.clock.Crossed()
	w.fetcher.Crossed()
	w.tally.Advanced(w.clock.Now(), true)
	return nil
}

func (w *Worker) Scan(ctx context.Context, first, end godwit.Key, home godwit.NodeID) iter.Seq2[godwit.Key, error] {
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
