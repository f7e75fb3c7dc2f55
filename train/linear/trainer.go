package linear

import (
	"context"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/behind"
	"github.com/godwit-ps/godwit/train/internal/buffer"
)

// A trainer trains one worker's chunks of a [Task]. It belongs to one goroutine.
type trainer struct {
	gatherer
	task  *Task
	w     godwit.Worker
	items *schedule.Items // positions in the training set

	vals, grads []float32
	own         []float32 // what of each factor itself is in its gradient
	pushes      behind.Pushes
}

func newTrainer(t *Task, w godwit.Worker, k keys) *trainer {
	return &trainer{
		gatherer: newGatherer(t.model, k, t.data.Train), task: t, w: w,
		items: t.items(),
	}
}

// Steps, Load and Step implement [train.Trainer].
func (t *trainer) Steps(_, chunk int) int { return t.items.Steps(chunk) }

func (t *trainer) Load(b *train.Batch[Batch], at train.At) {
	b.Keys = t.gather(&b.Data, b.Keys[:0], t.items.Batch(at.Epoch, at.Chunk, at.Step))
}

func (t *trainer) Step(ctx context.Context, b *train.Batch[Batch]) (train.Loss, error) {
	n := t.floats(&b.Data)
	t.vals, t.grads = buffer.Sized(t.vals, n), buffer.Sized(t.grads, n)
	if err := t.w.Pull(ctx, b.Keys, t.vals); err != nil {
		return train.Loss{}, err
	}
	loss := t.gradient(&b.Data)
	return train.Loss{Sum: loss, Examples: int64(len(b.Data.labels))}, t.update(ctx, b)
}

// update pushes the gradient: the tables' update rules make the step, and regularize.
func (t *trainer) update(ctx context.Context, b *train.Batch[Batch]) error {
	return t.pushes.Push(ctx, t.w, b.Keys, t.grads)
}

// Flush and Held implement [train.Flusher].
func (t *trainer) Flush(ctx context.Context) error { return t.pushes.Flush(ctx, t.w) }

func (t *trainer) Held() int { return 0 }

// gradient returns the summed loss of a batch and leaves its gradient in t.grads.
// Examples go forward to their margins, from there to the loss, and backward.
func (t *trainer) gradient(b *Batch) (loss float64) {
	clear(t.grads)
	n, row := t.m.outputs(), t.m.factorDim()
	t.own = buffer.Sized(t.own, b.features*row/max(t.m.factors, 1))
	clear(t.own)
	t.forward(b, t.vals, func(first int, labels, margins []float32) {
		loss += t.m.losses(labels, margins)
		for i := range labels {
			local, xs := b.example(first + i)
			t.backward(b, margins[i*n:(i+1)*n], local, xs, t.sums[i*row:(i+1)*row])
		}
	})
	k, at := t.m.factors, t.factorsAt(b)
	for i, x := range t.own { // none without factors
		vec.AXPY(t.grads[at+i*k:at+(i+1)*k], x, t.vals[at+i*k:at+(i+1)*k])
	}
	return loss
}

// backward adds the gradient of an example, of which the loss has slopes over the
// margins, and the factors sums.
func (t *trainer) backward(b *Batch, slopes []float32, local []int32, xs, sums []float32) {
	if t.m.bias {
		for c, x := range slopes {
			t.grads[c] += x
		}
	}
	at, n := t.weightsAt(), len(slopes)
	w := t.grads[at : at+b.features*n]
	xs = xs[:len(local)]
	if n == 1 {
		slope := slopes[0]
		for k, id := range local {
			w[id] += slope * xs[k]
		}
	} else {
		for k, id := range local {
			vec.AXPY(w[int(id)*n:(int(id)+1)*n], xs[k], slopes)
		}
	}
	if len(sums) > 0 {
		t.backwardFactors(t.grads[t.factorsAt(b):], slopes, local, xs, sums)
	}
}

// backwardFactors adds the gradients of an example's factors: that of vⱼ is
// xⱼ·(Σ vᵢ·xᵢ - vⱼ·xⱼ) times the slope, and that of its L2 penalty. What is a multiple of the factor itself goes to own.
func (t *trainer) backwardFactors(grads, slopes []float32, local []int32, xs, sums []float32) {
	k, n, l2 := t.m.factors, len(slopes), t.task.cfg.FactorL2
	for c, slope := range slopes {
		sum := sums[c*k : (c+1)*k]
		for i, id := range local {
			f, x := int(id)*n+c, slope*xs[i]
			vec.AXPY(grads[f*k:(f+1)*k], x, sum)
			t.own[f] += l2 - x*xs[i]
		}
	}
}
