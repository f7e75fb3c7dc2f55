package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
)

// The tables of a storm. All rows are vector clocks, in different ways.
const (
	plain   = iota // counts by addition
	long           // likewise, and floats behind that must stay 0
	most           // keeps the largest; what is pushed grows
	counted        // counts by pairs of floats, in large steps
	set            // is written by one worker, which sets it now and then
	lossy          // counts by addition, with filters that round and hold back
	torn           // is pushed to by calls that are cancelled
	tables
)

const (
	counterStep = 5000
	setEra      = 256 // a set writes multiples of it, pushes count on from there
	behind      = 7   // floats of a long row that stay 0
)

// A plan is what follows from the seed of a storm: the cluster, the model, and
// what each worker writes at each of its clocks.
type plan struct {
	seed      uint64
	nodes     int
	perNode   int
	processes bool
	tcp       bool
	policy    placement.Policy
	noHints   bool
	eager     bool
	filters   [tables]string
	stale     [tables]godwit.Bound
	window    [tables]godwit.Bound
	model     *godwit.Model
	samplers  []sampling.Spec

	eras   []era
	writes [][][]write // by worker and step (a clock, counted through all eras)
	// sums[s][w][k] is what coordinate w of key k is once worker w has made its
	// writes of the steps before s.
	sums [][][]int32
}

// An era is what lies between two barriers.
type era struct {
	first, steps int
	whole        bool // it ends with WaitSync, Barrier, WaitSync on all workers,
	all          bool // … or with SyncAll
}

// A write is a push, or a set of keys of the table "set".
type write struct {
	key godwit.Key
	set bool
}

func (p *plan) workers() int            { return p.nodes * p.perNode }
func (p *plan) nodeOf(worker int) int   { return worker / p.perNode }
func (p *plan) table(k godwit.Key) int  { t, _ := p.model.Locate(k); return t }
func (p *plan) steps() int              { return len(p.sums) - 1 }
func (p *plan) writer(k godwit.Key) int { return int(k) % p.workers() } // of a key of the table "set"

// single reports whether keys have one copy.
func (p *plan) single() bool {
	switch p.policy {
	case placement.Static, placement.RelocateAll, placement.AdaptiveMoveOnly:
		return true
	}
	return false
}

// policies are those of the system. Of so few keys, none is hot by the default rule.
func policies() []string {
	names := placement.Names()
	for i, n := range names {
		if n == placement.NonUniform.Name() {
			names[i] = "nonuniform(factor=2)"
		}
	}
	return names
}

func newPlan(seed uint64, processes bool) (*plan, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	p := &plan{
		seed: seed, processes: processes, nodes: 1 + rng.IntN(5), perNode: 1 + rng.IntN(4),
		tcp: rng.IntN(2) == 0, noHints: rng.IntN(4) == 0, eager: rng.IntN(4) == 0,
	}
	if processes {
		p.nodes, p.tcp = 2+rng.IntN(3), true
	}
	var err error
	if p.policy, err = placement.ByName(one(rng, policies())); err != nil {
		return nil, err
	}
	if err := p.makeModel(rng); err != nil {
		return nil, err
	}
	p.makeSamplers(rng)
	p.makeWrites(rng)
	return p, nil
}

func one[T any](rng *rand.Rand, of []T) T { return of[rng.IntN(len(of))] }

func (p *plan) makeModel(rng *rand.Rand) error {
	lossless := []string{"", "", "sparse", "s2", "zstd", "sparse,s2", "sparse,zstd"}
	p.filters = [tables]string{
		plain: one(rng, append(lossless, "bf16")), long: one(rng, append(lossless, "bf16,sparse")), counted: one(rng, lossless),
		lossy: one(rng, []string{"fixed(bytes=1)", "fixed(bytes=2),sparse", "bf16,s2", "skip(p=0.5)", "significant(threshold=2.5)",
			"significant(threshold=2.5),fixed(bytes=1),sparse", "skip(p=0.3),bf16,zstd"}),
	}
	other, method := "s2", "zstd" // frames carry records of all tables: there is one way to compress them
	if rng.IntN(2) == 0 {
		other, method = method, other
	}
	for i, text := range p.filters {
		p.filters[i] = strings.ReplaceAll(text, other, method)
	}
	w := p.workers()
	ts := []godwit.Table{
		plain: {Name: "plain", Dim: w}, long: {Name: "long", Dim: w + behind}, most: {Name: "most", Dim: w, Rule: optim.Max{}},
		counted: {Name: "counted", Dim: 2 * w, Rule: optim.Counter{}}, set: {Name: "set", Dim: 3}, lossy: {Name: "lossy", Dim: w}, torn: {Name: "torn", Dim: w},
	}
	told := rng.IntN(2) == 0
	for i := range ts {
		ts[i].Rows = 1 + rng.Uint64N(6)
		fs, err := filter.Parse(p.filters[i])
		if err != nil {
			return err
		}
		ts[i].Filters = fs
		if rng.IntN(2) == 0 {
			p.stale[i] = godwit.Within(rng.IntN(4))
		}
		if rng.IntN(3) == 0 {
			p.window[i] = godwit.Within(rng.IntN(3))
		}
		ts[i].Staleness, ts[i].Window = p.stale[i], p.window[i]
		if told {
			ts[i].Hot = func(row uint64) float64 { return float64(1000 * (1 - min(row, 1))) }
		}
	}
	m, err := godwit.NewModel(ts...)
	p.model = m
	return err
}

func (p *plan) makeSamplers(rng *rand.Rand) {
	for i, s := range sampling.Schemes() {
		t := []int{plain, long, most}[i%3]
		p.samplers = append(p.samplers, sampling.Spec{Name: s.Name(), Table: t, Dist: sampling.Uniform(p.model.Table(t).Rows), Scheme: s, Distinct: rng.IntN(3) == 0})
	}
}

func (p *plan) makeWrites(rng *rand.Rand) {
	n := 0
	for range 1 + rng.IntN(3) {
		e := era{n, 5 + rng.IntN(40), rng.IntN(2) == 0, rng.IntN(2) == 0}
		if p.processes {
			e.steps *= 5 // they take long to start
		}
		p.eras = append(p.eras, e)
		n += e.steps
	}
	p.eras[len(p.eras)-1].whole = true
	keys := int(p.model.Keys())
	p.writes = make([][][]write, p.workers())
	sums := make([][]int32, p.workers())
	for w := range p.writes {
		p.writes[w], sums[w] = make([][]write, n), make([]int32, keys)
	}
	p.sums = append(p.sums, clone(sums))
	for s := range n {
		for w := range sums {
			for range rng.IntN(5) {
				x := write{key: godwit.Key(rng.IntN(keys))}
				switch p.table(x.key) {
				case torn:
					continue
				case set:
					if p.writer(x.key) != w {
						continue
					}
					at := &sums[w][x.key]
					if x.set = rng.IntN(3) == 0 || *at%setEra > setEra/2; x.set {
						*at = (*at/setEra + 1) * setEra
					} else {
						*at++
					}
				default:
					sums[w][x.key]++
				}
				p.writes[w][s] = append(p.writes[w][s], x)
			}
		}
		p.sums = append(p.sums, clone(sums))
	}
}

func clone(a [][]int32) [][]int32 {
	b := make([][]int32, len(a))
	for i := range a {
		b[i] = append([]int32(nil), a[i]...)
	}
	return b
}

// config is the node's part that follows from the plan.
func (p *plan) config() node.Config {
	return node.Config{Model: p.model, Policy: p.policy, Seed: p.seed, Samplers: p.samplers, NoHints: p.noHints, Eager: p.eager, Workers: p.perNode}
}

func (p *plan) String() string {
	where := "in memory"
	switch {
	case p.processes:
		where = "in processes"
	case p.tcp:
		where = "over TCP"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d nodes of %d workers %s, %s, %d steps in %d eras", p.nodes, p.perNode, where, p.policy.Name(), p.steps(), len(p.eras))
	if p.noHints {
		b.WriteString(", no hints")
	}
	if p.eager {
		b.WriteString(", eager")
	}
	for i := range p.filters {
		fmt.Fprintf(&b, "; %s: %d rows", p.model.Table(i).Name, p.model.Table(i).Rows)
		if p.filters[i] != "" {
			fmt.Fprintf(&b, ", %s", p.filters[i])
		}
		if s, ok := p.stale[i].Clocks(); ok {
			fmt.Fprintf(&b, ", within %d", s)
		}
		if d, ok := p.window[i].Clocks(); ok {
			fmt.Fprintf(&b, ", window %d", d)
		}
	}
	return b.String()
}
