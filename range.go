package godwit

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
)

// A call takes memory for each of its keys, at the caller and on the way. The functions
// here handle ranges of any length by calls of bounded length, a few of them at a time.
// In a range over several tables, values have the lengths of their tables.

// Bounds of one call of a range, and of the calls at a time.
const (
	rangeKeys   = 4096
	rangeFloats = 1 << 16 // or one key
	rangeCalls  = 4
)

// PullRange reads the values of the keys first … end-1, one after the other, into
// dst, which has their summed length ([Model.RangeFloats]). As for [Worker.Pull],
// there is no promise across keys. Where a few keys of many are in use,
// [Rows] is faster.
func PullRange(ctx context.Context, w Worker, first, end Key, dst []float32) error {
	return overRange(ctx, w, "pull range", first, end, dst, w.Pull, w.PullAsync)
}

// PushRange hands each of the keys first … end-1 its vector of push to the
// key's update rule.
func PushRange(ctx context.Context, w Worker, first, end Key, push []float32) error {
	return overRange(ctx, w, "push range", first, end, push, w.Push, w.PushAsync)
}

func overRange(ctx context.Context, w Worker, op string, first, end Key, buf []float32, one func(context.Context, []Key, []float32) error,
	begin func(context.Context, []Key, []float32) (Handle, error)) (err error) {
	if err := checkRange(w.Model(), first, end, len(buf)); err != nil {
		return rangeError(w, op, first, end, err)
	}
	if first == end {
		return nil
	}
	if n, floats := part(w.Model(), first, end); n == int(end-first) {
		return one(ctx, count(nil, first, n), buf[:floats])
	}
	var under calls
	defer func() {
		if e := under.wait(ctx, w); err == nil {
			err = e
		}
	}()
	for first < end {
		c := under.next()
		if err := w.Wait(ctx, c.h); err != nil {
			return err
		}
		keys, floats := part(w.Model(), first, end)
		c.keys = count(c.keys, first, keys)
		if c.h, err = begin(ctx, c.keys, buf[:floats]); err != nil {
			return err
		}
		first, buf = first+Key(keys), buf[floats:]
	}
	return nil
}

// count writes n successive keys to the memory of keys.
func count(keys []Key, first Key, n int) []Key {
	keys = slices.Grow(keys[:0], n)[:n]
	for i := range keys {
		keys[i] = first + Key(i)
	}
	return keys
}

// calls are the asynchronous calls that may be incomplete, each with its buffers.
type calls struct {
	ring [rangeCalls]call
	n    int
}

type call struct {
	h    Handle
	keys []Key
	vals []float32 // of Rows
}

// next returns the oldest call. The caller waits for it and reuses its buffers.
func (c *calls) next() *call {
	c.n++
	return &c.ring[c.n%rangeCalls]
}

// wait waits for all calls.
func (c *calls) wait(ctx context.Context, w Worker) error {
	var first error
	for range c.ring {
		x := c.next()
		if err := w.Wait(ctx, x.h); err != nil && first == nil {
			first = err
		}
		x.h = 0
	}
	return first
}

// part returns how many keys from first on make one call, all of one table, and the
// length of their values.
func part(m *Model, first, end Key) (keys, floats int) {
	i, row := m.Locate(first)
	t := m.Table(i)
	keys = max(1, min(rangeKeys, rangeFloats/t.Dim))
	keys = int(min(uint64(keys), uint64(end-first), t.Rows-row))
	return keys, keys * t.Dim
}

// RangeFloats returns the summed value lengths of the keys first … end-1. The error
// wraps [ErrKeyRange], or [ErrLength] where no slice is so long.
func (m *Model) RangeFloats(first, end Key) (int, error) {
	if first > end || uint64(end) > m.Keys() {
		return 0, fmt.Errorf("%w: from key %d up to key %d, the model has keys 0 … %d", ErrKeyRange, first, end, m.Keys()-1)
	}
	n := uint64(0)
	for i := range m.tables {
		if from, to := max(first, m.base[i]), min(end, m.base[i+1]); from < to {
			over, floats := bits.Mul64(uint64(to-from), uint64(m.tables[i].Dim))
			if n += floats; over > 0 || n < floats || n > math.MaxInt {
				return 0, fmt.Errorf("%w: the values of keys %d … %d have more than %d floats", ErrLength, first, end-1, math.MaxInt)
			}
		}
	}
	return int(n), nil
}

func checkRange(m *Model, first, end Key, floats int) error {
	n, err := m.RangeFloats(first, end)
	if err == nil && n != floats {
		err = fmt.Errorf("%w: %d floats, the values of the keys have %d", ErrLength, floats, n)
	}
	return err
}

func rangeError(w Worker, op string, first, end Key, err error) error {
	e := &OpError{Op: op, Worker: w.ID(), Peer: NoNode, First: first, Last: first, Err: err}
	if end > first {
		e.Last, e.Keys = end-1, int(end-first)
	}
	return e
}

// A Row is a key and its value.
type Row struct {
	Key   Key       // of the row
	Value []float32 // as a pull returns it
}

// Rows yields the rows of the keys that [Worker.Scan] yields, with their values.
// It holds a bounded number of rows. A value is valid until the next one is yielded.
// An error ends the iteration.
func Rows(ctx context.Context, w Worker, first, end Key, home NodeID) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		r := rows{ctx: ctx, w: w, yield: yield}
		defer func() { _ = r.under.wait(ctx, w) }() // of a loop that ended early
		for k, err := range w.Scan(ctx, first, end, home) {
			if err == nil {
				err = r.add(k)
			}
			if err != nil {
				yield(Row{}, err)
				return
			}
			if r.over {
				return
			}
		}
		if err := r.rest(); err != nil {
			yield(Row{}, err)
		}
	}
}

// rows is the state of Rows: it collects keys, pulls them by asynchronous calls, and
// yields the values of the oldest call when its buffers are needed again.
type rows struct {
	ctx    context.Context
	w      Worker
	yield  func(Row, error) bool
	under  calls
	cur    *call // collects keys; nil: none
	floats int   // of its keys
	over   bool  // the loop ended
}

func (r *rows) add(k Key) error {
	if r.cur == nil {
		c := r.under.next()
		if err := r.emit(c); err != nil || r.over {
			return err
		}
		r.cur, r.floats = c, 0
	}
	r.cur.keys = append(r.cur.keys, k)
	r.floats += r.w.Model().Dim(k)
	if len(r.cur.keys) == rangeKeys || r.floats >= rangeFloats {
		return r.pull()
	}
	return nil
}

func (r *rows) pull() (err error) {
	c := r.cur
	r.cur = nil
	if cap(c.vals) < r.floats {
		c.vals = make([]float32, r.floats)
	}
	c.vals = c.vals[:r.floats]
	c.h, err = r.w.PullAsync(r.ctx, c.keys, c.vals)
	return err
}

// emit waits for a call, yields its rows, and empties it.
func (r *rows) emit(c *call) error {
	h := c.h
	c.h = 0
	if err := r.w.Wait(r.ctx, h); err != nil {
		return err
	}
	vals := c.vals
	for _, k := range c.keys {
		dim := r.w.Model().Dim(k)
		if r.over = !r.yield(Row{k, vals[:dim:dim]}, nil); r.over {
			return nil
		}
		vals = vals[dim:]
	}
	c.keys = c.keys[:0]
	return nil
}

func (r *rows) rest() error {
	if r.cur != nil {
		if err := r.pull(); err != nil {
			return err
		}
	}
	for range r.under.ring {
		if err := r.emit(r.under.next()); err != nil || r.over {
			return err
		}
	}
	return nil
}
