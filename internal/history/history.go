// Package history judges what the workers of a run saw of the model: whether
// every read could have happened as the guarantees promise, and whether every
// update counts once in the end. It is the main instrument of the protocol's
// and the simulator's storms, after the vector-clock-valued parameters of Li et
// al. (OSDI 2014, section 6.3).
package history

import (
	"errors"
	"fmt"
	"slices"

	"github.com/godwit-ps/godwit"
)

// A History is what the workers of a storm did and saw, and judges each read
// when it returns, the main copies at the end, and updates that were flushed.
//
// The row of a key is a vector clock: worker w pushes +1 at coordinate w, so a
// read tells exactly which pushes it contains. Keys that workers also set carry
// the number of the last set in the same coordinates: the j-th set of a key
// writes Era·j everywhere, and pushes count on from there.
type History struct {
	workers int
	nodeOf  func(worker int) int
	single  func(godwit.Key) bool // the key has one copy under this policy
	holds   func(godwit.Key) bool // pushes to the key may be held back
	early   bool                  // see Early
	strict  bool                  // asynchronous operations keep each worker's order
	now     int                   // grows with each event
	keys    map[godwit.Key]*keyHistory

	// Judged says what the reads so far could have broken.
	Judged Judged
}

// Judged counts reads. Tests assert that there were enough of each kind.
type Judged struct {
	Reads int
	Own   int // … that had to contain pushes of their worker
	Back  int // … after another one at the node had seen something
	After int // … with pushes that other pushes had to come before
	Sets  int // … of a key that was set
}

// Add adds what another history judged.
func (j *Judged) Add(o Judged) {
	j.Reads += o.Reads
	j.Own += o.Own
	j.Back += o.Back
	j.After += o.After
	j.Sets += o.Sets
}

// Era is more than one worker ever pushes to one key. Float32 counts up to
// 2^24, so a key can be set 65,535 times.
const Era = 256

type keyHistory struct {
	issued   []int           // pushes by worker
	complete []int           // of them completed
	returned []int           // of those that may be held back: completed, or held back
	unsure   []int           // of them may never take effect
	dropped  []int           // of them take effect, nobody knows when
	known    []int           // the most of each that a completed read contained; without sets
	after    [][][]int       // by worker and push, if there is one copy: what was complete or known when it began
	chain    [][]float32     // all reads, where there is one copy and no set
	nodes    map[int]*viewed // what was seen at each node; of a key with one copy, at node 0 as everywhere
	sets     []setting       // sets[0] stands for the first value
	lastSet  []int           // each worker's last set
	since    []int           // each worker's pushes when it issued that
}

type viewed struct {
	seen  []float32      // without sets: the most of each coordinate
	zones map[int]*zone  // by set
	reads map[int][]seen // by set: what was read of it
}

// A zone spans the operations of one set and of the reads that returned it.
// The set comes before another one if an operation of its zone ended before one
// of the other's began (Gibbons and Korach, SIAM J. Computing 1997).
type zone struct {
	ends   int // the first end; 0: none yet
	begins int // the last beginning
}

type seen struct {
	at int // when it ended
	v  []float32
}

type setting struct {
	worker      int
	node        int
	began, done int   // when; done 0: not yet
	before      []int // pushes by worker that it overwrote: all that were complete when it began
	after       []int // pushes by worker that were issued when it was done, or seen; nil: neither

	lastSet, since int  // of the worker, before it
	unsure         bool // it may never take effect
}

// A Reading is a read that was issued: what it must contain at least.
type Reading struct {
	worker, node int
	key          godwit.Key
	at           int
	floor        []int     // pushes by worker that must be contained
	seen         []float32 // what was seen at the node before
	own, unsure  int       // pushes of the worker issued before; of these, may never take effect
	ownSet       int       // the worker's last set
	since        int
	late         bool
}

// Late says that the read may take effect after operations that its worker began
// later.
func (r *Reading) Late() *Reading {
	r.late = true
	return r
}

// New returns an empty history of workers 0 … workers-1, each at the node that
// nodeOf says. single reports whether a key never has more than one copy, and
// strict that a worker's operations take effect in the order in which it began
// them although it did not wait for each: both promise more (docs/guarantees.md).
//
// Values have a coordinate for each worker, and any number of further ones,
// which nobody pushes to. Nothing here locks.
func New(workers int, nodeOf func(int) int, single func(godwit.Key) bool, strict bool) *History {
	return &History{workers: workers, nodeOf: nodeOf, single: single, strict: strict, holds: func(godwit.Key) bool { return false }, keys: map[godwit.Key]*keyHistory{}}
}

// Holds says to which keys pushes may be held back on their way, until WaitSync or for
// good where a set of the same node comes before that: these count as complete when
// they were flushed.
func (h *History) Holds(held func(godwit.Key) bool) *History {
	h.holds = held
	return h
}

// Early says that a worker may see its own pushes while they are under way, and not see them again until they are
// complete: where values are fetched ahead of their use, and the key comes to the worker's node meanwhile.
func (h *History) Early(early bool) *History {
	h.early = early
	return h
}

func (h *History) key(k godwit.Key) *keyHistory {
	x := h.keys[k]
	if x == nil {
		ints := func() []int { return make([]int, h.workers) }
		x = &keyHistory{issued: ints(), complete: ints(), returned: ints(), unsure: ints(), dropped: ints(), known: ints(), nodes: map[int]*viewed{},
			after: make([][][]int, h.workers),
			sets:  []setting{{worker: -1, node: -1, done: -1, before: ints(), after: ints()}}, lastSet: ints(), since: ints()}
		h.keys[k] = x
	}
	return x
}

func (x *keyHistory) node(n int) *viewed {
	v := x.nodes[n]
	if v == nil {
		v = &viewed{zones: map[int]*zone{0: {ends: -1}}, reads: map[int][]seen{}}
		x.nodes[n] = v
	}
	return v
}

// view returns what a node has seen of a key. A key with one copy is the same
// everywhere.
func (h *History) view(k godwit.Key, node int) *viewed {
	if h.single(k) {
		node = 0
	}
	return h.key(k).node(node)
}

func (v *viewed) zone(j int) *zone {
	z := v.zones[j]
	if z == nil {
		z = &zone{}
		v.zones[j] = z
	}
	return z
}

func (z *zone) end(at int) {
	if z.ends == 0 {
		z.ends = at
	}
}

func (z *zone) before(o *zone) bool { return z.ends != 0 && z.ends < o.begins }

// PushIssued notes that a worker begins to push 1 at its coordinate.
func (h *History) PushIssued(w int, k godwit.Key) {
	h.now++
	x := h.key(k)
	x.issued[w]++
	if h.single(k) && len(x.sets) == 1 {
		after := slices.Clone(x.complete)
		for i := range after {
			after[i] = max(after[i], x.known[i])
		}
		x.after[w] = append(x.after[w], after)
	}
}

// PushComplete notes that a push of a worker is complete.
func (h *History) PushComplete(w int, k godwit.Key) {
	h.now++
	if x := h.key(k); h.holds(k) {
		x.returned[w]++
	} else {
		x.complete[w]++
	}
}

// Flushed notes that a WaitSync is over, of a worker of a node, before which Completed
// returned done for the key, and returns what of that is complete. What was held back,
// a set that is under way may have overwritten, and a push that was issued meanwhile
// may have taken along.
func (h *History) Flushed(node int, k godwit.Key, done []int) []int {
	h.now++
	x := h.key(k)
	set := slices.ContainsFunc(x.sets, func(s setting) bool { return s.node == node && s.done == 0 })
	sure := slices.Clone(done)
	for i, n := range done {
		if h.holds(k) && (set || x.issued[i] != n) {
			sure[i] = min(n, x.complete[i])
		}
		x.complete[i] = max(x.complete[i], sure[i])
	}
	return sure
}

// PushDropped notes that a worker does not wait for a push any more. It takes effect
// at some time.
func (h *History) PushDropped(w int, k godwit.Key) { h.now++; h.key(k).dropped[w]++ }

// PushUnsure notes that a push of a worker was given up while it was issued: it takes
// effect at some time, or never.
func (h *History) PushUnsure(w int, k godwit.Key) { h.now++; h.key(k).unsure[w]++ }

// SetIssued returns the number of the new set.
func (h *History) SetIssued(w int, k godwit.Key) int {
	h.now++
	x := h.key(k)
	x.sets = append(x.sets, setting{worker: w, node: h.nodeOf(w), began: h.now, before: slices.Clone(x.complete), lastSet: x.lastSet[w], since: x.since[w]})
	j := len(x.sets) - 1
	x.lastSet[w], x.since[w] = j, x.issued[w]
	h.view(k, h.nodeOf(w)).zone(j).begins = h.now
	return j
}

// SetComplete notes that a set is complete.
func (h *History) SetComplete(k godwit.Key, j int) {
	h.now++
	x := h.key(k)
	x.sets[j].done = h.now
	x.inEffect(j)
	h.view(k, x.sets[j].node).zone(j).end(h.now)
}

// SetUnsure notes that the last set that a worker issued was given up meanwhile: it
// takes effect at some time, or never. (One that takes effect, nobody knows when, is
// one that was not completed.)
func (h *History) SetUnsure(w int, k godwit.Key, j int) {
	h.now++
	x := h.key(k)
	s := &x.sets[j]
	x.lastSet[w], x.since[w] = s.lastSet, s.since
	s.unsure = true
}

// ReadIssued notes what a read that begins now must contain: what its node has
// seen, what the node's workers completed and, of a key with one copy, whatever
// anybody completed.
func (h *History) ReadIssued(w int, k godwit.Key) *Reading {
	h.now++
	x, n := h.key(k), h.nodeOf(w)
	r := &Reading{worker: w, node: n, key: k, at: h.now, floor: make([]int, h.workers),
		own: x.issued[w], unsure: x.unsure[w], ownSet: x.lastSet[w], since: x.since[w]}
	for i := range r.floor {
		if h.single(k) || h.nodeOf(i) == n {
			r.floor[i] = x.complete[i]
		}
		if h.single(k) {
			r.floor[i] = max(r.floor[i], x.known[i])
		}
	}
	r.seen = slices.Clone(x.node(n).seen)
	return r
}

// Read judges what a read returned.
func (h *History) Read(r *Reading, v []float32) error {
	h.now++
	h.Judged.Reads++
	x := h.key(r.key)
	if err := h.apart(x, v); err != nil {
		return fmt.Errorf("%v reads %v: %w", r, v, err)
	}
	if len(x.sets) > 1 {
		h.Judged.Sets++
		return h.readSet(x, r, v)
	}
	if r.floor[r.worker] > 0 {
		h.Judged.Own++
	}
	if r.seen != nil {
		h.Judged.Back++
	}
	for i := range h.workers {
		switch got := int(v[i]); {
		case got < r.floor[i]:
			return fmt.Errorf("%v reads %v: %d pushes of worker %d are missing", r, v, r.floor[i]-got, i)
		case got > x.issued[i]:
			return fmt.Errorf("%v reads %v: worker %d pushed only %d times", r, v, i, x.issued[i])
		case r.seen != nil && v[i] < r.seen[i]:
			return fmt.Errorf("%v reads %v after %v was seen at the node", r, v, r.seen)
		}
		x.known[i] = max(x.known[i], int(v[i]))
	}
	if err := h.causes(x, r, v); err != nil {
		return err
	}
	if got := int(v[r.worker]); h.ordered(r) && (got < r.own-r.unsure || got > r.own) {
		return fmt.Errorf("%v reads %v with %v of its own pushes, it issued %d before", r, v, v[r.worker], r.own)
	}
	if h.single(r.key) {
		x.chain = append(x.chain, slices.Clone(v))
	}
	n := x.node(r.node)
	if n.seen == nil {
		n.seen = make([]float32, len(v))
	}
	for i := range v {
		if h.early && i == r.worker {
			n.seen[i] = max(n.seen[i], min(v[i], float32(x.complete[i])))
			continue
		}
		n.seen[i] = max(n.seen[i], v[i])
	}
	return nil
}

// apart judges the coordinates of a row that nobody pushes to: all are as the last set wrote them, or 0 if there was none.
func (h *History) apart(x *keyHistory, v []float32) error {
	for _, f := range v[min(h.workers, len(v)):] {
		switch {
		case f != v[h.workers]:
			return errors.New("the coordinates that nobody pushes to differ")
		case len(x.sets) == 1 && f != 0:
			return errors.New("nobody pushes to the last coordinates, nor set the key")
		}
	}
	return nil
}

// ordered reports whether a read shows just what its worker began before.
func (h *History) ordered(r *Reading) bool {
	return h.strict && !r.late && h.single(r.key) && !h.holds(r.key)
}

// causes judges whether a read of a key with one copy contains whatever was
// complete, or had been read, when a push that it contains began.
func (h *History) causes(x *keyHistory, r *Reading, v []float32) error {
	after := false
	for i, all := range x.after {
		n := int(v[i])
		if n == 0 || n > len(all) {
			continue
		}
		for c, before := range all[n-1] {
			if int(v[c]) < before {
				return fmt.Errorf("%v reads %v: push %d of worker %d without the %d pushes of worker %d that came before it", r, v, n, i, before, c)
			}
			after = after || c != i && before > 0
		}
	}
	if after {
		h.Judged.After++
	}
	return nil
}

// readSet judges a read of a key that was set.
func (h *History) readSet(x *keyHistory, r *Reading, v []float32) error {
	j, err := h.consistent(r.key, v, func(i int) bool { return h.single(r.key) || h.nodeOf(i) == r.node }, r.floor)
	if err != nil {
		return fmt.Errorf("%v: %w", r, err)
	}
	if err := h.fits(x, r, j, v); err != nil {
		return fmt.Errorf("%v reads %v, of set %d: %w", r, v, j, err)
	}
	if h.ordered(r) {
		if r.ownSet > 0 && (j == 0 || j < r.ownSet && x.sets[j].worker == r.worker) {
			return fmt.Errorf("%v reads %v, of set %d, after it issued set %d", r, v, j, r.ownSet)
		}
		if got := int(v[r.worker]) - Era*j; j > 0 && j == r.ownSet && (got < r.own-r.since-r.unsure || got > r.own-r.since) {
			return fmt.Errorf("%v reads %v with %d of its own pushes since its set %d, it issued %d", r, v, got, j, r.own-r.since)
		}
	}
	return nil
}

// fits takes a read of set j into its zone, and says whether an order of the
// sets, and of the pushes on top of them, still explains everything that the
// node saw.
func (h *History) fits(x *keyHistory, r *Reading, j int, v []float32) error {
	if h.single(r.key) {
		s := &x.sets[j]
		for i := range s.before {
			s.before[i] = max(s.before[i], r.floor[i]-(int(v[i])-Era*j)) // complete, and not on top
		}
	}
	x.inEffect(j)
	n := h.view(r.key, r.node)
	z := n.zone(j)
	z.begins = max(z.begins, r.at)
	z.end(h.now)
	for i, o := range n.zones {
		if i != j && (z.before(o) || x.older(j, i)) && (o.before(z) || x.older(i, j)) {
			return fmt.Errorf("it must be both before and after set %d", i)
		}
	}
	for _, s := range n.reads[j] {
		less, more := false, false
		for i := range v {
			less, more = less || v[i] < s.v[i], more || v[i] > s.v[i]
		}
		if less && (s.at < r.at || more && h.single(r.key)) {
			return fmt.Errorf("%v was seen before", s.v)
		}
	}
	sure := slices.Clone(v)
	if w := r.worker; h.early { // of its own pushes, as many as are under way may be missing again
		sure[w] = max(float32(Era*j), v[w]-float32(x.issued[w]-x.complete[w]))
	}
	n.reads[j] = append(n.reads[j], seen{h.now, sure})
	return nil
}

// inEffect notes that set j has taken effect: what is pushed from now on comes
// on top of it.
func (x *keyHistory) inEffect(j int) {
	if s := &x.sets[j]; s.after == nil {
		s.after = slices.Clone(x.issued)
	}
}

// older reports whether set a was complete before set b began.
func (x *keyHistory) older(a, b int) bool {
	return a != b && x.sets[a].done != 0 && x.sets[a].done < x.sets[b].began
}

// consistent takes a row of a key that was set apart: all coordinates must be
// of one set, each with a possible number of pushes on top. Of the workers that
// bind names, floor counts the pushes that the row must have taken, by that set
// or after it.
func (h *History) consistent(k godwit.Key, v []float32, bind func(worker int) bool, floor []int) (j int, err error) {
	x := h.keys[k]
	j = int(v[len(v)-1]) / Era
	if j >= len(x.sets) || int(v[len(v)-1]) != j*Era {
		return j, fmt.Errorf("%v shows no set", v)
	}
	s := &x.sets[j]
	for i := range h.workers {
		n := int(v[i]) - Era*j
		most, least := x.issued[i], 0
		if h.single(k) || h.nodeOf(i) == s.node {
			most -= s.before[i] // overwritten
		}
		if s.after != nil && bind(i) {
			least = floor[i] - s.after[i]
		}
		if n < least || n > most {
			return j, fmt.Errorf("%v has %d pushes of worker %d since set %d, want %d … %d", v, n, i, j, least, most)
		}
	}
	return j, nil
}

// Final judges the main copy when everything is at rest. A nil row was never
// touched.
func (h *History) Final(k godwit.Key, v []float32) error {
	x := h.keys[k]
	if x == nil {
		return nil
	}
	if err := h.ends(k, v, x.sure(), func(s *setting) bool { return !s.unsure }); err != nil {
		return err
	}
	return x.ordered(k)
}

// Synced judges a read after WaitSync, Barrier and WaitSync of all workers, which wait
// for nothing that was given up.
func (h *History) Synced(k godwit.Key, v []float32) error {
	x := h.keys[k]
	if x == nil {
		return nil
	}
	least, held := x.sure(), h.holds(k)
	for i := range least {
		if x.dropped[i] > 0 || held && x.unsure[i] > 0 {
			least[i] = x.complete[i]
		}
	}
	if held && slices.ContainsFunc(x.sets, func(s setting) bool { return s.done == 0 }) {
		clear(least) // these may have overwritten what was held back
	}
	return h.ends(k, v, least, func(s *setting) bool { return s.done > 0 })
}

// sure returns how many pushes of each worker take effect at some time, at least.
func (x *keyHistory) sure() []int {
	n := slices.Clone(x.issued)
	for i := range n {
		n[i] -= x.unsure[i]
	}
	return n
}

// ends judges a row to which nobody pushes any more, and which has at least so many
// pushes of each worker, and the sets for which had holds.
func (h *History) ends(k godwit.Key, v []float32, least []int, had func(*setting) bool) error {
	x := h.keys[k]
	if err := h.apart(x, v); err != nil {
		return fmt.Errorf("key %d ends as %v: %w", k, v, err)
	}
	if len(x.sets) > 1 {
		return h.endsSet(k, v, least, had)
	}
	for i, n := range least {
		if v == nil && n > 0 || v != nil && (int(v[i]) < n || int(v[i]) > x.issued[i]) {
			return fmt.Errorf("key %d ends as %v, worker %d pushed %s times", k, v, i, span(n, x.issued[i]))
		}
	}
	return nil
}

func (h *History) endsSet(k godwit.Key, v []float32, least []int, had func(*setting) bool) error {
	x := h.keys[k]
	if v == nil {
		if slices.ContainsFunc(x.sets[1:], func(s setting) bool { return had(&s) }) {
			return fmt.Errorf("key %d was set and has no row", k)
		}
		return nil
	}
	j, err := h.consistent(k, v, func(int) bool { return true }, least)
	if err != nil {
		return fmt.Errorf("at rest, key %d: %w", k, err)
	}
	for i := range x.sets {
		if x.older(j, i) && had(&x.sets[i]) {
			return fmt.Errorf("at rest, key %d is %v, of set %d, but set %d came later", k, v, j, i)
		}
	}
	return nil
}

// ordered checks that the reads of a key with one copy fit in one order.
func (x *keyHistory) ordered(k godwit.Key) error {
	sum := func(v []float32) (s float32) {
		for _, f := range v {
			s += f
		}
		return s
	}
	slices.SortFunc(x.chain, func(a, b []float32) int { return int(sum(a) - sum(b)) })
	for i := 1; i < len(x.chain); i++ {
		for c := range x.chain[i] {
			if x.chain[i][c] < x.chain[i-1][c] {
				return fmt.Errorf("key %d was read as %v and as %v: there is no order of the pushes that explains both", k, x.chain[i-1], x.chain[i])
			}
		}
	}
	return nil
}

// Pushes returns how many pushes to a key took effect in the end: at least, and at the
// most.
func (h *History) Pushes(k godwit.Key) (least, most int) {
	x := h.key(k)
	for i, n := range x.issued {
		least += n - x.unsure[i]
		most += n
	}
	return least, most
}

// Completed returns how many pushes of a node's workers to a key are complete when a
// WaitSync of the node is over that begins now. Of those that were held back, a push
// that is under way may have taken some along.
func (h *History) Completed(node int, k godwit.Key) []int {
	c := make([]int, h.workers)
	x := h.key(k)
	for i := range c {
		if h.nodeOf(i) == node {
			c[i] = x.complete[i]
			if h.holds(k) && x.returned[i] == x.issued[i] {
				c[i] = x.issued[i]
			}
		}
	}
	return c
}

func (r *Reading) String() string {
	return fmt.Sprintf("worker %d at node %d, key %d", r.worker, r.node, r.key)
}

// span writes a number that is known to lie between two.
func span(least, most int) string {
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d … %d", least, most)
}
