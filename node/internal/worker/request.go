package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/operation"
	"github.com/godwit-ps/godwit/node/internal/watch"
)

// This file is what a worker does with keys that it cannot be served at once: it
// asks for them, with others under way or not, and waits.

// request sends, or leaves waiting, the positions in w.rows.Miss: pairs of position
// and offset.
func (w *Worker) request(ctx context.Context, what string, kind wire.Kind, keys []godwit.Key, buf []float32, c *watch.Accesses) (godwit.Handle, error) {
	o, err := w.begin(ctx, what, keys, buf, kind)
	if err != nil {
		return 0, err
	}
	fetch := kind == wire.Pull && c == nil
	if !fetch {
		w.fetcher.Begun(keys, w.rows.Miss, buf, kind == wire.Push)
	}
	add(&w.count.slow, 1)
	if w.req.token != nil {
		o.Lend(w.req.token)
	}
	o.Expect(w.g.Model, keys, w.rows.Miss)
	r := &w.req.asks
	r.Begin(wire.Record{Kind: kind, Op: o.ID, Rough: fetch, Whole: w.req.whole}, keys, w.rows.Miss)
	r.Forms, r.Direct = w.req.forms, w.fetcher.Direct() && kind <= wire.Push
	if kind == wire.Push || kind == wire.Set {
		r.Vals, r.Record.Odd = buf, w.rows.Mark != 0
		w.g.Ops.Changes(o, r.Record.Odd)
	}
	if w.g.Bound != nil || w.g.windows != nil {
		w.follow(o, kind, keys)
	}
	if w.req.after != 0 {
		r.Ask = func(s *protocol.Shard) { w.g.Bound.AskAfter(s, &w.out, &r.Record, w.req.after) }
	}
	for m, next := 0, 0; m < len(r.Miss); m = next {
		var err error
		if next, err = w.admit(ctx, o, kind, keys, m); err != nil {
			w.abandon(o)
			w.req.unissued = (len(r.Miss) - m) / 2
			w.issued(o, w.req.unissued)
			w.fetcher.Forget(keys, w.rows.Miss)
			return 0, w.blamed(what, keys, err)
		}
		if w.out.Records >= maxRequests {
			w.out.Records = 0
			w.out.Post()
		}
		w.out.Keep()
		if !w.g.Rows.Request(&w.out, r, m, next) {
			w.out.Release()
			return 0, w.fail(what, keys, w.g.Host.Err())
		}
		for ; r.Late > 0; r.Late-- {
			w.intents.Missed(w.clock.Now())
		}
	}
	if c != nil {
		c.Elsewhere(0, r.Waits, r.Away)
	}
	if w.teacher != nil && kind <= wire.Push && len(w.rows.Miss) > 0 && !w.fetcher.Any() {
		w.teacher.Missed(&w.out, keys, w.rows.Miss, kind == wire.Push)
	}
	h := w.ops.Handle(o.ID)
	w.issued(o, 0)
	if !fetch {
		w.fetcher.Issued(h, keys, w.rows.Miss, kind == wire.Push, r.Waits > 0, w.req.waits)
	}
	return h, nil
}

// maxRequests is after how many requests of a call the first of them leave.
const maxRequests = 1024

// issued ends the issuing of an operation's keys, of which some were not issued.
func (w *Worker) issued(o *operation.Op, not int) {
	w.ops.Issued(o, not)
	o.Asked(w.out.Sole())
	if !w.req.waits { // else the wait sends it
		w.out.Post()
	}
}

// admitted is how many positions and offsets are issued before it is seen anew
// whether there is room.
const admitted = 2 * 64

// A behindError says which node has not taken what was sent to it.
type behindError struct {
	peer godwit.NodeID
	err  error
}

func (e *behindError) Error() string {
	return "waiting for room, until earlier requests are answered: " + e.err.Error()
}
func (e *behindError) Unwrap() error { return e.err }

// blamed makes the error of an operation that waited for room.
func (w *Worker) blamed(what string, keys []godwit.Key, err error) error {
	var b *behindError
	if errors.As(err, &b) {
		return w.failAt(b.peer, what, keys, err)
	}
	return w.fail(what, keys, err)
}

// admit waits until there is room for the next keys of an operation, and returns
// up to where. What waits for a tick has bounds of its own: this worker may have to
// go on before it is answered.
func (w *Worker) admit(ctx context.Context, o *operation.Op, kind wire.Kind, keys []godwit.Key, m int) (next int, err error) {
	w.out.Release()
	if o.After != 0 {
		return min(m+admitted, len(w.rows.Miss)), nil
	}
	next, cost := w.some(kind, keys, m)
	if w.ops.Ask(cost) {
		return next, nil
	}
	w.out.Flush()
	w.ops.Wait(true)
	defer w.ops.Wait(false)
	for !w.ops.Ask(cost) {
		switch w.pause(ctx, w.ops.Moved(), watch.ForRoom) {
		case 1:
			return 0, &behindError{w.behind(keys[w.rows.Miss[m]]), w.g.Host.Late(ctx, context.Cause(ctx))}
		case 2:
			return 0, w.g.Host.Err()
		}
	}
	return next, nil
}

// some returns the end of the missed keys that are issued next, and what they
// cost: few enough for room to come back while others are issued.
func (w *Worker) some(kind wire.Kind, keys []godwit.Key, m int) (next int, cost int64) {
	t, whole := w.g.Rows.First(), kind != wire.Pull || w.req.whole
	if w.g.Model.Tables() == 1 {
		each := link.CostOf(t.Width(whole))
		n := min(admitted/2, (len(w.rows.Miss)-m)/2, max(1, int((w.ops.Room/8+each-1)/each)))
		return m + 2*n, int64(n) * each
	}
	for next = m; next < min(m+admitted, len(w.rows.Miss)) && (next == m || cost < w.ops.Room/8); next += 2 {
		if k := keys[w.rows.Miss[next]]; !t.Has(k) {
			t = w.g.Rows.Table(k)
		}
		cost += link.CostOf(t.Width(whole))
	}
	return next, cost
}

// behind returns who most likely keeps a worker waiting: the node that has taken
// least of what it was sent, else the one that the next key goes to.
func (w *Worker) behind(next godwit.Key) godwit.NodeID {
	if peer := w.g.Links.Slowest(); peer != godwit.NoNode {
		return peer
	}
	return w.g.blame(next)
}

// begin opens an operation; it waits while this worker has too much under way.
func (w *Worker) begin(ctx context.Context, what string, keys []godwit.Key, buf []float32, kind wire.Kind) (*operation.Op, error) {
	dst := buf
	if kind != wire.Pull {
		dst = nil
	}
	for {
		if o := w.open(what, dst); o != nil {
			return o, nil
		}
		w.ops.Reap()
		if o := w.open(what, dst); o != nil {
			return o, nil
		}
		if err := w.until(ctx, what, keys, w.ops.Moved(), watch.ForRoom, reason("waiting for earlier operations: ")); err != nil {
			return nil, err
		}
	}
}

// open is operation.Table.Begin.
func (w *Worker) open(what string, dst []float32) *operation.Op {
	o := w.ops.Begin(what, dst)
	if o != nil {
		o.Began = w.g.Host.Now()
	}
	return o
}

// all requests every key of a call.
func (w *Worker) all(ctx context.Context, what string, kind wire.Kind, keys []godwit.Key, buf []float32) (godwit.Handle, error) {
	if err := w.g.Host.Err(); err != nil {
		return 0, w.fail(what, keys, err)
	}
	if len(keys) == 0 {
		return 0, nil
	}
	w.every(keys)
	if kind == wire.Localize {
		w.req.order.Misses(w.g.Rows, keys, w.rows.Miss)
	}
	return w.request(ctx, what, kind, keys, buf, nil)
}

// every notes all positions of a call as not served.
func (w *Worker) every(keys []godwit.Key) {
	w.rows.Miss, w.req.forms = w.rows.Miss[:0], w.req.forms[:0]
	off := 0
	for i, k := range keys {
		w.rows.Miss = append(w.rows.Miss, i, off)
		off += w.g.Rows.Table(k).Width(w.req.whole)
	}
}

func (w *Worker) Wait(ctx context.Context, hs ...godwit.Handle) error {
	w.enter()
	defer w.leave()
	defer w.fetcher.Waited()
	return w.wait(ctx, hs...)
}

func (w *Worker) wait(ctx context.Context, hs ...godwit.Handle) error {
	var first error
	for _, h := range hs {
		o, err := w.under(h)
		if o != nil && w.look(ctx, o, &err) != 0 {
			if e := w.giveUp(ctx, o, err); e != nil && first == nil {
				first = e
			}
			continue
		}
		if err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Await is godwit.Awaiter's.
func (w *Worker) Await(ctx context.Context, h godwit.Handle) (over bool, err error) {
	w.enter()
	defer w.leave()
	defer w.fetcher.Waited()
	return w.lookAfter(ctx, h)
}

// lookAfter waits for an operation, and reports whether it is over. It is not given up.
func (w *Worker) lookAfter(ctx context.Context, h godwit.Handle) (over bool, err error) {
	o, err := w.under(h)
	if o == nil {
		return true, err
	}
	switch w.look(ctx, o, &err) {
	case 0:
		return err == nil, err // with an error it cannot be waited for yet
	case 1:
		return false, nil
	}
	return true, w.giveUp(ctx, o, err)
}

// AwaitAhead is godwit.Awaiter's.
func (w *Worker) AwaitAhead(ctx context.Context) (came bool, err error) {
	w.enter()
	defer w.leave()
	return w.fetcher.Await(ctx)
}

// InOrder is godwit.Awaiter's.
func (w *Worker) InOrder() bool { return w.g.Links.Alone() || w.fetcher.Direct() }

// Unhindered is godwit.Awaiter's.
func (w *Worker) Unhindered(keys int) bool {
	return w.g.Bound == nil && w.g.windows == nil && w.age.Over(w.clock.Now()) == nil && (w.g.Links.Alone() || w.ops.Takes(keys))
}

// under returns the operation of a handle; nil if it is over or was waited for already, or,
// with an error, if there was none.
func (w *Worker) under(h godwit.Handle) (*operation.Op, error) {
	if h == 0 {
		return nil, nil
	}
	o, ok := w.ops.Get(h)
	if !ok {
		return nil, w.fail("wait", nil, fmt.Errorf("%w: handle %#x", godwit.ErrHandle, uint64(h)))
	}
	return o, nil
}

// look waits for an operation. It returns 0 if that has ended, or cannot be waited for, which
// *err says; 1 at the end of ctx and 2 at the end of the run, whose cause is in *err then.
func (w *Worker) look(ctx context.Context, o *operation.Op, err *error) int {
	select {
	case <-o.Done:
		w.ops.End(o)
		return 0
	default:
	}
	if o.After != 0 {
		w.out.Flush()
		if *err = w.awaited(o); *err != nil {
			return 0
		}
	}
	how := w.await(ctx, o)
	switch how {
	case 0:
		w.ops.End(o)
	case 1:
		*err = context.Cause(ctx)
		if o.After != 0 {
			*err = fmt.Errorf("%w: %w", w.delayed(o), *err)
		}
	case 2:
		*err = w.g.Host.Err()
	}
	return how
}

// pause waits for what a call needs, the call's context, or the end of the run:
// 0, 1 or 2.
func (w *Worker) pause(ctx context.Context, done <-chan struct{}, why watch.Cause) int {
	defer w.waitedSince(w.g.Host.Now(), why)
	defer w.marks.Wait(why.Region()).End()
	return w.g.Host.Wait(done, ctx.Done(), w.g.Host.Done())
}

// until is pause that makes an error of the end of the call's context, or of the run. Late says what was waited for, in front of the first, and for
// which node.
func (w *Worker) until(ctx context.Context, call string, keys []godwit.Key, done <-chan struct{}, why watch.Cause, late func() (what string, peer godwit.NodeID)) error {
	switch w.pause(ctx, done, why) {
	case 1:
		what, peer := late()
		return w.failAt(peer, call, keys, fmt.Errorf("%s%w", what, w.g.Host.Late(ctx, context.Cause(ctx))))
	case 2:
		return w.fail(call, keys, w.g.Host.Err())
	}
	return nil
}

// reason is what a wait for no one node is said to be late for.
func reason(what string) func() (string, godwit.NodeID) {
	return func() (string, godwit.NodeID) { return what, godwit.NoNode }
}

// waitedSince counts time as waited.
func (w *Worker) waitedSince(began int64, why watch.Cause) {
	took := w.g.Host.Now() - began
	w.count.waiting.Store(w.count.waiting.Load() + took)
	w.count.waits.Add(why, took)
}

// abandon gives an operation up, unless it is complete after all. It takes the
// worker's token along.
func (w *Worker) abandon(o *operation.Op) bool {
	if !o.Abandon() {
		return false
	}
	w.req.token = nil
	return true
}

func (w *Worker) giveUp(ctx context.Context, o *operation.Op, cause error) error {
	if !w.abandon(o) {
		<-o.Done
		w.ops.End(o)
		return nil
	}
	s := o.Span()
	peer := w.g.blame(s.First) // takes a shard's lock, which goes before the operation's
	return &godwit.OpError{Op: o.What, Worker: w.id, Peer: peer, First: s.First, Last: s.Last, Keys: s.Keys, Err: w.g.Host.Late(ctx, cause)}
}
