package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/racing"
	"github.com/godwit-ps/godwit/placement"
)

// skewed draws keys of which the first few are hot: more than 100 times the
// mean, of 1000 keys.
func skewed(rng *rand.Rand, keys uint64) godwit.Key {
	if rng.IntN(10) < 8 {
		return godwit.Key(rng.Uint64N(4))
	}
	return godwit.Key(rng.Uint64N(keys))
}

// Without a word from the task, the nodes find out which keys are hot and
// replicate these everywhere, while workers push and keys move.
func TestHotKeysAreMeasured(t *testing.T) {
	const rows, steps = 1000, 1500
	m := modelOf(t, godwit.Table{Name: "a", Rows: 600, Dim: 2}, godwit.Table{Name: "b", Rows: 400, Dim: 3})
	for _, name := range []string{"nonuniform", "nonuniform(hot=4)", "nonuniform(factor=90)"} {
		p, err := placement.ByName(name)
		must(t, err)
		c := local(t, 3, Config{Model: m, Policy: p, Workers: 2, Seed: *seed})
		pushed := make([][]float32, 6)
		each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
			mine := make([]float32, rows)
			pushed[2*int(w.ID().Node)+w.ID().Local] = mine
			for range steps {
				k := []godwit.Key{skewed(rng, rows)}
				if err := w.Intent(k, w.Clock(), w.Clock()+2); err != nil {
					return err
				}
				v := valuesOf(m, k)
				if err := w.Pull(ctx, k, v); err != nil {
					return err
				}
				for i := range v {
					v[i] = 1
				}
				if err := w.Push(ctx, k, v); err != nil {
					return err
				}
				mine[k[0]]++
				if rng.IntN(10) == 0 {
					if err := w.Localize(ctx, []godwit.Key{skewed(rng, rows)}); err != nil {
						return err
					}
				}
				w.Advance()
			}
			return nil
		})
		eventually(t, "every node knows four hot keys and holds them", func() bool {
			for k := range godwit.Key(4) {
				for _, n := range c.Nodes {
					if n.Stats().Hot != 4 || n.place(k) == 0 {
						return false
					}
				}
			}
			return true
		})
		each(t, c, func(ctx context.Context, w godwit.Worker, _ *rand.Rand) error {
			if err := everywhere(ctx, w); err != nil {
				return err
			}
			for k := range godwit.Key(rows) {
				want := float32(0)
				for _, mine := range pushed {
					want += mine[k]
				}
				v := valuesOf(m, []godwit.Key{k})
				if err := w.Pull(ctx, []godwit.Key{k}, v); err != nil {
					return err
				}
				for i := range v {
					if v[i] != want {
						return fmt.Errorf("%s: key %d is %v, %v was pushed", name, k, v, want)
					}
				}
			}
			return w.Barrier(ctx)
		})
		if s := sum(c); s.Moves == 0 || s.Replica == 0 {
			t.Errorf("%s: %d moves, %d accesses to replicas: the test is vacuous", name, s.Moves, s.Replica)
		}
	}
}

// Of a model with far more keys than anybody uses, those in use count: the keys that
// are hot among them are found, after a number of pulls that does not depend on the
// size of the model.
func TestHotKeysOfALargeKeySpaceAreMeasured(t *testing.T) {
	if racing.Enabled {
		t.Skip("counts millions of pulls as TestHotKeysAreMeasured does")
	}
	const rows, hot, batch, most = 1 << 46, 3, 1 << 12, 1 << 22
	m := model(t, rows, 1)
	c := local(t, 2, Config{Model: m, Policy: placement.NonUniform, Workers: 1, Seed: *seed})
	each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
		n := c.Nodes[w.ID().Node]
		others := make([]godwit.Key, 6000)
		for i := range others {
			for others[i] = 0; others[i] < hot || n.proto.Homes.Home(others[i]) != n.self; {
				others[i] = godwit.Key(rng.Uint64N(rows))
			}
		}
		vals := make([]float32, batch)
		for pulls := 0; pulls < most; pulls += batch {
			keys := make([]godwit.Key, batch)
			for i := range keys {
				if keys[i] = others[rng.IntN(len(others))]; i < 1024 { // a hot key is pulled 500 times as often as the mean
					keys[i] = godwit.Key(i % hot)
				}
			}
			if err := w.Pull(ctx, keys, vals); err != nil {
				return err
			}
			if n.hot.Len() > 0 {
				return nil
			}
		}
		return nil
	})
	eventually(t, "every node knows the hot keys", func() bool {
		return c.Nodes[0].hot.Len() > 0 && c.Nodes[1].hot.Len() > 0
	})
	for _, n := range c.Nodes {
		if want := []godwit.Key{0, 1, 2}; !slices.Equal(n.hot.Keys(), want) {
			t.Errorf("node %d finds that %d keys are hot, want %v", n.self, len(n.hot.Keys()), want)
		}
	}
}

func TestHotKeysThatTheTaskNamesAreHeldFromTheStart(t *testing.T) {
	freq := func(row uint64) float64 { return []float64{1, 5000, 1, 400, 0}[row%5] }
	m := modelOf(t,
		godwit.Table{Name: "unknown", Rows: 10, Dim: 1},
		godwit.Table{Name: "known", Rows: 5, Dim: 1, Hot: freq},
		godwit.Table{Name: "even", Rows: 1000, Dim: 1, Hot: func(uint64) float64 { return 1 }})
	// The mean of the tables that tell is 6.4.
	for name, want := range map[string][]godwit.Key{
		"nonuniform":            {11},
		"nonuniform(factor=60)": {11, 13},
		"nonuniform(hot=2)":     {11, 13},
		"nonuniform(hot=1)":     {11},
	} {
		p, err := placement.ByName(name)
		must(t, err)
		c := local(t, 2, Config{Model: m, Policy: p, Workers: 1})
		for _, n := range c.Nodes {
			if got := slices.Collect(n.everywhere()); !slices.Equal(got, want) {
				t.Errorf("%s: node %d holds %v, want %v", name, n.self, got, want)
			}
			if n.hot.Measures() {
				t.Errorf("%s: node %d measures what it was told", name, n.self)
			}
		}
		eventually(t, "replicas everywhere", func() bool { return sum(c).Replicas == len(want) })
		if got := c.Nodes[0].Stats().Hot; got != len(want) {
			t.Errorf("%s: stats say %d hot keys, want %d", name, got, len(want))
		}
	}
}

// A run that ends before the counts mean anything, or while only some nodes
// have enough, closes like any other.
func TestARunMayEndBeforeHotKeysAreKnown(t *testing.T) {
	for _, accesses := range []int{0, 200} {
		noLeak(t, func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			c, err := Local(ctx, 2, Config{Model: model(t, 100, 1), Policy: placement.NonUniform, Workers: 1})
			must(t, err)
			for i := range accesses {
				must(t, c.Nodes[0].Worker(0).Pull(ctx, []godwit.Key{godwit.Key(i % 100)}, make([]float32, 1)))
			}
			must(t, c.Close(ctx))
		})
	}
}
