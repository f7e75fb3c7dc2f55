package samplers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
	"github.com/godwit-ps/godwit/sampling"
)

func TestMain(m *testing.M) { roomtest.Main(m) }

// A desk is a worker as samplers see it, where every row is here and holds its key.
type desk struct{ announced int }

func (d *desk) PullIfLocal(k godwit.Key, dst []float32) bool {
	dst[0] = float32(k)
	return true
}

func (d *desk) Pull(_ context.Context, keys []godwit.Key, dst []float32) error {
	for i, k := range keys {
		dst[i] = float32(k)
	}
	return nil
}

func (d *desk) Intent(keys []godwit.Key, _, _ godwit.Clock) error {
	d.announced += len(keys)
	return nil
}

// drawing returns samplers of a table of so many rows, and its model.
func drawing(t *testing.T, rows uint64, specs ...sampling.Spec) (*godwit.Model, Samplers) {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: 1})
	roomtest.Must(t, err)
	all, err := New(specs, m, 1, 1)
	roomtest.Must(t, err)
	return m, all
}

func TestSamplersAreFoundByTheirNumbersAndIds(t *testing.T) {
	ctx, rows := roomtest.Background(t), uint64(100)
	m, all := drawing(t, rows, sampling.Spec{Name: "here", Dist: sampling.Uniform(rows), Scheme: sampling.Local{}},
		sampling.Spec{Name: "announced", Dist: sampling.Uniform(rows), Scheme: sampling.Prepared{}})
	d := &desk{}
	for i, announced := range []int{0, 10} {
		id, err := all.Prepare(d, i, 10, 0, 1)
		roomtest.Must(t, err)
		if d.announced != announced {
			t.Errorf("sampler %d announced %d keys, want %d", i, d.announced, announced)
		}
		keys, vals := make([]godwit.Key, 10), make([]float32, 10)
		roomtest.Must(t, all.Pull(ctx, d, id, keys, vals))
		for j, k := range keys {
			if !m.Has(k) || vals[j] != float32(k) {
				t.Errorf("sampler %d: key %d reads %v", i, k, vals[j])
			}
		}
		all.Finish(id)
		if err := all.Pull(ctx, d, id, keys, vals); !errors.Is(err, godwit.ErrSample) {
			t.Errorf("sampler %d pulls of a finished sample: %v", i, err)
		}
	}
	if c := all.Counts(); c.Draws < 20 {
		t.Errorf("%d draws are counted, want at least 20", c.Draws)
	}
	for _, i := range []int{-1, 2} {
		if _, err := all.Prepare(d, i, 1, 0, 1); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", all.names)) {
			t.Errorf("a sample of sampler %d: %v, want an error that names those that there are", i, err)
		}
	}
	if err := all.Pull(ctx, d, 2<<sampling.IDBits, make([]godwit.Key, 1), make([]float32, 1)); !errors.Is(err, godwit.ErrSample) {
		t.Errorf("a sample of no sampler: %v", err)
	}
	all.Finish(2 << sampling.IDBits) // does nothing
}

// A program may seed all samples of a step alike: each sampler draws keys of its own, and the same again.
func TestSamplersWithTheSameSeedsDrawDifferently(t *testing.T) {
	ctx, rows := roomtest.Background(t), uint64(1<<40)
	_, all := drawing(t, rows, sampling.Spec{Name: "heads", Dist: sampling.Uniform(rows)}, sampling.Spec{Name: "tails", Dist: sampling.Uniform(rows)})
	d := &desk{}
	drawn := func(i int) []godwit.Key {
		all.Seed(i, 3, 4)
		id, err := all.Prepare(d, i, 10, 0, 1)
		roomtest.Must(t, err)
		keys := make([]godwit.Key, 10)
		roomtest.Must(t, all.Pull(ctx, d, id, keys, make([]float32, 10)))
		return keys
	}
	heads, tails := drawn(0), drawn(1)
	if slices.Equal(heads, tails) {
		t.Errorf("both draw %v", heads)
	}
	if !slices.Equal(heads, drawn(0)) || !slices.Equal(tails, drawn(1)) {
		t.Error("the same seeds draw other keys")
	}
}

// A sampler that reuses what the worker pulled by itself hears of that, and others do not; what each did is counted, for all to read.
func TestWhatWorkersPulledIsReused(t *testing.T) {
	ctx, rows := roomtest.Background(t), uint64(100)
	_, all := drawing(t, rows, sampling.Spec{Name: "reuses", Dist: sampling.Uniform(rows), Scheme: sampling.Repurpose{}},
		sampling.Spec{Name: "does not", Dist: sampling.Uniform(rows), Scheme: sampling.Prepared{}})
	all.Accessed([]godwit.Key{7})
	for i, s := range all.each {
		d := &desk{} // where key 7 is
		id, err := all.Prepare(d, i, 5, 0, 1)
		roomtest.Must(t, err)
		roomtest.Must(t, all.Pull(ctx, d, id, make([]godwit.Key, 5), make([]float32, 5)))
		if reused := s.repurposed.Load() > 0; reused != (i == 0) {
			t.Errorf("sampler %d reused %d keys", i, s.repurposed.Load())
		}
	}
	var want Counts
	for _, s := range all.each {
		st := s.Sampler.Stats()
		want.Add(Counts{st.Draws, st.PutOff, st.Repurposed})
	}
	if got := all.Counts(); got != want || got.Draws == 0 {
		t.Errorf("counted are %+v, and the samplers did %+v", got, want)
	}
	sum := Counts{1, 2, 3}
	if sum.Add(Counts{10, 20, 30}); sum != (Counts{11, 22, 33}) {
		t.Errorf("the sum is %+v", sum)
	}
}

// What a sampler does before the first pull is counted as well; and a sampler that there is not has no seeds.
func TestSamplesAreCountedWhenTheyArePrepared(t *testing.T) {
	m, all := drawing(t, 10, sampling.Spec{Name: "announced", Dist: sampling.Uniform(10), Scheme: sampling.Prepared{}})
	for _, i := range []int{-1, 1} {
		all.Seed(i, 1, 2)
	}
	id, err := all.Prepare(&desk{}, 0, 5, 0, 1)
	roomtest.Must(t, err)
	if c := all.Counts(); c.Draws < 5 {
		t.Errorf("%+v after five keys were drawn", c)
	}
	all.Finish(id)
	if err := all.Pull(roomtest.Background(t), &desk{}, id, make([]godwit.Key, 1), make([]float32, 1)); !errors.Is(err, godwit.ErrSample) {
		t.Errorf("a sample of which nothing was pulled goes on after its end: %v", err)
	}
	if _, err := New([]sampling.Spec{{Name: "bad", Dist: sampling.Uniform(11)}}, m, 1, 1); err == nil {
		t.Error("a distribution over more rows than there are was taken")
	}
}
