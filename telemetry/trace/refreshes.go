package trace

import (
	"sync/atomic"

	"github.com/godwit-ps/godwit"
)

// This file counts refreshes of replicas where there are too many to write each: those of some keys, second by second.

const (
	maxRefreshes = 1 << 10 // refreshes in a quarter of a second that are written one by one; those of half of the keys are counted from then on
	countEvery   = 4       // quarters after which what was counted is written
	fewKeys      = 1 << 17 // keys of a model up to which there is an array by key: it is in the processor's cache where a table would not be
)

// Refreshes are those of replicas. All but level and few is under the writer's lock.
type refreshes struct {
	level    atomic.Uint32         // they are written one by one of one key of 1<<level
	written  int                   // … so many in this quarter, or since the level rose
	quarters int                   // since counts were taken last
	few      []atomic.Uint32       // counts of others, of a model of few keys by key,
	more     map[godwit.Key]uint32 // … or of another one
}

func newRefreshes(keys uint64) *refreshes {
	if keys <= fewKeys {
		return &refreshes{few: make([]atomic.Uint32, keys)}
	}
	return &refreshes{}
}

// CountsRefresh reports whether a refresh of a traced key's replica is not to be added, because there are too many of them. Then it is counted, and
// written in sum each second, by an event RefreshCount. Each is to be added of keys that are traced by their names.
func (w *Writer) CountsRefresh(k godwit.Key) bool {
	r := w.refreshes
	if w.cfg.Keys.detailed(k, r.level.Load()) {
		return false
	}
	if uint64(k) < uint64(len(r.few)) {
		r.few[k].Add(1)
		return true
	}
	w.mu.Lock()
	if r.more == nil {
		r.more = map[godwit.Key]uint32{}
	}
	r.more[k]++
	w.mu.Unlock()
	return true
}

// add takes note of a refresh that is written, and has those of half as many keys be written if there were many.
func (r *refreshes) add() {
	if r.written++; r.written > maxRefreshes && r.level.Load() < mostThinned {
		r.level.Add(1)
		r.written = 0
	}
}

// quarter has refreshes of twice as many keys be written if there were few in the quarter that ends, and reports whether it is time to take the counts.
func (r *refreshes) quarter() bool {
	if r.level.Load() > 0 && r.written < maxRefreshes/4 {
		r.level.Add(^uint32(0))
	}
	r.written = 0
	r.quarters++
	return r.quarters%countEvery == 0
}

// take adds the counts, by key, to notes that are to be written, and forgets them.
func (r *refreshes) take(more map[godwit.Key]uint32, to *notes, e Event) {
	add := func(k godwit.Key, n uint32) {
		e.Key, e.N = k, n
		to.add(&e)
	}
	for k := range r.few {
		if r.few[k].Load() > 0 {
			add(godwit.Key(k), r.few[k].Swap(0))
		}
	}
	for k, n := range more {
		add(k, n)
	}
}
