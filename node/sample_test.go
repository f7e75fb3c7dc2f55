package node

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/sampling"
)

// tooFar is how many standard deviations of the chi-square statistic are no
// accident: one run in a thousand million exceeds it by chance.
const tooFar = 7

// deviates returns how many standard deviations the chi-square statistic of
// counts lies above its mean.
func deviates(counts []int, prob func(i int) float64) float64 {
	n, x2, df := 0, 0.0, -1.0
	for _, c := range counts {
		n += c
	}
	for i, c := range counts {
		p := prob(i)
		if p == 0 {
			if c > 0 {
				return math.Inf(1)
			}
			continue
		}
		e := float64(n) * p
		x2 += (float64(c) - e) * (float64(c) - e) / e
		df++
	}
	return (x2 - df) / math.Sqrt(2*df)
}

// Samples bring the values of their keys, follow the distribution, and are
// distinct where they shall be, by every scheme, with keys spread and moving.
func TestSamplesAreOfTheDistributionAndBringTheirValues(t *testing.T) {
	const rows, per = 200, 5
	samples := 2000 * *scale // of each worker
	dist := sampling.LogUniform(rows)
	specs := []sampling.Spec{
		{Name: "i", Table: 1, Dist: dist, Scheme: sampling.Independent{}},
		{Name: "p", Table: 1, Dist: dist, Scheme: sampling.Prepared{}},
		{Name: "l", Table: 1, Dist: sampling.Uniform(rows), Scheme: sampling.Local{}},
		{Name: "id", Table: 1, Dist: dist, Scheme: sampling.Independent{}, Distinct: true},
		{Name: "pd", Table: 1, Dist: dist, Scheme: sampling.Prepared{}, Distinct: true},
		{Name: "ld", Table: 1, Dist: sampling.Uniform(rows), Scheme: sampling.Local{}, Distinct: true},
	}
	m := modelOf(t, godwit.Table{Name: "other", Rows: 3, Dim: 1}, godwit.Table{Name: "t", Rows: rows, Dim: 5, Init: keyed{}})
	c := local(t, 3, Config{Model: m, Samplers: specs, Workers: 2, Seed: *seed})
	counts := make([][][]int, 6) // by worker, sampler, row
	each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
		mine := make([][]int, len(specs))
		counts[2*int(w.ID().Node)+w.ID().Local] = mine
		for s := range specs {
			mine[s] = make([]int, rows)
		}
		if err := w.Localize(ctx, some(rng, m, 60)); err != nil { // away from their homes
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		keys := make([]godwit.Key, per)
		dst := make([]float32, 5*per)
		const ahead = 20
		var ids []godwit.SampleID
		for i := range samples + ahead {
			s := i % len(specs)
			if i < samples {
				id, err := w.PrepareSample(s, per, w.Clock()+ahead-1, w.Clock()+ahead+1)
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
			if i >= ahead {
				s, id := (i-ahead)%len(specs), ids[i-ahead]
				cut := rng.IntN(per + 1) // pulled in two parts
				for _, part := range [][2]int{{0, cut}, {cut, per}} {
					if part[0] == part[1] {
						continue
					}
					if err := w.PullSample(ctx, id, keys[part[0]:part[1]], dst[5*part[0]:5*part[1]]); err != nil {
						return err
					}
				}
				if err := eachFloat(m, keys, func(k godwit.Key, i, off int) error {
					if want := float32(10*int(k) + i); dst[off] != want {
						return fmt.Errorf("sampler %s: key %d came with %v at %d, want %v", specs[s].Name, k, dst[off], i, want)
					}
					return nil
				}); err != nil {
					return err
				}
				for _, k := range keys {
					mine[s][k-3]++
				}
				if sorted := slices.Sorted(slices.Values(keys)); specs[s].Distinct && len(slices.Compact(sorted)) < per {
					return fmt.Errorf("sampler %s: %v are not distinct", specs[s].Name, keys)
				}
				if err := w.PullSample(ctx, id, keys[:1], dst[:5]); err == nil {
					return fmt.Errorf("sampler %s: more samples than were prepared", specs[s].Name)
				}
			}
			w.Advance()
		}
		return w.Barrier(ctx)
	})
	for s, spec := range specs {
		total := make([]int, rows)
		for _, w := range counts {
			for r, n := range w[s] {
				total[r] += n
			}
		}
		if spec.Distinct || spec.Scheme == (sampling.Local{}) {
			continue // the frequencies are those of package sampling's own tests
		}
		if d := deviates(total, func(i int) float64 { return dist.Prob(uint64(i)) }); d > tooFar {
			t.Errorf("-seed %d: sampler %s: %.1f standard deviations from the distribution", *seed, spec.Name, d)
		}
	}
	if s := sum(c); s.Remote == 0 || s.Moves == 0 || s.Copies == 0 {
		t.Errorf("%d remote, %d moves, %d copies: the test is vacuous", s.Remote, s.Moves, s.Copies)
	}
}

// Where nothing moves, local sampling is exactly the distribution among the
// keys of the node.
func TestLocalSamplesAreTheDistributionAmongTheKeysOfTheNode(t *testing.T) {
	const rows = 300
	n := 30_000 * *scale
	m := modelOf(t, godwit.Table{Name: "t", Rows: rows, Dim: 2, Init: keyed{}})
	dist := sampling.LogUniform(rows)
	c := local(t, 3, Config{Model: m, Workers: 1, Seed: *seed, Samplers: []sampling.Spec{{Name: "l", Dist: dist, Scheme: sampling.Local{Tries: 4000}}}})
	each(t, c, func(ctx context.Context, w godwit.Worker, _ *rand.Rand) error {
		homes := w.(*worker).n.homes
		mass := 0.0
		for r := range uint64(rows) {
			if homes.Home(godwit.Key(r)) == w.ID().Node {
				mass += dist.Prob(r)
			}
		}
		counts := make([]int, rows)
		keys, dst := make([]godwit.Key, 10), make([]float32, 20)
		for range n / 10 {
			id, err := w.PrepareSample(0, 10, 0, 1)
			if err != nil {
				return err
			}
			if err := w.PullSample(ctx, id, keys, dst); err != nil {
				return err
			}
			for i, k := range keys {
				counts[k]++
				if dst[2*i] != float32(10*k) {
					return fmt.Errorf("key %d came with %v", k, dst[2*i])
				}
			}
		}
		if d := deviates(counts, func(i int) float64 {
			if homes.Home(godwit.Key(i)) != w.ID().Node {
				return 0
			}
			return dist.Prob(uint64(i)) / mass
		}); d > tooFar {
			return fmt.Errorf("%.1f standard deviations from the distribution among the node's keys", d)
		}
		return w.Barrier(ctx)
	})
	if s := sum(c); s.Remote != 0 {
		t.Errorf("%d remote accesses, want none", s.Remote)
	}
}
