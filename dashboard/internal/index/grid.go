package index

import (
	"math"
	"math/bits"
	"slices"

	"github.com/godwit-ps/godwit/telemetry/trace"
)

// A grid has the state of keys at the end of each of some equal windows of time (its columns), and what happened within
// them. Keys are numbers of a dict. Nodes are read one by one; of nodes with different clocks the owner is the one that owns the key in the
// later epoch.
type grid struct {
	origin, width int64 // ns
	nodes, bitmap int   // how many; bytes of a bitmap of nodes
	most          int   // columns at the most
	budget        int   // bytes of all columns at the most, but for the least number of columns
	loading       bool  // width must not change
	fixed         bool  // there are most columns, and no more
	keys          int   // that columns have room for
	columns       []*column
	walkers       []*walker
}

// A column is a window, and the state at its end.
type column struct {
	owner    []uint8  // by key: the node + 1; 0: none
	epoch    []uint8  // of that node's ownership, modulo 256
	heat     []uint16 // accesses within the window
	replicas []uint8  // a bitmap a key
	counts   []uint64 // events within the window, by node and Count
	marks    []mark   // by node: where the window ends in its trace; nil: not known of any
	former   []former // of keys, in any order
}

// A former owner of a key owned it at the end of a window by its own clock, while another node owned it in a later epoch.
type former struct {
	key   int32
	node  uint8 // + 1
	epoch uint8 // modulo 256
}

// own takes note of a node + 1 that owns a key at the end of the window, in an epoch modulo 256.
func (c *column) own(k int, node, epoch uint8) {
	switch o, e := c.owner[k], c.epoch[k]; {
	case o == 0:
		c.owner[k], c.epoch[k] = node, epoch
	case int8(epoch-e) > 0:
		c.owner[k], c.epoch[k] = node, epoch
		c.former = append(c.former, former{int32(k), o, e})
	default:
		c.former = append(c.former, former{int32(k), node, epoch})
	}
}

// A mark says where in a node's trace a window ends. Who has the node's state at the end of the window reads on from there.
type mark struct {
	segment int   // 0: the place is not known
	records int64 // of the segment that come before the end
}

// mark takes note of where the window ends in the trace of one of the run's nodes.
func (c *column) mark(node, nodes int, m mark) {
	if c.marks == nil {
		c.marks = make([]mark, nodes)
	}
	c.marks[node] = m
}

// markOf returns where the window ends in the trace of a node.
func (c *column) markOf(node int) mark {
	if c.marks == nil {
		return mark{}
	}
	return c.marks[node]
}

// restore gives a walker what its node had at the end of the last window before a time of which the place in a segment is known, and returns how many
// records of the segment come before that end. If there is no such window, it returns 0, and the walker stays as it is. of is that of [Index.records].
func (g *grid) restore(w *walker, time int64, segment int, of []int32) (records int64) {
	i := min(int((time-g.origin)/g.width), len(g.columns)) - 1
	for i >= 0 && g.columns[i].markOf(w.node).segment == 0 {
		i--
	}
	if i < 0 || g.columns[i].markOf(w.node).segment != segment {
		return 0
	}
	c := g.columns[i]
	put := func(k int, has, epoch uint8) {
		if of != nil {
			k = int(of[k]) - 1
		}
		if k >= 0 {
			w.has[k], w.epoch[k] = has, uint32(epoch)
		}
	}
	node, bit, replicas := uint8(w.node+1), uint8(1)<<(w.node&7), c.replicas[w.node/8:]
	n := len(w.has) // keys that have no number yet are in no column
	if of != nil {
		n = len(of)
	}
	for k, owner := range c.owner[:min(len(c.owner), n)] {
		if owner == node {
			put(k, main, c.epoch[k])
		} else if replicas[k*g.bitmap]&bit != 0 {
			put(k, replica, 0)
		}
	}
	for _, x := range c.former {
		if x.node == node {
			put(int(x.key), main, x.epoch)
		}
	}
	return c.markOf(w.node).records
}

// Counts of events, by what they are.
type Count int

// The counts.
const (
	Accesses Count = iota
	Misses
	Moves // to the node
	Copies
	Refreshes
	Drops
	Intents
	Asks
	Tallied // those of the refreshes that were counted by the second
	Counted
)

var countOf = [256]Count{
	trace.Accessed: Accesses, trace.Missed: Misses, trace.Arrived: Moves, trace.Copied: Copies, trace.Refreshed: Refreshes, trace.RefreshCount: Tallied,
	trace.Ended: Drops, trace.Wanted: Intents, trace.Asked: Asks,
}

// count returns what an event counts as, and how much.
func count(e *trace.Event) (c Count, n uint64, ok bool) {
	c = countOf[e.Kind]
	switch {
	case c == Accesses && e.Kind != trace.Accessed:
		return c, 0, false
	case c <= Misses || c == Tallied:
		return c, uint64(e.N), true
	}
	return c, 1, true
}

const (
	second       = int64(1e9) // ns, by which nodes count
	leastColumns = 32
	cellBytes    = 4 // and the bitmap
)

// A walker is a node as it is read: what it has of keys.
type walker struct {
	node    int
	at      int // the column that it is in
	has     []uint8
	epoch   []uint32
	last    int64 // time of the last event
	segment int   // that it is in
	where   mark  // of the event that is applied
}

// What a node has of a key.
const (
	nothing uint8 = iota
	replica
	main
)

func newGrid(nodes int, origin, width int64, most, budget int) *grid {
	g := &grid{origin: origin, width: width, nodes: nodes, bitmap: (nodes + 7) / 8, most: most, budget: budget}
	for n := range nodes {
		g.walkers = append(g.walkers, &walker{node: n})
	}
	return g
}

// limit returns how many columns there may be.
func (g *grid) limit() int {
	if g.fixed {
		return g.most
	}
	return max(leastColumns, min(g.most, g.budget/max(1, g.keys*(cellBytes+g.bitmap))))
}

// room makes room for a key, by its number.
func (g *grid) room(key int) {
	if key < g.keys {
		return
	}
	g.keys = max(1024, key+key/8)
	for !g.loading && len(g.columns) > g.limit() {
		g.halve()
	}
}

// expect makes room for so many keys, and for times up to the last one. Until settle, there may be too many columns.
func (g *grid) expect(keys uint64, last int64) {
	g.keys, g.loading = int(min(keys, math.MaxInt32)), true
	for !g.fixed && (last-g.origin)/g.width >= int64(g.limit()) {
		g.width *= 2
	}
}

// settle ends what expect began.
func (g *grid) settle() {
	for g.loading = false; len(g.columns) > g.limit(); {
		g.halve()
	}
}

// step comes to a time with a node, before an event of that time is applied, or to the end of a fixed grid.
func (g *grid) step(w *walker, t int64) {
	for !g.fixed && (t-g.origin)/g.width >= int64(g.limit()) {
		g.halve()
	}
	for t >= g.end(w.at) && w.at < g.limit() {
		c := g.column(w.at)
		g.fill(w, c)
		c.mark(w.node, g.nodes, w.where)
		w.at++
	}
}

// since returns by window when a node began to count what it wrote down in it: the first window after the one in which it last did. Workers write down their accesses in
// sum, at the end of a second, or of several if they access many keys; nodes do so with refreshes each second, where they are many.
func (g *grid) since(node int, c Count) []int {
	list, last := make([]int, len(g.columns)), 0
	for i := range list {
		if list[i] = i; g.columns[i].counts[node*int(Counted)+int(c)] > 0 {
			list[i], last = last, i+1
		}
		if c == Tallied {
			list[i] = max(list[i], i-int((second-1)/g.width))
		}
	}
	return list
}

// lasted returns how long windows last in a run of which the last event is known, in ns.
func (g *grid) lasted(first, end int, last int64) int64 {
	return min(g.end(end-1), last) - min(g.end(first-1), last)
}

// series returns how much there was in each window of what a node counted. What it wrote down in sum is spread over the time of which it is.
func (g *grid) series(node int, c Count, last int64) []float64 {
	list := make([]float64, len(g.columns))
	var since []int
	switch c {
	case Accesses, Misses:
		since = g.since(node, Accesses)
	case Tallied:
		since = g.since(node, c)
	}
	for i := range list {
		x, first := float64(g.columns[i].counts[node*int(Counted)+int(c)]), i
		if since != nil {
			first = since[i]
		}
		took := g.lasted(first, i+1, last)
		if x == 0 || took <= 0 {
			list[i] += x
			continue
		}
		for at := first; at <= i; at++ {
			list[at] += x * float64(g.lasted(at, at+1, last)) / float64(took)
		}
	}
	return list
}

// end returns when a column ends.
func (g *grid) end(column int) int64 { return g.origin + int64(column+1)*g.width }

func (g *grid) column(i int) *column {
	for i >= len(g.columns) {
		g.columns = append(g.columns, &column{counts: make([]uint64, g.nodes*int(Counted))})
	}
	c := g.columns[i]
	c.widen(g.keys, g.bitmap)
	return c
}

func widen[T any](s []T, n int) []T {
	if len(s) >= n {
		return s
	}
	wide := make([]T, n)
	copy(wide, s)
	return wide
}

// fill writes what a node has into a column.
func (g *grid) fill(w *walker, c *column) {
	bit, node, bitmap := uint8(1)<<(w.node&7), uint8(w.node+1), g.bitmap
	n := min(len(w.has), len(c.owner)) // of others, the node has nothing
	has, now, replicas := w.has[:n], w.epoch[:n], c.replicas[w.node/8:]
	for k, x := range has {
		if x == main {
			c.own(k, node, uint8(now[k]))
		} else if x == replica {
			replicas[k*bitmap] |= bit
		}
	}
}

// apply takes note of an event of a key in the column that its node is in.
func (g *grid) apply(w *walker, key int, e *trace.Event) {
	w.hold(key, e)
	g.count(w, key, e)
}

// count counts an event of a key in the column that its node is in.
func (g *grid) count(w *walker, key int, e *trace.Event) {
	c, n, ok := count(e)
	if !ok {
		return
	}
	col := g.column(w.at)
	col.counts[w.node*int(Counted)+int(c)] += n
	if c == Accesses {
		col.heat[key] = uint16(min(math.MaxUint16, uint64(col.heat[key])+n))
	}
}

// hold takes note of what the node has of a key after an event.
func (w *walker) hold(key int, e *trace.Event) {
	has := nothing
	switch e.Kind {
	case trace.Created, trace.Arrived, trace.Owns:
		has = main
	case trace.Copied, trace.Refreshed, trace.Replicates:
		has = replica
	case trace.Left, trace.Ended:
	default:
		return
	}
	if key >= len(w.has) {
		if has == nothing {
			return
		}
		w.has, w.epoch = widen(w.has, 2*key+1), widen(w.epoch, 2*key+1)
	}
	w.has[key], w.epoch[key] = has, uint32(e.Epoch)
}

// A change says what a node has of a key from a time within a column on.
type change struct {
	column, key int32
	has         uint8
	epoch       uint8 // modulo 256
}

// place has the columns of a fixed grid say where keys are. Its walkers have what nodes had at the grid's begin; changes are those of each node, in the order of columns. A
// column is the same as the one before it, but for keys that changed.
func (g *grid) place(changes [][]change) {
	for i, c := range g.columns {
		if i == 0 {
			for _, w := range g.walkers {
				g.fill(w, c)
			}
		} else {
			before := g.columns[i-1]
			copy(c.owner, before.owner)
			copy(c.replicas, before.replicas)
		}
		for n, w := range g.walkers {
			for ; len(changes[n]) > 0 && int(changes[n][0].column) == i; changes[n] = changes[n][1:] {
				x := &changes[n][0]
				w.has[x.key], w.epoch[x.key] = x.has, uint32(x.epoch)
				g.placeKey(c, int(x.key))
			}
			w.at = i + 1
		}
	}
}

// placeKey has a column say where a key is, by what nodes have now.
func (g *grid) placeKey(c *column, k int) {
	c.owner[k], c.epoch[k] = 0, 0
	replicas := c.replicasOf(k, g.bitmap)
	clear(replicas)
	for n, w := range g.walkers {
		switch w.has[k] {
		case main:
			c.own(k, uint8(n+1), uint8(w.epoch[k]))
		case replica:
			replicas[n/8] |= 1 << (n & 7)
		}
	}
}

// halve makes one column of two.
func (g *grid) halve() {
	g.width *= 2
	for i := 0; i < len(g.columns); i += 2 {
		c := g.columns[i]
		if i+1 < len(g.columns) {
			c = g.columns[i+1]
			c.add(g.columns[i])
		} else {
			c.forgetState() // it ends later than it did
		}
		g.columns[i/2] = c
	}
	n := (len(g.columns) + 1) / 2
	clear(g.columns[n:])
	g.columns = g.columns[:n]
	for _, w := range g.walkers {
		w.at /= 2
	}
}

// add adds what happened within the column before.
func (c *column) add(before *column) {
	c.heat = widen(c.heat, len(before.heat))
	for k, n := range before.heat {
		c.heat[k] = uint16(min(math.MaxUint16, uint32(c.heat[k])+uint32(n)))
	}
	for i, n := range before.counts {
		c.counts[i] += n
	}
}

func (c *column) forgetState() {
	clear(c.owner)
	clear(c.epoch)
	clear(c.replicas)
	c.marks, c.former = nil, nil
}

// complete returns a column with what nodes have that have not come to its end: what they have now.
func (g *grid) complete(i int) *column {
	c := g.columns[i]
	if !slices.ContainsFunc(g.walkers, func(w *walker) bool { return w.at <= i }) {
		return c
	}
	own := &column{owner: slices.Clone(c.owner), epoch: slices.Clone(c.epoch), heat: c.heat, replicas: slices.Clone(c.replicas), counts: c.counts}
	for _, w := range g.walkers {
		if w.at <= i {
			own.widen(len(w.has), g.bitmap)
			g.fill(w, own)
		}
	}
	return own
}

// widen makes room for so many keys.
func (c *column) widen(keys, bitmap int) {
	c.owner, c.epoch, c.heat = widen(c.owner, keys), widen(c.epoch, keys), widen(c.heat, keys)
	c.replicas = widen(c.replicas, keys*bitmap)
}

// Owner of a key at the end of the column; -1: nobody told that it owns it.
func (c *column) ownerOf(k int) int {
	if k >= len(c.owner) {
		return -1
	}
	return int(c.owner[k]) - 1
}

// replicasOf returns the bitmap of the nodes that have a replica of a key.
func (c *column) replicasOf(k, bitmap int) []uint8 {
	if k*bitmap >= len(c.replicas) {
		return make([]uint8, bitmap)
	}
	return c.replicas[k*bitmap : (k+1)*bitmap]
}

// ones counts the bits of a bitmap.
func ones(b []uint8) (n int) {
	for _, x := range b {
		n += bits.OnesCount8(x)
	}
	return n
}
