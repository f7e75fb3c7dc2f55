package node

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
)

// wide is a model that no processor's cache holds, so that workers look ahead and
// make rows many at a time.
func wide(t testing.TB) *godwit.Model {
	m := modelOf(t,
		godwit.Table{Name: "five", Rows: 40_000, Dim: 5, Init: keyed{}},
		godwit.Table{Name: "twice", Rows: 3000, Dim: 3, Rule: half{}, Init: keyed{}},
		godwit.Table{Name: "seven", Rows: 30_000, Dim: 7, Init: keyed{}})
	if bytesOf(m) <= 1<<20 {
		t.Fatal("the model is too small for the test")
	}
	return m
}

// half keeps half of what pulls get. Pushes are not halved.
type half struct{ godwit.Add }

func (half) Name() string { return "half" }

func (half) Query(dst, value, _ []float32) {
	for i, x := range value {
		dst[i] = 2 * x
	}
}

func (half) Keep(value, _ []float32) {
	for i := range value {
		value[i] /= 2
	}
}

// anyKeys returns n keys, which may repeat.
func anyKeys(rng *rand.Rand, m *godwit.Model, n int) []godwit.Key {
	keys := make([]godwit.Key, n)
	for i := range keys {
		keys[i] = godwit.Key(rng.Uint64N(m.Keys()))
	}
	return keys
}

// call returns keys that somebody might access in one call: of a range, sorted,
// in any order, with repetitions.
func call(rng *rand.Rand, m *godwit.Model) []godwit.Key {
	keys := anyKeys(rng, m, 1+rng.IntN([]int{1, 40, 300, 5000}[rng.IntN(4)]))
	switch first := rng.Uint64N(m.Keys()); rng.IntN(4) {
	case 0:
		for i := range keys {
			keys[i] = godwit.Key((first + uint64(i)) % m.Keys())
		}
	case 1: // of one shard
		for i := range keys {
			keys[i] = godwit.Key((first + uint64(i)*1024) % m.Keys())
		}
	case 2:
		slices.Sort(keys)
	}
	return keys
}

// Whatever is in a call, new keys or known ones, moved away or not: pulls get
// first values and all pushes that were waited for.
func TestRowsThatAreMadeAtOnceAreThoseThatSingleAccessesMake(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			m := wide(t)
			c := local(t, nodes, Config{Model: m, Workers: 1})
			ctx := background(t)
			rng := rand.New(rand.NewPCG(*seed, 7))
			pushed := make([]float32, m.Keys())
			used := make([]bool, m.Keys())
			for i := range 30 * *scale {
				w := c.Nodes[rng.IntN(nodes)].Worker(0)
				keys, op := call(rng, m), rng.IntN(4)
				if i == 0 { // many at once, of which nobody has accessed any: chance need not bring that
					keys, op = anyKeys(rng, m, 4096+1), 3*rng.IntN(2)
				}
				buf := valuesOf(m, keys)
				switch op {
				case 0:
					for i := range buf {
						buf[i] = 2
					}
					must(t, w.Push(ctx, keys, buf))
					for _, k := range keys {
						pushed[k] += 2
					}
				case 1:
					must(t, w.Localize(ctx, keys))
				default:
					must(t, w.Pull(ctx, keys, buf))
					must(t, eachFloat(m, keys, func(k godwit.Key, i, off int) error {
						want := float32(10*int(k)+i) + pushed[k]
						if table, _ := m.Locate(k); table == 1 {
							want += pushed[k]
						}
						if buf[off] != want {
							return fmt.Errorf("float %d of key %d is %v, want %v", i, k, buf[off], want)
						}
						return nil
					}))
				}
				for _, k := range keys {
					used[k] = true
				}
			}
			for k, err := range c.Nodes[0].Worker(0).Scan(ctx, 0, godwit.Key(m.Keys()), godwit.NoNode) {
				must(t, err)
				if !used[k] {
					t.Fatalf("-seed %d: key %d is in use, though nobody accessed it", *seed, k)
				}
				used[k] = false
			}
			if k := slices.Index(used, true); k >= 0 {
				t.Errorf("-seed %d: key %d was accessed and is not in use", *seed, k)
			}
		})
	}
}

func TestWorkersMakeTheSameRowsAtOnce(t *testing.T) {
	m := wide(t)
	const workers = 4
	c := local(t, 1, Config{Model: m, Workers: workers})
	ctx := background(t)
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for i, w := range c.Nodes[0].Workers() {
		wg.Go(func() {
			push := make([]float32, m.RowLen(0)*6000)
			for j := range push {
				push[j] = 1
			}
			if i%2 == 0 {
				errs[i] = godwit.PullRange(ctx, w, 0, 6000, slices.Clone(push))
			}
			errs[i] = errors.Join(errs[i], godwit.PushRange(ctx, w, 0, 6000, push))
		})
	}
	wg.Wait()
	must(t, errors.Join(errs...))
	got := make([]float32, m.RowLen(0)*6000)
	must(t, godwit.PullRange(ctx, c.Nodes[0].Worker(0), 0, 6000, got))
	for j, x := range got {
		if want := float32(10*(j/5) + j%5 + workers); x != want {
			t.Fatalf("float %d of key %d is %v, want %v", j%5, j/5, x, want)
		}
	}
	if s := c.Nodes[0].Stats(); s.Owned != 6000 {
		t.Errorf("there are %d rows, want 6000", s.Owned)
	}
}
