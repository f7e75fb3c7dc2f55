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

// A census knows what became of keys by the events so far. Any goroutine may use it; the zero census knows none.
type census struct {
	mu     sync.Mutex
	places []uint32 // an open table: 1 + the key's place in keys, from that on which its hash says; 0: none
	keys   []known
}

// A known key had an event.
type known struct {
	KeyUse              // as far as events were written
	has    Kind         // Owns or Replicates: what the node has of it; else 0
	epoch  godwit.Epoch // likewise
}

// count takes note of events that were written.
func (c *census) count(events []note) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range events {
		e := &events[i]
		if e.kind.details() || e.kind.ofAll() {
			continue
		}
		k := c.at(e.key)
		k.hold(e)
		switch e.kind {
		case Accessed:
			k.Accesses += uint64(e.number)
		case Missed:
			k.Missed += uint64(e.number)
		case Arrived:
			k.Moves++
		case Copied:
			k.Copies++
		case Refreshed:
			k.Refreshes++
		case RefreshCount:
			k.Refreshes += uint64(e.number)
		}
	}
}

// skip takes note of events that were not written: of what the node has.
func (c *census) skip(events []note) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range events {
		if e := &events[i]; !e.kind.ofAll() {
			c.at(e.key).hold(e)
		}
	}
}

// hold takes note of what the node has of the key.
func (k *known) hold(e *note) {
	switch e.kind {
	case Created, Arrived:
		k.has, k.epoch = Owns, godwit.Epoch(e.number)
	case Copied, Refreshed:
		k.has, k.epoch = Replicates, godwit.Epoch(e.number)
	case Left, Ended:
		k.has = 0
	}
}

// held returns the keys of which the node has something, in their order.
func (c *census) held() (ks []known) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.keys {
		if c.keys[i].has != 0 {
			ks = append(ks, c.keys[i])
		}
	}
	slices.SortFunc(ks, func(a, b known) int { return cmp.Compare(a.Key, b.Key) })
	return ks
}

func (c *census) at(k godwit.Key) *known {
	if 2*len(c.keys) >= len(c.places) {
		c.grow()
	}
	p := c.place(k)
	if *p == 0 {
		c.keys = append(c.keys, known{KeyUse: KeyUse{Key: k}})
		*p = uint32(len(c.keys))
	}
	return &c.keys[*p-1]
}

// place returns where the table has a key, or is to have it.
func (c *census) place(k godwit.Key) *uint32 {
	mask := len(c.places) - 1
	for i := int(uint64(k) * 0x9e3779b97f4a7c15 >> 32); ; i++ {
		if p := &c.places[i&mask]; *p == 0 || c.keys[*p-1].Key == k {
			return p
		}
	}
}

func (c *census) grow() {
	c.places = make([]uint32, max(1<<10, 2*len(c.places)))
	for i := range c.keys {
		*c.place(c.keys[i].Key) = uint32(i + 1)
	}
}

// Census returns what became of the traced keys so far, as far as it is written. It takes some
// milliseconds for 100,000 keys. A nil Writer has an empty one.
func (w *Writer) Census() (x Census) {
	if w == nil {
		return x
	}
	w.census.mu.Lock()
	keys := make([]KeyUse, len(w.census.keys))
	for i := range keys {
		keys[i] = w.census.keys[i].KeyUse
	}
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
