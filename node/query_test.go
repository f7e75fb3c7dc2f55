package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/sampling"
)

// halves keeps one half of a value in its place and one in the state.
type halves struct{}

func (halves) Name() string              { return "halves" }
func (halves) StateLen(dim int) int      { return dim }
func (halves) InitState(state []float32) { clear(state) }
func (halves) Apply(value, state, push []float32) {
	for i, x := range push {
		value[i] += x / 2
		state[i] += x / 2
	}
}

func (halves) Query(dst, value, state []float32) {
	for i := range dst {
		dst[i] = value[i] + state[i]
	}
}

func (halves) Keep(value, state []float32) {
	for i, x := range value {
		value[i], state[i] = x/2, x/2
	}
}

// ten initializes values with 10 and their positions.
type ten struct{}

func (ten) Name() string { return "ten" }
func (ten) Init(value []float32, _ uint64, _ godwit.Key) {
	for i := range value {
		value[i] = float32(10 + i)
	}
}

// Every way to read a row gives what the rule makes of it, wherever the row is,
// beside a table that is read as it is.
func TestEveryReadOfAQueriedTableGetsWhatItsRuleMakesOfTheRow(t *testing.T) {
	rounds := 30 * *scale
	const rows, dim = 8, 3
	seen := tally{}
	variants(t, []int{1, 2, 3}, func(t *testing.T, nodes int, cfg Config) {
		cfg.Model = modelOf(t, godwit.Table{Name: "plain", Rows: rows, Dim: 2, Init: ten{}}, godwit.Table{Name: "halves", Rows: rows, Dim: dim, Rule: halves{}, Init: ten{}, Hot: first})
		m := cfg.Model
		cfg.Samplers = []sampling.Spec{{Name: "s", Table: 1, Dist: sampling.Uniform(rows), Scheme: sampling.Schemes()[0]}}
		c := local(t, nodes, cfg)
		each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
			all, _ := m.RangeFloats(0, 2*rows)
			buf := make([]float32, all)
			// Whole pushes to all coordinates of a row: what is read is 10, 11 … and
			// one number more.
			whole := func(k godwit.Key, v []float32) error {
				if rest := v[0] - 10; rest != float32(int(rest)) {
					return fmt.Errorf("key %d is %v", k, v)
				}
				for i := range v {
					if v[i]-v[0] != float32(i) {
						return fmt.Errorf("key %d is %v, of which the parts differ", k, v)
					}
				}
				return nil
			}
			for range rounds {
				k := m.Key(1, rng.Uint64N(rows))
				if err := announce(w, rng, []godwit.Key{k}); err != nil {
					return err
				}
				if rng.IntN(5) == 0 {
					if err := w.Set(ctx, []godwit.Key{k}, []float32{20, 21, 22}); err != nil {
						return err
					}
				}
				if err := w.Push(ctx, []godwit.Key{k}, []float32{2, 2, 2}); err != nil {
					return err
				}
				if v := buf[:dim]; w.PullIfLocal(k, v) {
					if err := whole(k, v); err != nil {
						return fmt.Errorf("pulled if local: %w", err)
					}
				}
				if err := godwit.PullRange(ctx, w, 0, 2*rows, buf); err != nil {
					return err
				}
				for k, v := godwit.Key(0), buf; k < 2*rows; k++ {
					n := m.Dim(k)
					if err := whole(k, v[:n]); err != nil {
						return err
					}
					v = v[n:]
				}
				id, err := w.PrepareSample(0, 1, w.Clock(), w.Clock()+1)
				if err != nil {
					return err
				}
				one := make([]godwit.Key, 1)
				if err := w.PullSample(ctx, id, one, buf[:dim]); err != nil {
					return err
				}
				if err := whole(one[0], buf[:dim]); err != nil {
					return fmt.Errorf("sampled: %w", err)
				}
				w.FinishSample(id)
				w.Advance()
			}
			return w.Barrier(ctx)
		})
		seen.add(t, c, cfg.Policy)
	})
	if s := seen["adaptive"]; !t.Failed() && (s.Copies == 0 || s.Replica == 0 || s.Remote == 0 || s.Sampled.Accesses() == 0) {
		t.Error("no replicas, or no remote reads: the test is vacuous")
	}
}
