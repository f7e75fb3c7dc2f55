package kge

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/train"
)

// The scores of a DistMult of one dimension are products of three numbers.
func TestRanksOfASmallGraphByRelationAndDirection(t *testing.T) {
	g := &triples.Graph{
		Entities: []string{"1", "2", "3", "4"}, Relations: []string{"+1", "-1", "unused"},
		Train: []triples.Triple{{S: 0, R: 0, O: 3}},
		Test:  []triples.Triple{{S: 0, R: 0, O: 2}, {S: 1, R: 1, O: 0}, {S: 1, R: 0, O: 1}},
	}
	c := DefaultConfig()
	c.Model, c.Dim = "distmult", 1
	task, s := setup(t, c, g, 1, 2)
	w := s.Workers(0)[0]
	k, err := task.keys(w.Model())
	if err != nil {
		t.Fatal(err)
	}
	e, r := k.entity, k.relation
	if err := w.Set(t.Context(), []godwit.Key{e, e + 1, e + 2, e + 3, r, r + 1, r + 2}, []float32{1, 2, 3, 4, 1, -1, 1}); err != nil {
		t.Fatal(err)
	}
	all, relations, err := task.RankRelations(t.Context(), &train.Env{Workers: s.Workers(0)}, "x", g.Test)
	if err != nil {
		t.Fatal(err)
	}
	// Tail "3" of "1 +1 ?" has "4" before it, which is known; as heads of "? +1 3", "4", "3" and "2" are before "1".
	// "2 +1 2" has "3" and "4" before either. Of "2 -1 1", the tail is the best one and the head the second.
	// So these are the ranks:
	for _, x := range []struct {
		what   string
		got    Quality
		ranked []float64
	}{
		{"all", all.Both, []float64{4, 3, 1, 3, 2, 1}},
		{"all heads", all.Head, []float64{4, 3, 2}},
		{"all tails", all.Tail, []float64{1, 3, 1}},
		{"+1", relations[0].Both, []float64{4, 3, 1, 3}},
		{"heads of +1", relations[0].Head, []float64{4, 3}},
		{"tails of +1", relations[0].Tail, []float64{1, 3}},
		{"-1", relations[1].Both, []float64{2, 1}},
		{"heads of -1", relations[1].Head, []float64{2}},
		{"tails of -1", relations[1].Tail, []float64{1}},
		{"unused", relations[2].Both, nil},
		{"heads of unused", relations[2].Head, nil},
		{"tails of unused", relations[2].Tail, nil},
	} {
		n := float64(max(1, len(x.ranked)))
		want := Quality{Queries: int64(len(x.ranked))}
		for _, rank := range x.ranked {
			want.MRR += 1 / rank / n
			want.MeanRank += rank / n
			want.Hits10 += 1 / n
			if rank <= 3 {
				want.Hits3 += 1 / n
			}
			if rank <= 1 {
				want.Hits1 += 1 / n
			}
		}
		if !near(x.got, want, 1e-15) {
			t.Errorf("%s:\n got %+v\nwant %+v", x.what, x.got, want)
		}
	}
}

// Relations and directions are those of the triples, and make up the whole.
func TestRelationsAndDirectionsAddUp(t *testing.T) {
	g := randomGraph(300, 7, 900, 15)
	for _, reciprocal := range []bool{false, true} {
		c := DefaultConfig()
		c.Dim, c.InitStd, c.Reciprocal = 12, 0.5, reciprocal
		task, s := setup(t, c, g, 1, 3)
		env := &train.Env{Workers: s.Workers(0)}
		all, relations, err := task.RankRelations(t.Context(), env, "x", g.Test)
		if err != nil {
			t.Fatal(err)
		}
		var parts []Quality
		for r, d := range relations {
			parts = append(parts, d.Head, d.Tail)
			var ts []triples.Triple
			for _, x := range g.Test {
				if int(x.R) == r {
					ts = append(ts, x)
				}
			}
			if want, err := task.Rank(t.Context(), env, g.Relations[r], ts); err != nil || d.Both != want {
				t.Errorf("relation %d:\n got %+v\nwant %+v, %v", r, d.Both, want, err)
			}
			if got := mean(d.Head, d.Tail); !near(got, d.Both, 1e-12) {
				t.Errorf("relation %d: directions give\n%+v, and both\n%+v", r, got, d.Both)
			}
		}
		for what, got := range map[string]Quality{"relations": mean(parts...), "directions": mean(all.Head, all.Tail)} {
			if !near(got, all.Both, 1e-12) {
				t.Errorf("%s give\n%+v, and all\n%+v", what, got, all.Both)
			}
		}
		if all.Head == all.Tail {
			t.Errorf("heads and tails have the same figures: %+v", all.Head)
		}
	}
}

// mean is the quality of all queries of several.
func mean(parts ...Quality) (q Quality) {
	for _, p := range parts {
		q.Queries += p.Queries
	}
	for _, p := range parts {
		share := float64(p.Queries) / float64(q.Queries)
		q.MRR += share * p.MRR
		q.Hits1 += share * p.Hits1
		q.Hits3 += share * p.Hits3
		q.Hits10 += share * p.Hits10
		q.MeanRank += share * p.MeanRank
	}
	return q
}

// Whoever ranks what, the sums have the same bits.
func TestSumsOfRanksAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 1))
	ranks := make([]float64, 100_000)
	want := 0.0
	var forward, backward, first, second sums
	for i := range ranks {
		ranks[i] = 1 + float64(r.IntN(1<<r.IntN(26)))/2
		want += 1 / ranks[i]
		forward.add(ranks[i], 1)
		if i%3 == 0 {
			first.add(ranks[i], 1)
		} else {
			second.add(ranks[i], 1)
		}
	}
	for i := range ranks {
		backward.add(ranks[len(ranks)-1-i], 1)
	}
	second.merge(&first)
	if forward != backward || forward != second {
		t.Errorf("sums in three orders are\n%v\n%v\n%v", forward, backward, second)
	}
	if q := forward.quality(); math.Abs(q.MRR-want/float64(len(ranks))) > 1e-12 || q.Broken != int64(len(ranks)) {
		t.Errorf("%+v, want a MRR of %v", q, want/float64(len(ranks)))
	}
}
