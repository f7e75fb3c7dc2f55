package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/protocol/placement"
	"github.com/godwit-ps/godwit/sim"
)

// The program of "timing": steps of a few accesses, at nodes of one worker.
const (
	timingKeys  = 100_000
	timingDim   = 16
	timingBatch = 4
	timingNodes = 4
	timingStep  = 20 * time.Microsecond // of computation, if Lab.Step does not say
	farthest    = 1 << 18
)

// timing has workers access random keys, which they announce a number of steps
// ahead: for the step alone, so that the server decides when to act, or, with
// timing off, from now until the step, so that it acts at once.
func timing(ctx context.Context, l *Lab, r *Report) error {
	if l.Step == 0 {
		l.Step = timingStep
	}
	r.Task = fmt.Sprintf("%d steps of a worker, %d keys of %d each, Zipf %v, values of %d floats; %d nodes with 1 worker",
		l.Accesses, timingBatch, timingKeys, l.Graph.Exponent, timingDim, timingNodes)
	r.columns = signalled
	model, err := godwit.NewModel(godwit.Table{Name: "row", Rows: timingKeys, Dim: timingDim})
	if err != nil {
		return err
	}
	cum := cumulate(timingKeys, l.Graph.Exponent)
	var remote, held Plot
	remote = Plot{File: "timing-wait", Title: "Accesses that waited", X: "steps ahead", Y: "% of accesses"}
	held = Plot{File: "timing-replicas", Title: "Replicas held, mean over time", X: "steps ahead", Y: "replicas"}
	for _, off := range []bool{false, true} {
		name := map[bool]string{false: "adaptive", true: "adaptive, timing off"}[off]
		a, b := Series{Name: name}, Series{Name: name}
		for d := 1; d <= farthest && d/8 <= l.Accesses; d *= 8 {
			if l.Progress != nil {
				l.Progress(fmt.Sprintf("%s, %d steps ahead", name, d))
			}
			row, err := l.ahead(ctx, model, cum, d, off)
			if err != nil {
				return err
			}
			row.Policy = name
			r.Rows = append(r.Rows, row)
			if !off {
				remote.Ticks = append(remote.Ticks, fmt.Sprint(d))
				held.Ticks = append(held.Ticks, fmt.Sprint(d))
			}
			a.Y, b.Y = append(a.Y, 100*(1-row.NoMessage)), append(b.Y, row.Replicas)
		}
		remote.Series, held.Series = append(remote.Series, a), append(held.Series, b)
	}
	r.plots = []Plot{remote, held}
	return nil
}

// ahead runs the program with one distance.
func (l *Lab) ahead(ctx context.Context, m *godwit.Model, cum []float64, distance int, off bool) (row *Row, err error) {
	c, err := cluster(sim.Config{Nodes: timingNodes, Workers: 1, Seed: l.Seed, Model: m, Policy: placement.Adaptive, Compute: l.Compute()}, "10g")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var replicas float64
	const looks = 64
	var samples int
	res, err := c.Run(ctx, func(ctx context.Context, w godwit.Worker) error {
		// Two generators that draw the same: for what is done and what is told.
		own := uint64(w.ID().Node)
		now, later := rand.New(rand.NewPCG(l.Seed, own)), rand.New(rand.NewPCG(l.Seed, own))
		keys, vals := make([]godwit.Key, timingBatch), make([]float32, timingBatch*timingDim)
		told := 0
		for i := range l.Accesses {
			for ; told < min(i+distance, l.Accesses); told++ {
				draw(keys, later, cum)
				start := godwit.Clock(told)
				if off {
					start = godwit.Clock(i)
				}
				if err := w.Intent(keys, start, godwit.Clock(told)+1); err != nil {
					return err
				}
			}
			draw(keys, now, cum)
			if err := w.Pull(ctx, keys, vals); err != nil {
				return err
			}
			if err := w.Push(ctx, keys, vals); err != nil {
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
	row = &Row{Network: "10g", Nodes: timingNodes, Workers: 1, Zipf: l.Graph.Exponent, Offset: distance, Epoch: res.Elapsed}
	s := res.Sum()
	row.count(node.Stats{}, s)
	row.Replicas = replicas / float64(max(samples, 1))
	return row, nil
}

// cumulate returns the cumulated probabilities of Zipf's law.
func cumulate(n int, exponent float64) []float64 {
	cum, sum := make([]float64, n), 0.0
	for i := range cum {
		sum += math.Pow(float64(i+1), -exponent)
		cum[i] = sum
	}
	for i := range cum {
		cum[i] /= sum
	}
	return cum
}

// draw fills keys, spread over homes by a fixed odd stride.
func draw(keys []godwit.Key, rng *rand.Rand, cum []float64) {
	for i := range keys {
		rank := min(sort.SearchFloat64s(cum, rng.Float64()), len(cum)-1)
		keys[i] = godwit.Key(rank * 7919 % len(cum))
	}
}
