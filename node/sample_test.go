package node

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
)

// tooFar is how many standard deviations of the chi-square statistic are no
// accident: one run in a thousand million exceeds it by chance.
const tooFar = 7

// deviates returns how many standard deviations the chi-square statistic of
// counts lies above its mean, if each draw was counted up to uses times.
func deviates(counts []int, uses int, prob func(i int) float64) float64 {
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
		x2 += (float64(c) - e) * (float64(c) - e) / e / float64(uses)
		df++
	}
	return (x2 - df) / math.Sqrt(2*df)
}

// Samples bring the values of their keys, are distinct where they shall be, and
// follow the distribution, by every scheme and policy, with keys spread and
// moving, samples pulled in parts, and some finished early.
func TestSamplesAreOfTheDistributionAndBringTheirValues(t *testing.T) {
	for _, name := range placement.Names() {
		p, err := placement.ByName(name)
		must(t, err)
		t.Run(name, func(t *testing.T) { samplesOf(t, p) })
	}
}

func samplesOf(t *testing.T, p placement.Policy) {
	const rows, per = 200, 6
	dist := sampling.LogUniform(rows)
	var specs []sampling.Spec
	for _, scheme := range append(sampling.Schemes(), sampling.Reuse{Pool: 40, Uses: 2}, sampling.Reuse{Pool: 40, Uses: 2, Postpone: true}) {
		for _, distinct := range []bool{false, true} {
			specs = append(specs, sampling.Spec{Name: fmt.Sprintf("%s/%v", scheme.Name(), distinct), Table: 1, Dist: dist, Scheme: scheme, Distinct: distinct})
		}
	}
	samples := often(80 * len(specs)) // of each worker
	m := modelOf(t, godwit.Table{Name: "other", Rows: 3, Dim: 1}, godwit.Table{Name: "t", Rows: rows, Dim: 5, Init: keyed{}, Hot: first})
	c := local(t, 3, Config{Model: m, Policy: p, Samplers: specs, Workers: 2, Seed: *seed})
	counts := make([][][]int, 6) // by worker, sampler, row
	var direct atomic.Uint64     // keys
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
			data := some(rng, m, 2)
			direct.Add(uint64(len(data)))
			if err := w.Pull(ctx, data, valuesOf(m, data)); err != nil {
				return err
			}
			if i < samples {
				id, err := w.PrepareSample(i%len(specs), per, w.Clock()+ahead-1, w.Clock()+ahead+1)
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
			if i >= ahead {
				s, id := (i-ahead)%len(specs), ids[i-ahead]
				got := keys
				if rng.IntN(4) == 0 {
					got = keys[:per/2]
				}
				cut := rng.IntN(len(got) + 1) // pulled in two parts
				for _, part := range [][2]int{{0, cut}, {cut, len(got)}} {
					if part[0] == part[1] {
						continue
					}
					if err := w.PullSample(ctx, id, got[part[0]:part[1]], dst[5*part[0]:5*part[1]]); err != nil {
						return err
					}
				}
				if err := eachFloat(m, got, func(k godwit.Key, i, off int) error {
					if want := float32(10*int(k) + i); dst[off] != want {
						return fmt.Errorf("sampler %s: key %d came with %v at %d, want %v", specs[s].Name, k, dst[off], i, want)
					}
					return nil
				}); err != nil {
					return err
				}
				for _, k := range got {
					mine[s][k-3]++
				}
				if sorted := slices.Sorted(slices.Values(got)); specs[s].Distinct && len(slices.Compact(sorted)) < len(got) {
					return fmt.Errorf("sampler %s: %v are not distinct", specs[s].Name, got)
				}
				w.FinishSample(id)
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
		if spec.Distinct || spec.Scheme.Level() == sampling.BestEffort {
			continue // the frequencies are those of package sampling's own tests
		}
		// Where a draw is used several times, so many draws' luck is one's.
		uses := 1
		if x, ok := spec.Scheme.(sampling.Reuse); ok {
			if uses = x.Uses; uses == 0 {
				uses = 16
			}
		}
		if d := deviates(total, uses, func(i int) float64 { return dist.Prob(uint64(i)) }); d > tooFar {
			t.Errorf("-seed %d: sampler %s: %.1f standard deviations from the distribution", *seed, spec.Name, d)
		}
	}
	s := sum(c)
	t.Logf("%d samples without a message, %d queued, %d remote; %d draws, %d put off, %d repurposed; %d moves, %d copies",
		s.Sampled.Local+s.Sampled.Replica, s.Sampled.Queued, s.Sampled.Remote, s.Sampled.Draws, s.Sampled.PutOff, s.Sampled.Repurposed, s.Moves, s.Copies)
	pulled := uint64(0)
	for _, w := range counts {
		for _, rows := range w {
			for _, n := range rows {
				pulled += uint64(n)
			}
		}
	}
	if got := s.Sampled.Accesses(); got != pulled {
		t.Errorf("%d samples are counted, %d were pulled", got, pulled)
	}
	if got := s.Accesses() - s.Sampled.Accesses(); got != direct.Load() {
		t.Errorf("%d direct accesses are counted, %d were made", got, direct.Load())
	}
	if s.Sampled.Repurposed == 0 || s.Sampled.Draws == 0 {
		t.Errorf("%+v: the test is vacuous", s.Sampled)
	}
	// Elsewhere all that is announced may have arrived when it is drawn.
	if p.Name() == "static" && (s.Sampled.Remote == 0 || s.Sampled.PutOff == 0) {
		t.Errorf("%+v: the test is vacuous", s.Sampled)
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
		homes := c.Nodes[0].proto.Homes
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
		if d := deviates(counts, 1, func(i int) float64 {
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
