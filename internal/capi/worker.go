package capi

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/vec"
)

// A Worker is a godwit.Worker whose calls return after a while.
type Worker struct {
	cluster *Cluster
	w       godwit.Awaiter
	name    string
	alone   bool

	busy  atomic.Bool // a thread is in a call, or a goroutine makes one
	doing atomic.Pointer[string]

	// Of who is in a call.
	keys   []godwit.Key // scratch
	vals   []float32    // scratch
	unique []int64      // scratch
	where  []int64      // scratch

	mu   sync.Mutex
	last uint64
	ops  map[uint64]*op // under way, by number
}

// An op is an operation that had not ended when its call returned.
type op struct {
	what   string
	handle godwit.Handle      // of the node's; 0: a goroutine makes the call
	done   chan struct{}      // closed when the goroutine has ended
	cancel context.CancelFunc // of the goroutine
	err    error              // of the goroutine
	end    func()             // what is left to do when it has succeeded; nil: nothing
	keys   []godwit.Key       // which the node reads until then
}

// Flags of a push.
const (
	Sum    = 1 << iota // pushes the sum of the vectors of equal keys, once
	Finite             // drops vectors that are not finite, and counts them
)

// Once is a flag of a pull: a row that occurs several times is read once.
const Once = 1

func (w *Worker) enter(what *string) error {
	if !w.busy.CompareAndSwap(false, true) {
		doing := "a call"
		if d := w.doing.Load(); d != nil {
			doing = *d
		}
		return fmt.Errorf("%s: %s: %w by %s of another thread, or one that was not waited for", w.name, *what, ErrBusy, doing)
	}
	w.doing.Store(what)
	return nil
}

func (w *Worker) leave() { w.busy.Store(false) }

var (
	pull, push, set, localize = "pull", "push", "set", "localize"
	intent, advance, barrier  = "intent", "advance", "barrier"
	waitSync, waiting         = "wait_sync", "wait"
)

// begin enters a call that is about rows of a table, with values of so many floats, -1: none.
func (w *Worker) begin(what *string, i int, rows []int64, floats int) (*table, error) {
	if i < 0 || i >= len(w.cluster.tables) {
		return nil, w.noTable(*what, i)
	}
	t := &w.cluster.tables[i]
	if floats >= 0 && floats != len(rows)*t.dim {
		return nil, fmt.Errorf("%w: %s: %s: %d floats for %d rows of table %q, which has %d floats a row", errLength, w.name, *what, floats, len(rows), t.name, t.dim)
	}
	for at, r := range rows {
		if uint64(r) >= uint64(t.rows) {
			return nil, fmt.Errorf("%s: %s: %w: row %d at position %d, table %q has rows 0 … %d", w.name, *what, godwit.ErrKeyRange, r, at, t.name, t.rows-1)
		}
	}
	if err := w.enter(what); err != nil {
		return nil, err
	}
	return t, nil
}

func (w *Worker) noTable(what string, i int) error {
	return wrong("%s: %s: there is no table %d, the cluster has tables 0 … %d", w.name, what, i, len(w.cluster.tables)-1)
}

// keysOf makes keys of rows, in the worker's scratch memory.
func (w *Worker) keysOf(t *table, rows []int64) []godwit.Key {
	w.keys = slices.Grow(w.keys[:0], len(rows))[:len(rows)]
	for i, r := range rows {
		w.keys[i] = t.first + godwit.Key(r)
	}
	return w.keys
}

// Pull reads the rows into dst. It returns the number of the operation that is left after the
// wait; 0: none is.
func (w *Worker) Pull(i int, rows []int64, dst []float32, flags int, wait time.Duration) (uint64, error) {
	if flags&^Once != 0 {
		return 0, wrong("%s: pull: flags %#x, want some of %#x", w.name, flags, Once)
	}
	t, err := w.begin(&pull, i, rows, len(dst))
	if err != nil {
		return 0, err
	}
	if flags&Once != 0 {
		return w.pullOnce(t, rows, dst, wait)
	}
	keys := w.keysOf(t, rows)
	if !t.rated {
		return w.issuePull(keys, dst, wait, nil)
	}
	if w.alone {
		defer w.leave()
		return 0, w.pullParts(t, keys, dst)
	}
	wide := make([]float32, len(rows)*t.width())
	return w.issuePull(keys, wide, wait, func() { narrow(t, dst, wide) })
}

func (w *Worker) issuePull(keys []godwit.Key, dst []float32, wait time.Duration, end func()) (uint64, error) {
	return w.issue(pull, keys, wait, end, func(ctx context.Context) (godwit.Handle, error) { return w.w.PullAsync(ctx, keys, dst) })
}

// pullOnce pulls the distinct rows and copies each to where it occurs.
func (w *Worker) pullOnce(t *table, rows []int64, dst []float32, wait time.Duration) (uint64, error) {
	n := w.distinct(rows)
	keys, where := w.keysOf(t, w.unique[:n]), w.where
	var wide []float32
	if w.alone {
		wide = w.room(t, n)
	} else { // the scratch memory may be used again before the operation is over
		wide, where = make([]float32, n*t.width()), slices.Clone(where)
	}
	return w.issuePull(keys, wide, wait, func() { spread(t, dst, wide, where) })
}

// distinct puts the distinct rows into w.unique, and into w.where which of them each row is.
func (w *Worker) distinct(rows []int64) int {
	w.unique = slices.Grow(w.unique[:0], len(rows))[:len(rows)]
	w.where = slices.Grow(w.where[:0], len(rows))[:len(rows)]
	n, _ := Unique(rows, w.unique, w.where) // the slices are long enough, and so many rows have no values
	return n
}

// spread copies values, without the place of the rate, to each position where they occur.
func spread(t *table, dst, wide []float32, where []int64) {
	width := t.width()
	for i, at := range where {
		copy(dst[i*t.dim:(i+1)*t.dim], wide[int(at)*width:])
	}
}

// part is how many rows are pulled at a time that lose a float on their way: so few that they
// are still in the processor's cache.
const part = 128

// pullParts pulls rows that are here and leaves the place of the rate out.
func (w *Worker) pullParts(t *table, keys []godwit.Key, dst []float32) error {
	w.vals = slices.Grow(w.vals[:0], part*t.width())[:part*t.width()]
	for keys := range slices.Chunk(keys, part) {
		wide := w.vals[:len(keys)*t.width()]
		if err := w.w.Pull(context.Background(), keys, wide); err != nil {
			return err
		}
		narrow(t, dst, wide)
		dst = dst[len(keys)*t.dim:]
	}
	return nil
}

// narrow copies values without the place of the rate.
func narrow(t *table, dst, wide []float32) {
	for d, s := 0, 0; s < len(wide); d, s = d+t.dim, s+t.dim+1 {
		copy(dst[d:d+t.dim], wide[s:])
	}
}

// widen copies values and puts a number after each.
func widen(t *table, wide, vals []float32, x float32) {
	for d, s := 0, 0; s < len(vals); d, s = d+t.dim+1, s+t.dim {
		copy(wide[d:], vals[s:s+t.dim])
		wide[d+t.dim] = x
	}
}

// room returns scratch memory for the values of n rows.
func (w *Worker) room(t *table, n int) []float32 {
	w.vals = slices.Grow(w.vals[:0], n*t.width())[:n*t.width()]
	return w.vals
}

// Push hands the vectors to the rows' rule, with a rate where the rule takes one.
func (w *Worker) Push(i int, rows []int64, vals []float32, rate float32, flags int, wait time.Duration) (uint64, error) {
	if flags&^(Sum|Finite) != 0 {
		return 0, wrong("%s: push: flags %#x, want some of %#x", w.name, flags, Sum|Finite)
	}
	t, err := w.begin(&push, i, rows, len(vals))
	if err != nil {
		return 0, err
	}
	if t.rated && !(rate >= 0 && rate <= 3e38) || !t.rated && rate != 0 {
		w.leave()
		return 0, wrong("%s: push: rate %v to table %q, want a finite one of at least 0 for a rule that takes a rate, else 0", w.name, rate, t.name)
	}
	keys, out := w.gather(t, rows, vals, rate, flags)
	if len(keys) == 0 {
		w.leave()
		return 0, nil
	}
	return w.issue(push, keys, wait, nil, func(ctx context.Context) (godwit.Handle, error) { return w.w.PushAsync(ctx, keys, out) })
}

// gather makes of rows and vectors what is pushed: summed, widened and checked as asked for.
func (w *Worker) gather(t *table, rows []int64, vals []float32, rate float32, flags int) ([]godwit.Key, []float32) {
	out := vals
	switch {
	case flags&Sum != 0:
		rows, out = w.sum(t, rows, vals, rate)
	case t.rated:
		out = w.room(t, len(rows))
		widen(t, out, vals, rate)
	case flags&Finite != 0:
		out = append(w.vals[:0], vals...)
		w.vals = out
	}
	keys := w.keysOf(t, rows)
	if flags&Finite != 0 {
		keys, out = w.finite(t, keys, out)
	}
	return keys, out
}

// sum adds the vectors of equal rows.
func (w *Worker) sum(t *table, rows []int64, vals []float32, rate float32) ([]int64, []float32) {
	n, width := w.distinct(rows), t.width()
	out := w.room(t, n)
	next := 0
	for i, at := range w.where {
		v, sum := vals[i*t.dim:(i+1)*t.dim], out[int(at)*width:][:t.dim]
		if int(at) < next {
			vec.Add(sum, v)
			continue
		}
		copy(sum, v)
		if next++; t.rated {
			out[int(at)*width+t.dim] = rate
		}
	}
	return w.unique[:n], out
}

// finite takes out, in place, what is not finite.
func (w *Worker) finite(t *table, keys []godwit.Key, vals []float32) ([]godwit.Key, []float32) {
	width, n := t.width(), 0
	for i, k := range keys {
		v := vals[i*width : (i+1)*width]
		if !isFinite(v) {
			continue
		}
		if n != i {
			keys[n] = k
			copy(vals[n*width:], v)
		}
		n++
	}
	w.cluster.notFinite.Add(uint64(len(keys) - n))
	return keys[:n], vals[:n*width]
}

// isFinite reports whether all numbers are. If the sum of their squares is, they are; squares
// of large ones are not.
func isFinite(v []float32) bool {
	if s := vec.SquaredNorm(v); s-s == 0 {
		return true
	}
	for _, x := range v {
		if x-x != 0 {
			return false
		}
	}
	return true
}

// Set overwrites rows and resets the state of their rule.
func (w *Worker) Set(i int, rows []int64, vals []float32, wait time.Duration) (uint64, error) {
	t, err := w.begin(&set, i, rows, len(vals))
	if err != nil {
		return 0, err
	}
	if keys := w.keysOf(t, rows); len(keys) > 0 {
		if t.rated {
			wide := w.room(t, len(rows))
			widen(t, wide, vals, 0)
			vals = wide
		}
		return w.issue(set, keys, wait, nil, func(ctx context.Context) (godwit.Handle, error) { return w.w.SetAsync(ctx, keys, vals) })
	}
	w.leave()
	return 0, nil
}

// Localize asks that rows move to the worker's node.
func (w *Worker) Localize(i int, rows []int64, wait time.Duration) (uint64, error) {
	t, err := w.begin(&localize, i, rows, -1)
	if err != nil {
		return 0, err
	}
	keys := slices.Clone(w.keysOf(t, rows))
	return w.beside(localize, wait, nil, func(ctx context.Context) error { return w.w.Localize(ctx, keys) })
}

// issue makes a call that returns a handle: here if it waits for nobody, else beside. The
// caller is in the worker, which issue leaves.
func (w *Worker) issue(what string, keys []godwit.Key, wait time.Duration, end func(), call func(context.Context) (godwit.Handle, error)) (uint64, error) {
	if !w.w.Unhindered(len(keys)) {
		w.keys, w.vals = nil, nil // the goroutine's now
		return w.beside(what, wait, end, func(ctx context.Context) error {
			h, err := call(ctx)
			if err == nil {
				err = w.w.Wait(ctx, h)
			}
			return err
		})
	}
	defer w.leave()
	h, err := call(context.Background())
	if err != nil {
		return 0, err
	}
	if h == 0 {
		if end != nil {
			end()
		}
		return 0, nil
	}
	w.keys = nil // the operation's now
	o := &op{what: what, handle: h, end: end, keys: keys}
	over, err := w.await(o, wait)
	if over {
		return 0, err
	}
	return w.keep(o), nil
}

// await waits for an operation of the node's. The caller is in the worker.
func (w *Worker) await(o *op, wait time.Duration) (bool, error) {
	ctx := context.Background()
	if wait >= 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, wait)
		defer end()
	}
	over, err := w.w.Await(ctx, o.handle)
	if over && err == nil && o.end != nil {
		o.end()
	}
	return over, err
}

// keep gives an operation a number.
func (w *Worker) keep(o *op) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	w.ops[w.last] = o
	return w.last
}

func (w *Worker) forget(id uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ops, id)
}

func (w *Worker) find(id uint64) (*op, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.ops[id]; o != nil {
		return o, nil
	}
	return nil, fmt.Errorf("%s: wait: operation %d: %w", w.name, id, errNone)
}

// beside has a goroutine make a call. The caller is in the worker, which the goroutine leaves.
func (w *Worker) beside(what string, wait time.Duration, end func(), call func(context.Context) error) (uint64, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	o := &op{what: what, done: make(chan struct{}), cancel: func() { cancel(errCancelled) }, end: end}
	go func() {
		defer func() {
			if p := recover(); p != nil {
				o.err = fmt.Errorf("%s: %s: a defect of Godwit: %v", w.name, what, p)
			}
			cancel(nil)
			w.leave()
			close(o.done)
		}()
		o.err = call(ctx)
	}()
	if within(o.done, wait) {
		return 0, o.result()
	}
	return w.keep(o), nil
}

func (o *op) result() error {
	if o.err == nil && o.end != nil {
		o.end()
	}
	return o.err
}

// Wait waits for an operation, and reports whether it is over. It is forgotten then.
func (w *Worker) Wait(id uint64, wait time.Duration) (bool, error) {
	o, err := w.find(id)
	if err != nil {
		return true, err
	}
	var over bool
	if o.handle == 0 {
		if over = within(o.done, wait); over {
			err = o.result()
		}
	} else {
		if err := w.enter(&waiting); err != nil {
			return false, err
		}
		over, err = w.await(o, wait)
		w.leave()
	}
	if over {
		w.forget(id)
	}
	return over, err
}

// Cancel gives an operation up. Its buffers are free when it returns; a push may have taken
// effect for some rows. It returns nil if the operation had succeeded.
func (w *Worker) Cancel(id uint64) error {
	o, err := w.find(id)
	if err != nil {
		return err
	}
	if o.handle == 0 {
		o.cancel()
		<-o.done
		w.forget(id)
		return o.result()
	}
	if err := w.enter(&waiting); err != nil {
		return err
	}
	defer w.leave()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errCancelled)
	w.forget(id)
	if err = w.w.Wait(ctx, o.handle); err == nil && o.end != nil {
		o.end()
	}
	return err
}

// Barrier waits for all workers of all nodes.
func (w *Worker) Barrier(wait time.Duration) (uint64, error) {
	if err := w.enter(&barrier); err != nil {
		return 0, err
	}
	return w.beside(barrier, wait, nil, w.w.Barrier)
}

// WaitSync waits until the node's updates have arrived.
func (w *Worker) WaitSync(wait time.Duration) (uint64, error) {
	if err := w.enter(&waitSync); err != nil {
		return 0, err
	}
	return w.beside(waitSync, wait, nil, w.w.WaitSync)
}

// Intent announces that the worker will access rows at clocks from start to end-1.
func (w *Worker) Intent(i int, rows []int64, start, end int64) error {
	t, err := w.begin(&intent, i, rows, -1)
	if err != nil {
		return err
	}
	defer w.leave()
	return w.w.Intent(w.keysOf(t, w.unique[:w.distinct(rows)]), godwit.Clock(start), godwit.Clock(end))
}

// Advance raises the worker's clock and returns it.
func (w *Worker) Advance() (int64, error) {
	if err := w.enter(&advance); err != nil {
		return 0, err
	}
	defer w.leave()
	return int64(w.w.Advance()), nil
}

// Clock returns the worker's clock.
func (w *Worker) Clock() (int64, error) {
	if err := w.enter(&advance); err != nil {
		return 0, err
	}
	defer w.leave()
	return int64(w.w.Clock()), nil
}
