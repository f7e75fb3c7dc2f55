package w2v

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/wordvec"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// A Quality judges a model.
type Quality struct {
	// Score is how analogies were answered; it has no sections if there were no
	// questions, or none with only words of the text.
	Score wordvec.Score
	// Loss is the loss of a pair and its negatives in the text held out, whose
	// windows, subsampling and negatives are the same each time; Pairs is how
	// many there were.
	Loss  float64
	Pairs int64
}

// Metrics are the figures of a quality, questions first.
func (q Quality) Metrics() []train.Metric {
	var ms []train.Metric
	if all := q.Score.Sum("analogies", wordvec.All); all.Known > 0 {
		ms = append(ms, train.Metric{Name: all.Name, Value: all.Accuracy()})
		syntactic, semantic := q.Score.Sum("syntactic", wordvec.Syntactic), q.Score.Sum("semantic", wordvec.Semantic)
		if syntactic.Known > 0 && semantic.Known > 0 {
			for _, x := range []wordvec.SectionScore{syntactic, semantic} {
				ms = append(ms, train.Metric{Name: x.Name, Value: x.Accuracy()})
			}
		}
	}
	if q.Pairs > 0 {
		ms = append(ms, train.Metric{Name: "held-out loss", Value: q.Loss})
	}
	return ms
}

// Judge judges the model by most questions and most blocks of the text held out,
// or by all if most is 0. Every node calls it at the same point with a name that
// is not used twice, and gets the same result. It only reads: call it when all
// workers of the run are done and synchronized, as [train.Run] leaves them.
func (t *Task) Judge(ctx context.Context, env *train.Env, name string, most int) (Quality, error) {
	var q Quality
	if len(t.known) > 0 {
		known := few(t.known, most)
		right, err := t.answer(ctx, env, known)
		if err != nil {
			return q, err
		}
		if right, err = env.Sum(ctx, "w2v analogies "+name, right...); err != nil {
			return q, err
		}
		counts := make([]int64, len(right))
		for i, r := range right {
			counts[i] = int64(r)
		}
		q.Score = t.questions.Score(known, counts)
	}
	if t.heldOut() > 0 {
		loss, err := t.heldOutLoss(ctx, env, most)
		if err != nil {
			return q, err
		}
		sum, err := env.Sum(ctx, "w2v loss "+name, loss.Sum, float64(loss.Examples))
		if err != nil {
			return q, err
		}
		q.Pairs = int64(sum[1])
		q.Loss = sum[0] / max(sum[1], 1)
	}
	return q, nil
}

// few returns at most n items, evenly spaced; all of them if n is 0.
func few[T any](items []T, n int) []T {
	if n == 0 || len(items) <= n {
		return items
	}
	some := make([]T, n)
	for i := range some {
		some[i] = items[i*len(items)/n]
	}
	return some
}

// answer returns how many questions of each section this node's share has right.
// Its workers read the vectors together, once.
func (t *Task) answer(ctx context.Context, env *train.Env, known []wordvec.Known) ([]float64, error) {
	rows, d := min(t.cfg.Restrict, len(t.keep)), t.cfg.Dim
	vals := make([]float32, rows*d)
	workers := len(env.Workers)
	err := env.Each(ctx, func(ctx context.Context, i int, w godwit.Worker) error {
		k, err := t.keys(w.Model())
		if err != nil {
			return err
		}
		from, to := rows*i/workers, rows*(i+1)/workers
		mine := vals[from*d : to*d]
		err = tables.Read(ctx, w, k.input+godwit.Key(from), to-from, d, func(at int, part []float32) error {
			copy(mine[at*d:], part)
			return nil
		})
		wordvec.Normalize(mine, d)
		return err
	})
	if err != nil {
		return nil, err
	}
	counts := make([][]int64, workers)
	err = env.Each(ctx, func(ctx context.Context, i int, _ godwit.Worker) error {
		counts[i] = make([]int64, len(t.questions.Sections))
		var mine []wordvec.Known
		step := max(env.Nodes, 1) * workers
		for j := env.Node*workers + i; j < len(known); j += step {
			mine = append(mine, known[j])
		}
		wordvec.Answer(vals, d, mine, counts[i])
		return context.Cause(ctx)
	})
	if err != nil {
		return nil, err
	}
	sum := make([]float64, len(t.questions.Sections))
	for _, c := range counts {
		for s, n := range c {
			sum[s] += float64(n)
		}
	}
	return sum, nil
}

// heldOutLoss is the loss of this node's share of the blocks held out, over
// pairs.
func (t *Task) heldOutLoss(ctx context.Context, env *train.Env, most int) (train.Loss, error) {
	blocks := make([]int, t.heldOut())
	for i := range blocks {
		blocks[i] = (i+1)*t.cfg.HoldOut - 1
	}
	blocks = few(blocks, most)
	workers := len(env.Workers)
	losses := make([]train.Loss, workers)
	err := env.Each(ctx, func(ctx context.Context, i int, w godwit.Worker) error {
		part := train.Part{Index: env.Node*workers + i, Of: max(env.Nodes, 1) * workers}
		from, to := len(blocks)*part.Index/part.Of, len(blocks)*(part.Index+1)/part.Of
		l := &loader{task: t, part: part, steps: to - from, blocks: func(step int) int { return blocks[from+step] }}
		l.open()
		tr, err := newTrainer(t, w, l)
		if err != nil {
			return err
		}
		for step := range l.steps {
			loss, err := tr.judge(ctx, step)
			if err != nil {
				return fmt.Errorf("w2v: judging block %d: %w", l.blocks(step), err)
			}
			losses[i].Sum += loss.Sum
			losses[i].Examples += loss.Examples
		}
		return nil
	})
	var sum train.Loss
	for _, l := range losses {
		sum.Sum += l.Sum
		sum.Examples += l.Examples
	}
	return sum, err
}

// judge returns the loss of a step over pairs, and trains nothing. Its negatives
// are the block's own, so that every evaluation has the same.
func (t *trainer) judge(ctx context.Context, step int) (train.Loss, error) {
	var b train.Batch[Batch]
	t.Load(&b, 0, step)
	if b.Data.err != nil || b.Data.words == 0 {
		return train.Loss{}, b.Data.err
	}
	t.layOut(b.Keys, b.Samples)
	r := rand.New(rand.NewPCG(t.task.cfg.Seed^0x6a756467, uint64(t.load.blocks(step))))
	for i := len(b.Keys); i < len(t.keysOf); i++ {
		t.keysOf[i] = t.keys.output + godwit.Key(t.task.dist.Draw(r))
	}
	if err := t.w.Pull(ctx, t.keysOf, t.vals); err != nil {
		return train.Loss{}, err
	}
	s := t.split(&b.Data)
	sum := t.compute(&s)
	return train.Loss{Sum: sum, Examples: int64(len(t.pairs))}, nil
}
