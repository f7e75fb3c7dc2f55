package experiment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/sim"
)

// The program of "timing": steps of a few accesses, at nodes of one worker.
const (
	timingDim   = 16
	timingBatch = 2
	timingNodes = 4
	timingStep  = 20 * time.Microsecond // of computation, if Lab.Step does not say
	farthest    = 1 << 18
	looks       = 64 // at the replicas of all nodes
)

// timing has workers access random keys, which they announce a number of steps
// ahead. The server decides when to act or, with timing off, acts at once.
func timing(ctx context.Context, l *Lab, r *Report) error {
	if l.Step == 0 {
		l.Step = timingStep
	}
	r.Task = fmt.Sprintf("%d steps of a worker, %d keys of %d each, Zipf %v, values of %d floats; %d nodes with 1 worker",
		l.Accesses, timingBatch, l.Keys, l.Exponent, timingDim, timingNodes)
	r.columns = signalled
	model, err := godwit.NewModel(godwit.Table{Name: "row", Rows: uint64(l.Keys), Dim: timingDim})
	if err != nil {
		return err
	}
	keys, err := zipf(l.Keys, l.Exponent)
	if err != nil {
		return err
	}
	var offsets []int
	for d := 1; d <= farthest && d/4 <= l.Accesses; d *= 4 {
		offsets = append(offsets, d)
	}
	names := []string{"adaptive", "adaptive, timing off"}
	rows := make([]*Row, len(names)*len(offsets))
	err = l.each(ctx, len(rows), func(ctx context.Context, i int) (err error) {
		off, d := i/len(offsets), offsets[i%len(offsets)]
		l.progress(fmt.Sprintf("%s, %d steps ahead", names[off], d))
		if rows[i], err = l.ahead(ctx, model, keys, d, off == 1); err == nil {
			rows[i].Policy = names[off]
		}
		return err
	})
	waited := Plot{File: "timing-wait", Title: "Accesses that waited", X: "steps ahead", Y: "% of accesses"}
	held := Plot{File: "timing-replicas", Title: "Replicas held, mean over time", X: "steps ahead", Y: "replicas"}
	for _, d := range offsets {
		waited.Ticks, held.Ticks = append(waited.Ticks, fmt.Sprint(d)), append(held.Ticks, fmt.Sprint(d))
	}
	for i, name := range names {
		a := Series{Name: name, of: func(r *Row) float64 { return 100 * (1 - r.NoMessage) }}
		b := Series{Name: name, of: func(r *Row) float64 { return r.Replicas }}
		for _, row := range rows[i*len(offsets) : (i+1)*len(offsets)] {
			if row != nil {
				r.Rows = append(r.Rows, row)
				a.add(row)
				b.add(row)
			}
		}
		waited.Series, held.Series = append(waited.Series, a), append(held.Series, b)
	}
	r.plots = []Plot{waited, held}
	return err
}

// ahead runs the program with one distance.
func (l *Lab) ahead(ctx context.Context, m *godwit.Model, dist sampling.Distribution, distance int, off bool) (row *Row, err error) {
	c, err := cluster(sim.Config{Nodes: timingNodes, Workers: 1, Seed: l.Seed, Model: m, Policy: placement.Adaptive, Eager: off, Compute: l.Compute(1)}, "10g")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var replicas, samples float64
	res, err := c.Run(ctx, func(ctx context.Context, w godwit.Worker) error {
		rng := rand.New(rand.NewPCG(l.Seed, uint64(w.ID().Node)))
		// What was announced and not yet done, in a ring of steps.
		told, ahead := 0, make([]godwit.Key, min(distance, l.Accesses)*timingBatch)
		at := func(step int) []godwit.Key {
			i := step * timingBatch % len(ahead)
			return ahead[i : i+timingBatch]
		}
		vals := make([]float32, timingBatch*timingDim)
		for i := range l.Accesses {
			for ; told < min(i+distance, l.Accesses); told++ {
				keys := at(told)
				for j := range keys {
					// Popular keys are spread over homes by a fixed stride.
					keys[j] = godwit.Key(dist.Draw(rng) * 7919 % uint64(l.Keys))
				}
				if err := w.Intent(keys, godwit.Clock(told), godwit.Clock(told)+1); err != nil {
					return err
				}
			}
			if err := w.Pull(ctx, at(i), vals); err != nil {
				return err
			}
			if err := w.Push(ctx, at(i), vals); err != nil {
				return err
			}
			w.Advance()
			if w.ID().Node == 0 && i%max(l.Accesses/looks, 1) == 0 {
				s := total(c, timingNodes)
				replicas += float64(s.Replicas)
				samples++
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("experiment: intents %d steps ahead: %w", distance, err)
	}
	row = &Row{Network: "10g", Nodes: timingNodes, Workers: 1, Zipf: l.Exponent, Offset: distance, Epoch: res.Elapsed,
		Messages: res.Messages}
	row.count(res.Sum())
	row.Replicas = replicas / samples
	if off {
		row.Window = 0
	}
	return row, nil
}

// zipf is Zipf's law over n rows.
func zipf(n int, exponent float64) (sampling.Distribution, error) {
	ranks := make([]float64, n)
	for i := range ranks {
		ranks[i] = float64(i + 1)
	}
	return sampling.Power(ranks, -exponent)
}
