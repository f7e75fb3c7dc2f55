package experiment

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/sim"
)

// A single worker does what it would do with all keys in a call, in as many
// round trips as it reads keys. Judging reads them at once.
func TestSingleCallsReadAndWriteTheSame(t *testing.T) {
	const n = 10
	m, err := godwit.NewModel(godwit.Table{Name: "a", Rows: n, Dim: 3}, godwit.Table{Name: "b", Rows: n, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	keys := []godwit.Key{m.Key(0, 1), m.Key(1, 4), m.Key(0, 7), m.Key(1, 1), m.Key(1, 4)}
	push := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}
	want := []float32{1, 2, 3, 13, 5, 6, 7, 8, 13} // the last key is the second again
	var took [2]time.Duration
	var calls [2]uint64
	for i, evaluating := range []bool{true, false} {
		c, err := cluster(sim.Config{Nodes: 2, Workers: 1, Seed: 1, Model: m, Policy: placement.Static,
			Samplers: []sampling.Spec{{Name: "s", Table: 0, Dist: sampling.Uniform(n)}}}, "10g")
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
			if w.ID().Node == 1 {
				return nil
			}
			w = single{inner{w}, &evaluating}
			got := make([]float32, len(push))
			if err := w.Push(ctx, keys, push); err != nil {
				return err
			}
			if err := w.Pull(ctx, keys, got); err != nil {
				return err
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("read %v, want %v", got, want)
					break
				}
			}
			id, err := w.PrepareSample(0, 4, 0, 1)
			if err != nil {
				return err
			}
			drawn := make([]godwit.Key, 4)
			if err := w.PullSample(ctx, id, drawn, make([]float32, 12)); err != nil {
				return err
			}
			w.FinishSample(id)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		took[i], calls[i] = res.Elapsed, res.Sum().Calls
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	// Five writes, five reads or one of them all, four samples.
	if calls[0] != 5+1+4 || calls[1] != 5+5+4 {
		t.Errorf("%d calls while evaluating, %d while training", calls[0], calls[1])
	}
	if took[1] <= took[0] {
		t.Errorf("evaluating took %v, training %v", took[0], took[1])
	}
}

func TestSingleCallsAreSlowerForTheClassicServer(t *testing.T) {
	notUnderRace(t)
	var speed [2]float64
	for i, calls := range AllCalls() {
		l := tiny()
		l.Calls, l.Policies = calls, []placement.Policy{placement.Static}
		r := run(t, "scaling", l)
		speed[i] = r.Rows[1].Speedup
	}
	if speed[1] >= 0.7*speed[0] {
		t.Errorf("speed-up of two nodes: %.2f with calls of all keys, %.2f with a call a key", speed[0], speed[1])
	}
}

// Samples of every worker of an experiment follow from the seeds of their steps, as in training without one.
func TestSamplesOfExperimentsAreSeededByStep(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1 << 20, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster(sim.Config{Nodes: 1, Workers: 1, Seed: 1, Model: m, Samplers: []sampling.Spec{{Name: "s", Dist: sampling.Uniform(1 << 20), Scheme: sampling.Independent{}}}}, "10g")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	draw := func(ctx context.Context, w godwit.Worker) ([]godwit.Key, error) {
		inner{w}.SeedSample(0, 7, 11)
		id, err := w.PrepareSample(0, 8, 0, 1)
		if err != nil {
			return nil, err
		}
		defer w.FinishSample(id)
		keys := make([]godwit.Key, 8)
		return keys, w.PullSample(ctx, id, keys, make([]float32, 8))
	}
	_, err = c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
		want, err := draw(ctx, w)
		if err != nil {
			return err
		}
		evaluating := false
		workers := map[string]godwit.Worker{"counter": &counter{inner: inner{w}}}
		for what, p := range map[string]*program{"batched": {}, "single": {calls: Single}, "ahead": {ahead: true}} {
			d := &recorder{c: c, program: p}
			workers[what] = d.callers([]godwit.Worker{w}, &evaluating)[0]
		}
		for what, w := range workers {
			if got, err := draw(ctx, w); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s draws %v, want %v: %v", what, got, want, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
