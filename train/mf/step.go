package mf

import (
	"context"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/buffer"
)

// A trainer trains one worker's chunks, or its share. A step makes one pull and one push of the
// batch's distinct rows. Between them, each cell has a forward pass and a loss. What
// follows depends on the update rule:
//
//	SGD     the worker makes a step for each cell, regularization included, and
//	        pushes what has changed in all
//	others  backward and regularize make the gradient of the batch, which the worker
//	        pushes; the rule of the tables makes one step
//
// Its buffers grow to the largest batch and are used again.
type trainer struct {
	task *Task
	w    godwit.Worker
	load *loader
	lr   float32 // changed by the bold driver
	loss float64 // of the last epoch, per cell; 0 before the first

	localized bool // the worker's own rows are here
	turn      turn // whose columns are here
	vals      []float32
	push      []float32
	counts    []float32 // how many cells of the batch each of its rows has
}

// Steps, Load and Step implement [train.Trainer].
func (t *trainer) Steps(epoch, chunk int) int { return t.load.steps(epoch, chunk) }

func (t *trainer) Load(b *train.Batch[Batch], at train.At) { t.load.load(b, at) }

func (t *trainer) Step(ctx context.Context, b *train.Batch[Batch]) (train.Loss, error) {
	if err := t.pull(ctx, b); err != nil {
		return train.Loss{}, err
	}
	loss := train.Loss{Examples: int64(len(b.Data.cells))}
	loss.Sum = t.penalty(&b.Data)
	if t.task.cfg.Rule == SGD {
		loss.Sum += t.sgd(&b.Data)
	} else {
		t.regularize()
		loss.Sum += t.gradient(&b.Data)
	}
	return loss, t.update(ctx, b)
}

// pull reads the batch's rows, once those are here that this worker needs alone.
func (t *trainer) pull(ctx context.Context, b *train.Batch[Batch]) error {
	if err := t.localize(ctx, &b.Data); err != nil {
		return err
	}
	n := len(b.Keys) * t.task.cfg.width()
	t.vals, t.push = buffer.Sized(t.vals, n), buffer.Sized(t.push, n)
	return t.w.Pull(ctx, b.Keys, t.vals)
}

// update pushes what the step has computed.
func (t *trainer) update(ctx context.Context, b *train.Batch[Batch]) error {
	return t.w.Push(ctx, b.Keys, t.push)
}

// Adjust implements [train.Adjuster]: it is the bold driver.
func (t *trainer) Adjust(epoch train.Loss) {
	loss := epoch.Mean()
	switch {
	case !t.task.cfg.BoldDriver || t.loss == 0:
	case loss < t.loss:
		t.lr *= 1.05
	default:
		t.lr *= 0.5
	}
	t.loss = loss
}

// localize moves rows to this node that only this worker needs for a long time: its
// own rows once, and a block's columns when the block begins.
func (t *trainer) localize(ctx context.Context, b *Batch) error {
	if !t.localized {
		if err := t.w.Localize(ctx, t.load.home); err != nil {
			return err
		}
		t.localized = true
	}
	if b.turn == t.turn {
		return nil
	}
	t.turn = b.turn
	return t.w.Localize(ctx, b.block)
}

// penalty counts the cells of each row of the batch, and returns the part of the loss
// that regularizes: the L2 penalty of each cell's row and column.
func (t *trainer) penalty(b *Batch) float64 {
	t.counts = buffer.Sized(t.counts, b.rows+b.cols)
	clear(t.counts)
	for _, c := range b.cells {
		t.counts[c.row]++
		t.counts[b.rows+int(c.col)]++
	}
	w, sum := t.task.cfg.width(), 0.0
	for i, n := range t.counts {
		sum += float64(n) * float64(vec.SquaredNorm(t.vals[i*w:(i+1)*w]))
	}
	return float64(t.task.cfg.L2) * sum
}

// sgd makes a step of SGD for each cell, leaves in push what has changed, and returns
// the summed squared errors.
func (t *trainer) sgd(b *Batch) float64 {
	copy(t.push, t.vals)
	sum := 0.0
	keep := 1 - t.lr*t.task.cfg.L2
	for _, c := range b.cells {
		p, q := t.task.sides(t.push, b, c)
		e := c.value - t.task.forward(p, q)
		sum += float64(e) * float64(e)
		t.task.sgdStep(p, q, keep, t.lr*e)
	}
	vec.Sub(t.push, t.vals)
	return sum
}

// sgdStep sets p to keep·p + by·q and q to keep·q + by·p, and each bias as if the
// other side's were 1.
func (t *Task) sgdStep(p, q []float32, keep, by float32) {
	d := t.cfg.Dim
	if t.cfg.Biased {
		p[d] = keep*p[d] + by
		q[d] = keep*q[d] + by
	}
	vec.PairStep(p[:d], q[:d], keep, by)
}

// regularize sets push to half the gradient of the penalty.
func (t *trainer) regularize() {
	w := t.task.cfg.width()
	for i, n := range t.counts {
		g := t.push[i*w : (i+1)*w]
		copy(g, t.vals[i*w:])
		vec.Scale(g, n*t.task.cfg.L2)
	}
}

// gradient adds half the gradient of the squared errors to push, and returns their
// sum.
func (t *trainer) gradient(b *Batch) float64 {
	sum := 0.0
	for _, c := range b.cells {
		p, q := t.task.sides(t.vals, b, c)
		e := c.value - t.task.forward(p, q)
		sum += float64(e) * float64(e)
		gp, gq := t.task.sides(t.push, b, c)
		t.task.backward(gp, gq, p, q, e)
	}
	return sum
}

// backward adds half the gradient of the squared error e² towards p and q.
func (t *Task) backward(gp, gq, p, q []float32, e float32) {
	d := t.cfg.Dim
	vec.AXPY(gp[:d], -e, q[:d])
	vec.AXPY(gq[:d], -e, p[:d])
	if t.cfg.Biased {
		gp[d] -= e
		gq[d] -= e
	}
}

// sides returns the parts of x, in the layout of the batch's keys, of the row
// and the column of a cell.
func (t *Task) sides(x []float32, b *Batch, c cell) (p, q []float32) {
	w := t.cfg.width()
	i, j := int(c.row)*w, (b.rows+int(c.col))*w
	return x[i : i+w : i+w], x[j : j+w : j+w]
}

// forward is the model's value for a cell.
func (t *Task) forward(p, q []float32) float32 {
	d := t.cfg.Dim
	x := vec.Dot(p[:d], q[:d])
	if t.cfg.Biased {
		x += t.mean + p[d] + q[d]
	}
	return x
}
