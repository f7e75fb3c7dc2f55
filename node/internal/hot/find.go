package hot

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/placement"
)

// Calls are what finding a Set needs of its node.
type Calls struct {
	// Used counts the keys in use that have their home at the node.
	Used func() int
	// Exchange hands a payload to all nodes and returns those of all, by node
	// ([coord.Session]).
	Exchange func(ctx context.Context, name string, payload []byte) ([][]byte, error)
	// Hold asks for replicas here that stay for the rest of the run.
	Hold func(ctx context.Context, keys iter.Seq[godwit.Key]) error
}

// Find waits until this node's counts mean something, agrees with the other nodes on
// the hot keys, and has them replicated here. It returns nil, too, if the node ended
// before there was enough to count. It is called once, if the set Measures.
func (h *Set) Find(n *host.Host, c Calls) error {
	if !h.count(n, c.Used) {
		return nil
	}
	return h.agree(n.Life(), c)
}

// count waits for enough pulls. What is enough of a large model grows with the
// keys in use, which are counted anew when what seemed enough is there; an eighth
// more or less does not matter. It reports false if the node ended before.
func (h *Set) count(n *host.Host, used func() int) bool {
	for goal := h.enoughPulls(0); ; {
		if n.Wait(h.enough, n.Stop(), n.Done()) != 0 {
			return false
		}
		more := h.enoughPulls(used()) - goal
		if more <= goal/8 {
			return true
		}
		goal += more
		h.left.Add(more)
	}
}

// agree finds the keys that are hot by what all nodes counted. What others have to say may take them as long as the run, so
// the counts are forgotten before that.
func (h *Set) agree(ctx context.Context, c Calls) error {
	report := h.report(uint64(c.Used()))
	h.stopCounting()
	all, err := c.Exchange(ctx, "hot keys", report)
	if err != nil {
		return err
	}
	counts := map[godwit.Key]float64{}
	total, used := 0.0, uint64(0)
	for i, p := range all {
		t, u, err := readReport(p, h.model, func(k godwit.Key, c uint64) { counts[k] += float64(c) })
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
	h.set(h.rule.Pick(fs, total/float64(h.keysOf(used))))
	return c.Hold(ctx, slices.Values(h.list))
}

// maxReport is the most keys in a report: in the longest form that a key and a
// count can take, they fit in what nodes may exchange.
const maxReport = (coord.MaxPayload - 2*binary.MaxVarintLen64) / (binary.MaxVarintLen64 + binary.MaxVarintLen32)

// report writes how many accesses were counted here, how many keys are in use that
// have their home here, and which keys may be hot, with their counts. A key below
// the n-th part of the limit is left out: all that n nodes leave out of one key is
// less than the limit together.
func (h *Set) report(used uint64) []byte {
	counts, total := h.counted()
	least := h.rule.Least(float64(total)/float64(h.keysOf(used*uint64(h.nodes)))) / float64(h.nodes)
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
