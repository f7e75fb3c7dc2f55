package experiment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
	"github.com/godwit-ps/godwit/train/task"
)

var sketchColumns = []column{
	{"policy", func(r *Row) string { return r.Policy }},
	{"nodes", func(r *Row) string { return fmt.Sprint(r.Nodes) }},
	{"workers", func(r *Row) string { return fmt.Sprint(r.Nodes * r.Workers) }},
	{"batch", func(r *Row) string { return fmt.Sprint(r.Batch) }},
	{"M inserts/s", func(r *Row) string { return fmt.Sprintf("%.2f", r.Inserts/1e6) }},
	{"of a worker", func(r *Row) string { return fmt.Sprintf("%.3f", r.Inserts/1e6/float64(r.Nodes*r.Workers)) }},
	{"speed-up", func(r *Row) string {
		if r.Speedup == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f", r.Speedup)
	}},
	{"waiting", func(r *Row) string { return fmt.Sprintf("%.1f %%", 100*r.Waiting) }},
	{"bytes/insert", func(r *Row) string { return fmt.Sprintf("%.1f", r.BytesPerInsert) }},
	{"bits/remote cell", func(r *Row) string {
		if r.Remote == 0 {
			return "-"
		}
		return fmt.Sprintf("%.0f", 8*float64(r.SentBytes)/(r.Remote*float64(r.Accesses)))
	}},
	{"too small", func(r *Row) string { return fmt.Sprint(r.TooSmall) }},
}

// inserts counts a stream by a count-min sketch on several numbers of nodes, in
// batches of several sizes.
func inserts(ctx context.Context, l *Lab, r *Report) error {
	r.columns = sketchColumns
	if l.Nodes = slices.DeleteFunc(slices.Clone(l.Nodes), func(n int) bool { return n > l.Most }); len(l.Nodes) == 0 {
		return fmt.Errorf("experiment: no number of nodes up to %d", l.Most)
	}
	settings := func(batch int) *task.Sketch {
		s := *l.Sketch
		s.Batch = batch
		s.Generate(l.Exponent, l.Seed)
		return &s
	}
	network, err := sim.NetworkNamed("10g")
	if err != nil {
		return err
	}
	works := make([]*work, len(l.Batches))
	for i, b := range l.Batches {
		if works[i], err = l.load(settings(b)); err != nil {
			return err
		}
	}
	if err := l.stepsOf(ctx, works); err != nil {
		return err
	}
	r.Task = fmt.Sprintf("sketch, %d × %d cells: %s; %s", l.Sketch.Depth, l.Sketch.Width, works[0].task.Summary(), l.where(l.Nodes[len(l.Nodes)-1], l.Workers))
	policies := l.Policies
	if policies == nil {
		policies = []placement.Policy{placement.Adaptive}
	}
	rows := make([]*Row, len(policies)*len(works)*len(l.Nodes))
	err = l.each(ctx, len(rows), func(ctx context.Context, i int) error {
		p, b, nodes := policies[i/(len(l.Nodes)*len(works))], i/len(l.Nodes)%len(works), l.Nodes[i%len(l.Nodes)]
		compute := l.Compute(l.Workers)
		compute.Step = l.batchSteps[b]
		o, err := l.run(ctx, &program{what: fmt.Sprintf("%s, %d nodes, batches of %d", p.Name(), nodes, l.Batches[b]), work: works[b], nodes: nodes, workers: l.Workers,
			policy: p, network: network, compute: compute, epochs: 1, tested: true})
		if err != nil {
			return err
		}
		e := o.epochs[0]
		row := &Row{Policy: p.Name(), Network: "10g", Nodes: nodes, Workers: l.Workers, Zipf: l.Exponent, Batch: l.Batches[b], Step: l.batchSteps[b], Epoch: e.took}
		row.count(e.did)
		items := float64(l.Sketch.Stream.Items)
		row.Inserts, row.BytesPerInsert, row.SentBytes = items/e.took.Seconds(), float64(e.did.SentBytes)/items, e.did.SentBytes
		row.Waiting, row.TooSmall = e.waiting(nodes*l.Workers), int(o.test.At("too small"))
		rows[i] = row
		return nil
	})
	plot := Plot{File: "sketch", Title: "Inserts into a count-min sketch", X: "nodes", Y: "million a second"}
	for _, n := range l.Nodes {
		plot.Ticks = append(plot.Ticks, fmt.Sprint(n))
	}
	for rest := rows; len(rest) > 0; rest = rest[len(l.Nodes):] {
		i := (len(rows) - len(rest)) / len(l.Nodes)
		s := Series{Name: fmt.Sprintf("batches of %d", l.Batches[i%len(works)]), of: func(r *Row) float64 { return r.Inserts / 1e6 }}
		if len(policies) > 1 {
			s.Name = policies[i/len(works)].Name() + ", " + s.Name
		}
		first := rest[0]
		for _, row := range rest[:len(l.Nodes)] {
			if row != nil && first != nil {
				if first.Nodes == 1 {
					row.Speedup = row.Inserts / first.Inserts
				}
				r.Rows = append(r.Rows, row)
				s.add(row)
			}
		}
		plot.Series = append(plot.Series, s)
	}
	r.plots = []Plot{plot}
	return err
}

// stepsOf finds what a step computes with each size of batches, whose works these are, unless another
// seed has: in proportion to the items, where Lab.Step gives that of the first size, or measured.
func (l *Lab) stepsOf(ctx context.Context, works []*work) (err error) {
	if l.batchSteps != nil {
		return nil
	}
	steps := make([]time.Duration, len(works))
	for i, b := range l.Batches {
		switch {
		case l.Real != nil:
		case l.Step > 0:
			steps[i] = l.Step * time.Duration(b) / time.Duration(l.Batches[0])
		default:
			l.progress(fmt.Sprintf("measuring a step of %d items", b))
			if steps[i], err = l.calibrate(ctx, works[i]); err != nil {
				return err
			}
		}
	}
	l.Step, l.batchSteps = steps[0], steps
	return nil
}
