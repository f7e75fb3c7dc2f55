package hot

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/preempt"
)

// pulls are how often a worker pulled each key.
type pulls struct {
	mu preempt.Mutex
	of map[godwit.Key]uint32
	_  [48]byte // a cache line
}

// manyKeys is up to how many keys a model counts all of them, in use or not; of a
// larger one, those count that are in use. So many pulls are to be seen of it at
// least.
const manyKeys = 1 << 22

// keysOf returns how many keys of a model count if so many are in use.
func (h *Set) keysOf(used uint64) uint64 {
	if h.model.Keys() <= manyKeys {
		return h.model.Keys()
	}
	return min(h.model.Keys(), max(used, 1))
}

// enoughPulls is after how many pulls of one of some nodes the counts mean something,
// if so many keys have their home at each that are in use.
func (h *Set) enoughPulls(used int) int64 {
	all := min(h.model.Keys(), max(manyKeys, uint64(used)*uint64(h.nodes)))
	return int64(all/uint64(h.nodes)) + 1
}

// Accessed counts pulls of valid keys by a worker, until the node has told what was counted. Each worker may call it while others do.
func (h *Set) Accessed(worker int, keys []godwit.Key) {
	if !h.measuring.Load() {
		return
	}
	p := &h.pulls[worker]
	p.mu.Lock()
	if p.of != nil {
		for _, k := range keys {
			p.of[k]++
		}
	}
	p.mu.Unlock()
	if h.left.Add(-int64(len(keys))) <= 0 {
		select {
		case h.enough <- struct{}{}:
		default:
		}
	}
}

// counted returns how often this node's workers pulled each key.
func (h *Set) counted() (of map[godwit.Key]uint64, total uint64) {
	of = map[godwit.Key]uint64{}
	for i := range h.pulls {
		p := &h.pulls[i]
		p.mu.Lock()
		for k, n := range p.of {
			of[k] += uint64(n)
			total += uint64(n)
		}
		p.mu.Unlock()
	}
	return of, total
}

// stopCounting forgets the counts.
func (h *Set) stopCounting() {
	h.measuring.Store(false)
	for i := range h.pulls {
		p := &h.pulls[i]
		p.mu.Lock()
		p.of = nil
		p.mu.Unlock()
	}
}
