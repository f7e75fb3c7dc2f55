package w2v

import (
	"context"
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/behind"
	"github.com/godwit-ps/godwit/train/internal/buffer"
)

// A trainer trains one worker's chunks. A step makes one pull of the batch's
// distinct rows, one of its negatives, and one push, whatever its size. Between
// them, it works on matrices, in these phases:
//
//	forward   queries, and their scores against outputs and negatives
//	loss      the loss of the scores, and its gradients towards them
//	backward  gradients towards queries, outputs, negatives and inputs
//
//	queries[q×d]   what predicts: skip-gram, the inputs; CBOW, means of inputs
//	pairs          which query has to predict which output
//	positives      scores of the pairs; after loss the gradients towards them
//	scores[q×n]    scores of the negatives; after loss the gradients towards them
//
// Its buffers grow to the largest batch and are used again.
type trainer struct {
	task *Task
	w    godwit.Worker
	keys keys
	load *loader

	// Values and their gradients, in one layout: inputs of the batch's words,
	// their outputs, the negatives. keysOf names their keys.
	keysOf      []godwit.Key
	vals, grads []float32
	pushes      behind.Pushes

	means, gmeans []float32 // CBOW's queries
	pairs         []pair
	positives     []float32
	times         []float32 // in how many pairs each query is
	scores        []float32
	first, next   []int32 // chains of negatives that are word i, -1 at the end
	number        []int32 // of each word of the vocabulary in the batch; -1 in none
	hits          []hit
}

// Close closes the file that the trainer reads, if it is in the middle of one.
func (t *trainer) Close() error { return t.load.reader.Close() }

// A pair is a query and the word that it has to predict.
type pair struct{ query, word int32 }

// A hit is a pair for which a negative is what it has to predict, and its score.
// It is no negative then.
type hit struct {
	query, negative int32
	score           float32
}

func newTrainer(t *Task, w godwit.Worker, l *loader) (*trainer, error) {
	k, err := t.keys(w.Model())
	if err != nil {
		return nil, err
	}
	l.keys = k
	tr := &trainer{task: t, w: w, keys: k, load: l, number: make([]int32, len(t.keep))}
	for i := range tr.number {
		tr.number[i] = -1
	}
	return tr, nil
}

// Steps, Load and Step implement [train.Trainer].
func (t *trainer) Steps(_, chunk int) int { return schedule.Steps(t.task.steps(), chunk) }

func (t *trainer) Load(b *train.Batch[Batch], at train.At) { t.load.load(b, at) }

func (t *trainer) Step(ctx context.Context, b *train.Batch[Batch]) (train.Loss, error) {
	if b.Data.err != nil {
		return train.Loss{}, b.Data.err
	}
	l := train.Loss{Examples: int64(b.Data.raw)}
	if b.Data.words == 0 {
		return l, nil
	}
	if err := t.pull(ctx, b); err != nil {
		return train.Loss{}, err
	}
	s := t.split(&b.Data)
	t.forward(&s)
	l.Sum = t.loss(&s)
	t.backward(&s)
	return l, t.update(ctx)
}

// pull reads the batch's rows and draws its negatives.
func (t *trainer) pull(ctx context.Context, b *train.Batch[Batch]) error {
	n, d := len(b.Keys), t.task.cfg.Dim
	t.layOut(b.Keys, b.Samples)
	if err := t.w.Pull(ctx, b.Keys, t.vals[:n*d]); err != nil {
		return err
	}
	drawn := t.keysOf[n:]
	if err := t.w.PullSample(ctx, b.Sample, drawn, t.vals[n*d:]); err != nil {
		return err
	}
	for _, k := range drawn {
		if k < t.keys.output || k >= t.keys.output+godwit.Key(len(t.task.keep)) {
			table, row := t.w.Model().Locate(k)
			return fmt.Errorf("w2v: sampler %d of the run (Config.Sampler) drew row %d of table %q: negatives have to be drawn from the outputs, rows 0 … %d of table %q",
				t.task.cfg.Sampler, row, t.w.Model().Table(table).Name, len(t.task.keep)-1, OutputTable)
		}
	}
	return nil
}

// layOut makes room for the rows of a batch and of negatives.
func (t *trainer) layOut(batch []godwit.Key, negatives int) {
	n := len(batch) + negatives
	t.keysOf = append(buffer.Sized(t.keysOf, n)[:0], batch...)[:n]
	t.vals = buffer.Sized(t.vals, n*t.task.cfg.Dim)
	t.grads = buffer.Sized(t.grads, n*t.task.cfg.Dim)
	clear(t.grads)
}

// A step is a batch with the matrices of its values and gradients.
type step struct {
	*Batch
	d, n              int // floats of a row; negatives
	in, out, neg      []float32
	gin, gout, gneg   []float32
	queries, gqueries []float32
}

func (t *trainer) split(b *Batch) step {
	s := step{Batch: b, d: t.task.cfg.Dim}
	i, o := b.words*s.d, 2*b.words*s.d
	s.in, s.out, s.neg = t.vals[:i], t.vals[i:o], t.vals[o:]
	s.gin, s.gout, s.gneg = t.grads[:i], t.grads[i:o], t.grads[o:]
	s.n = len(s.neg) / s.d
	return s
}

// forward computes the queries of the batch and the scores of their outputs and of
// the negatives.
func (t *trainer) forward(s *step) {
	if t.task.cfg.Method == CBOW {
		t.queryMeans(s)
	} else {
		t.queryInputs(s)
	}
	t.positives = buffer.Sized(t.positives, len(t.pairs))
	for i, p := range t.pairs {
		t.positives[i] = vec.Dot(buffer.Row(s.queries, p.query, s.d), buffer.Row(s.out, p.word, s.d))
	}
	q := len(t.times)
	t.scores = buffer.Sized(t.scores, q*s.n)
	vec.MulABt(t.scores, s.queries, s.neg, q, s.n, s.d)
	t.findHits(s)
}

// queryInputs has each word of a context predict the word in its middle, as
// word2vec.c does. (The paper has the middle predict the context: over the whole
// text these are the same pairs, but for the spans.)
func (t *trainer) queryInputs(s *step) {
	t.pairs = t.pairs[:0]
	t.times = buffer.Sized(t.times, s.words)
	clear(t.times)
	s.contexts(func(i, lo, hi int) {
		for j := lo; j < hi; j++ {
			if j != i {
				t.pairs = append(t.pairs, pair{s.tokens[j], s.tokens[i]})
				t.times[s.tokens[j]]++
			}
		}
	})
	s.queries, s.gqueries = s.in, s.gin
}

// queryMeans has the mean of a context predict the word in its middle.
func (t *trainer) queryMeans(s *step) {
	t.pairs = t.pairs[:0]
	t.means = buffer.Sized(t.means, len(s.tokens)*s.d)
	clear(t.means)
	s.contexts(func(i, lo, hi int) {
		q := buffer.Row(t.means, int32(i), s.d)
		for j := lo; j < hi; j++ {
			if j != i {
				vec.Add(q, buffer.Row(s.in, s.tokens[j], s.d))
			}
		}
		vec.Scale(q, 1/float32(hi-lo-1))
		t.pairs = append(t.pairs, pair{int32(i), s.tokens[i]})
	})
	t.times = buffer.Sized(t.times, len(s.tokens))
	for i := range t.times {
		t.times[i] = 1
	}
	t.gmeans = buffer.Sized(t.gmeans, len(t.means))
	clear(t.gmeans)
	s.queries, s.gqueries = t.means, t.gmeans
}

// backwardMeans carries the gradients of means to the inputs that they are of.
// (word2vec.c does not divide by their number here, and so follows another
// direction than the gradient's.)
func (t *trainer) backwardMeans(s *step) {
	s.contexts(func(i, lo, hi int) {
		g := buffer.Row(s.gqueries, int32(i), s.d)
		vec.Scale(g, 1/float32(hi-lo-1))
		for j := lo; j < hi; j++ {
			if j != i {
				vec.Add(buffer.Row(s.gin, s.tokens[j], s.d), g)
			}
		}
	})
}

// loss returns the summed loss of all pairs, −log σ(v′·v) and −log σ(−v′·v) for each of
// their negatives, and replaces the scores by the gradients towards them, times the
// rate.
func (t *trainer) loss(s *step) float64 { return t.positiveLoss(s) + t.negativeLoss(s) }

func (t *trainer) positiveLoss(s *step) float64 {
	for i, x := range t.positives {
		t.positives[i] = -x
	}
	sum := vec.SumSoftplus(t.positives)
	vec.Scale(t.positives, -s.rate)
	return sum
}

// negativeLoss is the loss of the negatives. As all pairs share the negatives, it is
// computed once a query, times its pairs.
func (t *trainer) negativeLoss(s *step) float64 {
	each := float32(t.task.cfg.Negatives) / float32(s.n)
	sum := 0.0
	for i, times := range t.times {
		x := t.scores[i*s.n : (i+1)*s.n]
		sum += float64(times*each) * vec.SumSoftplus(x)
		vec.Scale(x, times*each*s.rate)
	}
	for _, h := range t.hits {
		p := 1 / (1 + math.Exp(-float64(h.score)))
		sum -= float64(each) * (max(float64(h.score), 0) + math.Log1p(math.Exp(-math.Abs(float64(h.score)))))
		t.scores[int(h.query)*s.n+int(h.negative)] -= each * s.rate * float32(p)
	}
	return sum
}

// backward carries the gradients of the scores back to the batch's rows.
func (t *trainer) backward(s *step) {
	for i, p := range t.pairs {
		g, q, o := t.positives[i], buffer.Row(s.queries, p.query, s.d), buffer.Row(s.out, p.word, s.d)
		vec.AXPY(buffer.Row(s.gqueries, p.query, s.d), g, o)
		vec.AXPY(buffer.Row(s.gout, p.word, s.d), g, q)
	}
	q := len(t.times)
	vec.AddMulAB(s.gqueries, t.scores, s.neg, q, s.n, s.d)
	vec.AddMulAtB(s.gneg, t.scores, s.queries, q, s.n, s.d)
	if t.task.cfg.Method == CBOW {
		t.backwardMeans(s)
	}
}

// update pushes the gradients: the tables' update rule makes the step.
func (t *trainer) update(ctx context.Context) error {
	return t.pushes.Push(ctx, t.w, t.keysOf, t.grads)
}

// Flush and Held implement [train.Flusher].
func (t *trainer) Flush(ctx context.Context) error { return t.pushes.Flush(ctx, t.w) }

func (t *trainer) Held() int { return 0 }

// findHits finds the pairs for which a negative is what they have to predict,
// which word2vec.c passes over too.
func (t *trainer) findHits(s *step) {
	outputs := t.keysOf[s.words : 2*s.words]
	for i, k := range outputs {
		t.number[k-t.keys.output] = int32(i)
	}
	t.first, t.next = buffer.Sized(t.first, s.words), buffer.Sized(t.next, s.n)
	for i := range t.first {
		t.first[i] = -1
	}
	for j, k := range t.keysOf[2*s.words:] {
		if i := t.number[k-t.keys.output]; i >= 0 {
			t.next[j], t.first[i] = t.first[i], int32(j)
		}
	}
	for _, k := range outputs {
		t.number[k-t.keys.output] = -1
	}
	t.hits = t.hits[:0]
	for _, p := range t.pairs {
		for j := t.first[p.word]; j >= 0; j = t.next[j] {
			t.hits = append(t.hits, hit{p.query, j, t.scores[int(p.query)*s.n+int(j)]})
		}
	}
}
