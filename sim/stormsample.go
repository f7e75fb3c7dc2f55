package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/history"
	"github.com/godwit-ps/godwit/sampling"
)

// stormSamples are the samplers of a storm: of any table, by any scheme.
func stormSamples(rng *rand.Rand, m *godwit.Model) []sampling.Spec {
	var specs []sampling.Spec
	schemes := sampling.Schemes()
	for i := range 1 + rng.IntN(2) {
		table := rng.IntN(clockTables)
		specs = append(specs, sampling.Spec{Name: fmt.Sprint("sampler ", i), Table: table, Dist: sampling.Uniform(m.Table(table).Rows),
			Scheme: schemes[rng.IntN(len(schemes))], Distinct: rng.IntN(3) == 0})
	}
	return specs
}

// prepared is a sample that was announced.
type prepared struct {
	id   godwit.SampleID
	spec *sampling.Spec
	left int
	keys []godwit.Key // so far
}

// sample announces a sample, pulls a part of it, or gives up what is left.
func (x *stormWorker) sample(ctx context.Context) error {
	switch {
	case x.prep == nil:
		return x.prepare()
	case x.prep.left == 0 || x.rng.IntN(10) == 0:
		x.w.FinishSample(x.prep.id)
		x.prep = nil
		return nil
	}
	return x.pullSample(ctx)
}

func (x *stormWorker) prepare() error {
	i := x.rng.IntN(len(x.samples))
	p := &prepared{spec: &x.samples[i], left: 1 + x.rng.IntN(6)}
	if p.spec.Distinct {
		p.left = min(p.left, int(x.model.Table(p.spec.Table).Rows))
	}
	start := x.w.Clock() + godwit.Clock(x.rng.IntN(4))
	end := start + 1 + godwit.Clock(x.rng.IntN(8))
	x.last = max(x.last, end)
	var err error
	if p.id, err = x.w.PrepareSample(i, p.left, start, end); err == nil {
		x.prep = p
	}
	return err
}

// pullSample judges the values of a part of a sample as those of a read, and
// pushes to its keys. Which they are is known afterwards only, so a read of each
// of the table's keys is issued.
func (x *stormWorker) pullSample(ctx context.Context) error {
	p := x.prep
	table := x.model.Table(p.spec.Table)
	issued := map[godwit.Key]*history.Reading{}
	for row := range table.Rows {
		k := x.model.Key(p.spec.Table, row)
		issued[k] = x.history.ReadIssued(x.id, k)
	}
	keys := make([]godwit.Key, 1+x.rng.IntN(p.left))
	vals := make([]float32, len(keys)*table.Dim)
	until := x.ending(ctx)
	if gave, err := until.gaveUp(&x.cancelled.Pulls, x.w.PullSample(until, p.id, keys, vals)); gave || err != nil {
		x.giveUp(vals)
		x.w.FinishSample(p.id)
		x.prep = nil
		return err
	}
	p.left -= len(keys)
	for i, k := range keys {
		if issued[k] == nil || p.spec.Distinct && slices.Contains(p.keys, k) {
			return fmt.Errorf("worker %d samples key %d of table %q after %v (distinct: %v)", x.id, k, table.Name, p.keys, p.spec.Distinct)
		}
		p.keys = append(p.keys, k)
		if err := x.history.Read(issued[k], vals[i*table.Dim:(i+1)*table.Dim]); err != nil {
			return fmt.Errorf("in a sample: %w", err)
		}
	}
	return x.push(ctx, keys)
}
