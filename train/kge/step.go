package kge

import (
	"context"
	"fmt"
	"math/rand/v2"

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
//	queries[2m×d]    row i is the object query of triple i, row m+i its subject query
//	negs[n×d]        the negatives, shared by all queries
//	positives[2m]    scores of the queries' answers; after loss the gradients towards them
//	scores[2m×n]     scores of the negatives; after loss the gradients towards them
//
// Its buffers grow to the largest batch and are used again.
type trainer struct {
	task *Task
	w    godwit.Worker
	keys keys
	load *loader
	rows distinct.Rows // entities of the current batch

	// Values and their gradients, in one layout: the batch's relations, its
	// entities, the negatives. keysOf names their keys.
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
	first, next        []int32   // chains of negatives that are entity i, -1 at the end

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
			return fmt.Errorf("kge: sampler %d drew key %d, which is no entity: let it draw from table %q", t.task.cfg.Sampler, k, EntityTable)
		}
	}
	t.vals = t.task.narrow(t.vals, block{b.Data.relations, rd}, block{b.Data.entities + n, d})
	t.grads = buffer.Sized(t.grads, len(t.vals))
	clear(t.grads)
	return nil
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
	s.relGrad, s.entGrad, s.negGrad = t.grads[:r], t.grads[r:e], t.grads[e:]
	s.n = len(s.neg) / s.d
	return s
}

// query returns the parts of query i: entity, relation, answer, and whether it asks
// for subjects.
func (s *step) query(i int) (e, r, target int32, subjects bool) {
	if m := len(s.triples); i >= m {
		t := s.triples[i-m]
		return t.o, t.subject, t.s, true
	}
	t := s.triples[i]
	return t.s, t.object, t.o, false
}

// forward computes the queries of the batch and the scores of their answers and of
// the negatives.
func (t *trainer) forward(s *step) {
	t.forwardQueries(s)
	t.scorePositives(s)
	t.scoreNegatives(s)
}

func (t *trainer) forwardQueries(s *step) {
	q := 2 * len(s.triples)
	t.queries = buffer.Sized(t.queries, q*s.d)
	t.entDrop.size(q, s.d)
	t.relDrop.size(q, s.rd)
	for i := range q {
		e, r, _, subjects := s.query(i)
		t.task.model.query(buffer.Row(t.queries, int32(i), s.d),
			t.entDrop.forward(i, buffer.Row(s.ent, e, s.d)), t.relDrop.forward(i, buffer.Row(s.rel, r, s.rd)), t.task.inverse(subjects))
	}
}

// scorePositives scores the queries against their answers.
func (t *trainer) scorePositives(s *step) {
	q := 2 * len(s.triples)
	t.positives, t.answerDists = buffer.Sized(t.positives, q), buffer.Sized(t.answerDists, q)
	distance := t.task.model.distance()
	for i := range q {
		_, _, target, _ := s.query(i)
		x, a := buffer.Row(t.queries, int32(i), s.d), buffer.Row(s.ent, target, s.d)
		if distance {
			t.answerDists[i] = euclid(x, a)
			t.positives[i] = -t.answerDists[i]
		} else {
			t.positives[i] = vec.Dot(x, a)
		}
	}
}

// scoreNegatives scores the queries against the negatives. A negative that is the
// query's answer is no negative: it gets -Inf.
func (t *trainer) scoreNegatives(s *step) {
	q := 2 * len(s.triples)
	t.scores = buffer.Sized(t.scores, q*s.n)
	vec.MulABt(t.scores, t.queries, s.neg, q, s.n, s.d)
	if t.task.model.distance() {
		t.weights = buffer.Sized(t.weights, s.n)
		squaredNorms(t.weights, s.neg, s.d)
		for i := range q {
			toDistances(t.scores[i*s.n:(i+1)*s.n], vec.SquaredNorm(buffer.Row(t.queries, int32(i), s.d)), t.weights)
		}
		t.dists = append(t.dists[:0], t.scores...)
		vec.Scale(t.scores, -1)
	}
	t.chainNegatives(s)
	for i := range q {
		_, _, target, _ := s.query(i)
		for j := t.first[target]; j >= 0; j = t.next[j] {
			t.scores[i*s.n+int(j)] = minusInf
		}
	}
}

// chainNegatives finds the negatives that are entities of the batch.
func (t *trainer) chainNegatives(s *step) {
	t.rows.Reset()
	ents := t.keysOf[s.relations:][:s.entities]
	for _, k := range ents {
		t.rows.Add(uint32(k - t.keys.entity))
	}
	t.first, t.next = buffer.Sized(t.first, s.entities), buffer.Sized(t.next, s.n)
	for i := range t.first {
		t.first[i] = -1
	}
	for j, k := range t.keysOf[s.relations+s.entities:] {
		if e := t.rows.Find(uint32(k - t.keys.entity)); e >= 0 {
			t.next[j], t.first[e] = t.first[e], int32(j)
		}
	}
}

// loss returns the summed loss of the scores, and replaces them by the gradients
// towards them.
func (t *trainer) loss(s *step) float64 {
	sum := 0.0
	t.weights = buffer.Sized(t.weights, s.n)
	for i, score := range t.positives {
		l, g := t.task.loss(score, t.scores[i*s.n:(i+1)*s.n], t.weights)
		sum += float64(l)
		t.positives[i] = g
	}
	return sum
}

// backward carries the gradients of the scores back to the batch's rows.
func (t *trainer) backward(s *step) {
	t.gqueries = buffer.Sized(t.gqueries, 2*len(s.triples)*s.d)
	clear(t.gqueries)
	t.backwardPositives(s)
	t.backwardNegatives(s)
	t.backwardQueries(s)
}

// backwardPositives carries the gradients of the positive scores to queries and
// answers.
func (t *trainer) backwardPositives(s *step) {
	distance := t.task.model.distance()
	for i, g := range t.positives {
		_, _, target, _ := s.query(i)
		q, gq := buffer.Row(t.queries, int32(i), s.d), buffer.Row(t.gqueries, int32(i), s.d)
		a, ga := buffer.Row(s.ent, target, s.d), buffer.Row(s.entGrad, target, s.d)
		if distance {
			// The gradient of −‖q − a‖ towards q is (a − q)/‖q − a‖.
			g /= t.answerDists[i]
			vec.AXPY(gq, g, a)
			vec.AXPY(gq, -g, q)
			vec.AXPY(ga, g, q)
			vec.AXPY(ga, -g, a)
			continue
		}
		vec.AXPY(gq, g, a)
		vec.AXPY(ga, g, q)
	}
}

// backwardNegatives carries the gradients of the negatives' scores to queries and
// negatives.
func (t *trainer) backwardNegatives(s *step) {
	q := 2 * len(s.triples)
	if t.task.model.distance() {
		t.backwardDistances(s, q)
	}
	vec.AddMulAB(t.gqueries, t.scores, s.neg, q, s.n, s.d)
	vec.AddMulAtB(s.negGrad, t.scores, t.queries, q, s.n, s.d)
}

// backwardDistances divides each gradient by its distance and adds the part that
// the matrix products of backwardNegatives leave out: towards query i it is
// Σⱼ wᵢⱼ·(negⱼ − queryᵢ), of which they add the first term.
func (t *trainer) backwardDistances(s *step, q int) {
	t.weights = buffer.Sized(t.weights, s.n)
	clear(t.weights)
	for i := range q {
		w, dist := t.scores[i*s.n:(i+1)*s.n], t.dists[i*s.n:(i+1)*s.n]
		for j := range w {
			w[j] /= dist[j]
		}
		vec.Add(t.weights, w)
		vec.AXPY(buffer.Row(t.gqueries, int32(i), s.d), -sumOf(w), buffer.Row(t.queries, int32(i), s.d))
	}
	for j := range s.n {
		vec.AXPY(buffer.Row(s.negGrad, int32(j), s.d), -t.weights[j], buffer.Row(s.neg, int32(j), s.d))
	}
}

// backwardQueries carries the gradients of the queries to entities and relations.
func (t *trainer) backwardQueries(s *step) {
	for i := range 2 * len(s.triples) {
		e, r, _, subjects := s.query(i)
		ge, gr := buffer.Row(s.entGrad, e, s.d), buffer.Row(s.relGrad, r, s.rd)
		t.task.model.backward(t.entDrop.outputGrad(ge), t.relDrop.outputGrad(gr),
			t.entDrop.output(i, buffer.Row(s.ent, e, s.d)), t.relDrop.output(i, buffer.Row(s.rel, r, s.rd)),
			buffer.Row(t.gqueries, int32(i), s.d), t.task.inverse(subjects))
		t.entDrop.backward(i, ge)
		t.relDrop.backward(i, gr)
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
