package filtering

import (
	"slices"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/vec"
)

// Filters are those of a node's tables, and what filters left of the pushes of all its
// workers.
type Filters struct {
	model *godwit.Model
	seed  uint64
	each  [][]godwit.Filter // by table; nil: none has any
	brief [][]godwit.Filter // where bytes bound the network; nil: none then, too
	kept  atomic.Bool       // filters left something of a push
	right chan struct{}     // holds a token while nobody pushes what is kept
	all   []*Residual       // of the workers
}

// New returns the filters of a node. The random numbers of filters follow from the seed. Brief
// has pushes of tables that allow it rounded where bytes bound the network.
func New(m *godwit.Model, seed uint64, brief bool) *Filters {
	f := &Filters{model: m, seed: seed, each: ofTables(m), right: make(chan struct{}, 1)}
	if brief {
		f.brief = briefOf(m)
	}
	f.right <- struct{}{}
	return f
}

// ofTables returns the filters of each table, other than of frames; nil if no table
// has any.
func ofTables(m *godwit.Model) (of [][]godwit.Filter) {
	for i := range m.Tables() {
		for _, f := range m.Table(i).Filters {
			if _, frames := f.(filter.Compress); frames {
				continue
			}
			if of == nil {
				of = make([][]godwit.Filter, m.Tables())
			}
			of[i] = append(of[i], f)
		}
	}
	return of
}

// briefOf returns the filters of each table where bytes bound the network: tables that may be
// rounded and have none of their own are rounded; nil if there is no such table.
func briefOf(m *godwit.Model) (of [][]godwit.Filter) {
	each := ofTables(m)
	for i := range m.Tables() {
		if !m.Table(i).MayRound() {
			continue
		}
		if of == nil {
			if of = make([][]godwit.Filter, m.Tables()); each != nil {
				copy(of, each)
			}
		}
		of[i] = []godwit.Filter{nearest{}}
	}
	return of
}

// nearest rounds to the nearest values of bfloat16.
type nearest struct{}

func (nearest) Name() string { return "nearest" }

// Filter rounds what is sent.
func (nearest) Filter(b *godwit.FilterBatch) {
	for i := range b.Keys {
		if b.Sent(i) {
			vec.SplitBF16(b.Vec(i), b.EnsureResidual(i))
		}
	}
	b.Encoding = godwit.Encoding{Coding: godwit.BFloat16}
}

// Pipeline makes that of a worker. It must not be called when the workers of the node
// have begun.
func (f *Filters) Pipeline(worker godwit.WorkerID) *Pipeline {
	p := &Pipeline{of: f, worker: worker}
	f.all = append(f.all, &p.residual)
	return p
}

// Kept reports whether filters ever left something of a push of the node.
func (f *Filters) Kept() bool { return f.kept.Load() }

// Right holds a token while nobody pushes what is kept, nor sets keys of which something may be: who pushes takes it, and puts it
// back when all of it has been answered; who sets, when the call is sent.
func (f *Filters) Right() chan struct{} { return f.right }

// Residuals returns those of all workers, in their order.
func (f *Filters) Residuals() []*Residual { return f.all }

// An Overwritten vector was kept by a worker of the node.
type Overwritten struct {
	by  *Residual
	odd bool
	kept
}

// Aside reports whether anything that a worker of the node had kept is set aside for a cut.
func (f *Filters) Aside() bool { return slices.ContainsFunc(f.all, (*Residual).Aside) }

// Overwrite takes what all workers of the node keep of keys that are about to be set on a side of cuts. The caller holds the right
// ([Filters.Right]). It takes nothing, and ok is false, while something of the other side has to be pushed first.
func (f *Filters) Overwrite(keys []godwit.Key, odd bool) (took []Overwritten, ok bool) {
	ok = !f.Aside()
	for _, r := range f.all {
		if !r.Some() {
			continue
		}
		for i, k := range keys {
			if v, of := r.take(k); v != nil {
				took = append(took, Overwritten{r, of, kept{i, k, v}})
				ok = ok && of == odd
			}
		}
	}
	if !ok {
		Forget(took, 0)
		return nil, false
	}
	return took, true
}

// Forget drops what Overwrite took. Positions of the call from not on were not set after
// all: what was kept of them is kept again.
func Forget(took []Overwritten, not int) {
	for _, o := range took {
		if o.pos >= not {
			o.by.giveBack(o.key, o.vec, o.odd)
		}
		o.by.give(o.vec)
	}
}
