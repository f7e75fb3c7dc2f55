//go:build !race

package kge

// These tests are one goroutine's arithmetic, which the race detector would
// make slow for nothing.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/train/internal/buffer"
)

// lossAndGradient is the loss of the step's values, whose gradient is left in
// tr.grads. Dropout draws the same masks each time.
func lossAndGradient(tr *trainer, s *step) float64 {
	src := rand.NewPCG(5, 5)
	tr.entDrop.drop.src, tr.relDrop.drop.src = src, src
	clear(tr.grads)
	tr.forward(s)
	l := tr.loss(s)
	tr.backward(s)
	return l
}

// fixedWeights is the self-adversarial loss of the step's values, in float64, whose
// weights are those of the first call, as its gradient takes them.
func fixedWeights(tr *trainer, s *step) func() float64 {
	c := tr.task.cfg
	var weights [][]float64
	return func() float64 {
		tr.forward(s)
		sum := 0.0
		s.eachQuery(func(i int, _ *batchQuery, from, to int) {
			for k := from; k < to; k++ {
				scores := tr.drawnScores(s, i, k)
				if len(weights) == k {
					weights = append(weights, slowWeights(float64(c.Adversarial), scores))
				}
				sum += slowWeighted(float64(c.Margin), float64(tr.positives[k]), scores, weights[k])
			}
		})
		return sum
	}
}

// drawnScores are the scores of the negatives of query i as they were drawn, for its
// answer k.
func (t *trainer) drawnScores(s *step, i, k int) []float64 {
	scores := wide(buffer.Row(t.scores, i, s.n))
	if j := t.negative[s.answers[k]]; j >= 0 {
		scores[j] = math.Inf(-1)
	}
	for _, r := range t.draws.again {
		for range int(r.more) {
			scores = append(scores, scores[r.negative])
		}
	}
	return scores
}

func TestGradientsOfSelfAdversarialNegativesTakeTheWeightsForConstants(t *testing.T) {
	g := randomGraph(12, 3, 20, 3)
	for _, name := range Models() {
		c := DefaultConfig()
		c.Model, c.Loss, c.Margin, c.Adversarial = name, Logistic, 0.5, 1.5
		c.Dim, c.Batch, c.Negatives, c.InitStd = 6, 9, 7, 0.7
		t.Run(name, func(t *testing.T) {
			task, s := setup(t, c, g, 1, 1)
			tr, st := firstStep(t, task, s.Workers(0)[0])
			checkGradient(t, tr, &st, fixedWeights(tr, &st))
		})
	}
}

func TestGradientsOfAllModelsAgreeWithFiniteDifferences(t *testing.T) {
	g := randomGraph(12, 3, 20, 3)
	for _, name := range Models() {
		for _, lossName := range []string{Softmax, Logistic} {
			for _, reciprocal := range []bool{false, true} {
				for _, drop := range []float32{0, 0.4} {
					c := DefaultConfig()
					c.Model, c.Loss, c.Reciprocal = name, lossName, reciprocal
					c.EntityDropout, c.RelationDropout = drop, drop/2
					c.Dim, c.Batch, c.Negatives, c.InitStd, c.Margin = 6, 9, 7, 0.7, 0.5
					t.Run(fmt.Sprint(name, " ", lossName, " ", reciprocal, " ", drop), func(t *testing.T) {
						task, s := setup(t, c, g, 1, 1)
						tr, st := firstStep(t, task, s.Workers(0)[0])
						checkGradient(t, tr, &st, func() float64 { return lossAndGradient(tr, &st) })
					})
				}
			}
		}
	}
}

// checkGradient compares each element with a central difference. The loss is
// computed in float32, so that its differences are good to about 1e-2 of the
// largest gradient.
func checkGradient(t *testing.T, tr *trainer, s *step, loss func() float64) {
	t.Helper()
	loss()
	lossAndGradient(tr, s)
	want := append([]float32(nil), tr.grads...)
	var largest float64
	for _, g := range want {
		largest = max(largest, math.Abs(float64(g)))
	}
	if largest == 0 {
		t.Fatal("all gradients are zero")
	}
	const h = 5e-3
	for i, x := range tr.vals {
		tr.vals[i] = x + h
		up := loss()
		tr.vals[i] = x - h
		down := loss()
		tr.vals[i] = x
		got := (up - down) / (2 * h)
		if d := math.Abs(got - float64(want[i])); d > 1e-2*largest {
			t.Fatalf("element %d of %d: the gradient is %v, the difference quotient %v (largest gradient %v)", i, len(tr.vals), want[i], got, largest)
		}
	}
}

func TestRegularizersAddTheirGradientsForEachOccurrence(t *testing.T) {
	g := randomGraph(12, 3, 20, 3)
	for _, name := range Models() {
		c := DefaultConfig()
		c.Model, c.Dim, c.Batch, c.Negatives, c.InitStd = name, 6, 20, 3, 0.7
		c.N3, c.L2 = 0.3, 0.2
		task, srv := setup(t, c, g, 1, 1)
		tr, s := firstStep(t, task, srv.Workers(0)[0])
		clear(tr.grads)
		tr.regularize(&s)
		got := append([]float32(nil), tr.grads...)
		const h = 1e-3
		for i, x := range tr.vals {
			tr.vals[i] = x + h
			up := penalty(tr, &s)
			tr.vals[i] = x - h
			down := penalty(tr, &s)
			tr.vals[i] = x
			if want := (up - down) / (2 * h); math.Abs(want-float64(got[i])) > 1e-2*max(1, math.Abs(want)) {
				t.Fatalf("%s, element %d: the gradient is %v, the difference quotient %v", name, i, got[i], want)
			}
		}
	}
}

// penalty is the slow obvious twin: N3 and L2 of the embeddings of each query.
func penalty(tr *trainer, s *step) float64 {
	c := tr.task.cfg
	sum := 0.0
	add := func(x []float32) {
		for k, v := range x {
			v := float64(v)
			sum += float64(c.L2) / 2 * v * v
			switch {
			case tr.task.model.distance():
			case c.Model != "complex":
				sum += float64(c.N3) * math.Pow(math.Abs(v), 3)
			case k < len(x)/2:
				sum += float64(c.N3) * math.Pow(math.Hypot(v, float64(x[len(x)/2+k])), 3)
			}
		}
	}
	for _, x := range s.triples {
		for _, r := range []int32{x.object, x.subject} {
			add(buffer.Row(s.ent, x.s, s.d))
			add(buffer.Row(s.ent, x.o, s.d))
			add(buffer.Row(s.rel, r, s.rd))
		}
	}
	return sum
}

func TestEachDrawOfANegativeIsPushedWithItsPartOfTheGradient(t *testing.T) {
	g := randomGraph(40, 3, 200, 3)
	c := DefaultConfig()
	c.Dim, c.Batch, c.Negatives, c.InitStd = 6, 9, 50, 0.7
	task, srv := setup(t, c, g, 1, 1)
	tr, s := firstStep(t, task, srv.Workers(0)[0])
	lossAndGradient(tr, &s)
	before := len(tr.vals) - len(s.negGrad)
	drawn, last := tr.keysOf[len(tr.keysOf)-c.Negatives:], append([]float32(nil), s.negGrad...)
	tr.spread(&s)
	if got := len(tr.grads) - before; got != c.Negatives*c.Dim || s.n >= c.Negatives {
		t.Fatalf("%d floats are pushed for %d draws of %d negatives of %d", got, c.Negatives, s.n, c.Dim)
	}
	sums := map[godwit.Key][]float32{}
	for j, k := range drawn {
		if sums[k] == nil {
			sums[k] = make([]float32, c.Dim)
		}
		vec.Add(sums[k], tr.grads[before+j*c.Dim:][:c.Dim])
	}
	if tr.draws.n != c.Negatives {
		t.Errorf("the loss counts %d draws, want %d", tr.draws.n, c.Negatives)
	}
	if len(sums) != s.n {
		t.Fatalf("%d negatives are pushed, want %d", len(sums), s.n)
	}
	for j, k := range drawn {
		row, value := buffer.Row(s.neg, tr.drawn[j], c.Dim), make([]float32, c.Dim)
		if err := tr.w.Pull(t.Context(), []godwit.Key{k}, value); err != nil || !slices.Equal(row, value) {
			t.Errorf("draw %d has the value %v, want %v, that of key %d (%v)", j, row, value, k, err)
		}
		want := buffer.Row(last, tr.drawn[j], c.Dim)
		for i := range want {
			if math.Abs(float64(sums[k][i]-want[i])) > 1e-5 {
				t.Errorf("pushes of key %d sum to %v, want %v", k, sums[k], want)
			}
		}
	}
}

func TestANegativeThatIsTheAnswerGetsNoGradient(t *testing.T) {
	// With two entities, every negative of a query is its answer or the other
	// entity. If all negatives are the answer, there is nothing to learn.
	g := &triples.Graph{
		Entities: []string{"a", "b"}, Relations: []string{"r"},
		Train: []triples.Triple{{S: 0, R: 0, O: 0}}, Test: []triples.Triple{{S: 0, R: 0, O: 1}},
	}
	c := DefaultConfig()
	c.Dim, c.Batch, c.Negatives, c.InitStd, c.N3 = 4, 1, 5, 1, 0
	task, s := setup(t, c, g, 1, 1)
	s.Range[0].N = 1 // only entity a is drawn
	tr, st := firstStep(t, task, s.Workers(0)[0])
	if l := lossAndGradient(tr, &st); l != 0 {
		t.Errorf("the loss is %v, want 0", l)
	}
	for i, x := range tr.grads[:len(tr.vals)] {
		if x != 0 {
			t.Errorf("gradient %d is %v, want 0", i, x)
		}
	}
}

// TestBothDirectionsScoreATripleAlike: q(s,r)·o = q'(r,o)·s, where relations
// have no second embedding.
func TestBothDirectionsScoreATripleAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, m := range models {
		const d = 8
		vector := func(n int) []float32 {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			return x
		}
		s, o, rel := vector(d), vector(d), vector(m.relationDim(d))
		score := func(q, a []float32) float64 {
			sum := 0.0
			for i := range q {
				if m.distance() {
					sum -= math.Pow(float64(q[i]-a[i]), 2)
				} else {
					sum += float64(q[i]) * float64(a[i])
				}
			}
			return sum
		}
		q := make([]float32, d)
		m.query(q, s, rel, false)
		object := score(q, o)
		m.query(q, o, rel, true)
		subject := score(q, s)
		if math.Abs(object-subject) > 1e-4 {
			t.Errorf("%s: %v as an object query, %v as a subject query", m.name(), object, subject)
		}
	}
}
