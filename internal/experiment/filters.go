package experiment

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

// A filtered is a program of "filters" and what it is run with. The first stack
// is what the others are compared with.
type filtered struct {
	name   string
	policy placement.Policy
	epochs func(*Lab) int
	stacks []stack
	make   func(l *Lab, kkt bool) task.Settings
	// values is how many an access reads or writes, in the mean, without what our
	// rows have beside them.
	values float64
}

// A stack is filters that work together.
type stack struct {
	filters string // as package filter reads them
	kkt     bool   // the solver leaves out weights that stay zero
}

func (s stack) name() string {
	switch {
	case s.kkt && s.filters == "":
		return "KKT"
	case s.kkt:
		return "KKT, " + s.filters
	case s.filters == "":
		return "none"
	}
	return s.filters
}

var filteredPrograms = []filtered{
	{"blocks", placement.Adaptive, func(l *Lab) int { return l.Passes }, []stack{
		{}, {filters: "sparse"}, {filters: "s2"}, {filters: "zstd"}, {filters: "sparse, s2"},
		{filters: "bf16(forget=1)"}, {kkt: true}, {kkt: true, filters: "bf16(forget=1), sparse, s2"},
	}, (*Lab).blocks, 1.5}, // a weight is read, a gradient and a curvature are written
	{"ftrl", placement.Static, func(l *Lab) int { return max(l.Passes/3, 1) }, []stack{
		{}, {filters: "sparse"}, {filters: "s2"}, {filters: "zstd"}, {filters: "sparse, zstd"},
		{filters: "bf16"}, {filters: "fixed(bytes=2)"}, {filters: "fixed(bytes=1)"},
		{filters: "significant(threshold=0.1,decay=0.01)"},
		{filters: "significant(threshold=0.1,decay=0.01), fixed(bytes=1), sparse, zstd"},
	}, (*Lab).ftrl, 1},
	{"kge", placement.Static, func(*Lab) int { return 2 }, []stack{
		{}, {filters: "s2"}, {filters: "bf16"}, {filters: "bf16(answers=1)"}, {filters: "fixed(bytes=2,answers=1)"}, {filters: "fixed(bytes=1)"}, {filters: "fixed(bytes=1), sparse, s2"},
	}, (*Lab).kge, 32},
	{"count", placement.Static, func(*Lab) int { return 1 }, []stack{
		{}, {filters: "sparse"}, {filters: "s2"}, {filters: "zstd"}, {filters: "sparse, zstd"},
	}, (*Lab).count, 32}, // the cells of a key
}

func (l *Lab) blocks(kkt bool) task.Settings {
	s := *l.Linear
	s.Solver, s.ByBlocks.Blocks, s.ByBlocks.Delay = task.Blocks, min(l.Blocks, 16), 2 // blocks long enough for their keys to be worth remembering
	s.L1, s.ByBlocks.Recheck = 10, l.Passes                                           // a penalty that leaves few weights, which are looked at once
	if !kkt {
		s.ByBlocks.KKT = 0
	}
	s.Generate(l.Exponent, l.Seed)
	return &s
}

func (l *Lab) ftrl(bool) task.Settings {
	s := *l.Linear
	s.Solver = task.Stochastic
	s.Generate(l.Exponent, l.Seed)
	return &s
}

// kge is a small graph with rows of 32 floats.
func (l *Lab) kge(bool) task.Settings {
	s := task.DefaultKGE()
	n := max(min(20_000, l.Linear.Examples.Examples), 2000)
	s.Graph.Entities, s.Graph.Relations, s.Graph.Triples = n/10, n/1000, n
	s.Generate(l.Exponent, l.Seed)
	s.Dim, s.Batch, s.Negatives = 32, 8, 24
	return s
}

func (l *Lab) count(bool) task.Settings {
	s := *l.Sketch
	s.Generate(l.Exponent, l.Seed)
	s.Stream.Items = min(s.Stream.Items, 200_000)
	return &s
}

var filterColumns = []column{
	{"program", func(r *Row) string { return r.Program }},
	{"policy", func(r *Row) string { return r.Policy }},
	{"filters", func(r *Row) string { return r.Filters }},
	{"MB", func(r *Row) string { return fmt.Sprintf("%.2f", float64(r.SentBytes)/1e6) }},
	{"lists saved", func(r *Row) string { return fmt.Sprintf("%.2f", float64(r.ListSaved)/1e6) }},
	{"times less", func(r *Row) string { return fmt.Sprintf("%.2f", r.Less) }},
	{"than plain", func(r *Row) string { return fmt.Sprintf("%.1f", r.ThanPlain) }},
	{"objective", func(r *Row) string { return fmt.Sprintf("%.6f", r.Loss) }},
	{"changed by", func(r *Row) string { return fmt.Sprintf("%+.4f %%", 100*r.Change) }},
	{"test", func(r *Row) string { return fmt.Sprintf("%.5f", r.Quality) }},
	{"model", func(r *Row) string {
		if r.Same {
			return "the same"
		}
		return "another"
	}},
}

// filters trains and counts with filters of what nodes send. Frames take the
// same time whatever their length, so that what differs is what arrives.
func filters(ctx context.Context, l *Lab, r *Report) error {
	r.columns = filterColumns
	const workers = 1
	network := sim.Network{Latency: 25 * time.Microsecond}
	if l.Step == 0 {
		l.Step = 200 * time.Microsecond // it only decides the order of updates
	}
	kge := l.kge(false).(*task.KGE)
	r.Task = fmt.Sprintf("%d simulated nodes, %d worker each; blocks and ftrl: linear, %d examples of %d features; kge: %d entities, rows of %d floats; count: sketch, %d × %d cells",
		l.Most, workers, l.Linear.Examples.Examples, l.Linear.Examples.Features, kge.Graph.Entities, kge.Dim, l.Sketch.Depth, l.Sketch.Width)
	l.Costs.Send, l.Costs.Frame, l.Costs.Record, l.Costs.FrameByte = 0, 0, 0, 0
	r.Costs = l.Costs
	compute := l.Compute(workers)
	for _, f := range filteredPrograms {
		rows, hashes := make([]*Row, len(f.stacks)), make([]uint64, len(f.stacks))
		err := l.each(ctx, len(rows), func(ctx context.Context, i int) error {
			s := f.stacks[i]
			w, err := l.load(f.make(l, s.kkt))
			if err != nil {
				return err
			}
			fs, err := filter.Parse(s.filters)
			if err != nil {
				return err
			}
			tables := w.task.Tables()
			for i := range tables {
				tables[i].Filters = fs // in place of the table's own, as a row names all that it has
			}
			if w.model, err = godwit.NewModel(tables...); err != nil {
				return err
			}
			o, err := l.run(ctx, &program{what: f.name + ", filters: " + s.name(), work: w, nodes: l.Most, workers: workers,
				policy: f.policy, network: network, compute: compute, epochs: f.epochs(l), tested: true, hash: &hashes[i]})
			if err != nil {
				return err
			}
			if o.diverged {
				return fmt.Errorf("experiment: %s, filters: %s: %w", f.name, s.name(), train.ErrDiverged)
			}
			rows[i] = filteredRow(o, f, s, l.Most)
			return nil
		})
		for i, row := range rows {
			if row == nil || rows[0] == nil {
				continue
			}
			row.Less, row.ThanPlain = float64(rows[0].SentBytes)/float64(row.SentBytes), rows[0].plain/float64(row.SentBytes)
			if rows[0].Loss != 0 {
				row.Change = row.Loss/rows[0].Loss - 1
			}
			row.Same = hashes[i] == hashes[0]
			r.Rows = append(r.Rows, row)
		}
		if err != nil {
			return err
		}
		p := Plot{File: "filters-" + f.name, Title: "Bytes sent, " + f.name, Y: "MB", Bars: true, Series: []Series{{Name: "MB", of: func(r *Row) float64 { return float64(r.SentBytes) / 1e6 }}}}
		for _, row := range rows {
			p.Ticks = append(p.Ticks, row.Filters)
			p.Series[0].add(row)
		}
		r.plots = append(r.plots, p)
	}
	return nil
}

// filteredRow is what a run came to, with the bytes of all its epochs.
func filteredRow(o *outcome, f filtered, s stack, nodes int) *Row {
	all, took := did(o.epochs)
	row := &Row{Program: f.name, Policy: f.policy.Name(), Filters: s.name(), Nodes: nodes, Workers: 1, Epoch: took / time.Duration(len(o.epochs)),
		Loss: o.epochs[len(o.epochs)-1].loss}
	row.count(all)
	row.ListSaved = all.ListSaved
	if row.Quality = o.test.At("log loss"); math.IsNaN(row.Quality) {
		row.Quality = o.test[0].Value
	}
	// As Li et al. send them: a key of 8 bytes and values of 8, for each that was
	// read or pushed at another node.
	row.plain = float64(all.Remote) * (8 + 8*f.values)
	return row
}

// hashOf stands for the values of all rows.
func hashOf(c *sim.Cluster, m *godwit.Model) uint64 {
	h := fnv.New64a()
	var b [4]byte
	for k := godwit.Key(0); m.Has(k); k++ {
		for _, x := range c.Value(k) {
			bits := math.Float32bits(x)
			b[0], b[1], b[2], b[3] = byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24)
			h.Write(b[:])
		}
	}
	return h.Sum64()
}
