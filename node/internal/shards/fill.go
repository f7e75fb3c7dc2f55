package shards

import (
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
)

// This file is how many rows are made at once, when a worker accesses keys most of
// which nobody has accessed before. An access makes such a row by itself, but comes
// to each unprepared. Here the keys of a call are put in the order of their shards,
// a shard is locked once for several, and what it needs has been fetched. The
// access then finds the rows.

const (
	fillKeys   = 4096    // at a time: few enough for their rows to stay in the cache
	holdKeys   = 512     // that a shard is locked for at the most,
	holdFloats = 1 << 14 // … and floats of their rows, or one key
	vainMost   = 1 << 10
)

// A filler is what a worker knows of rows to be made.
type filler struct {
	on     bool // the last keys had no rows: neither will the next, probably
	vain   int  // after keys whose rows are away: how many times to let it be,
	left   int  // … and how many of them are left
	here   []godwit.Key
	shards Order
	rows   [holdKeys]*store.Header

	keys []godwit.Key // for which rows are being made, by shard if that pays
	was  []int        // the positions that they had; nil: the same
}

// fill makes the rows of those of the keys that have their home here and were
// never accessed. If these are all of one table, dst gets the values. It reports
// whether that was done, and how many floats they have.
func (a *Access) fill(keys []godwit.Key, dst []float32) (floats int, served bool) {
	f := &a.filler
	t := a.set.Table(keys[0])
	here := a.homed(keys)
	if len(here) < len(keys) || t.query != nil || t.Run(keys) < len(keys) {
		dst = nil
	}
	a.set.proto.InUse(here)
	f.keys, f.was = f.shards.sorted(a.set, here)
	made := a.make(t, dst)
	f.keys = nil
	f.on = 2*made > len(here)
	if f.vain = min(2*f.vain+1, vainMost); made > 0 {
		f.vain = 0
	}
	f.left = f.vain
	return t.Dim * made, dst != nil && made == len(keys)
}

// waits reports whether it is to be let be this time.
func (f *filler) waits() bool {
	f.left = max(f.left, 0) - 1
	return f.left >= 0
}

// homed returns those of the keys that have their home here.
func (a *Access) homed(keys []godwit.Key) []godwit.Key {
	if a.set.proto.Nodes == 1 {
		return keys
	}
	f := &a.filler
	f.here = slices.DeleteFunc(append(f.here[:0], keys...), a.set.homedElsewhere)
	return f.here
}

// make makes rows of the keys in the order of shards, and returns how many.
func (a *Access) make(t *Table, dst []float32) (made int) {
	keys := a.filler.keys
	a.prepare(0)
	next := 0
	for i := 0; i < len(keys); {
		for ; i >= next; next += group {
			a.prepare(next + group)
		}
		end := a.hold(i, t)
		n, ok := a.makeIn(i, end, t, dst)
		if made += n; !ok {
			break
		}
		i = end
	}
	return made
}

// group is how many keys are prepared together while rows of those before are made.
const group = 32

// prepare has the processor fetch what making the rows of a group takes.
func (a *Access) prepare(first int) {
	keys, mask := a.filler.keys, a.set.mask
	for i := first; i < min(first+group, len(keys)); i++ {
		x := a.set.shard(keys[i])
		x.PrefetchIndex(keys[i])
		if i == 0 || (keys[i]^keys[i-1])&mask != 0 {
			x.prefetch()
		}
	}
}

// hold returns the end of the keys from position i on for which their shard is
// locked once.
func (a *Access) hold(i int, t *Table) int {
	keys, mask := a.filler.keys, a.set.mask
	floats := 0
	j := i
	for ; j < len(keys) && (keys[j]^keys[i])&mask == 0 && j < i+holdKeys && floats < holdFloats; j++ {
		if !t.Has(keys[j]) {
			t = a.set.Table(keys[j])
		}
		floats += t.Floats
	}
	return j
}

// makeIn makes the rows of positions of one shard. It reports false if the node
// was closed.
func (a *Access) makeIn(first, end int, t *Table, dst []float32) (made int, ok bool) {
	f := &a.filler
	x := a.set.shard(f.keys[first])
	x.Lock()
	defer x.Unlock()
	if x.over() {
		return 0, false
	}
	rows := f.rows[:end-first]
	made = x.Make(f.keys[first:end], rows)
	if dst == nil {
		return made, true
	}
	for i, h := range rows {
		if h != nil {
			at := first + i
			if f.was != nil {
				at = f.was[at]
			}
			copy(dst[at*t.Dim:(at+1)*t.Dim], store.FloatsAt(h, t.Dim))
		}
	}
	return made, true
}
