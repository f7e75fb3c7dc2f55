package node

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/protocol/placement"
)

// hotSet is the keys that the policy treats as hot: from the start where tables
// say how often their rows are accessed, else as soon as the nodes have counted
// for a while and agreed. It is empty until then.
type hotSet struct {
	rule placement.HotRule
	keys atomic.Pointer[map[godwit.Key]struct{}]
	list []godwit.Key // in order; of who made the set

	// Of a set that is measured:
	counts atomic.Pointer[[]atomic.Uint32] // accesses of this node by key; nil: not, or not any more
	left   atomic.Int64                    // accesses until the counts mean something
	enough chan struct{}                   // holds a token when they do
}

func newHotSet(m *godwit.Model, rule placement.HotRule, nodes int) *hotSet {
	h := &hotSet{rule: rule, enough: make(chan struct{}, 1)}
	mean, told := meanFrequency(m)
	switch {
	case told:
		h.set(rule.Pick(frequencies(m, rule.Least(mean)), mean))
	case nodes > 1:
		counts := make([]atomic.Uint32, m.Keys())
		h.counts.Store(&counts)
		// All nodes together see as many accesses as there are keys, so a hot
		// key is seen about HotFactor times.
		h.left.Store(int64(m.Keys()/uint64(nodes)) + 1)
	}
	return h
}

// meanFrequency returns how often the tables that tell say that their mean row
// is accessed. Tables that do not tell do not count, so that one whose rows are
// all alike does not make the others' hot.
func meanFrequency(m *godwit.Model) (mean float64, told bool) {
	sum, rows := 0.0, 0.0
	for i := range m.Tables() {
		if t := m.Table(i); t.Hot != nil {
			for r := range t.Rows {
				sum += t.Hot(r)
			}
			rows += float64(t.Rows)
		}
	}
	return sum / max(rows, 1), rows > 0
}

// frequencies returns what the tables tell of rows that are accessed more than
// least often.
func frequencies(m *godwit.Model, least float64) (fs []placement.Frequency) {
	for i := range m.Tables() {
		if t := m.Table(i); t.Hot != nil {
			for r := range t.Rows {
				if c := t.Hot(r); c > least {
					fs = append(fs, placement.Frequency{Key: m.Key(i, r), Count: c})
				}
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
func (h *hotSet) measures() bool { return h != nil && h.counts.Load() != nil }

// len returns how many keys are hot.
func (h *hotSet) len() int {
	if h == nil || h.keys.Load() == nil {
		return 0
	}
	return len(*h.keys.Load())
}

// accessed counts pulls of valid keys, while there is something to find out.
func (h *hotSet) accessed(keys []godwit.Key) {
	p := h.counts.Load()
	if p == nil {
		return
	}
	counts := *p
	for _, k := range keys {
		counts[k].Add(1)
	}
	if h.left.Add(-int64(len(keys))) <= 0 {
		select {
		case h.enough <- struct{}{}:
		default:
		}
	}
}

// measureHot waits until this node's counts mean something, agrees with the
// other nodes on the hot keys, and has them replicated here.
func (n *Node) measureHot() {
	if n.world.Wait(n.hot.enough, n.stop, n.done) != 0 {
		return
	}
	err := n.agreeOnHot(n.life)
	if err != nil && n.life.Err() == nil && n.cfg.Session.Err() == nil {
		n.fail(fmt.Errorf("node: agreeing on the hot keys: %w", err))
	}
}

func (n *Node) agreeOnHot(ctx context.Context) error {
	all, err := n.cfg.Session.Exchange(ctx, "hot keys", n.hot.report(len(n.peers)))
	if err != nil {
		return err
	}
	counts := map[godwit.Key]float64{}
	total := 0.0
	for i, p := range all {
		t, err := readReport(p, n.model, func(k godwit.Key, c uint64) { counts[k] += float64(c) })
		if err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
		total += float64(t)
	}
	fs := make([]placement.Frequency, 0, len(counts))
	for k, c := range counts {
		fs = append(fs, placement.Frequency{Key: k, Count: c})
	}
	n.hot.counts.Store(nil)
	n.hot.set(n.hot.rule.Pick(fs, total/float64(n.model.Keys())))
	return n.hold(ctx, slices.Values(n.hot.list))
}

// maxReport is the most keys in a report: in the longest form that a key and a
// count can take, they fit in what nodes may exchange.
const maxReport = (coord.MaxPayload - binary.MaxVarintLen64) / (binary.MaxVarintLen64 + binary.MaxVarintLen32)

// report writes how many accesses were counted here and which keys may be hot,
// with their counts. A key below the n-th part of the limit is left out: all
// that n nodes leave out of one key is less than the limit together.
func (h *hotSet) report(nodes int) []byte {
	counts := *h.counts.Load()
	total := uint64(0)
	for k := range counts {
		total += uint64(counts[k].Load())
	}
	least := h.rule.Least(float64(total)/float64(len(counts))) / float64(nodes)
	type entry struct {
		key   uint64
		count uint32
	}
	var top []entry
	for k := range counts {
		if c := counts[k].Load(); float64(c) > least {
			top = append(top, entry{uint64(k), c})
		}
	}
	if len(top) > maxReport {
		slices.SortFunc(top, func(a, b entry) int { return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.key, b.key)) })
		top = top[:maxReport]
		slices.SortFunc(top, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	}
	b := binary.AppendUvarint(nil, total)
	last := uint64(0)
	for _, e := range top {
		b = binary.AppendUvarint(b, e.key-last)
		b = binary.AppendUvarint(b, uint64(e.count))
		last = e.key
	}
	return b
}

// readReport reads what report wrote.
func readReport(b []byte, m *godwit.Model, entry func(k godwit.Key, count uint64)) (total uint64, err error) {
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
	total = next()
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
		return 0, errors.New("a report of accesses that cannot be read")
	}
	return total, nil
}
