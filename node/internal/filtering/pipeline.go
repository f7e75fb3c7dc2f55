package filtering

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/vec"
)

// A Pipeline is how the pushes of one worker go through filters, with memory that is
// used again. A push calls AddKept, serves what is at the node, calls Filter with what
// is not, and Keep when that was sent. It belongs to the worker's goroutine, other than
// its Counts and its Residual.
//
// The positions of a call that are not at the node ("missed") come in pairs of the
// position and the offset of its vector.
type Pipeline struct {
	of       *Filters
	worker   godwit.WorkerID
	residual Residual

	good  []godwit.Filter // that a call brought, and that may be used
	batch godwit.FilterBatch
	calls []uint64 // batches, by table
	group [][]int  // by table: its missed positions
	used  []int    // the tables that have some, in the order in which they came
	not   []int    // the missed positions that were not issued
	keys  []godwit.Key
	codes []godwit.Encoding // by missed position
	vals  []float32         // vectors of all missed positions, as they are sent
	sum   []float32         // what is pushed, with what was kept

	took []kept    // from the residual, by ascending position of the call
	left []kept    // to be kept when the call has been issued,
	rest []float32 // … the vectors

	in, out, dropped, pushed atomic.Uint64 // bytes of values, positions, keys
}

// A kept vector belongs to a position of a call.
type kept struct {
	pos int
	key godwit.Key
	vec []float32
}

// Counts is what a pipeline did so far.
type Counts struct {
	In, Out uint64 // bytes of values that went into filters, and that came out
	Dropped uint64 // vectors that were held back
	Pushed  uint64 // keys of which what was kept was pushed by itself
}

// Add adds those of another worker.
func (c *Counts) Add(o Counts) {
	c.In += o.In
	c.Out += o.Out
	c.Dropped += o.Dropped
	c.Pushed += o.Pushed
}

// Counts returns what the pipeline did so far. Any goroutine may call it.
func (p *Pipeline) Counts() Counts {
	return Counts{p.in.Load(), p.out.Load(), p.dropped.Load(), p.pushed.Load()}
}

// Residual returns what filters left of the worker's pushes.
func (p *Pipeline) Residual() *Residual { return &p.residual }

// Pushed takes note that the worker pushed what was kept of so many keys.
func (p *Pipeline) Pushed(keys int) { add(&p.pushed, uint64(keys)) }

// add is for counters with one writer.
func add(c *atomic.Uint64, n uint64) { c.Store(c.Load() + n) }

// AddKept returns what is to be pushed together with what was kept of it. Keep is to
// be called then if Took says so.
func (p *Pipeline) AddKept(keys []godwit.Key, push []float32) []float32 {
	p.took = p.took[:0]
	off := 0
	p.residual.mu.Lock()
	defer p.residual.mu.Unlock()
	for i, k := range keys {
		dim := p.of.model.Dim(k)
		if v := p.residual.takeLocked(k); v != nil {
			if len(p.took) == 0 {
				p.sum = append(p.sum[:0], push...)
				push = p.sum
			}
			vec.Add(push[off:off+dim], v)
			p.took = append(p.took, kept{i, k, v})
		}
		off += dim
	}
	return push
}

// Took reports whether AddKept took something that Keep was not told of yet.
func (p *Pipeline) Took() bool { return len(p.took) > 0 }

// chosen are the filters of a call: its own, or those of each table.
type chosen struct {
	brings bool
	own    []godwit.Filter
	each   [][]godwit.Filter
}

func (c *chosen) any() bool { return c.brings && len(c.own) > 0 || !c.brings && c.each != nil }

func (c *chosen) of(table int) []godwit.Filter {
	if c.brings {
		return c.own
	}
	return c.each[table]
}

// choose returns the filters of a call, which were checked.
func (p *Pipeline) choose(ctx context.Context, ways Ways, bytes int) chosen {
	if fs, ok := godwit.FiltersOf(ctx); ok {
		return chosen{brings: true, own: fs}
	}
	if bytes > 0 && p.of.brief != nil && ways.StrainedBy(bytes) {
		return chosen{each: p.of.brief}
	}
	return chosen{each: p.of.each}
}

// Ways are those to all peers.
type Ways interface {
	// StrainedBy reports whether so many bytes more would strain one (link.Sender.StrainedBy).
	StrainedBy(bytes int) bool
}

// Check says why a call cannot go through the filters that it brings, before any
// of it is done. (A model was asked about those of its tables.) The model has the keys.
func (p *Pipeline) Check(fs []godwit.Filter, keys []godwit.Key) error {
	if err := p.usable(fs); err != nil || len(fs) == 0 {
		return err
	}
	m := p.of.model
	var first, rows godwit.Key // of the table of the key before
	for _, k := range keys {
		if k-first < rows {
			continue
		}
		t, _ := m.Locate(k)
		first, rows = m.Key(t, 0), godwit.Key(m.Table(t).Rows)
		for _, f := range fs {
			if err := m.Table(t).CheckFilter(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// usable says why filters are of no use to any call. Most calls bring those of
// the call before.
func (p *Pipeline) usable(fs []godwit.Filter) error {
	if len(fs) == 0 || len(p.good) == len(fs) && &p.good[0] == &fs[0] {
		return nil
	}
	if err := godwit.CheckFilters(fs); err != nil {
		return err
	}
	for _, x := range fs {
		if _, frames := x.(filter.Compress); frames {
			return fmt.Errorf("filter %s compresses frames, not calls: give it to a table", x.Name())
		}
	}
	p.good = fs
	return nil
}

// Filter has the missed positions of a push go through filters, table by table. Where the push would
// strain the network, tables that allow it are rounded ([godwit.Table.MayRound]). It returns those that are to be sent, in the memory of miss,
// with offsets in the vectors that it returns, and their encodings; none: all are raw. What it returns is good until
// the next call. Keep is to be called when it was sent.
func (p *Pipeline) Filter(ctx context.Context, ways Ways, miss []int, keys []godwit.Key, push []float32) ([]int, []godwit.Encoding, []float32) {
	p.left, p.rest, p.codes = p.left[:0], p.rest[:0], p.codes[:0]
	fs := p.choose(ctx, ways, 4*len(push)*len(miss)/2/max(len(keys), 1))
	if !fs.any() || p.residual.full() {
		return miss, p.codes, push
	}
	m := p.of.model
	n := len(miss) / 2
	p.vals = p.vals[:0]
	p.begin()
	floats := 0
	for i := range n {
		t, _ := m.Locate(keys[miss[2*i]])
		if len(p.group[t]) == 0 {
			p.used = append(p.used, t)
		}
		p.group[t] = append(p.group[t], i)
		floats += m.Table(t).Dim
	}
	p.vals = slices.Grow(p.vals, floats)
	p.codes = slices.Grow(p.codes, n)[:n]
	for _, t := range p.used {
		p.filter(fs.of(t), t, miss, keys, push)
	}
	to := 0
	for i := range n {
		if miss[2*i+1] >= 0 {
			miss[2*to], miss[2*to+1], p.codes[to] = miss[2*i], miss[2*i+1], p.codes[i]
			to++
		}
	}
	return miss[:2*to], p.codes[:to], p.vals
}

// begin empties what there is by table.
func (p *Pipeline) begin() {
	if p.group == nil {
		p.group, p.calls = make([][]int, p.of.model.Tables()), make([]uint64, p.of.model.Tables())
	}
	for _, t := range p.used {
		p.group[t] = p.group[t][:0]
	}
	p.used = p.used[:0]
}

// filter filters the missed positions of one table. It
// replaces the offsets of the missed positions, by -1 where nothing is sent.
func (p *Pipeline) filter(fs []godwit.Filter, table int, miss []int, keys []godwit.Key, push []float32) {
	dim := p.of.model.Table(table).Dim
	begin := len(p.vals)
	p.keys = p.keys[:0]
	for _, i := range p.group[table] {
		p.keys = append(p.keys, keys[miss[2*i]])
		off := miss[2*i+1]
		miss[2*i+1], p.codes[i] = len(p.vals), godwit.Encoding{}
		p.vals = append(p.vals, push[off:off+dim]...)
	}
	if len(fs) == 0 {
		return
	}
	b := &p.batch
	b.Worker, b.Table, b.Call, b.Dim = p.worker, table, p.calls[table], dim
	b.Reset(p.keys, p.vals[begin:], p.seed(table, b.Call))
	p.calls[table]++
	for _, x := range fs {
		x.Filter(b)
	}
	p.filtered(b, p.group[table], miss)
}

// seed is that of the random numbers of a batch.
func (p *Pipeline) seed(table int, call uint64) uint64 {
	x := godwit.Hash64(p.of.seed ^ 0xf117e5)
	for _, y := range []uint64{uint64(p.worker.Node)<<32 | uint64(p.worker.Local), uint64(table), call} {
		x = godwit.Hash64(x ^ y*0x9e3779b97f4a7c15)
	}
	return x
}

// filtered takes note of what filters made of a batch, which has these missed positions.
func (p *Pipeline) filtered(b *godwit.FilterBatch, which, miss []int) {
	out := 0
	b.Encoding = b.Encoding.Usable()
	for i, m := range which {
		if left := b.Residual(i); nonzero(left) {
			n := len(p.rest)
			p.rest = append(p.rest, left...)
			p.left = append(p.left, kept{miss[2*m], b.Keys[i], p.rest[n:]})
		}
		if !b.Sent(i) {
			miss[2*m+1] = -1
			continue
		}
		p.codes[m] = b.Encoding
		out += b.Encoding.Bytes(b.Vec(i))
	}
	add(&p.in, uint64(4*len(b.Vals)))
	add(&p.out, uint64(out))
	add(&p.dropped, uint64(b.Dropped()))
}

func nonzero(v []float32) bool {
	for _, x := range v {
		if x != 0 {
			return true
		}
	}
	return false
}

// Keep keeps what filters left of the positions of a call that were issued, and again
// what was kept of the others: of those that Filter returned, the last unissued.
func (p *Pipeline) Keep(miss []int, unissued int) {
	if len(p.left)+len(p.took) == 0 {
		return
	}
	if !p.of.kept.Load() {
		p.of.kept.Store(true)
	}
	not := p.not[:0]
	for i := len(miss) - 2*unissued; i < len(miss); i += 2 {
		not = append(not, miss[i])
	}
	slices.Sort(not)
	p.not = not
	issued := func(pos int) bool {
		_, found := slices.BinarySearch(not, pos)
		return !found
	}
	p.residual.mu.Lock()
	defer p.residual.mu.Unlock()
	for _, l := range p.left {
		if issued(l.pos) {
			p.residual.addLocked(l.key, l.vec)
		}
	}
	for _, t := range p.took {
		if !issued(t.pos) {
			p.residual.addLocked(t.key, t.vec)
		}
		p.residual.giveLocked(t.vec)
	}
	p.left, p.took = p.left[:0], p.took[:0]
}
