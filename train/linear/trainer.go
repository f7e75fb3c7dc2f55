package linear

import (
	"context"
	"math/rand/v2"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/buffer"
	"github.com/godwit-ps/godwit/vec"
)

// A trainer is one worker's share of a [Task]. It belongs to one goroutine.
type trainer struct {
	gatherer
	task  *Task
	w     godwit.Worker
	part  train.Part
	order []int32 // the share, as positions in the training set

	vals, grads []float32
}

func newTrainer(t *Task, w godwit.Worker, k keys, part train.Part) *trainer {
	tr := &trainer{gatherer: gatherer{m: t.model, keys: k, set: t.data.Train}, task: t, w: w, part: part}
	for i := part.Index; i < t.data.Train.Len(); i += part.Of {
		tr.order = append(tr.order, int32(i))
	}
	return tr
}

// Steps, Load and Step implement [train.Trainer].
func (t *trainer) Steps() int { return (len(t.order) + t.task.cfg.Batch - 1) / t.task.cfg.Batch }

func (t *trainer) Load(b *train.Batch[Batch], epoch, step int) {
	if step == 0 {
		r := rand.New(rand.NewPCG(t.task.cfg.Seed, uint64(epoch)<<32|uint64(t.part.Index)))
		r.Shuffle(len(t.order), func(i, j int) { t.order[i], t.order[j] = t.order[j], t.order[i] })
	}
	from := step * t.task.cfg.Batch
	to := min(from+t.task.cfg.Batch, len(t.order))
	b.Keys = t.gather(&b.Data, b.Keys[:0], t.order[from:to])
}

func (t *trainer) Step(ctx context.Context, b *train.Batch[Batch]) (train.Loss, error) {
	n := t.floats(&b.Data)
	t.vals, t.grads = buffer.Sized(t.vals, n), buffer.Sized(t.grads, n)
	if err := t.w.Pull(ctx, b.Keys, t.vals); err != nil {
		return train.Loss{}, err
	}
	loss := t.learn(&b.Data)
	if err := t.w.Push(ctx, b.Keys, t.grads); err != nil {
		return train.Loss{}, err
	}
	return train.Loss{Sum: loss, Examples: int64(len(b.Data.examples))}, nil
}

// learn computes the summed loss of a batch and, in t.grads, its gradient.
func (t *trainer) learn(b *Batch) (loss float64) {
	clear(t.grads)
	at := t.weightsAt()
	w := t.grads[at : at+b.features]
	t.each(b, t.vals, func(positive bool, margin float32, local []int32, xs []float32) {
		loss += logLoss(positive, margin)
		g := slope(positive, margin)
		if t.m.bias {
			t.grads[0] += g
		}
		for k, id := range local {
			w[id] += g * xs[k]
		}
		if t.m.factors > 0 {
			t.learnPairs(b, g, local, xs)
		}
	})
	return loss
}

// learnPairs adds the gradients of an example's factors: that of vⱼ is
// xⱼ·(Σ vᵢ·xᵢ - vⱼ·xⱼ) times the slope, and its decay.
func (t *trainer) learnPairs(b *Batch, slope float32, local []int32, xs []float32) {
	k, at := t.m.factors, t.factorsAt(b)
	sums := t.sums[:k]
	for i, id := range local {
		from := at + int(id)*k
		v, g := t.vals[from:from+k], t.grads[from:from+k]
		x := slope * xs[i]
		vec.AXPY(g, x, sums)
		vec.AXPY(g, t.task.cfg.FactorL2-x*xs[i], v)
	}
}
