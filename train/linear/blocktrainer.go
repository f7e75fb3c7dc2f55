package linear

import (
	"context"
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/buffer"
)

// A Phase is one of the two steps of a round.
type Phase struct {
	round   int
	all     bool // whether no weight is left out in this pass
	weights bool // change weights; else push gradients
	// places whose weights are pulled, and those whose gradients are pushed or
	// whose weights are changed.
	pull, push []int32
}

// A blockTrainer is one worker's share of [Blocks]. It belongs to one goroutine.
type blockTrainer struct {
	task *Blocks
	w    godwit.Worker
	keys keys
	part train.Part
	cols *columns

	// By place: what this worker last pulled, of the places that its examples
	// have values of.
	weight []float32
	out    []bool    // left out
	own    []float32 // the weights that this worker changes
	owned  []bool    // whether it does

	margin   []float64 // by example
	features []int32   // by example: of the round
	slope    []float64 // by example, where features is not 0
	curve    []float64 // likewise: the parabola's, times features

	ks    []godwit.Key
	vals  []float32
	grads []float32
	set   []godwit.Key
	to    []float32
}

func newBlockTrainer(t *Blocks, w godwit.Worker, k keys, part train.Part) *blockTrainer {
	c := newColumns(t.model, t.data.Train, part)
	n, p := len(c.labels), t.places()
	tr := &blockTrainer{
		task: t, w: w, keys: k, part: part, cols: c,
		weight: make([]float32, p), out: make([]bool, p), own: make([]float32, p), owned: make([]bool, p),
		margin: make([]float64, n), features: make([]int32, n), slope: make([]float64, n), curve: make([]float64, n),
	}
	for r := range t.rounds() {
		from, to := t.round(r)
		for _, p := range tr.share(nil, from, to) {
			tr.owned[p] = true
		}
	}
	return tr
}

// Steps is two a round.
func (t *blockTrainer) Steps() int { return 2 * t.task.rounds() }

// Load fills b with a phase. A gradient needs the outcome of the round before;
// the first one of all, whatever weights there are.
func (t *blockTrainer) Load(b *train.Batch[Phase], epoch, step int) {
	d := &b.Data
	d.round, d.weights = step/2, step%2 == 1
	d.all = t.task.cfg.KKT == 0 || (epoch-1)%t.task.cfg.Recheck == 0
	d.pull, d.push, b.Keys = d.pull[:0], d.push[:0], b.Keys[:0]
	from, to := t.task.round(d.round)
	if d.weights {
		d.push = t.share(d.push, from, to)
		d.pull = append(d.pull, d.push...)
	} else {
		d.push = t.mine(d.push, from, to)
		switch {
		case epoch == 1 && step == 0:
			for p := range int32(t.task.places()) {
				if t.has(int(p)) || t.owned[p] {
					d.pull = append(d.pull, p)
				}
			}
		default:
			last := (d.round + t.task.rounds() - 1) % t.task.rounds()
			from, to := t.task.round(last)
			d.pull = t.mine(d.pull, from, to)
		}
	}
	for _, p := range d.pull {
		b.Keys = append(b.Keys, t.weightKey(p))
	}
	for _, p := range d.push {
		b.Keys = append(b.Keys, t.gradientKey(p))
	}
}

// has reports whether the worker's examples have values of a place.
func (t *blockTrainer) has(p int) bool { return t.cols.starts[p] < t.cols.starts[p+1] }

// mine appends the places of from … to-1 that the worker has values of.
func (t *blockTrainer) mine(ps []int32, from, to int) []int32 {
	for p := from; p < to; p++ {
		if t.has(p) {
			ps = append(ps, int32(p))
		}
	}
	return ps
}

// share appends the places of from … to-1 whose weights the worker changes.
func (t *blockTrainer) share(ps []int32, from, to int) []int32 {
	n := to - from
	for p := from + n*t.part.Index/t.part.Of; p < from+n*(t.part.Index+1)/t.part.Of; p++ {
		ps = append(ps, int32(p))
	}
	return ps
}

func (t *blockTrainer) weightKey(p int32) godwit.Key {
	if int(p) == len(t.task.used) {
		return t.keys.bias
	}
	return t.keys.weight + godwit.Key(t.task.used[p])
}

// gradientKey is that of the place's feature; the bias has the last row.
func (t *blockTrainer) gradientKey(p int32) godwit.Key {
	if int(p) == len(t.task.used) {
		return t.keys.gradient + godwit.Key(t.task.data.Train.Width)
	}
	return t.keys.gradient + godwit.Key(t.task.used[p])
}

// Step makes a phase and waits until all workers have made it. The loss is the
// objective at the begin of the pass, told by the pass's first phase.
func (t *blockTrainer) Step(ctx context.Context, b *train.Batch[Phase]) (train.Loss, error) {
	d := &b.Data
	if d.weights {
		if err := t.change(ctx, d); err != nil {
			return train.Loss{}, err
		}
		return train.Loss{}, train.Settle(ctx, t.w)
	}
	if err := t.follow(ctx, d); err != nil {
		return train.Loss{}, err
	}
	loss := train.Loss{}
	if d.round == 0 {
		loss = t.objective()
	}
	if err := t.pushGradients(ctx, d); err != nil {
		return train.Loss{}, err
	}
	return loss, train.Settle(ctx, t.w)
}

// follow pulls weights and brings the margins up to date.
func (t *blockTrainer) follow(ctx context.Context, d *Phase) error {
	t.ks = t.ks[:0]
	for _, p := range d.pull {
		t.ks = append(t.ks, t.weightKey(p))
	}
	t.vals = buffer.Sized(t.vals, t.task.dim*len(t.ks))
	if err := t.w.Pull(ctx, t.ks, t.vals); err != nil {
		return err
	}
	for i, p := range d.pull {
		w := t.vals[t.task.dim*i]
		t.out[p] = t.vals[t.task.dim*i+1] != 0
		if by := float64(w) - float64(t.weight[p]); by != 0 {
			rows, xs := t.cols.place(int(p))
			for k, e := range rows {
				t.margin[e] += float64(xs[k]) * by
			}
		}
		t.weight[p], t.own[p] = w, w
	}
	return nil
}

// objective is the loss of the worker's examples and the penalty of the weights
// that it changes.
func (t *blockTrainer) objective() train.Loss {
	l := train.Loss{Examples: int64(len(t.margin))}
	for e, m := range t.margin {
		l.Sum += logLoss(t.cols.labels[e], float32(m))
	}
	for p, w := range t.own[:len(t.task.used)] {
		if w != 0 && t.owned[p] {
			x := math.Abs(float64(w))
			l.Sum += float64(t.task.cfg.L1)*x + float64(t.task.cfg.L2)/2*x*x
		}
	}
	return l
}

// pushGradients computes the gradient and the curvature of each place of the
// round that is not left out, and pushes them.
func (t *blockTrainer) pushGradients(ctx context.Context, d *Phase) error {
	t.ks, t.grads = t.ks[:0], t.grads[:0]
	t.prepare(d)
	for _, p := range d.push {
		if t.skips(d, p) {
			continue
		}
		var g, u float64
		rows, xs := t.cols.place(int(p))
		for k, e := range rows {
			x := float64(xs[k])
			g += t.slope[e] * x
			u += t.curve[e] * x * x
		}
		t.ks = append(t.ks, t.gradientKey(p))
		t.grads = append(t.grads, float32(g), float32(u))
	}
	return t.w.Push(ctx, t.ks, t.grads)
}

func (t *blockTrainer) skips(d *Phase, p int32) bool { return !d.all && t.out[p] }

// prepare counts the features of the round of each example, and computes its
// slope and curvature where there are any.
func (t *blockTrainer) prepare(d *Phase) {
	clear(t.features)
	for _, p := range d.push {
		if !t.skips(d, p) {
			rows, _ := t.cols.place(int(p))
			for _, e := range rows {
				t.features[e]++
			}
		}
	}
	for e, n := range t.features {
		if n > 0 {
			m := t.margin[e]
			t.slope[e] = float64(slope(t.cols.labels[e], float32(m)))
			t.curve[e] = parabola(m) * float64(n)
		}
	}
}

// change takes the weights of this worker's share to their minima, and clears
// their gradients for the next pass.
func (t *blockTrainer) change(ctx context.Context, d *Phase) error {
	n := len(d.push)
	t.ks = t.ks[:0]
	for _, p := range d.pull {
		t.ks = append(t.ks, t.weightKey(p))
	}
	for _, p := range d.push {
		t.ks = append(t.ks, t.gradientKey(p))
	}
	t.vals = buffer.Sized(t.vals, (t.task.dim+2)*n)
	if err := t.w.Pull(ctx, t.ks, t.vals); err != nil {
		return err
	}
	weights, grads := t.vals[:t.task.dim*n], t.vals[t.task.dim*n:]
	t.set, t.to = t.set[:0], t.to[:0]
	for i, p := range d.push {
		w, out := weights[2*i], weights[2*i+1] != 0
		g, u := grads[2*i], grads[2*i+1]
		if !d.all && out || g == 0 && u == 0 {
			continue
		}
		to, left := t.minimum(p, w, g, u)
		t.set, t.to = append(t.set, t.gradientKey(p)), append(t.to, 0, 0)
		if to != w || left != out {
			t.set, t.to = append(t.set, t.weightKey(p)), append(t.to, to, mark(left))
		}
		t.own[p] = to
	}
	return t.w.Set(ctx, t.set, t.to)
}

func mark(left bool) float32 {
	if left {
		return 1
	}
	return 0
}

// stretch divides curvatures: see [Blocks].
const stretch = 1.8

// minimum returns the weight to go to, and whether to leave it out from now on.
func (t *blockTrainer) minimum(p int32, w, g, u float32) (to float32, left bool) {
	l1, l2 := t.task.cfg.L1, t.task.cfg.L2
	if int(p) == len(t.task.used) { // the bias has no penalty
		l1, l2 = 0, 0
	}
	if u /= stretch; u+l2 <= 0 {
		return w, false
	}
	x := float64(u)*float64(w) - float64(g)
	if over := math.Abs(x) - float64(l1); over > 0 {
		to = float32(math.Copysign(over, x) / (float64(u) + float64(l2)))
	}
	still := math.Abs(float64(g)) < float64(t.task.cfg.KKT)*float64(l1)
	return to, w == 0 && to == 0 && still
}
