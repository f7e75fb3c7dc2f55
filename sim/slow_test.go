package sim

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/kge"
)

// inAdvance is a task whose chunks are divided equally among the workers before the run.
type inAdvance struct{ *kge.Task }

func (t inAdvance) Chunks() int { return 0 }

func (t inAdvance) Trainer(w godwit.Worker, part train.Partition) (train.Trainer[kge.Batch], error) {
	tr, err := t.Task.Trainer(w, part)
	p := &inParts{Trainer: tr}
	from, to := schedule.Range(t.Task.Chunks(), part.Index, part.Count)
	for c := from; c < to; c++ {
		for step := range tr.Steps(1, c) {
			p.steps = append(p.steps, train.At{Chunk: c, Step: step})
		}
	}
	return p, err
}

type inParts struct {
	train.Trainer[kge.Batch]
	steps []train.At
}

func (p *inParts) Steps(int, int) int { return len(p.steps) }

func (p *inParts) Load(b *train.Batch[kge.Batch], at train.At) {
	x := p.steps[at.Step]
	x.Epoch = at.Epoch
	p.Trainer.Load(b, x)
}

// A blind worker does not say how far it looks ahead.
type blind struct{ godwit.Worker }

func (blind) Lookahead() godwit.Clock { return 0 }

// epochsOf trains on four nodes, of which some may be slow, and returns how long each epoch took.
func epochsOf(t *testing.T, fixed bool, slow map[int]float64) (took []time.Duration, r *Result) {
	t.Helper()
	return epochsWith(t, 1, Compute{Step: time.Millisecond, Spread: 0.1, Slow: slow}, fixed, false)
}

// epochsWith is epochsOf with so many workers a node, which compute as given, and are blind if blinded is set.
func epochsWith(t *testing.T, workers int, compute Compute, fixed, blinded bool) (took []time.Duration, r *Result) {
	t.Helper()
	g, task, m := graph(t, 20_000, 4, 25, 5)
	network, err := NetworkNamed("10g")
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Nodes: 4, Workers: workers, Seed: 1, Model: m, Network: network,
		Samplers: []sampling.Spec{{Name: "negatives", Table: 0, Dist: sampling.Uniform(uint64(len(g.Entities))), Scheme: sampling.Local{}}},
		Compute:  compute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err = c.RunNodes(t.Context(), func(ctx context.Context, env train.Env) error {
		last := c.Now()
		if blinded {
			env.Workers = slices.Clone(env.Workers)
			for i, w := range env.Workers {
				env.Workers[i] = blind{w}
			}
		}
		if env.Node == 0 {
			env.Progress = func(e train.Event) {
				if e.Loss != nil {
					if want := int64(2 * len(g.Train)); e.Loss.Examples != want {
						t.Errorf("epoch %d has %d examples, want %d", e.Epoch, e.Loss.Examples, want)
					}
					took, last = append(took, c.Now()-last), c.Now()
				}
			}
		}
		if fixed {
			_, err = train.Run(ctx, env, inAdvance{task}, train.Options{Epochs: 3})
		} else {
			_, err = train.Run(ctx, env, task, train.Options{Epochs: 3})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return took, r
}

// Of four nodes one is half as fast: the ideal takes 4/3.5 of what it takes where all are
// equal.
func TestASlowNodeHoldsUpNobody(t *testing.T) {
	equal, same := epochsOf(t, true, nil)
	leased, leases := epochsOf(t, false, nil)
	slow, _ := epochsOf(t, false, map[int]float64{2: 2})
	static, _ := epochsOf(t, true, map[int]float64{2: 2})
	t.Logf("all equal: %v divided in advance, %v leased (%d and %d messages)", equal, leased, same.Messages, leases.Messages)
	t.Logf("one at half the speed: %v divided in advance, %v leased", static, slow)
	for e := range slow {
		ideal := equal[e] * 8 / 7
		if slow[e] > ideal*11/10 {
			t.Errorf("epoch %d takes %v where one of four nodes is slow, the ideal is %v", e+1, slow[e], ideal)
		}
		if static[e] < ideal*3/2 {
			t.Errorf("epoch %d takes %v divided in advance: the test is vacuous", e+1, static[e])
		}
		if leased[e] > equal[e]*105/100 {
			t.Errorf("epoch %d takes %v with leases where all nodes are equal, %v without", e+1, leased[e], equal[e])
		}
	}
}

// Where steps are shorter than the time that a key takes to come, a worker knows as many ahead as it makes meanwhile, also when
// little is left of an epoch. Else it waits for keys that it announced too late.
func TestWorkersKnowTheirStepsAsFarAheadAsKeysTakeToCome(t *testing.T) {
	compute := Compute{Step: 20 * time.Microsecond, Spread: 0.1}
	took, r := epochsWith(t, 4, compute, false, false)
	blinded, other := epochsWith(t, 4, compute, false, true)
	all := func(times []time.Duration) (sum time.Duration) {
		for _, x := range times {
			sum += x
		}
		return sum
	}
	waited, blindly := r.Sum().Waited, other.Sum().Waited
	t.Logf("epochs of %v, workers wait for %v; of %v and %v where they do not say how far they look ahead", took, waited, blinded, blindly)
	if all(took) > all(blinded)*9/10 || waited > blindly*8/10 {
		t.Errorf("epochs take %v and workers wait for %v, and %v and %v where they do not say how far they look ahead", all(took), waited, all(blinded), blindly)
	}
}
