package capi

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/optim"
)

// A Worker is a godwit.Worker whose calls return after a while.
type Worker struct {
	cluster *Cluster
	w       godwit.Awaiter
	name    string
	alone   bool

	busy  atomic.Bool // a thread is in a call, or a goroutine makes one
	doing atomic.Pointer[string]
	aside atomic.Pointer[op] // whose goroutine makes a call; nil: none does

	// Of who is in a call.
	keys   []godwit.Key // scratch
	vals   []float32    // scratch
	wide   []float32    // scratch
	unique []int64      // scratch
	where  []int64      // scratch
	first  []int        // scratch

	mu   sync.Mutex
	last uint64
	ops  map[uint64]*op // under way, by number

	calls, met map[string]uint64 // that all workers make, by kind: begun, and returned from with success. The cluster's meetings guard them
}

// An op is an operation that had not ended when its call returned.
type op struct {
	handle godwit.Handle           // of the node's; 0: a goroutine makes the call
	done   chan struct{}           // closed when the goroutine has ended
	cancel context.CancelCauseFunc // of the goroutine
	err    error                   // of the goroutine
	end    func()                  // what is left to do when it has succeeded; nil: nothing
}

// Flags of a push.
const (
	Sum    = 1 << iota // pushes the sum of the vectors of equal keys, once
	Finite             // drops vectors that are not finite, and counts them
)

// Flags of a pull.
const (
	Once = 1 << iota // reads a row that occurs several times once
	Look             // makes no rows: those that nobody has accessed are read as they are at first
)

func (w *Worker) enter(what *string) error {
	if w.busy.CompareAndSwap(false, true) {
		if !w.cluster.over.Load() {
			w.doing.Store(what)
			return nil
		}
		w.leave()
	}
	if w.cluster.over.Load() {
		return fmt.Errorf("%s: %s: %w", w.name, *what, godwit.ErrClosed)
	}
	return fmt.Errorf("%s: %s: %w by %s of another thread, or one that was not waited for", w.name, *what, ErrBusy, w.does())
}

// does returns the name of the call that is in the worker.
func (w *Worker) does() string {
	if d := w.doing.Load(); d != nil {
		return *d
	}
	return "a call"
}

func (w *Worker) leave() { w.busy.Store(false) }

// enterAfter enters a call, when one that a goroutine makes has ended. It reports whether that was so after a while, and how much of
// that is left.
func (w *Worker) enterAfter(what *string, wait time.Duration) (entered bool, left time.Duration, err error) {
	if w.enter(what) == nil {
		return true, wait, nil
	}
	begin := time.Now()
	if o := w.aside.Load(); o != nil && !within(o.done, wait) {
		return false, 0, nil
	}
	if wait > 0 {
		wait = max(wait-time.Since(begin), 0)
	}
	err = w.enter(what)
	return err == nil, wait, err
}

var (
	pull, push, set, localize = "pull", "push", "set", "localize"
	intent, advance, barrier  = "intent", "advance", "barrier"
	waitSync, syncAll         = "wait_sync", "sync_all"
	waiting                   = "wait"
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
	if flags&^(Once|Look) != 0 {
		return 0, wrong("%s: pull: flags %#x, want some of %#x", w.name, flags, Once|Look)
	}
	t, err := w.begin(&pull, i, rows, len(dst))
	if err != nil {
		return 0, err
	}
	if flags&Look != 0 && !t.queried {
		return w.look(i, rows, dst, flags&Once != 0, wait)
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
	return w.issuePull(keys, wide, wait, func() { optim.Narrow(dst, wide, t.dim) })
}

// issuePull begins a pull. One that is waited for takes what was fetched ahead and is still on its way, too; where that takes
// longer, a goroutine waits for it.
func (w *Worker) issuePull(keys []godwit.Key, dst []float32, wait time.Duration, end func()) (uint64, error) {
	if wait != 0 && !w.alone {
		ctx, cancel := context.WithCancel(context.Background())
		if wait > 0 {
			ctx, cancel = context.WithTimeout(ctx, wait)
		}
		came, err := w.w.AwaitAhead(ctx)
		cancel()
		switch {
		case err != nil:
			w.leave()
			return 0, err
		case !came:
			w.keys, w.vals, w.wide = nil, nil, nil // the goroutine's now
			return w.beside(pull, 0, end, func(ctx context.Context) error { return w.w.Pull(ctx, keys, dst) })
		}
	}
	return w.issue(pull, keys, wait, end, func(ctx context.Context) (godwit.Handle, error) { return w.w.PullAsync(ctx, keys, dst) })
}

// pullOnce pulls the distinct rows and copies each to where it occurs.
func (w *Worker) pullOnce(t *table, rows []int64, dst []float32, wait time.Duration) (uint64, error) {
	n := w.distinct(rows)
	where := w.where
	if !w.alone { // the scratch memory may be used again before the operation is over
		where = slices.Clone(where)
	}
	return w.lookup(t, w.unique[:n], where, dst, wait)
}

// Lookup reads rows that may occur several times, each once, and copies it to where it occurs. It writes them, each once in the order in which they occur, to
// unique, and to where the place there of each: as Unique does, and at once. It returns how many there are.
func (w *Worker) Lookup(i int, rows, unique, where []int64, dst []float32, wait time.Duration) (n int, op uint64, err error) {
	t, err := w.begin(&pull, i, rows, len(dst))
	if err != nil {
		return 0, 0, err
	}
	if n, err = Unique(rows, unique, where); err != nil {
		w.leave()
		return 0, 0, err
	}
	op, err = w.lookup(t, unique[:n], where[:len(rows)], dst, wait)
	return n, op, err
}

// lookup reads distinct rows and copies each to the places where it occurs: rows[where[i]] to the i-th place of dst. Rows stand in the order in which they
// occur. The caller is in the worker, which lookup leaves.
func (w *Worker) lookup(t *table, rows, where []int64, dst []float32, wait time.Duration) (uint64, error) {
	if w.alone {
		defer w.leave()
		return 0, w.lookupParts(t, rows, where, dst)
	}
	width := t.width()
	wide := make([]float32, len(rows)*width)
	return w.issuePull(w.keysOf(t, rows), wide, wait, func() { spread(dst, t.dim, wide, width, where) })
}

// lookupParts is lookup of rows that are here, some at a time. A row that occurs again is copied from where it occurred first.
func (w *Worker) lookupParts(t *table, rows, where []int64, dst []float32) error {
	width := t.width()
	w.vals = slices.Grow(w.vals[:0], part*width)[:part*width]
	w.first = slices.Grow(w.first[:0], len(rows))[:len(rows)]
	next, place := 0, 0 // row that occurs next, and place
	for begin := 0; begin < len(rows); begin += part {
		end := min(begin+part, len(rows))
		wide := w.vals[:(end-begin)*width]
		if err := w.w.Pull(context.Background(), w.keysOf(t, rows[begin:end]), wide); err != nil {
			return err
		}
		for ; place < len(where) && int(where[place]) < end; place++ {
			at, to := int(where[place]), dst[place*t.dim:(place+1)*t.dim]
			if at < next {
				copy(to, dst[w.first[at]*t.dim:])
				continue
			}
			w.first[at] = place
			copy(to, wide[(at-begin)*width:])
			next++
		}
	}
	return nil
}

// distinct puts the distinct rows into w.unique, and into w.where which of them each row is.
func (w *Worker) distinct(rows []int64) int {
	w.unique = slices.Grow(w.unique[:0], len(rows))[:len(rows)]
	w.where = slices.Grow(w.where[:0], len(rows))[:len(rows)]
	n, _ := Unique(rows, w.unique, w.where) // the slices are long enough, and so many rows have no values
	return n
}

// spread copies the first dim floats of vectors of some width to each position where they occur.
func spread(dst []float32, dim int, vectors []float32, width int, where []int64) {
	for i, at := range where {
		copy(dst[i*dim:(i+1)*dim], vectors[int(at)*width:])
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
		optim.Narrow(dst, wide, t.dim)
		dst = dst[len(keys)*t.dim:]
	}
	return nil
}

// room returns scratch memory for the values of n rows.
func (w *Worker) room(t *table, n int) []float32 {
	w.vals = slices.Grow(w.vals[:0], n*t.width())[:n*t.width()]
	return w.vals
}

// Push hands the vectors, multiplied by a scale, to the rows' rule, with a rate where the rule takes one.
func (w *Worker) Push(i int, rows []int64, vals []float32, rate, scale float32, flags int, wait time.Duration) (uint64, error) {
	if flags&^(Sum|Finite) != 0 {
		return 0, wrong("%s: push: flags %#x, want some of %#x", w.name, flags, Sum|Finite)
	}
	if scale-scale != 0 {
		return 0, wrong("%s: push: scale %v, want a finite one", w.name, scale)
	}
	t, err := w.begin(&push, i, rows, len(vals))
	if err != nil {
		return 0, err
	}
	if t.rated && !(rate >= 0 && rate <= math.MaxFloat32) || !t.rated && rate != 0 {
		w.leave()
		return 0, wrong("%s: push: rate %v to table %q, want a finite one of at least 0 for a rule that takes a rate, else 0", w.name, rate, t.name)
	}
	if flags&Sum != 0 {
		rows, vals = w.sum(t, rows, vals)
	}
	out := pushed{t: t, rate: rate, scale: scale, finite: flags&Finite != 0}
	if w.alone && out.changes() {
		defer w.leave()
		return 0, w.pushParts(&out, rows, vals)
	}
	keys, wide := w.gather(&out, rows, vals)
	if len(keys) == 0 {
		w.leave()
		return 0, nil
	}
	return w.issue(push, keys, wait, nil, func(ctx context.Context) (godwit.Handle, error) { return w.w.PushAsync(ctx, keys, wide) })
}

// A pushed is what is made of vectors before they are pushed.
type pushed struct {
	t           *table
	rate, scale float32
	finite      bool // leaves out what is not
}

func (p *pushed) changes() bool { return p.t.rated || p.finite || p.scale != 1 }

// pushParts pushes to rows that are here, some at a time.
func (w *Worker) pushParts(p *pushed, rows []int64, vals []float32) error {
	for len(rows) > 0 {
		n := min(part, len(rows))
		keys, out := w.gather(p, rows[:n], vals[:n*p.t.dim])
		if len(keys) > 0 {
			if err := w.w.Push(context.Background(), keys, out); err != nil {
				return err
			}
		}
		rows, vals = rows[n:], vals[n*p.t.dim:]
	}
	return nil
}

// gather makes of rows and vectors what is pushed, in scratch memory if they differ.
func (w *Worker) gather(p *pushed, rows []int64, vals []float32) ([]godwit.Key, []float32) {
	t, keys := p.t, w.keysOf(p.t, rows)
	if !p.changes() {
		return keys, vals
	}
	width, n := t.width(), 0
	// Most often all numbers are finite, which one look at all of them tells sooner than one at each vector.
	each := p.finite && !(p.scale >= -1 && p.scale <= 1 && isFinite(vals))
	wide := slices.Grow(w.wide[:0], len(rows)*width)[:len(rows)*width]
	w.wide = wide
	for i, k := range keys {
		to := wide[n*width : (n+1)*width]
		copy(to, vals[i*t.dim:(i+1)*t.dim])
		if p.scale != 1 {
			vec.Scale(to[:t.dim], p.scale)
		}
		if each && !isFinite(to[:t.dim]) {
			continue
		}
		if t.rated {
			to[t.dim] = p.rate
		}
		keys[n] = k
		n++
	}
	w.cluster.notFinite.Add(uint64(len(keys) - n))
	return keys[:n], wide[:n*width]
}

// sum adds the vectors of equal rows.
func (w *Worker) sum(t *table, rows []int64, vals []float32) ([]int64, []float32) {
	n := w.distinct(rows)
	w.vals = slices.Grow(w.vals[:0], n*t.dim)[:n*t.dim]
	next := 0
	for i, at := range w.where {
		next = addTo(w.vals, int(at), next, vals[i*t.dim:(i+1)*t.dim])
	}
	return w.unique[:n], w.vals
}

// addTo adds a vector to a sum by its number, or is the first of it if that is next. It returns what is next then.
func addTo(sums []float32, at, next int, v []float32) int {
	sum := sums[at*len(v) : (at+1)*len(v)]
	if at < next {
		vec.Add(sum, v)
		return next
	}
	copy(sum, v)
	return next + 1
}

// Add adds vectors of so many floats that belong to equal rows: that of the i-th place to sums[where[i]], in the order of the places.
// Vectors begin at multiples of stride, and each is that of so many places in a row (repeat). Rows stand in
// the order in which they occur, as those of Unique do.
func Add(where []int64, vals []float32, repeat, stride, dim int, sums []float32) error {
	if dim < 1 || dim >= godwit.MaxDim || repeat < 1 || stride < 0 || len(sums)%max(dim, 1) != 0 || len(where) > maxKeys {
		return wrong("sums of %d floats in all, of vectors of %d floats, each for %d places, %d floats from one to the next", len(sums), dim, repeat, stride)
	}
	rows := len(sums) / dim
	if len(where) == 0 {
		return allOccur(0, rows)
	}
	if last := (len(where) - 1) / repeat; stride > len(vals) || last*stride+dim > len(vals) {
		return fmt.Errorf("%w: %d floats of vectors, %d after each other of %d floats, %d from one to the next", errLength, len(vals), last+1, dim, stride)
	}
	next, left := 0, repeat
	for i, at := range where {
		if uint64(at) > uint64(next) || int(at) >= rows {
			return wrong("place %d has row %d of %d, and row %d has not occurred: want the order of godwit_unique", i, at, rows, next)
		}
		next = addTo(sums, int(at), next, vals[:dim])
		if left--; left == 0 {
			left = repeat
			vals = vals[min(stride, len(vals)):]
		}
	}
	return allOccur(next, rows)
}

// allOccur checks that all rows have occurred.
func allOccur(next, rows int) error {
	if next != rows {
		return wrong("of %d rows %d occur: want the order of godwit_unique", rows, next)
	}
	return nil
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
			optim.Widen(wide, vals, t.dim, 0)
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
		w.keys, w.vals, w.wide = nil, nil, nil // the goroutine's now
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
	o := &op{handle: h, end: end}
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
	o := &op{done: make(chan struct{}), cancel: cancel, end: end}
	w.aside.Store(o)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				o.err = fmt.Errorf("%s: %s: a defect of Godwit: %v", w.name, what, p)
			}
			cancel(nil)
			w.leave()
			w.aside.CompareAndSwap(o, nil)
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

// Wait waits for an operation, and reports whether it is over. It is forgotten then. With ErrBusy it is not over, and goes on.
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
		entered, left, busy := w.enterAfter(&waiting, wait)
		if !entered {
			return false, busy
		}
		over, err = w.await(o, left)
		w.leave()
	}
	if over {
		w.forget(id)
	}
	return over, err
}

// Cancel gives an operation up. Its buffers are free when it returns; a push may have taken
// effect for some rows. It returns nil if the operation had succeeded, and ErrBusy, with nothing given up, while the worker is in use.
func (w *Worker) Cancel(id uint64) error {
	o, err := w.find(id)
	if err != nil {
		return err
	}
	if o.handle == 0 {
		o.cancel(errCancelled)
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
	return w.all(barrier, wait, w.w.Barrier)
}

// WaitSync waits until the node's updates have arrived.
func (w *Worker) WaitSync(wait time.Duration) (uint64, error) {
	if err := w.enter(&waitSync); err != nil {
		return 0, err
	}
	return w.beside(waitSync, wait, nil, w.w.WaitSync)
}

// SyncAll waits for all workers of the run, and until what each has pushed is visible to all.
func (w *Worker) SyncAll(wait time.Duration) (uint64, error) {
	if err := w.enter(&syncAll); err != nil {
		return 0, err
	}
	return w.all(syncAll, wait, w.w.SyncAll)
}

// Intent announces that the worker will access rows at clocks from start to end-1.
func (w *Worker) Intent(i int, rows []int64, start, end int64) error {
	t, err := w.begin(&intent, i, rows, -1)
	if err != nil {
		return err
	}
	defer w.leave()
	if !w.alone { // else the node has nothing to do
		rows = w.unique[:w.distinct(rows)]
	}
	return w.w.Intent(w.keysOf(t, rows), godwit.Clock(start), godwit.Clock(end))
}

// Advance raises the worker's clock and returns it.
func (w *Worker) Advance() (int64, error) {
	if err := w.enter(&advance); err != nil {
		return 0, err
	}
	defer w.leave()
	return int64(w.w.Advance()), nil
}

// BoundAge bounds for how many steps the worker hears nothing of other nodes; 0 ends that.
func (w *Worker) BoundAge(steps int64) error {
	if err := w.enter(&advance); err != nil {
		return err
	}
	defer w.leave()
	w.w.BoundAge(godwit.Clock(steps))
	return nil
}

// InOrder reports whether pulls that begin now see pushes that begin now, without waiting in between.
func (w *Worker) InOrder() (bool, error) {
	if err := w.enter(&push); err != nil {
		return false, err
	}
	defer w.leave()
	return w.w.InOrder(), nil
}

// Clock returns the worker's clock.
func (w *Worker) Clock() (int64, error) {
	if err := w.enter(&advance); err != nil {
		return 0, err
	}
	defer w.leave()
	return int64(w.w.Clock()), nil
}
