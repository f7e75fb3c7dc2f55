package hot

import (
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// A Set is the keys that the policy treats as hot: from the start where tables say how
// often their rows are accessed, else as soon as the nodes have counted for a while and
// agreed ([Set.Find]). It is empty until then. A policy that knows no hot keys has a nil
// Set, of which Measures, Bytes and Len may be asked.
type Set struct {
	model *godwit.Model
	rule  placement.HotRule
	nodes int
	keys  atomic.Pointer[map[godwit.Key]struct{}]
	list  []godwit.Key // in order; of who made the set

	// Of a set that is measured:
	measuring atomic.Bool   // pulls are counted, until this node has told the others of them
	pulls     []pulls       // of this node's workers
	left      atomic.Int64  // pulls until the counts mean something
	enough    chan struct{} // holds a token when they do
}

// maxTold bounds the rows that tables are asked about, one by one. Where more tell
// how often they are accessed, it is measured as if none did.
const maxTold = 1 << 24

// most is how often a row may be accessed, in whatever unit: the sum over maxTold rows is a number.
const most = 1e300

// New returns the set of a node with some workers, of a run with some nodes.
// The error says which table tells something that is no frequency.
func New(m *godwit.Model, rule placement.HotRule, nodes, workers int) (*Set, error) {
	h := &Set{model: m, rule: rule, nodes: nodes, enough: make(chan struct{}, 1)}
	mean, told, err := meanFrequency(m)
	if err != nil {
		return nil, err
	}
	switch {
	case told:
		h.set(rule.Pick(frequencies(m, rule, mean), mean))
	case nodes > 1:
		h.pulls = make([]pulls, workers)
		for i := range h.pulls {
			h.pulls[i].of = map[godwit.Key]uint32{}
		}
		// All nodes together see as many accesses as there are keys, so a hot
		// key is seen about HotFactor times, or more often.
		h.left.Store(h.enoughPulls(0))
		h.measuring.Store(true)
	}
	return h, nil
}

// meanFrequency returns how often the tables that tell say that their mean row
// is accessed. Tables that do not tell do not count, so that one whose rows are
// all alike does not make the others' hot.
func meanFrequency(m *godwit.Model) (mean float64, told bool, err error) {
	sum, rows := 0.0, 0.0
	for t := range telling(m) {
		rows += float64(t.Rows)
	}
	if rows == 0 || rows > maxTold {
		return 0, false, nil
	}
	for t := range telling(m) {
		for r := range t.Rows {
			x := t.Hot(r)
			if !(x >= 0 && x <= most) {
				return 0, false, fmt.Errorf("table %q: Hot says that row %d is accessed %v times, want 0 … %v", t.Name, r, x, most)
			}
			sum += x
		}
	}
	return sum / rows, true, nil
}

// telling yields the tables that tell how often their rows are accessed, and their
// first keys.
func telling(m *godwit.Model) iter.Seq2[*godwit.Table, godwit.Key] {
	return func(yield func(*godwit.Table, godwit.Key) bool) {
		for i := range m.Tables() {
			if t := m.Table(i); t.Hot != nil && !yield(t, m.Key(i, 0)) {
				return
			}
		}
	}
}

// frequencies returns what the tables tell of rows that may be hot.
func frequencies(m *godwit.Model, rule placement.HotRule, mean float64) (fs []placement.Frequency) {
	least := rule.Least(mean)
	for t, first := range telling(m) {
		for r := range t.Rows {
			if c := t.Hot(r); c > least {
				fs = rule.Add(fs, placement.Frequency{Key: first + godwit.Key(r), Count: c})
			}
		}
	}
	return fs
}

func (h *Set) set(keys []godwit.Key) {
	set := make(map[godwit.Key]struct{}, len(keys))
	for _, k := range keys {
		set[k] = struct{}{}
	}
	h.list = keys
	h.keys.Store(&set)
}

// Has reports whether a key is hot. Any goroutine may ask at any time.
func (h *Set) Has(k godwit.Key) bool {
	set := h.keys.Load()
	if set == nil {
		return false
	}
	_, ok := (*set)[k]
	return ok
}

// Keys returns the keys, in order. They are for whoever made the set: who called New, if
// it does not measure, or what Find calls.
func (h *Set) Keys() []godwit.Key { return h.list }

// Measures reports whether the set is still to be found.
func (h *Set) Measures() bool { return h != nil && h.pulls != nil && h.keys.Load() == nil }

// pullBytes is about what a key in a map of pulls takes.
const pullBytes = 26

// Bytes returns about the memory, in bytes, that the set takes.
func (h *Set) Bytes() int {
	if h == nil {
		return 0
	}
	n := 2 * pullBytes * h.Len() // the set and the list
	if !h.measuring.Load() {
		return n
	}
	for i := range h.pulls {
		p := &h.pulls[i]
		p.mu.Lock()
		n += pullBytes * len(p.of)
		p.mu.Unlock()
	}
	return n
}

// Len returns how many keys are hot.
func (h *Set) Len() int {
	if h == nil || h.keys.Load() == nil {
		return 0
	}
	return len(*h.keys.Load())
}
