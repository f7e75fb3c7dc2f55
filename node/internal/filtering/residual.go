package filtering

import (
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
	keys atomic.Int64
	mu   preempt.Mutex
	rows map[godwit.Key][]float32
	size int                 // floats
	free map[int][][]float32 // vectors to be used again, by length
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

// add keeps more of a key.
func (r *Residual) add(k godwit.Key, v []float32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addLocked(k, v)
}

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

// take returns what is kept of a key, which is then no longer; nil if nothing.
// The vector is to be given back.
func (r *Residual) take(k godwit.Key) []float32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.takeLocked(k)
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
// appends their vectors to vals. They are then kept no longer.
func (r *Residual) Take(keys []godwit.Key, vals []float32) ([]godwit.Key, []float32) {
	there := keys[:0]
	for _, k := range keys {
		if v := r.take(k); v != nil {
			there, vals = append(there, k), append(vals, v...)
			r.give(v)
		}
	}
	return there, vals
}

// Return gives back what Take returned of the last n keys.
func (r *Residual) Return(m *godwit.Model, keys []godwit.Key, vals []float32, n int) {
	for i := len(keys) - 1; i >= len(keys)-n; i-- {
		dim := m.Dim(keys[i])
		r.add(keys[i], vals[len(vals)-dim:])
		vals = vals[:len(vals)-dim]
	}
}
