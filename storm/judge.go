package main

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
)

// A judge compares what the workers of one process read with what they, and by the
// plan those of other processes, wrote. Any number of goroutines may use it.
//
// Of each key and worker it counts writes that were begun (issued), that were
// completed (done) and that a WaitSync brought to the owner (synced), and what
// each node has seen. A read may show no less than what was done at its node, seen
// at its node and promised for its clock when it began, and no more than what was
// issued when it ended. Keys with one copy are as if all workers were at one node, and where
// values are fetched ahead, each worker is as if it were at a node of its own.
type judge struct {
	*plan
	all    bool // all nodes are in this process
	counts *counts
	issued [][]atomic.Int32 // by key and worker
	done   [][]atomic.Int32
	synced [][]atomic.Int32
	seen   [][][]atomic.Int32 // by worker, of which the first one of a node, or of all, stands for those that see alike

	mu     sync.Mutex
	before map[push][]int32         // where keys have one copy: what had been done or seen when a write began
	chain  map[godwit.Key][][]int32 // … and all that was read
}

type push struct {
	key    godwit.Key
	worker int
	n      int32
}

func newJudge(p *plan, counts *counts) *judge {
	table := func() [][]atomic.Int32 {
		t := make([][]atomic.Int32, p.model.Keys())
		for i := range t {
			t[i] = make([]atomic.Int32, p.workers())
		}
		return t
	}
	j := &judge{plan: p, all: !p.processes, counts: counts, issued: table(), done: table(), synced: table(), before: map[push][]int32{}, chain: map[godwit.Key][][]int32{}}
	for range p.workers() {
		j.seen = append(j.seen, table())
	}
	return j
}

// view is what is known to have been seen of a key by those who see it as a worker does.
func (j *judge) view(worker int, k godwit.Key) []atomic.Int32 {
	switch {
	case j.single():
		return j.seen[0][k]
	case j.ahead(k):
		return j.seen[worker][k]
	}
	return j.seen[j.nodeOf(worker)*j.perNode][k]
}

// near reports whether one worker sees at once what another one did to a key.
func (j *judge) near(a, b int, k godwit.Key) bool {
	if j.ahead(k) {
		return a == b
	}
	return j.single() || j.nodeOf(a) == j.nodeOf(b)
}

// ahead reports whether workers may have fetched values of a key before they use them.
func (j *judge) ahead(k godwit.Key) bool {
	return placement.FetchesAhead(j.policy) && j.stale[j.table(k)] == godwit.Eventual
}

// begins notes that a worker begins a write, after which its coordinate is to be.
func (j *judge) begins(worker int, k godwit.Key, is int32) {
	if j.single() && j.all && j.table(k) != torn {
		before := make([]int32, j.workers())
		for i := range before {
			before[i] = max(j.done[k][i].Load(), j.seen[0][k][i].Load())
		}
		j.mu.Lock()
		j.before[push{k, worker, is}] = before
		j.mu.Unlock()
	}
	raise(&j.issued[k][worker], is)
}

// completed notes that a worker waited for a write. What filters may hold back is
// complete when it was flushed.
func (j *judge) completed(worker int, k godwit.Key, is int32) {
	if j.table(k) != lossy {
		raise(&j.done[k][worker], is)
	}
}

func raise(a *atomic.Int32, to int32) {
	for {
		was := a.Load()
		if was >= to || a.CompareAndSwap(was, to) {
			return
		}
	}
}

// A reading is a read of one key that has begun.
type reading struct {
	worker int
	key    godwit.Key
	floor  []int32
}

// A moment is when a worker does something: the step, and the era that it is in.
type moment struct {
	step int
	era  int
}

// reads notes that a worker begins to read a key. after, if not negative, is a
// clock of the era that a PullAfter names.
func (j *judge) reads(worker int, k godwit.Key, now moment, after int) *reading {
	r := &reading{worker: worker, key: k, floor: make([]int32, j.workers())}
	seen := j.view(worker, k)
	for i := range r.floor {
		r.floor[i] = seen[i].Load()
		if !j.near(worker, i, k) {
			continue
		}
		if d := j.done[k][i].Load(); d > 0 {
			j.counts.own.Add(1)
			if j.nodeOf(i) != j.nodeOf(worker) {
				j.counts.elsewhere.Add(1)
			}
			r.floor[i] = max(r.floor[i], d)
		}
	}
	if t := j.table(k); j.noHints && j.single() && t != lossy && t != torn {
		r.floor[worker] = max(r.floor[worker], j.issued[k][worker].Load()) // also what it has not waited for
		j.counts.order.Add(1)
	}
	j.promised(r, now, after)
	return r
}

// promised raises the floor of a read to what its era, its table's bound and its
// table's window promise. What filters hold back is promised once it was sent.
func (j *judge) promised(r *reading, now moment, after int) {
	t := j.table(r.key)
	e := j.eras[now.era]
	bound, bounded := j.stale[t].Clocks()
	from := -1 // what all workers wrote before this step is owed
	if now.era > 0 && (j.eras[now.era-1].whole || bounded && t != lossy) {
		from = e.first
		j.counts.eras.Add(1)
	}
	if bounded && t != lossy {
		clock := now.step - e.first - int(bound)
		if after >= 0 {
			clock = after
			j.counts.after.Add(1)
		}
		if clock > 0 {
			from = e.first + clock
			j.counts.bounds.Add(1)
		}
	}
	if from >= 0 {
		for i := range r.floor {
			r.floor[i] = max(r.floor[i], j.sums[from][i][r.key])
		}
	}
	if d, ok := j.window[t].Clocks(); ok && t != lossy && after < 0 {
		if s := max(now.step-int(d), e.first); s > 0 {
			j.counts.windows.Add(1)
			r.floor[r.worker] = max(r.floor[r.worker], j.sums[s][r.worker][r.key])
		}
	}
}

// tolerance is for tables whose filters round: the coordinates are whole numbers
// but for what is still on its way.
const tolerance = 0.3

// read judges what a read returned.
func (j *judge) read(r *reading, v []float32) error {
	got, err := j.clocks(r.key, v)
	if err != nil {
		return fmt.Errorf("%v: %w", r, err)
	}
	j.counts.reads.Add(1)
	if slices.Max(r.floor) > 0 {
		j.counts.owed.Add(1)
	}
	seen := j.view(r.worker, r.key)
	for i, n := range got {
		if n < r.floor[i] {
			return fmt.Errorf("%v reads %v, %d of worker %d, want %d or more", r, v, n, i, r.floor[i])
		}
		if most := j.ceiling(r.key, i); n > most {
			return fmt.Errorf("%v reads %v, %d of worker %d, which wrote %d", r, v, n, i, most)
		}
		raise(&seen[i], n)
	}
	if j.single() && j.all && j.table(r.key) != lossy {
		return j.ordered(r, got)
	}
	return nil
}

// ceiling is the most that a coordinate can be.
func (j *judge) ceiling(k godwit.Key, worker int) int32 {
	switch {
	case j.all:
		return j.issued[k][worker].Load()
	case j.table(k) == torn:
		return math.MaxInt32
	}
	return j.sums[j.steps()][worker][k]
}

// ordered judges a read of a key with one copy: it contains what came before each
// write that it contains.
func (j *judge) ordered(r *reading, got []int32) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.chain[r.key] = append(j.chain[r.key], got)
	for i, n := range got {
		for c, least := range j.before[push{r.key, i, n}] {
			if got[c] < least {
				return fmt.Errorf("%v reads %v: write %d of worker %d without the %d of worker %d that came before it", r, got, n, i, least, c)
			}
			if least > 0 && c != i {
				j.counts.causes.Add(1)
			}
		}
	}
	return nil
}

// clocks returns what a row says of each worker.
func (j *judge) clocks(k godwit.Key, v []float32) ([]int32, error) {
	w := j.workers()
	got := make([]int32, w)
	switch t := j.table(k); t {
	case set:
		n, base := int32(v[0]), int32(v[1])
		if float32(n) != v[0] || v[1] != v[2] || base%setEra != 0 || n < base || n >= base+setEra {
			return nil, fmt.Errorf("reads %v: no set and pushes after it", v)
		}
		got[j.writer(k)] = n
		j.counts.sets.Add(1)
	case counted:
		for i := range got {
			c := optim.Count(v[2*i], v[2*i+1])
			if c%counterStep != 0 {
				return nil, fmt.Errorf("reads %v: %d is no multiple of %d", v, c, counterStep)
			}
			got[i] = int32(c / counterStep)
		}
		j.counts.counters.Add(1)
	default:
		for i, x := range v[:w] {
			n := math.Round(float64(x))
			if d := math.Abs(float64(x) - n); d > tolerance || d > 0 && t != lossy {
				return nil, fmt.Errorf("reads %v: %v is no number of pushes", v, x)
			}
			got[i] = int32(n)
		}
		for _, x := range v[w:] {
			if x != 0 {
				return nil, fmt.Errorf("reads %v: %v where nobody pushes", v, x)
			}
		}
		switch t {
		case most:
			j.counts.largest.Add(1)
		case lossy:
			j.counts.lossy.Add(1)
		}
	}
	return got, nil
}

// A flush is a WaitSync that has begun.
type flush struct {
	worker int
	done   [][]int32 // of the worker's node, by key
	owners [][]int32 // what owners had by then
}

// syncs notes that a worker begins to wait for a WaitSync.
func (j *judge) syncs(worker int) *flush {
	s := &flush{worker: worker}
	for k := range j.issued {
		done, owners := make([]int32, j.workers()), make([]int32, j.workers())
		for i := range done {
			if j.nodeOf(i) == j.nodeOf(worker) {
				done[i] = j.done[k][i].Load()
			}
			if i == worker && j.table(godwit.Key(k)) == lossy {
				done[i] = j.issued[k][i].Load() // the worker has waited for its own
			}
			owners[i] = j.synced[k][i].Load()
		}
		s.done, s.owners = append(s.done, done), append(s.owners, owners)
	}
	return s
}

// over notes that a WaitSync has returned: the owners have what was done at the
// node, and the node shows what they had, but for what its workers fetched before.
func (j *judge) over(s *flush) {
	for k := range s.done {
		seen := j.view(s.worker, godwit.Key(k))
		for i := range s.done[k] {
			raise(&j.synced[k][i], s.done[k][i])
			raise(&j.done[k][i], s.done[k][i])
			if n := s.owners[k][i]; n > 0 && !j.ahead(godwit.Key(k)) {
				if j.nodeOf(i) != j.nodeOf(s.worker) {
					j.counts.synced.Add(1)
				}
				raise(&seen[i], n)
			}
		}
	}
}

// ends judges a row when all is synchronized and nobody writes any more.
func (j *judge) ends(k godwit.Key, v []float32) error {
	got, err := j.clocks(k, v)
	if err != nil {
		return fmt.Errorf("in the end key %d %w", k, err)
	}
	for i, n := range got {
		least, most := j.sums[j.steps()][i][k], j.sums[j.steps()][i][k]
		if j.table(k) == torn {
			least, most = j.done[k][i].Load(), j.ceiling(k, i)
		}
		if n < least || n > most {
			return fmt.Errorf("key %d of table %s ends as %v, %d of worker %d, want %d … %d", k, j.model.Table(j.table(k)).Name, v, n, i, least, most)
		}
		if x := v[i%len(v)]; j.table(k) == lossy && math.Abs(float64(x)-float64(n)) > 1e-2 {
			return fmt.Errorf("key %d ends as %v: what filters left did not arrive", k, v)
		}
		j.counts.ends.Add(1)
	}
	return nil
}

// fits checks that all that was read of each key with one copy fits in one order.
func (j *judge) fits() error {
	for k, chain := range j.chain {
		slices.SortFunc(chain, func(a, b []int32) int { return total(a) - total(b) })
		for n := 1; n < len(chain); n++ {
			for i := range chain[n] {
				if chain[n][i] < chain[n-1][i] {
					return fmt.Errorf("key %d was read as %v and as %v: no order of the writes explains both", k, chain[n-1], chain[n])
				}
			}
		}
		j.counts.chains.Add(int64(len(chain)))
	}
	return nil
}

func total(a []int32) (n int) {
	for _, x := range a {
		n += int(x)
	}
	return n
}

func (r *reading) String() string { return fmt.Sprintf("worker %d, key %d", r.worker, r.key) }
