package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// This file is how pushes that leave the node go through filters.
//
// What filters leave of a worker's push is kept by the worker until it pushes
// to the key again, wherever the key is then: it is added before anything else
// is done, so that what is served here has it too, and what is not is filtered
// together with it. WaitSync and Close push what is kept by all workers of the
// node, and through no filter. A Set of a key forgets it.

// filtersOf returns the filters of each table, other than of frames; nil if no
// table has any.
func filtersOf(m *godwit.Model) (of [][]godwit.Filter) {
	for i := range m.Tables() {
		for _, f := range m.Table(i).Filters {
			if _, frames := f.(filter.Compress); frames {
				continue
			}
			if of == nil {
				of = make([][]godwit.Filter, m.Tables())
			}
			of[i] = append(of[i], f)
		}
	}
	return of
}

// filtering is what a worker's filters need: memory that is used again.
type filtering struct {
	good  []godwit.Filter // that a call brought, and that may be used
	batch godwit.FilterBatch
	calls []uint64 // batches, by table
	table []int    // by missed position; -1: done
	which []int    // the missed positions of a batch
	keys  []godwit.Key
	vals  []float32 // vectors of all missed positions, as they are sent
	sum   []float32 // what is pushed, with what was kept

	took []kept    // from the worker's residual, by ascending position of the call
	left []kept    // to be kept when the call has been issued,
	rest []float32 // … the vectors

	in, out, dropped, flushed atomic.Uint64 // bytes of values, positions, keys
}

func (f *filtering) count(s *Stats) {
	s.FilterIn += f.in.Load()
	s.FilterOut += f.out.Load()
	s.HeldBack += f.dropped.Load()
	s.Leftovers += f.flushed.Load()
}

// A kept vector belongs to a position of a call.
type kept struct {
	pos int
	key godwit.Key
	vec []float32
}

// A residual is what filters left of a worker's pushes, by key. Keys whose
// vectors become zero are not in it, so its memory follows the keys that the
// worker pushed since the last WaitSync. It has a bound: while it is full,
// pushes go through no filter.
type residual struct {
	keys atomic.Int64
	mu   preempt.Mutex
	rows map[godwit.Key][]float32
	size int                 // floats
	free map[int][][]float32 // vectors to be used again, by length
}

// residualRoom bounds the floats that a worker keeps.
const residualRoom = 16 << 20

func (r *residual) some() bool { return r.keys.Load() > 0 }

func (r *residual) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size > residualRoom
}

// add keeps more of a key.
func (r *residual) add(k godwit.Key, v []float32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addLocked(k, v)
}

func (r *residual) addLocked(k godwit.Key, v []float32) {
	row := r.rows[k]
	if row == nil {
		if r.rows == nil {
			r.rows, r.free = map[godwit.Key][]float32{}, map[int][][]float32{}
		}
		if f := r.free[len(v)]; len(f) > 0 {
			row, r.free[len(v)] = f[len(f)-1], f[:len(f)-1]
			clear(row)
		} else {
			row = make([]float32, len(v))
		}
		r.rows[k] = row
		r.size += len(row)
		r.keys.Add(1)
	}
	vec.Add(row, v)
}

// take returns what is kept of a key, which is then no longer; nil if nothing.
// The vector is to be given back.
func (r *residual) take(k godwit.Key) []float32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.takeLocked(k)
}

func (r *residual) takeLocked(k godwit.Key) []float32 {
	row := r.rows[k]
	if row != nil {
		delete(r.rows, k)
		r.size -= len(row)
		r.keys.Add(-1)
	}
	return row
}

// give takes back a vector that nobody uses any more.
func (r *residual) give(v []float32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.giveLocked(v)
}

func (r *residual) giveLocked(v []float32) {
	if f := r.free[len(v)]; len(f) < 1<<10 {
		r.free[len(v)] = append(f, v)
	}
}

// all returns the keys, in their order.
func (r *residual) all() []godwit.Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := make([]godwit.Key, 0, len(r.rows))
	for k := range r.rows {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// withKept returns what is to be pushed together with what was kept of it.
func (w *worker) withKept(keys []godwit.Key, push []float32) []float32 {
	f := &w.filtering
	f.took = f.took[:0]
	off := 0
	w.residual.mu.Lock()
	defer w.residual.mu.Unlock()
	for i, k := range keys {
		dim := w.n.model.Dim(k)
		if v := w.residual.takeLocked(k); v != nil {
			if len(f.took) == 0 {
				f.sum = append(f.sum[:0], push...)
				push = f.sum
			}
			vec.Add(push[off:off+dim], v)
			f.took = append(f.took, kept{i, k, v})
		}
		off += dim
	}
	return push
}

// chosen are the filters of a call: its own, or those of each table.
type chosen struct {
	brings bool
	own    []godwit.Filter
	each   [][]godwit.Filter
}

func (c *chosen) any() bool { return c.brings && len(c.own) > 0 || !c.brings && c.each != nil }

func (c *chosen) of(table int) []godwit.Filter {
	if c.brings {
		return c.own
	}
	return c.each[table]
}

// choose returns the filters of a call, which were judged.
func (n *Node) choose(ctx context.Context) chosen {
	if fs, ok := godwit.FiltersOf(ctx); ok {
		return chosen{brings: true, own: fs}
	}
	return chosen{each: n.filters}
}

// judge says why a call cannot go through the filters that it brings, before any
// of it is done. (A model was asked about those of its tables.)
func (w *worker) judge(fs []godwit.Filter, keys []godwit.Key) error {
	if err := w.filtering.usable(fs); err != nil {
		return err
	}
	var last *table
	for _, k := range keys {
		if len(fs) == 0 || last != nil && last.has(k) {
			continue
		}
		last = w.n.table(k)
		t, _ := w.n.model.Locate(k)
		for _, f := range fs {
			if err := w.n.model.Table(t).CheckFilter(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// usable says why filters are of no use to any call. Most calls bring those of
// the call before.
func (f *filtering) usable(fs []godwit.Filter) error {
	if len(fs) == 0 || len(f.good) == len(fs) && &f.good[0] == &fs[0] {
		return nil
	}
	if err := godwit.CheckFilters(fs); err != nil {
		return err
	}
	for _, x := range fs {
		if _, frames := x.(filter.Compress); frames {
			return fmt.Errorf("filter %s compresses frames, not calls: give it to a table", x.Name())
		}
	}
	f.good = fs
	return nil
}

// push sends the missed positions of a push, through filters where there are
// some.
func (w *worker) push(ctx context.Context, what string, keys []godwit.Key, push []float32, c *[4]atomic.Uint64) (godwit.Handle, error) {
	f := &w.filtering
	fs := w.n.choose(ctx)
	f.left, f.rest = f.left[:0], f.rest[:0]
	if fs.any() && !w.residual.full() {
		push = w.filter(&fs, keys, push)
	}
	var h godwit.Handle
	var err error
	if w.unissued = len(w.miss) / 2; w.unissued > 0 {
		h, err = w.request(ctx, what, wire.Push, keys, push, c)
	}
	w.keepRest(err)
	return h, err
}

// keepRest keeps what filters left of the positions of a call that were issued,
// and again what was kept of the others.
func (w *worker) keepRest(err error) {
	f := &w.filtering
	if len(f.left)+len(f.took) == 0 {
		return
	}
	if !w.n.kept.Load() {
		w.n.kept.Store(true)
	}
	w.residual.mu.Lock()
	defer w.residual.mu.Unlock()
	not := len(w.miss) // the first missed position that was not issued
	if err != nil {
		not -= 2 * w.unissued
	}
	issued := func(pos int) bool {
		for m := not; m < len(w.miss); m += 2 {
			if w.miss[m] == pos {
				return false
			}
		}
		return true
	}
	for _, l := range f.left {
		if issued(l.pos) {
			w.residual.addLocked(l.key, l.vec)
		}
	}
	for _, t := range f.took {
		if !issued(t.pos) {
			w.residual.addLocked(t.key, t.vec)
		}
		w.residual.giveLocked(t.vec)
	}
	f.left, f.took = f.left[:0], f.took[:0]
}

// filter has the missed positions of a push go through filters, table by table.
// It leaves those that are to be sent in w.miss, with offsets in the vectors that
// it returns, and their forms in w.forms.
func (w *worker) filter(fs *chosen, keys []godwit.Key, push []float32) []float32 {
	f := &w.filtering
	n := len(w.miss) / 2
	f.table, f.vals = f.table[:0], f.vals[:0]
	floats := 0
	for m := range n {
		t, _ := w.n.model.Locate(keys[w.miss[2*m]])
		f.table = append(f.table, t)
		floats += w.n.model.Table(t).Dim
	}
	f.vals = slices.Grow(f.vals, floats)
	w.forms = slices.Grow(w.forms[:0], n)[:n]
	for m := range n {
		if t := f.table[m]; t >= 0 {
			w.batch(fs.of(t), t, m, keys, push)
		}
	}
	to := 0
	for m := range n {
		if w.miss[2*m+1] >= 0 {
			w.miss[2*to], w.miss[2*to+1], w.forms[to] = w.miss[2*m], w.miss[2*m+1], w.forms[m]
			to++
		}
	}
	w.miss, w.forms = w.miss[:2*to], w.forms[:to]
	return f.vals
}

// batch filters the missed positions of one table, of which m is the first. It
// replaces the offsets of the missed positions, by -1 where nothing is sent.
func (w *worker) batch(fs []godwit.Filter, table, m int, keys []godwit.Key, push []float32) {
	f, dim := &w.filtering, w.n.model.Table(table).Dim
	first := len(f.vals)
	f.which, f.keys = f.which[:0], f.keys[:0]
	for ; m < len(f.table); m++ {
		if f.table[m] != table {
			continue
		}
		f.table[m] = -1
		f.which, f.keys = append(f.which, m), append(f.keys, keys[w.miss[2*m]])
		off := w.miss[2*m+1]
		w.miss[2*m+1], w.forms[m] = len(f.vals), godwit.Encoding{}
		f.vals = append(f.vals, push[off:off+dim]...)
	}
	if len(fs) == 0 {
		return
	}
	if f.calls == nil {
		f.calls = make([]uint64, w.n.model.Tables())
	}
	b := &f.batch
	b.Worker, b.Table, b.Call, b.Dim = w.id, table, f.calls[table], dim
	b.Reset(f.keys, f.vals[first:], w.seed(table, b.Call))
	f.calls[table]++
	for _, x := range fs {
		x.Filter(b)
	}
	w.filtered(b)
}

// seed is that of the random numbers of a batch.
func (w *worker) seed(table int, call uint64) uint64 {
	x := godwit.Hash64(w.n.cfg.Seed ^ 0xf117e5)
	for _, y := range []uint64{uint64(w.id.Node)<<32 | uint64(w.id.Local), uint64(table), call} {
		x = godwit.Hash64(x ^ y*0x9e3779b97f4a7c15)
	}
	return x
}

// filtered takes note of what filters made of a batch.
func (w *worker) filtered(b *godwit.FilterBatch) {
	f := &w.filtering
	out := 0
	b.Encoding = b.Encoding.Usable()
	for i, m := range f.which {
		if left := b.Residual(i); nonzero(left) {
			n := len(f.rest)
			f.rest = append(f.rest, left...)
			f.left = append(f.left, kept{w.miss[2*m], b.Keys[i], f.rest[n:]})
		}
		if !b.Sent(i) {
			w.miss[2*m+1] = -1
			continue
		}
		w.forms[m] = b.Encoding
		out += b.Encoding.Bytes(b.Vec(i))
	}
	add(&f.in, uint64(4*len(b.Vals)))
	add(&f.out, uint64(out))
	add(&f.dropped, uint64(b.Dropped()))
}

func nonzero(v []float32) bool {
	for _, x := range v {
		if x != 0 {
			return true
		}
	}
	return false
}

// pushKept pushes what all workers of the node keep, as it is, and waits: also
// for what another call has taken to push it, and nobody keeps any more. A call that
// gives up leaves the right to flush to what it has under way, so that the next one
// waits for that.
func (w *worker) pushKept(ctx context.Context, what string) error {
	if !w.n.kept.Load() {
		return nil
	}
	switch w.pause(ctx, w.n.flush) {
	case 1:
		return w.fail(what, nil, fmt.Errorf("waiting for another call to push what filters left: %w", context.Cause(ctx)))
	case 2:
		return w.fail(what, nil, w.n.Err())
	}
	w.token = w.n.flush
	defer func() {
		if w.token != nil {
			w.token <- struct{}{}
		}
		w.token = nil
	}()
	for _, x := range w.n.workers {
		if !x.residual.some() {
			continue
		}
		if err := w.pushKeptOf(ctx, what, &x.residual); err != nil {
			return err
		}
	}
	return nil
}

// atOnce is how many kept vectors are pushed in one operation.
const atOnce = 1 << 12

func (w *worker) pushKeptOf(ctx context.Context, what string, r *residual) error {
	var vals []float32
	for keys := range slices.Chunk(r.all(), atOnce) {
		vals = vals[:0]
		there := keys[:0] // the worker may push meanwhile
		for _, k := range keys {
			if v := r.take(k); v != nil {
				there, vals = append(there, k), append(vals, v...)
				r.give(v)
			}
		}
		w.unissued = len(there)
		h, err := w.all(ctx, what, wire.Push, there, vals)
		if err == nil {
			add(&w.filtering.flushed, uint64(len(there)))
			err = w.wait(ctx, h)
		} else {
			w.keepAgain(r, there, vals)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keepAgain gives back what could not be issued: the last keys.
func (w *worker) keepAgain(r *residual, keys []godwit.Key, vals []float32) {
	for i := len(keys) - 1; i >= len(keys)-w.unissued; i-- {
		dim := w.n.model.Dim(keys[i])
		r.add(keys[i], vals[len(vals)-dim:])
		vals = vals[:len(vals)-dim]
	}
}

// An overwritten vector was kept by a worker of the node.
type overwritten struct {
	by *residual
	kept
}

// overwrite takes what all workers of the node keep of keys that are about to be
// set.
func (n *Node) overwrite(keys []godwit.Key) (took []overwritten) {
	for _, x := range n.workers {
		if !x.residual.some() {
			continue
		}
		for i, k := range keys {
			if v := x.residual.take(k); v != nil {
				took = append(took, overwritten{&x.residual, kept{i, k, v}})
			}
		}
	}
	return took
}

// forget forgets it, but for positions from not on: those were not set after all.
func forget(took []overwritten, not int) {
	for _, o := range took {
		if o.pos >= not {
			o.by.add(o.key, o.vec)
		}
		o.by.give(o.vec)
	}
}

// newCloser makes the worker by which a node that is about to be closed pushes
// what its workers keep, while they may still be at work.
func (n *Node) newCloser() *worker {
	i := len(n.workers)
	w := &worker{n: n, id: godwit.WorkerID{Node: n.self, Local: i}, out: n.sender(), ops: n.newOps(i), waits: true, clock: new(tick.Clock)}
	w.send = w.out.flush
	return w
}

// flushKept pushes what workers keep when the node is about to be closed.
func (n *Node) flushKept(ctx context.Context) error {
	err := n.closer.pushKept(ctx, "close")
	n.closer.out.flush()
	if errors.Is(err, godwit.ErrClosed) {
		return nil
	}
	return err
}
