package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
)

// start gives the rows of a test first values that tell keys apart.
type keyed struct{}

func (keyed) Name() string { return "keyed" }

func (keyed) Init(v []float32, _ uint64, k godwit.Key) {
	for i := range v {
		v[i] = float32(10*int(k) + i)
	}
}

// lengths is a model of tables of different value lengths. Neither the rows of
// a table nor all keys are a multiple of a number of nodes in the tests.
func lengths(t testing.TB) *godwit.Model {
	return modelOf(t,
		godwit.Table{Name: "one", Rows: 37, Dim: 1, Init: keyed{}, Hot: first},
		godwit.Table{Name: "two", Rows: 41, Dim: 2, Init: keyed{}, Hot: first},
		godwit.Table{Name: "three", Rows: 29, Dim: 3, Init: keyed{}, Hot: first})
}

// some returns up to n random keys, in which keys may repeat.
func some(rng *rand.Rand, m *godwit.Model, n int) []godwit.Key {
	keys := make([]godwit.Key, rng.IntN(n+1))
	for i := range keys {
		keys[i] = godwit.Key(rng.Uint64N(m.Keys()))
	}
	return keys
}

func valuesOf(m *godwit.Model, keys []godwit.Key) []float32 {
	n, err := m.Floats(keys)
	if err != nil {
		panic(err)
	}
	return make([]float32, n)
}

// eachFloat calls f with every position of the values of keys: the key, the
// index within its value and the offset in the buffer.
func eachFloat(m *godwit.Model, keys []godwit.Key, f func(k godwit.Key, i, off int) error) error {
	off := 0
	for _, k := range keys {
		for i := range m.Dim(k) {
			if err := f(k, i, off); err != nil {
				return err
			}
			off++
		}
	}
	return nil
}

// announce gives an intent now and then: early, late, long, short, for keys
// that are used and for others.
func announce(w godwit.Worker, rng *rand.Rand, keys []godwit.Key) error {
	c := w.Clock()
	switch rng.IntN(8) {
	case 0:
		return w.Intent(keys, c+godwit.Clock(rng.IntN(20)), c+20+godwit.Clock(rng.IntN(20)))
	case 1:
		return w.Intent(some(rng, w.Model(), 20), c+10, c+12)
	case 2:
		return w.Intent(keys, c, c+1)
	case 3:
		return w.Intent(keys, c-10, c)
	}
	return nil
}

func TestReadsNeverChangeWhatMovesAndIsReplicated(t *testing.T) {
	rounds := often(80)
	seen := tally{}
	variants(t, []int{1, 2, 3, 5}, func(t *testing.T, nodes int, cfg Config) {
		cfg.Model = lengths(t)
		m := cfg.Model
		c := local(t, nodes, cfg)
		each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
			for range rounds {
				keys := some(rng, m, 20)
				if err := announce(w, rng, keys); err != nil {
					return err
				}
				if rng.IntN(3) == 0 {
					h, err := w.LocalizeAsync(ctx, some(rng, m, 20))
					if err != nil {
						return err
					}
					if rng.IntN(2) == 0 {
						if err := w.Wait(ctx, h); err != nil {
							return err
						}
					}
				}
				dst := valuesOf(m, keys)
				if err := w.Pull(ctx, keys, dst); err != nil {
					return err
				}
				if err := eachFloat(m, keys, func(k godwit.Key, i, off int) error {
					if want := float32(10*int(k) + i); dst[off] != want {
						return fmt.Errorf("reads %v at %d of key %d, want %v", dst[off], i, k, want)
					}
					return nil
				}); err != nil {
					return err
				}
				w.Advance()
			}
			return w.Barrier(ctx)
		})
		seen.add(t, c, cfg.Policy)
	})
	seen.check(t, false)
}

// Every worker reads its own pushes, never goes back, and in the end everybody
// reads the sum of all.
func TestWorkersReadTheirOwnPushesAndAllAgreeInTheEnd(t *testing.T) {
	rounds := often(80)
	seen := tally{}
	variants(t, []int{1, 2, 3, 5}, func(t *testing.T, nodes int, cfg Config) {
		cfg.Model = lengths(t)
		m := cfg.Model
		c := local(t, nodes, cfg)
		pushed := make([][]int, 2*nodes) // by worker and key; read by all after the barrier
		each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
			own, last := make([]int, m.Keys()), make([]float32, m.Keys())
			pushed[2*int(w.ID().Node)+w.ID().Local] = own
			for k := range own {
				last[k] = float32(10 * k)
			}
			for range rounds {
				keys := some(rng, m, 20)
				if err := announce(w, rng, keys); err != nil {
					return err
				}
				push := valuesOf(m, keys)
				add := float32(1 + rng.IntN(3))
				for i := range push {
					push[i] = add
				}
				if err := w.Push(ctx, keys, push); err != nil {
					return err
				}
				for _, k := range keys {
					own[k] += int(add)
				}
				keys = append(keys, some(rng, m, 10)...)
				rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
				dst := valuesOf(m, keys)
				if err := w.Pull(ctx, keys, dst); err != nil {
					return err
				}
				// Positions of one call are served each on its own, in any order: where
				// a key arrives meanwhile, a later one may be read first.
				before := append([]float32(nil), last...)
				if err := eachFloat(m, keys, func(k godwit.Key, i, off int) error {
					got := dst[off] - float32(i)
					if want := float32(10*int(k) + own[k]); got < want {
						return fmt.Errorf("reads %v at %d of key %d, after its own pushes it is at least %v", got, i, k, want)
					}
					if got < before[k] {
						return fmt.Errorf("reads %v at %d of key %d after it read %v", got, i, k, before[k])
					}
					if i == m.Dim(k)-1 {
						last[k] = max(last[k], got)
					}
					return nil
				}); err != nil {
					return err
				}
				if rng.IntN(20) == 0 {
					if err := w.WaitSync(ctx); err != nil {
						return err
					}
				}
				w.Advance()
			}
			if err := everywhere(ctx, w); err != nil {
				return err
			}
			all := make([]godwit.Key, m.Keys())
			for k := range all {
				all[k] = godwit.Key(k)
			}
			dst := valuesOf(m, all)
			if err := w.Pull(ctx, all, dst); err != nil {
				return err
			}
			if err := eachFloat(m, all, func(k godwit.Key, i, off int) error {
				want := 10*int(k) + i
				for _, p := range pushed {
					want += p[k]
				}
				if dst[off] != float32(want) {
					return fmt.Errorf("reads %v at %d of key %d in the end, want %v", dst[off], i, k, want)
				}
				return nil
			}); err != nil {
				return err
			}
			return w.Barrier(ctx)
		})
		seen.add(t, c, cfg.Policy)
	})
	seen.check(t, false)
}

// What every worker pushes without waiting it takes back in the end: every key
// is as before. At most ten operations of a worker are outstanding.
func TestAsynchronousPushesThatCancelOutLeaveEveryKeyAsItWas(t *testing.T) {
	rounds := often(80)
	seen := tally{}
	variants(t, fewer(2, 3, 5), func(t *testing.T, nodes int, cfg Config) {
		cfg.Model = lengths(t)
		m := cfg.Model
		c := local(t, nodes, cfg)
		each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
			total := make([]float32, m.Keys())
			var open []godwit.Handle
			issue := func(h godwit.Handle, err error) error {
				if err != nil {
					return err
				}
				if open = append(open, h); len(open) > 10 {
					err = w.Wait(ctx, open[0])
					open = open[1:]
				}
				return err
			}
			for range rounds {
				keys := some(rng, m, 20)
				if err := announce(w, rng, keys); err != nil {
					return err
				}
				push := valuesOf(m, keys)
				add := float32(rng.IntN(7))
				for i := range push {
					push[i] = add
				}
				for _, k := range keys {
					total[k] += add
				}
				if err := issue(w.PushAsync(ctx, keys, push)); err != nil {
					return err
				}
				clear(push) // may be reused at once
				pulled := some(rng, m, 20)
				if err := issue(w.PullAsync(ctx, pulled, valuesOf(m, pulled))); err != nil {
					return err
				}
				if rng.IntN(5) == 0 {
					if err := issue(w.LocalizeAsync(ctx, some(rng, m, 5))); err != nil {
						return err
					}
				}
				w.Advance()
			}
			for k, v := range total {
				key := []godwit.Key{godwit.Key(k)}
				push := valuesOf(m, key)
				for i := range push {
					push[i] = -v
				}
				if err := issue(w.PushAsync(ctx, key, push)); err != nil {
					return err
				}
			}
			if err := w.Wait(ctx, open...); err != nil {
				return err
			}
			if err := everywhere(ctx, w); err != nil {
				return err
			}
			for k := range total {
				key := []godwit.Key{godwit.Key(k)}
				dst := valuesOf(m, key)
				if err := w.Pull(ctx, key, dst); err != nil {
					return err
				}
				for i := range dst {
					if want := float32(10*k + i); dst[i] != want {
						return fmt.Errorf("reads %v of key %d in the end, want %v at %d", dst, k, want, i)
					}
				}
			}
			return w.Barrier(ctx)
		})
		seen.add(t, c, cfg.Policy)
	})
	seen.check(t, false)
}
