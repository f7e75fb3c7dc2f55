package history

import (
	"fmt"

	"github.com/godwit-ps/godwit"
)

// Clocks judges bounded staleness: rows are vector clocks as in a [History], and
// Clocks knows at which clock, after which barrier, each push was made. Whoever
// uses it from several goroutines locks; a worker's events are noted before they
// happen, so that nothing can be seen before it is known.
type Clocks struct {
	at     []Moment // by worker
	met    []int    // barriers that the worker called
	pushes map[godwit.Key][][]pushed

	// Judged says what the reads so far could have broken.
	Judged JudgedClocks
}

// JudgedClocks counts reads of keys.
type JudgedClocks struct {
	Reads  int
	Owed   int // … that had to contain pushes of other workers
	Edge   int // … while some worker was just as far as the bound demands
	Lacked int // … that lacked pushes, as they may
}

// Add adds what other clocks judged.
func (j *JudgedClocks) Add(o JudgedClocks) {
	j.Reads += o.Reads
	j.Owed += o.Owed
	j.Edge += o.Edge
	j.Lacked += o.Lacked
}

// A Moment is a worker's time: barriers, and clocks since the last of them.
type Moment struct{ Barriers, Clock int }

// Less reports whether a moment comes before another one.
func (m Moment) Less(o Moment) bool {
	return m.Barriers < o.Barriers || m.Barriers == o.Barriers && m.Clock < o.Clock
}

// Back returns the moment some clocks before, after the same barrier.
func (m Moment) Back(clocks int) Moment { return Moment{m.Barriers, max(m.Clock-clocks, 0)} }

type pushed struct {
	at     Moment
	n      int  // pushes up to then that take effect, for sure
	unsure bool // it may not
}

// NewClocks returns the clocks of workers 0 … workers-1.
func NewClocks(workers int) *Clocks {
	return &Clocks{at: make([]Moment, workers), met: make([]int, workers), pushes: map[godwit.Key][][]pushed{}}
}

// Now returns a worker's moment.
func (c *Clocks) Now(w int) Moment { return c.at[w] }

// Advance notes that a worker is about to advance.
func (c *Clocks) Advance(w int) { c.at[w].Clock++ }

// Barrier notes that a worker is about to call Barrier.
func (c *Clocks) Barrier(w int) {
	c.Finish(w)
	c.met[w]++
}

// Finish notes that a worker is about to call Finish.
func (c *Clocks) Finish(w int) {
	if m := (Moment{Barriers: c.met[w] + 1}); c.at[w].Less(m) {
		c.at[w] = m
	}
}

// Push notes that a worker is about to push 1 at its coordinate.
func (c *Clocks) Push(w int, k godwit.Key) {
	all := c.pushes[k]
	if all == nil {
		all = make([][]pushed, len(c.at))
		c.pushes[k] = all
	}
	n := 0
	if l := len(all[w]); l > 0 {
		n = all[w][l-1].n
	}
	all[w] = append(all[w], pushed{at: c.at[w], n: n + 1})
}

// PushUnsure notes that the last push of a worker to a key, of those of which it was
// not noted, may never take effect.
func (c *Clocks) PushUnsure(w int, k godwit.Key) {
	all := c.pushes[k][w]
	for i := len(all) - 1; i >= 0; i-- {
		all[i].n--
		if !all[i].unsure {
			all[i].unsure = true
			return
		}
	}
}

// Read judges what a read returned that must contain what all workers pushed
// before a moment: it does, no worker can push any more of it, and nothing is in it that was not pushed, or twice.
func (c *Clocks) Read(k godwit.Key, v []float32, before Moment) error {
	c.Judged.Reads++
	owed, edge, lacked := false, false, false
	for w := range c.at {
		if c.at[w].Less(before) {
			return fmt.Errorf("a read of key %d that must contain all pushes before %+v returned while worker %d was at %+v", k, before, w, c.at[w])
		}
		edge = edge || c.at[w] == before && before.Clock > 0
		n, all, most := 0, 0, 0
		if ps := c.pushes[k]; ps != nil {
			most = len(ps[w])
			for _, p := range ps[w] {
				if p.at.Less(before) {
					n = p.n
				}
				all = p.n
			}
		}
		if got := int(v[w]); got > most {
			return fmt.Errorf("a read of key %d returns %v: worker %d has pushed %d times", k, v, w, most)
		} else if got < n {
			return fmt.Errorf("a read of key %d that must contain all pushes before %+v returns %v: %d of worker %d are missing", k, before, v, n-got, w)
		}
		owed = owed || n > 0
		lacked = lacked || int(v[w]) < all
	}
	if owed {
		c.Judged.Owed++
	}
	if edge {
		c.Judged.Edge++
	}
	if lacked {
		c.Judged.Lacked++
	}
	return nil
}
