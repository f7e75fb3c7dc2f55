package sim

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/kge"
)

// graph returns a small graph of so many triples, the task of it with these settings, and its model.
func graph(t testing.TB, facts, dim, batch, negatives int) (*triples.Graph, *kge.Task, *godwit.Model) {
	t.Helper()
	spec := triples.DefaultSpec()
	spec.Entities, spec.Triples = 400, facts
	g, err := triples.Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	kc := kge.DefaultConfig()
	kc.Dim, kc.Batch, kc.Negatives = dim, batch, negatives
	task, err := kge.New(kc, g)
	if err != nil {
		t.Fatal(err)
	}
	m, err := godwit.NewModel(task.Tables()...)
	if err != nil {
		t.Fatal(err)
	}
	return g, task, m
}

// trained trains a small graph on simulated nodes.
func trained(t testing.TB, nodes, workers int, p placement.Policy, nw string, step time.Duration) (*Result, *train.Report) {
	t.Helper()
	g, task, m := graph(t, 6000, 8, 50, 10)
	network, err := NetworkNamed(nw)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Nodes: nodes, Workers: workers, Seed: 1, Model: m, Policy: p, Network: network,
		Samplers: []sampling.Spec{{Name: "negatives", Table: 0, Dist: sampling.Uniform(uint64(len(g.Entities))), Scheme: sampling.Local{}}},
		Compute:  Compute{Step: step, Spread: 0.1, Key: 100 * time.Nanosecond, Frame: 3 * time.Microsecond, Record: 200 * time.Nanosecond, Round: 100 * time.Nanosecond}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	var rep *train.Report
	r, err := c.RunNodes(context.Background(), func(ctx context.Context, env train.Env) error {
		rep, err = train.Run(ctx, env, task, train.Options{Epochs: 3})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	return r, rep
}

func TestTrainingRunsUnchangedAndRepeatsBitForBit(t *testing.T) {
	var hash uint64
	var loss float64
	for i := range 2 {
		r, rep := trained(t, 4, 2, placement.AdaPM, "10g", time.Millisecond)
		s := r.Sum()
		t.Logf("%v, %d messages, loss %v, %+v, no message %.4f", r.Elapsed, r.Messages, rep.Losses, rep.Results, s.NoMessage())
		if i > 0 && (r.Hash != hash || rep.Losses[2].Sum != loss) {
			t.Errorf("the same run has the hash %x and then %x, the loss %v and then %v", hash, r.Hash, loss, rep.Losses[2].Sum)
		}
		hash, loss = r.Hash, rep.Losses[2].Sum
		if s.Moves == 0 || s.Copies == 0 || r.Elapsed < 3*10*time.Millisecond {
			t.Errorf("%d moves, %d copies in %v: the test is vacuous", s.Moves, s.Copies, r.Elapsed)
		}
	}
}
