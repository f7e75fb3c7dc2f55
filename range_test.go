package godwit_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/traintest"
)

var seedFlag = flag.Uint64("seed", 1, "of the random tests")

// watched is a worker that lets nobody wait until Wait, and notes how large
// calls are and how many are under way.
type watched struct {
	godwit.Worker
	most, keys, floats int // under way at once; of one call
	calls              int
	begun              map[godwit.Handle]func() error
	failAt             int // the call that fails when it is waited for
}

var errCall = errors.New("this call fails")

func (w *watched) begin(keys []godwit.Key, buf []float32, do func() error) (godwit.Handle, error) {
	w.calls++
	w.keys, w.floats = max(w.keys, len(keys)), max(w.floats, len(buf))
	if w.calls == w.failAt {
		do = func() error { return errCall }
	}
	h := godwit.Handle(w.calls)
	w.begun[h] = do
	w.most = max(w.most, len(w.begun))
	return h, nil
}

func (w *watched) PullAsync(ctx context.Context, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	return w.begin(keys, dst, func() error { return w.Pull(ctx, keys, dst) })
}

func (w *watched) PushAsync(ctx context.Context, keys []godwit.Key, push []float32) (godwit.Handle, error) {
	push = slices.Clone(push) // it may be used again at once
	keys = slices.Clone(keys)
	return w.begin(keys, push, func() error { return w.Push(ctx, keys, push) })
}

func (w *watched) Wait(_ context.Context, hs ...godwit.Handle) error {
	for _, h := range hs {
		if do := w.begun[h]; do != nil {
			delete(w.begun, h)
			if err := do(); err != nil {
				return err
			}
		}
	}
	return nil
}

// serve returns a worker of a model with tables of several lengths.
func serve(t *testing.T) *watched {
	t.Helper()
	m, err := godwit.NewModel(
		godwit.Table{Name: "one", Rows: 10_000, Dim: 1, Init: godwit.Normal{Std: 1}},
		godwit.Table{Name: "single", Rows: 1, Dim: 3, Init: godwit.Normal{Std: 1}},
		godwit.Table{Name: "long", Rows: 3, Dim: 70_000, Init: godwit.Uniform{Hi: 1}},
		godwit.Table{Name: "some", Rows: 6000, Dim: 20, Init: godwit.Normal{Std: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return &watched{Worker: traintest.NewServer(m, 3, 1, 7).Workers(0)[0], begun: map[godwit.Handle]func() error{}}
}

// ranges are some of a model, with all the bounds of tables and of calls.
func ranges(m *godwit.Model) (rs [][2]godwit.Key) {
	rng := rand.New(rand.NewPCG(*seedFlag, 3))
	bounds := []godwit.Key{0, 1, 4095, 4096, 4097, 10_000, 10_001, 10_002, 10_004, godwit.Key(m.Keys()) - 1, godwit.Key(m.Keys())}
	for _, a := range bounds {
		rs = append(rs, [2]godwit.Key{a, a})
		b := bounds[rng.IntN(len(bounds))]
		c := godwit.Key(rng.Uint64N(m.Keys() + 1))
		rs = append(rs, [2]godwit.Key{min(a, b), max(a, b)}, [2]godwit.Key{min(a, c), max(a, c)})
	}
	return append(rs, [2]godwit.Key{0, godwit.Key(m.Keys())})
}

func keysOf(r [2]godwit.Key) (keys []godwit.Key) {
	for k := r[0]; k < r[1]; k++ {
		keys = append(keys, k)
	}
	return keys
}

func TestARangeThatNoSliceHoldsIsAnError(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "a", Rows: 1 << 47, Dim: 1 << 16}, godwit.Table{Name: "b", Rows: 1 << 47, Dim: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		first, end godwit.Key
		want       int
	}{{0, 1 << 46, 1 << 62}, {0, 1 << 47, 0}, {1 << 46, 3 << 46, 0}, {0, 1 << 48, 0}} {
		n, err := m.RangeFloats(x.first, x.end)
		if x.want == 0 && !errors.Is(err, godwit.ErrLength) || n != x.want {
			t.Errorf("keys %d … %d have %d floats, error %v", x.first, x.end-1, n, err)
		}
	}
}

func TestARangeIsPulledAndPushedAsItsKeysAre(t *testing.T) {
	w := serve(t)
	m := w.Model()
	for _, r := range ranges(m) {
		keys := keysOf(r)
		n, err := m.RangeFloats(r[0], r[1])
		if want, _ := m.Floats(keys); err != nil || n != want {
			t.Fatalf("-seed %d: the keys %d have %d floats (%v), want %d", *seedFlag, r, n, err, want)
		}
		before, got, want := make([]float32, n), make([]float32, n), make([]float32, n)
		push := make([]float32, n)
		for i := range push {
			push[i] = float32(i%17) - 8
		}
		if err := w.Pull(t.Context(), keys, before); err != nil {
			t.Fatal(err)
		}
		if err := godwit.PushRange(t.Context(), w, r[0], r[1], push); err != nil {
			t.Fatal(err)
		}
		if err := godwit.PullRange(t.Context(), w, r[0], r[1], got); err != nil {
			t.Fatal(err)
		}
		if err := w.Pull(t.Context(), keys, want); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if got[i] != want[i] || got[i] != before[i]+push[i] {
				t.Fatalf("-seed %d: of the keys %d, float %d is %v, want %v; it was %v and %v was pushed", *seedFlag, r, i, got[i], want[i], before[i], push[i])
			}
		}
		if len(w.begun) > 0 {
			t.Fatalf("%d calls were not waited for", len(w.begun))
		}
	}
	if w.most != 4 || w.keys != 4096 || w.floats > 70_000 {
		t.Errorf("%d calls at a time, of up to %d keys and %d floats; want 4 of 4096 keys", w.most, w.keys, w.floats)
	}
}

func TestAFailedCallOfARangeIsToldAndNothingStaysUnderWay(t *testing.T) {
	w := serve(t)
	n, _ := w.Model().RangeFloats(0, 30_000/2)
	buf := make([]float32, n)
	for what, do := range map[string]func() error{
		"pull": func() error { return godwit.PullRange(t.Context(), w, 0, 30_000/2, buf) },
		"push": func() error { return godwit.PushRange(t.Context(), w, 0, 30_000/2, buf) },
		"rows": func() error {
			if err := godwit.PullRange(t.Context(), w.Worker, 0, 30_000/2, buf); err != nil {
				return err // so that all are in use
			}
			for _, err := range godwit.Rows(t.Context(), w, 0, 30_000/2, godwit.NoNode) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	} {
		for call := 1; call <= 6; call++ {
			w.calls, w.failAt = 0, call
			if err := do(); !errors.Is(err, errCall) {
				t.Errorf("%s: error %v", what, err)
			}
			if len(w.begun) > 0 {
				t.Errorf("%s: %d calls were not waited for", what, len(w.begun))
				clear(w.begun)
			}
		}
	}
}

func TestABadRangeIsRefusedWithItsKeys(t *testing.T) {
	w := serve(t)
	last := godwit.Key(w.Model().Keys())
	for _, c := range []struct {
		first, end godwit.Key
		floats     int
		want       error
		says       string
	}{
		{5, 4, 0, godwit.ErrKeyRange, "from key 5 up to key 4"},
		{0, last + 1, 0, godwit.ErrKeyRange, "the model has keys 0 …"},
		{last + 1, last + 1, 0, godwit.ErrKeyRange, "up to key"},
		{1, 4, 2, godwit.ErrLength, "2 floats, the values of the keys have 3"},
		{1, 1, 1, godwit.ErrLength, "1 floats, the values of the keys have 0"},
	} {
		for _, err := range []error{
			godwit.PullRange(t.Context(), w, c.first, c.end, make([]float32, c.floats)),
			godwit.PushRange(t.Context(), w, c.first, c.end, make([]float32, c.floats)),
		} {
			var op *godwit.OpError
			if !errors.Is(err, c.want) || !errors.As(err, &op) || op.First != c.first || !strings.Contains(err.Error(), c.says) {
				t.Errorf("keys %d … %d, %d floats: error %v, want %q", c.first, c.end, c.floats, err, c.says)
			}
		}
	}
	if w.calls > 0 {
		t.Errorf("%d calls were made", w.calls)
	}
}

func TestRowsAreThoseOfTheKeysInUseInOrder(t *testing.T) {
	w := serve(t)
	m := w.Model()
	rng := rand.New(rand.NewPCG(*seedFlag, 4))
	var used []godwit.Key
	for k := range godwit.Key(m.Keys()) {
		if rng.IntN(3) == 0 {
			used = append(used, k)
		}
	}
	n, _ := m.Floats(used)
	vals := make([]float32, n)
	if err := w.Pull(t.Context(), used, vals); err != nil {
		t.Fatal(err)
	}
	for _, r := range ranges(m) {
		for _, home := range []godwit.NodeID{godwit.NoNode, 0, 2} {
			var got []godwit.Key
			i, off := 0, 0
			for row, err := range godwit.Rows(t.Context(), w, r[0], r[1], home) {
				if err != nil {
					t.Fatal(err)
				}
				for ; used[i] != row.Key; i++ {
					off += m.Dim(used[i])
				}
				if dim := m.Dim(row.Key); !slices.Equal(row.Value, vals[off:off+dim]) {
					t.Fatalf("key %d has the value %v, want %v", row.Key, row.Value, vals[off:off+dim])
				}
				got = append(got, row.Key)
			}
			var want []godwit.Key
			for _, k := range used {
				if k >= r[0] && k < r[1] && (home == godwit.NoNode || k%3 == godwit.Key(home)) {
					want = append(want, k)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("-seed %d: keys %d homed at %d: %d rows, want %d", *seedFlag, r, home, len(got), len(want))
			}
		}
	}
	if w.most < 2 {
		t.Errorf("%d calls at a time", w.most)
	}
}

func TestALoopOverRowsMayEndEarlyAndUseTheWorker(t *testing.T) {
	w := serve(t)
	buf := make([]float32, 10_000)
	if err := godwit.PullRange(t.Context(), w.Worker, 0, 10_000, buf); err != nil {
		t.Fatal(err)
	}
	for _, most := range []int{1, 4096, 4097, 10_000} {
		n := 0
		for row, err := range godwit.Rows(t.Context(), w, 0, 10_000, godwit.NoNode) {
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Push(t.Context(), []godwit.Key{row.Key}, []float32{1}); err != nil {
				t.Fatal(err)
			}
			if n++; n == most {
				break
			}
		}
		if n != most || len(w.begun) > 0 {
			t.Errorf("%d rows, want %d; %d calls were not waited for", n, most, len(w.begun))
		}
	}
}
