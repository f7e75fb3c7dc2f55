package kge

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/behind"
	"github.com/godwit-ps/godwit/train/internal/buffer"
	"github.com/godwit-ps/godwit/train/internal/distinct"
)

// A trainer trains one worker's chunks. A step makes one pull of the batch's
// distinct rows, one of its negatives, and one push, whatever its size. Between
// them, it works on matrices, in these phases:
//
//	forward     queries, and their scores against answers and negatives
//	loss        the loss of the scores, and its gradients towards them
//	backward    gradients towards queries, negatives, entities and relations
//	regularize  gradients of the regularizers
//
//	queries[q×d]     the distinct queries of m triples, in both directions
//	negs[n×d]        the distinct negatives, shared by all queries
//	positives[2m]    scores of the queries' answers; after loss the gradients towards them
//	scores[q×n]      scores of the negatives; after loss the gradients towards them
//
// Its buffers grow to the largest batch and are used again.
type trainer struct {
	task *Task
	w    godwit.Worker
	keys keys
	load *loader
	rows distinct.Rows // entities of the current batch, then negatives that are none of them

	// Values and their gradients, in one layout: the batch's relations, its
	// entities, the distinct negatives. keysOf names the keys of what is pushed: of the
	// negatives, each draw.
	keysOf      []godwit.Key
	vals, grads []float32
	pushes      behind.Pushes
	epochs      int       // of the run
	push        []float32 // the gradients with the learning rate, where pushes bring it

	queries, gqueries []float32
	positives, scores []float32
	// Of models that score by distance: the distances of answers and negatives.
	answerDists, dists []float32
	weights            []float32 // scratch: a number for each row
	sum, row           []float32 // scratch of a query with several answers

	draws    draws
	times    []int32 // how often each negative was drawn
	drawn    []int32 // of each draw the negative
	negative []int32 // of each of rows the negative that it is, or -1

	src              *rand.PCG // of dropout
	entDrop, relDrop masked
}

func newTrainer(t *Task, w godwit.Worker, k keys) *trainer {
	tr := &trainer{task: t, w: w, keys: k, load: newLoader(t, k), src: new(rand.PCG)}
	tr.entDrop.drop = newDropout(t.cfg.EntityDropout, tr.src)
	tr.relDrop.drop = newDropout(t.cfg.RelationDropout, tr.src)
	return tr
}

// Steps, Load and Step implement [train.Trainer].
func (t *trainer) Steps(_, chunk int) int { return t.load.items.Steps(chunk) }

func (t *trainer) Load(b *train.Batch[Batch], at train.At) { t.load.load(b, at) }

func (t *trainer) Step(ctx context.Context, b *train.Batch[Batch]) (train.Loss, error) {
	if err := t.pull(ctx, b); err != nil {
		return train.Loss{}, err
	}
	s := t.split(&b.Data)
	t.src.Seed(b.Data.at.Seed(t.task.cfg.Seed ^ 0x5bd1e995))
	t.forward(&s)
	l := train.Loss{Sum: t.loss(&s), Examples: int64(2 * len(s.triples))}
	t.backward(&s)
	t.regularize(&s)
	return l, t.update(ctx, &s)
}

// pull reads the batch's rows and draws its negatives.
func (t *trainer) pull(ctx context.Context, b *train.Batch[Batch]) error {
	d, rd, n, x := t.task.cfg.Dim, t.task.relDim, b.Samples, t.task.extra
	rows := b.Data.relations*(rd+x) + b.Data.entities*(d+x)
	t.vals = buffer.Sized(t.vals, rows+n*(d+x))
	t.keysOf = append(append(t.keysOf[:0], b.Keys...), make([]godwit.Key, n)...)
	if err := t.w.Pull(ctx, b.Keys, t.vals[:rows]); err != nil {
		return err
	}
	drawn := t.keysOf[len(b.Keys):]
	if err := t.w.PullSample(ctx, b.Sample, drawn, t.vals[rows:]); err != nil {
		return err
	}
	for _, k := range drawn {
		if k < t.keys.entity || k >= t.keys.entity+godwit.Key(len(t.task.graph.Entities)) {
			table, row := t.w.Model().Locate(k)
			return fmt.Errorf("kge: sampler %d of the run (Config.Sampler) drew row %d of table %q: negatives have to be drawn from the entities, rows 0 … %d of table %q",
				t.task.cfg.Sampler, row, t.w.Model().Table(table).Name, len(t.task.graph.Entities)-1, EntityTable)
		}
	}
	t.vals = t.task.narrow(t.vals, block{b.Data.relations, rd}, block{b.Data.entities + n, d})
	t.distinct(&b.Data)
	return nil
}

// distinct leaves the values of one of each drawn negative, in the order of the draws.
func (t *trainer) distinct(b *Batch) {
	d := t.task.cfg.Dim
	row := func(k godwit.Key) uint32 { return uint32(k - t.keys.entity) }
	t.rows.Reset()
	for _, k := range t.keysOf[b.relations:][:b.entities] {
		t.rows.Add(row(k))
	}
	drawn := t.keysOf[b.relations+b.entities:]
	before := b.relations*t.task.relDim + b.entities*d
	negs := t.vals[before:]
	t.negative = buffer.Sized(t.negative, b.entities+len(drawn))
	for i := range t.negative {
		t.negative[i] = -1
	}
	t.times, t.drawn = t.times[:0], t.drawn[:0]
	for j, k := range drawn {
		i := &t.negative[t.rows.Add(row(k))]
		if *i < 0 {
			*i = int32(len(t.times))
			t.times = append(t.times, 0)
			if int(*i) < j {
				copy(buffer.Row(negs, *i, d), buffer.Row(negs, j, d))
			}
		}
		t.times[*i]++
		t.drawn = append(t.drawn, *i)
	}
	t.draws.n, t.draws.again = len(drawn), t.draws.again[:0]
	for i, times := range t.times {
		if times > 1 {
			t.draws.again = append(t.draws.again, repeat{int32(i), float32(times - 1)})
		}
	}
	t.vals = t.vals[:before+len(t.times)*d]
	t.grads = buffer.Sized(t.grads, before+len(drawn)*d)
	clear(t.grads[:len(t.vals)])
}

// spread gives each draw of a negative its part of the gradient: those that were drawn
// again are pushed as often.
func (t *trainer) spread(s *step) {
	for _, r := range t.draws.again {
		vec.Scale(buffer.Row(s.negGrad, r.negative, s.d), 1/(1+r.more))
	}
	draws := t.grads[len(s.relGrad)+len(s.entGrad):]
	for j, i := range slices.Backward(t.drawn) {
		if int(i) < j {
			copy(buffer.Row(draws, j, s.d), buffer.Row(draws, i, s.d))
		}
	}
}

// A step is a batch with the matrices of its values and gradients.
type step struct {
	*Batch
	d, rd, n                  int // floats of an entity, of a relation; negatives
	rel, ent, neg             []float32
	relGrad, entGrad, negGrad []float32
}

func (t *trainer) split(b *Batch) step {
	s := step{Batch: b, d: t.task.cfg.Dim, rd: t.task.relDim}
	r, e := b.relations*s.rd, b.relations*s.rd+b.entities*s.d
	s.rel, s.ent, s.neg = t.vals[:r], t.vals[r:e], t.vals[e:]
	s.relGrad, s.entGrad, s.negGrad = t.grads[:r], t.grads[r:e], t.grads[e:len(t.vals)]
	s.n = len(s.neg) / s.d
	return s
}

// eachQuery calls f for each query with the range of its answers.
func (s *step) eachQuery(f func(q int, x *batchQuery, from, to int)) {
	from := 0
	for q := range s.queries {
		x := &s.queries[q]
		f(q, x, from, int(x.end))
		from = int(x.end)
	}
}

// forward computes the queries of the batch and the scores of their answers and of
// the negatives.
func (t *trainer) forward(s *step) {
	t.forwardQueries(s)
	t.scoreNegatives(s)
}

// forwardQueries makes the queries, and scores them against their answers.
func (t *trainer) forwardQueries(s *step) {
	t.queries = buffer.Sized(t.queries, len(s.queries)*s.d)
	t.positives, t.answerDists = buffer.Sized(t.positives, len(s.answers)), buffer.Sized(t.answerDists, len(s.answers))
	t.entDrop.size(len(s.queries), s.d)
	t.relDrop.size(len(s.queries), s.rd)
	distance := t.task.model.distance()
	s.eachQuery(func(i int, x *batchQuery, from, to int) {
		q := buffer.Row(t.queries, i, s.d)
		t.task.model.query(q, t.entDrop.forward(i, buffer.Row(s.ent, x.entity, s.d)),
			t.relDrop.forward(i, buffer.Row(s.rel, x.relation, s.rd)), t.task.inverse(x.subjects))
		for k := from; k < to; k++ {
			a := buffer.Row(s.ent, s.answers[k], s.d)
			if distance {
				t.answerDists[k] = euclid(q, a)
				t.positives[k] = -t.answerDists[k]
			} else {
				t.positives[k] = vec.Dot(q, a)
			}
		}
	})
}

// scoreNegatives scores the queries against the negatives.
func (t *trainer) scoreNegatives(s *step) {
	q := len(s.queries)
	t.scores = buffer.Sized(t.scores, q*s.n)
	vec.MulABt(t.scores, t.queries, s.neg, q, s.n, s.d)
	if t.task.model.distance() {
		t.weights = buffer.Sized(t.weights, s.n)
		squaredNorms(t.weights, s.neg, s.d)
		for i := range q {
			toDistances(buffer.Row(t.scores, i, s.n), vec.SquaredNorm(buffer.Row(t.queries, i, s.d)), t.weights)
		}
		t.dists = append(t.dists[:0], t.scores...)
		vec.Scale(t.scores, -1)
	}
}

// loss returns the summed loss of the scores, and replaces them by the gradients
// towards them.
func (t *trainer) loss(s *step) float64 {
	sum := 0.0
	t.weights, t.sum, t.row = buffer.Sized(t.weights, s.n), buffer.Sized(t.sum, s.n), buffer.Sized(t.row, s.n)
	s.eachQuery(func(i int, _ *batchQuery, from, to int) {
		scores := buffer.Row(t.scores, i, s.n)
		if from+1 == to {
			sum += t.lossOf(s, from, scores)
			return
		}
		clear(t.sum)
		for k := from; k < to; k++ {
			copy(t.row, scores)
			sum += t.lossOf(s, k, t.row)
			vec.Add(t.sum, t.row)
		}
		copy(scores, t.sum)
	})
	return sum
}

// lossOf is the loss of an answer. A negative that is the answer is no negative.
func (t *trainer) lossOf(s *step, answer int, scores []float32) float64 {
	if j := t.negative[s.answers[answer]]; j >= 0 {
		scores[j] = minusInf
	}
	l, g := t.task.loss(t.positives[answer], scores, &t.draws, t.weights)
	t.positives[answer] = g
	return float64(l)
}

// backward carries the gradients of the scores back to the batch's rows.
func (t *trainer) backward(s *step) {
	t.backwardNegatives(s)
	s.eachQuery(func(i int, x *batchQuery, from, to int) {
		q, gq := buffer.Row(t.queries, i, s.d), buffer.Row(t.gqueries, i, s.d)
		for k := from; k < to; k++ {
			t.backwardPositive(s, q, gq, k)
		}
		ge, gr := buffer.Row(s.entGrad, x.entity, s.d), buffer.Row(s.relGrad, x.relation, s.rd)
		t.task.model.backward(t.entDrop.outputGrad(ge), t.relDrop.outputGrad(gr),
			t.entDrop.output(i, buffer.Row(s.ent, x.entity, s.d)), t.relDrop.output(i, buffer.Row(s.rel, x.relation, s.rd)),
			gq, t.task.inverse(x.subjects))
		t.entDrop.backward(i, ge)
		t.relDrop.backward(i, gr)
	})
}

// backwardPositive carries the gradient of an answer's score to the query and the
// answer.
func (t *trainer) backwardPositive(s *step, q, gq []float32, answer int) {
	g, e := t.positives[answer], s.answers[answer]
	a, ga := buffer.Row(s.ent, e, s.d), buffer.Row(s.entGrad, e, s.d)
	if t.task.model.distance() {
		// The gradient of −‖q − a‖ towards q is (a − q)/‖q − a‖.
		g /= t.answerDists[answer]
		vec.AXPY(gq, -g, q)
		vec.AXPY(ga, -g, a)
	}
	vec.AXPY(gq, g, a)
	vec.AXPY(ga, g, q)
}

// backwardNegatives carries the gradients of the negatives' scores to queries and
// negatives.
func (t *trainer) backwardNegatives(s *step) {
	q := len(s.queries)
	t.gqueries = buffer.Sized(t.gqueries, q*s.d)
	distance := t.task.model.distance()
	if distance {
		for i, dist := range t.dists {
			t.scores[i] /= dist
		}
	}
	vec.MulAB(t.gqueries, t.scores, s.neg, q, s.n, s.d)
	vec.AddMulAtB(s.negGrad, t.scores, t.queries, q, s.n, s.d)
	if distance {
		t.backwardDistances(s)
	}
}

// backwardDistances adds the part that the matrix products of backwardNegatives leave
// out, whose scores' gradients are divided by the distances: towards query i it is
// Σⱼ wᵢⱼ·(negⱼ − queryᵢ), of which they make the first term.
func (t *trainer) backwardDistances(s *step) {
	t.weights = buffer.Sized(t.weights, s.n)
	clear(t.weights)
	for i := range s.queries {
		w := buffer.Row(t.scores, i, s.n)
		vec.Add(t.weights, w)
		vec.AXPY(buffer.Row(t.gqueries, i, s.d), -sumOf(w), buffer.Row(t.queries, i, s.d))
	}
	for j := range s.n {
		vec.AXPY(buffer.Row(s.negGrad, j, s.d), -t.weights[j], buffer.Row(s.neg, j, s.d))
	}
}

// regularize adds the gradients of N3 and L2, once for each occurrence of an
// embedding in a query: an entity of a triple is in both of its queries.
func (t *trainer) regularize(s *step) {
	n3, l2 := t.task.cfg.N3, t.task.cfg.L2
	f, ok := t.task.model.(factorizer)
	if !ok {
		n3 = 0
	}
	if n3 == 0 && l2 == 0 {
		return
	}
	add := func(g, x []float32, times float32) {
		if n3 > 0 {
			f.n3(g, x, n3*times)
		}
		if l2 > 0 {
			vec.AXPY(g, l2*times, x)
		}
	}
	t.weights = buffer.Sized(t.weights, s.entities)
	clear(t.weights)
	for _, x := range s.triples {
		t.weights[x.s] += 2
		t.weights[x.o] += 2
	}
	for i, times := range t.weights {
		add(buffer.Row(s.entGrad, int32(i), s.d), buffer.Row(s.ent, int32(i), s.d), times)
	}
	t.weights = buffer.Sized(t.weights, s.relations)
	clear(t.weights)
	for _, x := range s.triples {
		t.weights[x.object]++
		t.weights[x.subject]++
	}
	for i, times := range t.weights {
		add(buffer.Row(s.relGrad, int32(i), s.rd), buffer.Row(s.rel, int32(i), s.rd), times)
	}
}

// update pushes the gradients: the tables' update rule makes the step.
func (t *trainer) update(ctx context.Context, s *step) error {
	t.spread(s)
	if t.task.extra > 0 {
		rate := t.task.cfg.rateOf(s.at.Epoch, t.epochs)
		t.push = buffer.Sized(t.push, len(t.grads)+len(t.keysOf))
		rest := optim.Widen(t.push, s.relGrad, s.rd, rate)
		optim.Widen(rest, t.grads[len(s.relGrad):], s.d, rate)
		return t.pushes.Push(ctx, t.w, t.keysOf, t.push)
	}
	return t.pushes.Push(ctx, t.w, t.keysOf, t.grads)
}

// Flush and Held implement [train.Flusher].
func (t *trainer) Flush(ctx context.Context) error { return t.pushes.Flush(ctx, t.w) }

func (t *trainer) Held() int { return 0 }
