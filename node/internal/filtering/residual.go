package filtering

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/vec"
)

// A Residual is what filters left of a worker's pushes, by key. Keys whose
// vectors become zero are not in it, so its memory follows the keys that the
// worker pushed since the last WaitSync. It has a bound: while it is full,
// pushes go through no filter. Any goroutine may use it.
type Residual struct {
	keys  atomic.Int64
	mu    preempt.Mutex
	rows  map[godwit.Key][]float32
	size  int                      // floats
	odd   bool                     // of which side of cuts it is
	aside map[godwit.Key][]float32 // what was kept when the worker crossed to that side, and was not pushed yet
	next  []godwit.Key             // of aside, those that TakeAside is to take first, in their order
	free  map[int][][]float32      // vectors to be used again, by length
}

// room bounds the floats that a worker keeps.
const room = 16 << 20

// Some reports whether anything is kept.
func (r *Residual) Some() bool { return r.keys.Load() > 0 }

func (r *Residual) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size > room
}

// addLocked keeps more of a key.
func (r *Residual) addLocked(k godwit.Key, v []float32) {
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

// take returns what is kept of a key, which is then no longer, and of which side of cuts it is;
// nil if nothing. The vector is to be given back.
func (r *Residual) take(k godwit.Key) (v []float32, odd bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.takeLocked(k), r.odd
}

func (r *Residual) takeLocked(k godwit.Key) []float32 {
	row := r.rows[k]
	if row != nil {
		delete(r.rows, k)
		r.size -= len(row)
		r.keys.Add(-1)
	}
	return row
}

// give takes back a vector that nobody uses any more.
func (r *Residual) give(v []float32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.giveLocked(v)
}

func (r *Residual) giveLocked(v []float32) {
	if f := r.free[len(v)]; len(f) < 1<<10 {
		r.free[len(v)] = append(f, v)
	}
}

// Keys returns the keys of which something is kept, in their order.
func (r *Residual) Keys() []godwit.Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := make([]godwit.Key, 0, len(r.rows))
	for k := range r.rows {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Take returns those of keys of which something is kept, in the memory of keys, and
// appends their vectors to vals. They are then kept no longer. They are of one side of cuts.
func (r *Residual) Take(keys []godwit.Key, vals []float32) (there []godwit.Key, with []float32, odd bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	there = keys[:0]
	for _, k := range keys {
		if v := r.takeLocked(k); v != nil {
			there, vals = append(there, k), append(vals, v...)
			r.giveLocked(v)
		}
	}
	return there, vals, r.odd
}

// Return gives back what Take returned of the last n keys, which is of a side of cuts.
func (r *Residual) Return(m *godwit.Model, keys []godwit.Key, vals []float32, odd bool, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(keys) - 1; i >= len(keys)-n; i-- {
		v := vals[len(vals)-m.Dim(keys[i]):]
		vals = vals[:len(vals)-len(v)]
		r.returnLocked(keys[i], v, odd)
	}
}

// returnLocked keeps again what was taken and is of a side of cuts. If the worker has crossed meanwhile, it is set aside.
func (r *Residual) returnLocked(k godwit.Key, v []float32, odd bool) {
	if odd == r.odd {
		r.addLocked(k, v)
	} else {
		r.setAside(k, v)
	}
}

// giveBack keeps a vector again that take returned.
func (r *Residual) giveBack(k godwit.Key, v []float32, odd bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.returnLocked(k, v, odd)
}

// Cross sets aside what is kept, as the worker crosses into a cut: TakeAside is to take it.
func (r *Residual) Cross() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.odd = !r.odd
	if len(r.rows) > 0 {
		r.aside, r.next, r.rows, r.size = r.rows, nil, map[godwit.Key][]float32{}, 0
		r.keys.Store(0)
	}
}

// Aside reports whether anything is set aside.
func (r *Residual) Aside() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.aside) > 0
}

func (r *Residual) setAside(k godwit.Key, v []float32) {
	if r.aside == nil {
		r.aside = map[godwit.Key][]float32{}
	}
	if row := r.aside[k]; row != nil {
		vec.Add(row, v)
		return
	}
	r.aside[k] = slices.Clone(v)
}

// TakeAside returns up to so many keys of which something was set aside, in their order, their
// vectors, and of which side of cuts they are. They are then set aside no longer. What is set aside
// between two calls may come after all else.
func (r *Residual) TakeAside(most int) (keys []godwit.Key, vals []float32, odd bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.next) == 0 {
		r.next = slices.Sorted(maps.Keys(r.aside))
	}
	n := min(most, len(r.next))
	if keys, r.next = r.next[:n:n], r.next[n:]; len(r.next) == 0 {
		r.next = nil
	}
	for _, k := range keys {
		vals = append(vals, r.aside[k]...)
		delete(r.aside, k)
	}
	return keys, vals, !r.odd
}
