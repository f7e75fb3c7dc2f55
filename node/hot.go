package node

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/placement"
)

// hotSet is the keys that the policy treats as hot: from the start where tables
// say how often their rows are accessed, else as soon as the nodes have counted
// for a while and agreed. It is empty until then.
type hotSet struct {
	rule placement.HotRule
	keys atomic.Pointer[map[godwit.Key]struct{}]
	list []godwit.Key // in order; of who made the set

	// Of a set that is measured:
	measuring atomic.Bool   // false: not, or not any more
	pulls     []pulls       // of this node's workers
	left      atomic.Int64  // pulls until the counts mean something
	enough    chan struct{} // holds a token when they do
}

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

// maxTold bounds the rows that tables are asked about, one by one. Where more tell
// how often they are accessed, it is measured as if none did.
const maxTold = 1 << 24

func newHotSet(m *godwit.Model, rule placement.HotRule, nodes, workers int) *hotSet {
	h := &hotSet{rule: rule, enough: make(chan struct{}, 1)}
	mean, told := meanFrequency(m)
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
		h.left.Store(enoughPulls(m, 0, nodes))
		h.measuring.Store(true)
	}
	return h
}

// keysOf returns how many keys of a model count if so many are in use.
func keysOf(m *godwit.Model, used uint64) uint64 {
	if m.Keys() <= manyKeys {
		return m.Keys()
	}
	return min(m.Keys(), max(used, 1))
}

// enoughPulls is after how many pulls of one of some nodes the counts mean something,
// if so many keys have their home at each that are in use.
func enoughPulls(m *godwit.Model, used, nodes int) int64 {
	all := min(m.Keys(), max(manyKeys, uint64(used)*uint64(nodes)))
	return int64(all/uint64(nodes)) + 1
}

// meanFrequency returns how often the tables that tell say that their mean row
// is accessed. Tables that do not tell do not count, so that one whose rows are
// all alike does not make the others' hot.
func meanFrequency(m *godwit.Model) (mean float64, told bool) {
	sum, rows := 0.0, 0.0
	for t := range telling(m) {
		rows += float64(t.Rows)
	}
	if rows == 0 || rows > maxTold {
		return 0, false
	}
	for t := range telling(m) {
		for r := range t.Rows {
			sum += t.Hot(r)
		}
	}
	return sum / rows, true
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

func (h *hotSet) set(keys []godwit.Key) {
	set := make(map[godwit.Key]struct{}, len(keys))
	for _, k := range keys {
		set[k] = struct{}{}
	}
	h.list = keys
	h.keys.Store(&set)
}

func (h *hotSet) has(k godwit.Key) bool {
	set := h.keys.Load()
	if set == nil {
		return false
	}
	_, ok := (*set)[k]
	return ok
}

// measures reports whether the set is still to be found.
func (h *hotSet) measures() bool { return h != nil && h.measuring.Load() }

// pullBytes is about what a key in a map of pulls takes.
const pullBytes = 26

// bytes returns about the memory that the set takes.
func (h *hotSet) bytes() int {
	if h == nil {
		return 0
	}
	n := 2 * pullBytes * h.len() // the set and the list
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

// len returns how many keys are hot.
func (h *hotSet) len() int {
	if h == nil || h.keys.Load() == nil {
		return 0
	}
	return len(*h.keys.Load())
}

// accessed counts pulls of valid keys by a worker, while there is something to find
// out.
func (h *hotSet) accessed(worker int, keys []godwit.Key) {
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
func (h *hotSet) counted() (of map[godwit.Key]uint64, total uint64) {
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
func (h *hotSet) stopCounting() {
	h.measuring.Store(false)
	for i := range h.pulls {
		p := &h.pulls[i]
		p.mu.Lock()
		p.of = nil
		p.mu.Unlock()
	}
}

// measureHot waits until this node's counts mean something, agrees with the
// other nodes on the hot keys, and has them replicated here.
func (n *Node) measureHot() {
	if !n.countPulls() {
		return
	}
	err := n.agreeOnHot(n.Life())
	if err != nil && n.Life().Err() == nil && n.cfg.Session.Err() == nil {
		n.Fail(fmt.Errorf("node: agreeing on the hot keys: %w", err))
	}
}

// countPulls waits for enough pulls. What is enough of a large model grows with the
// keys in use, which are counted anew when what seemed enough is there; an eighth
// more or less does not matter. It reports false if the node ended before.
func (n *Node) countPulls() bool {
	for goal := enoughPulls(n.model, 0, n.links.Nodes()); ; {
		if n.Wait(n.hot.enough, n.Stop(), n.Done()) != 0 {
			return false
		}
		more := n.enoughPulls() - goal
		if more <= goal/8 {
			return true
		}
		goal += more
		n.hot.left.Add(more)
	}
}

// enoughPulls is how many pulls of this node are enough by now.
func (n *Node) enoughPulls() int64 {
	if n.model.Keys() <= manyKeys {
		return enoughPulls(n.model, 0, n.links.Nodes())
	}
	return enoughPulls(n.model, n.proto.UsedLen(), n.links.Nodes())
}

func (n *Node) agreeOnHot(ctx context.Context) error {
	all, err := n.cfg.Session.Exchange(ctx, "hot keys", n.hot.report(n.model, uint64(n.proto.UsedLen()), n.links.Nodes()))
	if err != nil {
		return err
	}
	counts := map[godwit.Key]float64{}
	total, used := 0.0, uint64(0)
	for i, p := range all {
		t, u, err := readReport(p, n.model, func(k godwit.Key, c uint64) { counts[k] += float64(c) })
		if err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
		total += float64(t)
		used += u
	}
	fs := make([]placement.Frequency, 0, len(counts))
	for k, c := range counts {
		fs = append(fs, placement.Frequency{Key: k, Count: c})
	}
	n.hot.stopCounting()
	n.hot.set(n.hot.rule.Pick(fs, total/float64(keysOf(n.model, used))))
	return n.hold(ctx, slices.Values(n.hot.list))
}

// maxReport is the most keys in a report: in the longest form that a key and a
// count can take, they fit in what nodes may exchange.
const maxReport = (coord.MaxPayload - 2*binary.MaxVarintLen64) / (binary.MaxVarintLen64 + binary.MaxVarintLen32)

// report writes how many accesses were counted here, how many keys are in use that
// have their home here, and which keys may be hot, with their counts. A key below
// the n-th part of the limit is left out: all that n nodes leave out of one key is
// less than the limit together.
func (h *hotSet) report(m *godwit.Model, used uint64, nodes int) []byte {
	counts, total := h.counted()
	least := h.rule.Least(float64(total)/float64(keysOf(m, used*uint64(nodes)))) / float64(nodes)
	type entry struct{ key, count uint64 }
	var top []entry
	for k, c := range counts {
		if float64(c) > least {
			top = append(top, entry{uint64(k), c})
		}
	}
	if len(top) > maxReport {
		slices.SortFunc(top, func(a, b entry) int { return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.key, b.key)) })
		top = top[:maxReport]
	}
	slices.SortFunc(top, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	b := binary.AppendUvarint(nil, total)
	b = binary.AppendUvarint(b, used)
	last := uint64(0)
	for _, e := range top {
		b = binary.AppendUvarint(b, e.key-last)
		b = binary.AppendUvarint(b, min(e.count, math.MaxUint32))
		last = e.key
	}
	return b
}

// readReport reads what report wrote.
func readReport(b []byte, m *godwit.Model, entry func(k godwit.Key, count uint64)) (total, used uint64, err error) {
	bad := false
	next := func() uint64 {
		x, n := binary.Uvarint(b)
		if n <= 0 {
			bad, b = true, nil
			return 0
		}
		b = b[n:]
		return x
	}
	total, used = next(), next()
	k := uint64(0)
	for len(b) > 0 && !bad {
		k += next()
		count := next()
		if bad || !m.Has(godwit.Key(k)) {
			break
		}
		entry(godwit.Key(k), count)
	}
	if bad || len(b) > 0 {
		return 0, 0, errors.New("a report of accesses that cannot be read")
	}
	return total, used, nil
}
