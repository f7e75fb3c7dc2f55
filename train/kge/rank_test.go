package kge

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/train"
)

// slowRank is the specification of Rank: it scores one candidate at a time.
func slowRank(t *testing.T, task *Task, w godwit.Worker, ts []triples.Triple) Quality {
	t.Helper()
	k, err := task.keys(w.Model())
	if err != nil {
		t.Fatal(err)
	}
	pull := func(key godwit.Key) []float32 {
		x := make([]float32, w.Model().Dim(key))
		if err := w.Pull(t.Context(), []godwit.Key{key}, x); err != nil {
			t.Fatal(err)
		}
		return x
	}
	g := task.graph
	known := map[triples.Triple]bool{}
	for _, split := range [][]triples.Triple{g.Train, g.Valid, g.Test} {
		for _, x := range split {
			known[x] = true
		}
	}
	entities := make([][]float32, len(g.Entities))
	for e := range entities {
		entities[e] = pull(k.entity + godwit.Key(e))
	}
	var all sums
	for _, x := range ts {
		for _, subjects := range []bool{false, true} {
			e, answer := x.S, x.O
			if subjects {
				e, answer = x.O, x.S
			}
			q := make([]float32, task.cfg.Dim)
			rel := pull(k.relation + godwit.Key(task.relationRow(x.R, subjects)))
			task.model.query(q, entities[e], rel, task.inverse(subjects))
			score := func(e uint32) float64 {
				c := entities[e]
				if task.model.distance() {
					return -float64(euclid(q, c))
				}
				return float64(vec.Dot(q, c))
			}
			want := score(answer)
			rank, others := 1.0, 0.0
			for c := range uint32(len(g.Entities)) {
				y := triples.Triple{S: x.S, R: x.R, O: c}
				if subjects {
					y = triples.Triple{S: c, R: x.R, O: x.O}
				}
				if c == answer || known[y] {
					continue
				}
				others++
				switch s := score(c); {
				case s > want:
					rank++
				case s == want:
					rank += 0.5
				}
			}
			if math.IsNaN(want) || math.IsInf(want, 0) {
				rank = 1 + others
			}
			all.add(rank, 0)
		}
	}
	return all.quality()
}

func near(a, b Quality, tol float64) bool {
	for _, d := range []float64{a.MRR - b.MRR, a.Hits1 - b.Hits1, a.Hits3 - b.Hits3, a.Hits10 - b.Hits10, (a.MeanRank - b.MeanRank) / max(1, b.MeanRank)} {
		if !(math.Abs(d) <= tol) {
			return false
		}
	}
	return a.Queries == b.Queries
}

func TestRanksOfAllModelsAgreeWithASlowTwin(t *testing.T) {
	g := randomGraph(1100, 5, 2000, 11) // more than a block of entities
	g.Test = g.Test[:70]                // more than a tile of queries
	for _, name := range Models() {
		for _, reciprocal := range []bool{false, true} {
			c := DefaultConfig()
			c.Model, c.Dim, c.InitStd, c.Reciprocal = name, 10, 0.5, reciprocal
			task, s := setup(t, c, g, 1, 3)
			env := &train.Env{Workers: s.Workers(0)}
			got, err := task.Rank(t.Context(), env, "x", g.Test)
			if err != nil {
				t.Fatal(err)
			}
			want := slowRank(t, task, s.Workers(0)[0], g.Test)
			// The twin rounds in another order, which may swap two near scores.
			if !near(got, want, 2e-3) {
				t.Errorf("%s, reciprocal %v:\n got %+v\nwant %+v", name, reciprocal, got, want)
			}
		}
	}
}

func TestABoundedEvaluationRanksEvenlySpacedTriplesByAllKnownAnswers(t *testing.T) {
	g := randomGraph(60, 2, 1000, 5)
	c := DefaultConfig()
	c.Dim, c.InitStd, c.Judged = 10, 0.5, 20
	task, s := setup(t, c, g, 1, 1)
	env := &train.Env{Workers: s.Workers(0)}
	want, err := task.Rank(t.Context(), env, "x", train.EvenlySpaced(g.Valid, 20))
	if err != nil {
		t.Fatal(err)
	}
	got, err := task.Evaluate(t.Context(), env, 1)
	if err != nil {
		t.Fatal(err)
	}
	if w := want.evaluation("valid"); !slices.Equal(got.Metrics, w.Metrics) {
		t.Errorf("%v, want %v", got.Metrics, w.Metrics)
	}
	if twin := slowRank(t, task, s.Workers(0)[0], train.EvenlySpaced(g.Valid, 20)); !near(want, twin, 2e-3) {
		t.Errorf("%+v, want %+v", want, twin)
	}
}

// Ties are exact: an answer gets the very bits of an equal candidate, whatever
// the place of either in the matrices.
func TestTiesRankInTheMiddle(t *testing.T) {
	g := randomGraph(1500, 2, 300, 12)
	for _, name := range Models() {
		c := DefaultConfig()
		c.Model, c.Dim, c.InitStd = name, 26, 0.5
		task, s := setup(t, c, g, 1, 2)
		w := s.Workers(0)[0]
		k, err := task.keys(w.Model())
		if err != nil {
			t.Fatal(err)
		}
		// Three kinds of entities: what is not filtered of a query's own kind ties.
		kinds := make([][]float32, 3)
		r := rand.New(rand.NewPCG(1, 1))
		for i := range kinds {
			kinds[i] = make([]float32, c.Dim)
			for j := range kinds[i] {
				kinds[i][j] = float32(r.NormFloat64())
			}
		}
		for e := range g.Entities {
			if err := w.Set(t.Context(), []godwit.Key{k.entity + godwit.Key(e)}, kinds[e%3]); err != nil {
				t.Fatal(err)
			}
		}
		got, err := task.Rank(t.Context(), &train.Env{Workers: s.Workers(0)}, "x", g.Test)
		if err != nil {
			t.Fatal(err)
		}
		want := slowRank(t, task, w, g.Test)
		if !near(got, want, 1e-12) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
		if got.MRR > 0.01 {
			t.Errorf("%s: three kinds of entities give MRR %v", name, got.MRR)
		}
	}
}

// Figures are the same to the last bit.
func TestTheSplitOverNodesAndWorkersDoesNotChangeRanks(t *testing.T) {
	g := randomGraph(300, 4, 900, 13)
	c := DefaultConfig()
	c.Dim, c.InitStd = 12, 0.5
	task, one := setup(t, c, g, 1, 1)
	env := &train.Env{Workers: one.Workers(0)}
	want, err := task.Rank(t.Context(), env, "x", g.Test)
	if err != nil {
		t.Fatal(err)
	}
	all, relations, err := task.RankRelations(t.Context(), env, "y", g.Test)
	if err != nil || all.Both != want {
		t.Fatalf("%v; by relations\n got %+v\nwant %+v", err, all.Both, want)
	}
	for _, split := range []struct{ nodes, workers int }{{1, 2}, {1, 5}, {2, 1}, {3, 2}} {
		_, many := setup(t, c, g, split.nodes, split.workers)
		x := traintest.NewExchange(split.nodes)
		var wg sync.WaitGroup
		for node := range split.nodes {
			wg.Go(func() {
				env := &train.Env{Workers: many.Workers(node), Node: node, Nodes: split.nodes, Exchange: x.Of(node), Ask: x.Ask(node), Serve: x.Serve}
				if got, err := task.Rank(t.Context(), env, "x", g.Test); err != nil || got != want {
					t.Errorf("%+v, node %d:\n got %+v, %v\nwant %+v", split, node, got, err, want)
				}
				if a, r, err := task.RankRelations(t.Context(), env, "y", g.Test); err != nil || a != all || !slices.Equal(r, relations) {
					t.Errorf("%+v, node %d, by relations:\n got %+v, %+v, %v\nwant %+v, %+v", split, node, a, r, err, all, relations)
				}
			})
		}
		wg.Wait()
	}
}

func TestScoresThatAreNoNumbersRankLastAndAreReported(t *testing.T) {
	g := randomGraph(200, 2, 400, 14)
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		c := DefaultConfig()
		c.Dim, c.InitStd = 8, 0.5
		task, s := setup(t, c, g, 1, 1)
		w := s.Workers(0)[0]
		k, err := task.keys(w.Model())
		if err != nil {
			t.Fatal(err)
		}
		x := g.Test[0]
		row := make([]float32, c.Dim)
		for i := range row {
			row[i] = bad
		}
		if err := w.Set(t.Context(), []godwit.Key{k.entity + godwit.Key(x.S)}, row); err != nil {
			t.Fatal(err)
		}
		q, err := task.Rank(t.Context(), &train.Env{Workers: s.Workers(0)}, "x", []triples.Triple{x})
		if err != nil {
			t.Fatal(err)
		}
		if q.Broken == 0 || q.Hits10 != 0 || q.MeanRank < 150 {
			t.Errorf("with a row of %v: %+v with %d broken scores, want the last ranks and a report", bad, q, q.Broken)
		}
		if ev := q.evaluation("valid"); len(ev.Warnings) != 1 || !strings.Contains(ev.Warnings[0], "NaN") {
			t.Errorf("with a row of %v: warnings are %q", bad, ev.Warnings)
		}
	}
}

func TestACandidateThatIsNoNumberIsWorseThanAnyAnswer(t *testing.T) {
	q := query{answer: 0, score: -5}
	q.count([]float32{-5, float32(math.NaN()), -6, float32(math.NaN())}, 0)
	if got := q.rank(4); got != 1 || q.broken != 2 {
		t.Errorf("rank %v with %d broken scores, want 1 with 2", got, q.broken)
	}
}

func TestACandidateThatScoresInfinityIsBehindAnyAnswerAndReported(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, answer := range []float32{1, -inf, inf, float32(math.NaN())} {
		q := query{answer: 0, known: []uint32{0}, score: answer}
		q.count([]float32{answer, 2, inf, 0, inf, 1}, 0)
		want, broken := 6.0, 1 // of an answer without a finite score
		if answer == 1 {
			want, broken = 2.5, 2 // behind 2, beside 1
		}
		if rank := q.rank(6); rank != want || q.broken < broken || answer == 1 && q.broken != broken {
			t.Errorf("an answer of %v has rank %v with %d broken scores, want %v with %d", answer, rank, q.broken, want, broken)
		}
	}
}

func TestNoCompletionsAreFoundWhereNoneAreAskedFor(t *testing.T) {
	task, s := setup(t, DefaultConfig(), randomGraph(20, 2, 50, 1), 1, 1)
	for _, most := range []int{0, -1} {
		found, err := task.Complete(t.Context(), s.Workers(0)[0], []Query{{Entity: 1}, {Entity: 2}}, most, nil)
		if err != nil || len(found) != 2 || len(found[0])+len(found[1]) > 0 {
			t.Errorf("%d completions: %v, %v", most, found, err)
		}
	}
}

func TestRankingEndsWhenItsContextDoes(t *testing.T) {
	g := randomGraph(300, 4, 900, 13)
	c := DefaultConfig()
	c.Dim = 12
	task, s := setup(t, c, g, 1, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := task.Rank(ctx, &train.Env{Workers: s.Workers(0)}, "x", g.Test); err == nil {
		t.Error("Rank returned no error")
	}
}

// How an answer compares does not depend on the blocks in which candidates come, nor on where the known answers lie in these.
func TestAnAnswerComparesAlikeWithCandidatesInAnyBlocks(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		scores := make([]float32, 1+r.IntN(60))
		for i := range scores {
			scores[i] = float32(r.IntN(5))
		}
		answer := uint32(r.IntN(len(scores)))
		var known []uint32
		for e := range scores {
			if r.IntN(4) == 0 || uint32(e) == answer {
				known = append(known, uint32(e))
			}
		}
		whole := query{answer: answer, known: known, score: scores[answer]}
		blocks := whole
		whole.count(slices.Clone(scores), 0)
		for from := 0; from < len(scores); {
			n := min(1+r.IntN(10), len(scores)-from)
			blocks.count(slices.Clone(scores[from:from+n]), from)
			from += n
		}
		if whole.greater != blocks.greater || whole.equal != blocks.equal || whole.broken != blocks.broken {
			t.Fatalf("answer %d among %v, known %v: %d greater and %d equal, in blocks %d and %d", answer, scores, known, whole.greater, whole.equal, blocks.greater, blocks.equal)
		}
	}
}

// Rounding may make the squared distance of what is nearly one less than 0.
func TestDistancesOfWhatIsNearlyOneAreNumbers(t *testing.T) {
	dots := []float32{1.0001, 1}
	if toDistances(dots, 1, []float32{1, 1}); !(dots[0] >= 0 && dots[0] < 0.02 && dots[1] >= 0 && dots[1] < 0.02) {
		t.Errorf("the distances are %v", dots)
	}
}

func TestDropoutLeavesTheMeanAsItIs(t *testing.T) {
	const n, p = 100_000, 0.3
	d := newDropout(p, rand.NewPCG(1, 2))
	m := make([]float32, n)
	d.mask(m)
	sum, out := 0.0, 0
	for _, x := range m {
		if sum += float64(x); x == 0 {
			out++
		}
	}
	if share := float64(out) / n; math.Abs(share-p) > 0.01 || math.Abs(sum/n-1) > 0.02 {
		t.Errorf("%v of the elements are left out, want %v; the mean factor is %v, want 1", share, p, sum/n)
	}
}
