package main

import (
	"context"
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
)

// A model is a [train.Task]: what the workers of a run train and evaluate.
type model struct {
	Settings
	data *impressions
	seed uint64
	in   int // inputs of the hidden layer: the embeddings of an impression's categories
}

// A batch is impressions, with the numbers of their categories among the batch's.
type batch struct {
	is    []int32
	local []int32
}

// Fingerprint stands for everything that all nodes must have in common beside the data.
func (m *model) Fingerprint() string { return fmt.Sprintf("ctr %+v, seed %d", m.Settings, m.seed) }

// Chunks says into how many chunks the impressions are divided, which workers get one by one.
func (m *model) Chunks() int { return m.items().Chunks() }

func (m *model) items() *schedule.Items {
	return schedule.NewItems(len(m.data.split(0)), m.Batch, m.seed)
}

func (m *model) Trainer(w godwit.Worker, _ train.Partition) (train.Trainer[batch], error) {
	return &trainer{net: net{m: m, w: w}, all: m.data.split(0), items: m.items()}, nil
}

// Evaluate evaluates the model on the impressions to validate.
func (m *model) Evaluate(ctx context.Context, env *train.Env, epoch int) (train.Evaluation, error) {
	ms, err := m.evaluateOn(ctx, env, fmt.Sprint("epoch ", epoch), "valid", m.data.split(1))
	return train.Evaluation{Metrics: ms, LowerIsBetter: true}, err
}

// A trainer trains one worker's chunks.
type trainer struct {
	net
	all   []int32         // impressions to train
	items *schedule.Items // positions in all, in the order of the epoch
	is    []int32         // of a batch
	grads []float32
}

func (t *trainer) Steps(_, chunk int) int { return t.items.Steps(chunk) }

// Load says which keys a step needs, long before it: so the server has them here then.
func (t *trainer) Load(b *train.Batch[batch], at train.At) {
	t.is = t.is[:0]
	for _, i := range t.items.Batch(at.Epoch, at.Chunk, at.Step) {
		t.is = append(t.is, t.all[i])
	}
	b.Keys = t.gather(&b.Data, b.Keys[:0], t.is)
}

func (t *trainer) Step(ctx context.Context, b *train.Batch[batch]) (train.Loss, error) {
	if err := t.pull(ctx, b.Keys); err != nil {
		return train.Loss{}, err
	}
	t.grads = append(t.grads[:0], make([]float32, len(t.vals))...)
	var loss float64
	t.each(&b.Data, func(i int, logit float64) {
		loss += logLoss(logit, t.m.data.clicked[b.Data.is[i]])
		t.backward(&b.Data, i, slope(logit, t.m.data.clicked[b.Data.is[i]]))
	})
	return train.Loss{Sum: loss, Examples: int64(len(b.Data.is))}, t.w.Push(ctx, b.Keys, t.grads)
}

// backward adds the gradient of an impression, after its forward pass.
func (t *trainer) backward(b *batch, i int, g float32) {
	m := t.m
	output, dOutput := t.vals[m.Hidden*(m.in+1):], t.grads[m.Hidden*(m.in+1):]
	dOutput[m.Hidden] += g
	for j, h := range t.h {
		dOutput[j] += g * h
		if h <= 0 {
			continue
		}
		dh := g * output[j]
		w, dw := t.vals[j*(m.in+1):], t.grads[j*(m.in+1):]
		dw[m.in] += dh
		for k, x := range t.x {
			dw[k] += dh * x
			t.grads[t.at(b, i, k)] += dh * w[k]
		}
	}
}

// A net computes what the model says of impressions. It belongs to one worker.
type net struct {
	m    *model
	w    godwit.Worker
	seen map[uint32]int32 // the number of each category of a batch
	vals []float32        // of the batch's keys: both layers, then the categories
	x, h []float32        // inputs of the layers
}

// gather fills a batch, and returns its keys, each once.
func (n *net) gather(b *batch, keys []godwit.Key, is []int32) []godwit.Key {
	if n.seen == nil {
		n.seen = map[uint32]int32{}
	}
	clear(n.seen)
	b.is, b.local = append(b.is[:0], is...), b.local[:0]
	for j := range n.m.Hidden {
		keys = append(keys, n.w.Model().Key(hiddenLayer, uint64(j)))
	}
	keys = append(keys, n.w.Model().Key(outputLayer, 0))
	for _, i := range is {
		for _, row := range n.m.data.row(i) {
			number, ok := n.seen[row]
			if !ok {
				number = int32(len(n.seen))
				n.seen[row] = number
				keys = append(keys, n.w.Model().Key(embeddings, uint64(row)))
			}
			b.local = append(b.local, number)
		}
	}
	return keys
}

func (n *net) pull(ctx context.Context, keys []godwit.Key) error {
	floats, err := n.w.Model().Floats(keys)
	if err != nil {
		return err
	}
	n.vals = append(n.vals[:0], make([]float32, floats)...)
	return n.w.Pull(ctx, keys, n.vals)
}

// at is where input k of impression i of a batch is among the batch's values.
func (n *net) at(b *batch, i, k int) int {
	m := n.m
	return m.Hidden*(m.in+1) + m.Hidden + 1 + int(b.local[i*m.data.fields+k/m.Dim])*m.Dim + k%m.Dim
}

// each calls do with what the model says of each impression of a batch.
func (n *net) each(b *batch, do func(i int, logit float64)) {
	m := n.m
	n.x, n.h = make([]float32, m.in), make([]float32, m.Hidden)
	output := n.vals[m.Hidden*(m.in+1):]
	for i := range b.is {
		for k := range n.x {
			n.x[k] = n.vals[n.at(b, i, k)]
		}
		logit := output[m.Hidden]
		for j := range n.h {
			w := n.vals[j*(m.in+1):]
			n.h[j] = w[m.in]
			for k, x := range n.x {
				n.h[j] += w[k] * x
			}
			n.h[j] = max(n.h[j], 0)
			logit += output[j] * n.h[j]
		}
		do(i, float64(logit))
	}
}

func logLoss(logit float64, clicked bool) float64 {
	if clicked {
		logit = -logit
	}
	return math.Log1p(math.Exp(-math.Abs(logit))) + max(logit, 0)
}

func slope(logit float64, clicked bool) float32 {
	p := 1 / (1 + math.Exp(-logit))
	if clicked {
		p--
	}
	return float32(p)
}

// bins of logits from -8 to 8, by which the AUC is told to about a hundredth of a bin.
const bins = 1024

// evaluateOn has all workers of all nodes evaluate the model on a part of the impressions each.
// The clicked ones and the others are counted by their logits, which makes the AUC.
func (m *model) evaluateOn(ctx context.Context, env *train.Env, name, split string, is []int32) ([]train.Metric, error) {
	sums, err := env.SumOverWorkers(ctx, "ctr "+name, 1+2*bins, func(ctx context.Context, i int, w godwit.Worker, sums []float64) error {
		n := net{m: m, w: w}
		var b batch
		var keys []godwit.Key
		for from, to := env.Share(len(is), i); from < to; from += m.Batch {
			keys = n.gather(&b, keys[:0], is[from:min(from+m.Batch, to)])
			if err := n.pull(ctx, keys); err != nil {
				return err
			}
			n.each(&b, func(i int, logit float64) {
				clicked := m.data.clicked[b.is[i]]
				sums[0] += logLoss(logit, clicked)
				bin := 1 + 2*int(min(max((logit+8)/16*bins, 0), bins-1))
				if clicked {
					bin++
				}
				sums[bin]++
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var below, clicks, pairs float64 // others with smaller logits; clicked ones; pairs in the right order
	for bin := 1; bin < len(sums); bin += 2 {
		pairs += sums[bin+1] * (below + sums[bin]/2)
		below, clicks = below+sums[bin], clicks+sums[bin+1]
	}
	return []train.Metric{
		{Name: "log loss", Split: split, Value: sums[0] / max(below+clicks, 1)},
		{Name: "AUC", Split: split, Value: pairs / max(below*clicks, 1)},
	}, nil
}
