package trace

import (
	"cmp"
	"slices"
	"sync"

	"github.com/godwit-ps/godwit"
)

// Use is what became of traced keys at a node since the trace began.
type Use struct {
	Accesses  uint64 `json:"accesses"`  // of workers here
	Missed    uint64 `json:"missed"`    // … that were not served at once
	Moves     uint64 `json:"moves"`     // to here
	Copies    uint64 `json:"copies"`    // replicas set up here
	Refreshes uint64 `json:"refreshes"` // that came for these
}

// A KeyUse is what became of one key.
type KeyUse struct {
	Key godwit.Key `json:"key"` // which one
	Use
}

// A Census says what became of the traced keys at a node, in sum and of those of which there is most to
// say.
type Census struct {
	Tables     []Use    // by table of the header
	Hot        []KeyUse // the 16 keys each of most accesses, misses and refreshes, by accesses
	Half, Most int      // so few keys have half of all refreshes, and so few four fifths
}

// hottest is how many keys of each kind a census has.
const hottest = 16

// A census counts events that were written. Any goroutine may use it.
type census struct {
	mu   sync.Mutex
	of   map[godwit.Key]int32 // the key's place in keys
	keys []KeyUse
}

func (c *census) count(events []Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case Accessed:
			c.at(e.Key).Accesses += uint64(e.N)
		case Missed:
			c.at(e.Key).Missed += uint64(e.N)
		case Arrived:
			c.at(e.Key).Moves++
		case Copied:
			c.at(e.Key).Copies++
		case Refreshed:
			c.at(e.Key).Refreshes++
		}
	}
}

func (c *census) at(k godwit.Key) *Use {
	i, ok := c.of[k]
	if !ok {
		i = int32(len(c.keys))
		c.of[k], c.keys = i, append(c.keys, KeyUse{Key: k})
	}
	return &c.keys[i].Use
}

// Census returns what became of the traced keys so far, as far as it is written. It takes some
// milliseconds for 100,000 keys. A nil Writer has an empty one.
func (w *Writer) Census() (x Census) {
	if w == nil {
		return x
	}
	w.census.mu.Lock()
	keys := slices.Clone(w.census.keys)
	w.census.mu.Unlock()
	tables := w.cfg.Header.Tables
	x.Tables = make([]Use, len(tables))
	for i := range keys {
		if t := tableOf(keys[i].Key, tables); t >= 0 {
			x.Tables[t].add(&keys[i].Use)
		}
	}
	x.Hot = hot(keys)
	x.Half, x.Most = few(keys)
	return x
}

// tableOf returns the index of the table that a key is of; -1: of none.
func tableOf(k godwit.Key, tables []Table) int {
	return slices.IndexFunc(tables, func(t Table) bool { return k >= t.First && uint64(k-t.First) < t.Rows })
}

func (u *Use) add(o *Use) {
	u.Accesses += o.Accesses
	u.Missed += o.Missed
	u.Moves += o.Moves
	u.Copies += o.Copies
	u.Refreshes += o.Refreshes
}

// hot returns the keys of which there is most to say. It sorts keys.
func hot(keys []KeyUse) (top []KeyUse) {
	for _, by := range []func(*KeyUse) uint64{
		func(k *KeyUse) uint64 { return k.Missed },
		func(k *KeyUse) uint64 { return k.Refreshes },
		func(k *KeyUse) uint64 { return k.Accesses },
	} {
		top = append(top, most(keys, by)...)
	}
	order := func(a, b KeyUse) int { return cmp.Or(cmp.Compare(b.Accesses, a.Accesses), cmp.Compare(a.Key, b.Key)) }
	slices.SortFunc(top, order)
	return slices.Compact(top)
}

// most returns the keys of the greatest of some count, none of them 0: it keeps a short sorted list.
func most(keys []KeyUse, by func(*KeyUse) uint64) (top []KeyUse) {
	for i := range keys {
		n := by(&keys[i])
		if n == 0 || len(top) == hottest && n <= by(&top[hottest-1]) {
			continue
		}
		at := slices.IndexFunc(top, func(k KeyUse) bool { return by(&k) < n })
		if at < 0 {
			at = len(top)
		}
		top = slices.Insert(top, at, keys[i])
		top = top[:min(len(top), hottest)]
	}
	return top
}

// few returns how few keys have half of all refreshes, and four fifths.
func few(keys []KeyUse) (half, most int) {
	var counts []uint64
	all := uint64(0)
	for i := range keys {
		if n := keys[i].Refreshes; n > 0 {
			counts = append(counts, n)
			all += n
		}
	}
	slices.SortFunc(counts, func(a, b uint64) int { return cmp.Compare(b, a) })
	sum := uint64(0)
	for i, n := range counts {
		if sum*2 < all {
			half = i + 1
		}
		if sum*5 < all*4 {
			most = i + 1
		}
		sum += n
	}
	return half, most
}
