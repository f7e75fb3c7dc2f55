package w2v

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/wordvec"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// A Quality is the result of an evaluation.
type Quality struct {
	// Score is how analogies were answered; it has no sections if there were no
	// questions, or none with only words of the text.
	Score wordvec.Score
	// Loss is the loss of a pair and its negatives in the text held out, whose
	// windows, subsampling and negatives are the same each time.
	Loss float64
	// Pairs is how many pairs Loss is the mean of; 0 if nothing was held out.
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
	switch {
	case q.Pairs > 0:
		ms = append(ms, train.Metric{Name: "held-out loss", Value: q.Loss})
	case len(ms) == 0: // subsampling has left no pair
		ms = append(ms, train.Metric{Name: "held-out loss", Value: math.NaN()})
	}
	return ms
}

// EvaluateOn evaluates the model by most questions and most blocks of the text held out,
// or by all if most is 0. Every node calls it at the same point with a name that
// is not used twice, and gets the same result. It only reads: call it when all
// workers of the run are done and synchronized, as [train.Run] leaves them.
func (t *Task) EvaluateOn(ctx context.Context, env *train.Env, name string, most int) (Quality, error) {
	var q Quality
	if len(t.known) > 0 {
		known := train.EvenlySpaced(t.known, most)
		right, err := t.answer(ctx, env, name, known)
		if err != nil {
			return q, err
		}
		counts := make([]int64, len(right))
		for i, r := range right {
			counts[i] = int64(r)
		}
		q.Score = t.questions.Score(known, counts)
	}
	if t.heldOut() > 0 {
		sum, err := t.heldOutLoss(ctx, env, name, most)
		if err != nil {
			return q, err
		}
		q.Pairs = int64(sum[1])
		q.Loss = sum[0] / max(sum[1], 1)
	}
	return q, nil
}

// answer returns how many questions of each section are right. The workers of a
// node read the vectors together, once.
func (t *Task) answer(ctx context.Context, env *train.Env, name string, known []wordvec.Known) ([]float64, error) {
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
	return env.SumOverWorkers(ctx, "w2v analogies "+name, len(t.questions.Sections), func(ctx context.Context, i int, _ godwit.Worker, sums []float64) error {
		counts := make([]int64, len(sums))
		from, to := env.Share(len(known), i)
		wordvec.Answer(vals, d, known[from:to], counts)
		for section, n := range counts {
			sums[section] = float64(n)
		}
		return context.Cause(ctx)
	})
}

// heldOutLoss returns the summed loss of the blocks held out, and over how many
// pairs.
func (t *Task) heldOutLoss(ctx context.Context, env *train.Env, name string, most int) ([]float64, error) {
	blocks := make([]int, t.heldOut())
	for i := range blocks {
		blocks[i] = (i+1)*t.cfg.HoldOut - 1
	}
	blocks = train.EvenlySpaced(blocks, most)
	return env.SumOverWorkers(ctx, "w2v loss "+name, 2, func(ctx context.Context, i int, w godwit.Worker, sums []float64) (err error) {
		from, to := env.Share(len(blocks), i)
		tr, err := newTrainer(t, w, newLoader(t, 1))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, tr.Close()) }()
		for _, block := range blocks[from:to] {
			loss, err := tr.evaluate(ctx, block)
			if err != nil {
				return fmt.Errorf("w2v: evaluating block %d: %w", block, err)
			}
			sums[0] += loss.Sum
			sums[1] += float64(loss.Examples)
		}
		return nil
	})
}

// evaluate returns the loss of a block over pairs, and trains nothing. Its negatives
// are drawn by the block's number, so that every evaluation has the same.
func (t *trainer) evaluate(ctx context.Context, block int) (train.Loss, error) {
	var b train.Batch[Batch]
	t.load.block(&b, block, train.At{})
	if b.Data.err != nil || b.Data.words == 0 {
		return train.Loss{}, b.Data.err
	}
	t.layOut(b.Keys, b.Samples)
	r := rand.New(rand.NewPCG(t.task.cfg.Seed^0x6a756467, uint64(block)))
	for i := len(b.Keys); i < len(t.keysOf); i++ {
		t.keysOf[i] = t.keys.output + godwit.Key(t.task.dist.Draw(r))
	}
	if err := t.w.Pull(ctx, t.keysOf, t.vals); err != nil {
		return train.Loss{}, err
	}
	s := t.split(&b.Data)
	t.forward(&s)
	return train.Loss{Sum: t.loss(&s), Examples: int64(len(t.pairs))}, nil
}
