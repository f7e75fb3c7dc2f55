package kge

import (
	"cmp"
	"context"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/train/internal/buffer"
)

// A Query asks what completes a fact: the tails of (Entity, Relation, ?) or, where
// Subjects is set, the heads of (?, Relation, Entity).
type Query struct {
	Entity   uint32 // that is known
	Relation uint32 // its relation
	Subjects bool   // whether heads are asked for
}

// A Scored entity completes a fact.
type Scored struct {
	Entity uint32  // that does
	Score  float32 // the greater, the more likely the fact
}

// Score writes the scores of triples into dst, which is as long. It only reads, in
// blocks of bounded size.
func (t *Task) Score(ctx context.Context, w godwit.Worker, ts []triples.Triple, dst []float32) error {
	k, err := t.keys(w.Model())
	if err != nil {
		return err
	}
	r := newRanker(t, w, k)
	for len(ts) > 0 {
		n := min(len(ts), r.chunkSize/2)
		if err := r.load(ctx, ts[:n]); err != nil {
			return err
		}
		for i := range n {
			dst[i] = r.queries[2*i].score
		}
		ts, dst = ts[n:], dst[n:]
	}
	return nil
}

// Complete returns the most likely completions of facts, at most so many of each query (0:
// none), the best first. Those that known knows, which may be nil, are left out, and so is what
// has no finite score. It reads each entity once for all queries.
func (t *Task) Complete(ctx context.Context, w godwit.Worker, queries []Query, most int, known *triples.Filter) ([][]Scored, error) {
	k, err := t.keys(w.Model())
	if err != nil {
		return nil, err
	}
	found := make([][]Scored, len(queries))
	if most < 1 {
		return found, nil
	}
	r := newRanker(t, w, k)
	for from := 0; from < len(queries); from += r.chunkSize {
		to := min(from+r.chunkSize, len(queries))
		if err := r.complete(ctx, queries[from:to], found[from:to], most, known); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// complete completes a chunk of queries.
func (r *ranker) complete(ctx context.Context, queries []Query, found [][]Scored, most int, known *triples.Filter) error {
	if err := r.ask(ctx, queries); err != nil {
		return err
	}
	d := r.task.cfg.Dim
	tops := make([]top, len(queries))
	for i, q := range queries {
		tops[i].most = most
		switch {
		case known == nil:
		case q.Subjects:
			tops[i].known = known.Subjects(q.Relation, q.Entity)
		default:
			tops[i].known = known.Objects(q.Entity, q.Relation)
		}
	}
	for from := 0; from < r.candidates; from += tileCands {
		n := min(tileCands, r.candidates-from)
		if err := r.candidatesOf(ctx, from, n); err != nil {
			return err
		}
		for i := 0; i < len(queries); i += tileQueries {
			j := min(i+tileQueries, len(queries))
			scores := r.tile(r.q[i*d:j*d], r.norms[i:j], r.cands, r.candNorms)
			for x := i; x < j; x++ {
				tops[x].add(scores[(x-i)*n:(x-i+1)*n], from)
			}
		}
	}
	for i := range tops {
		found[i] = tops[i].sorted()
	}
	return nil
}

// ask makes the vectors of queries.
func (r *ranker) ask(ctx context.Context, queries []Query) error {
	d, rd := r.task.cfg.Dim, r.task.relDim
	r.fetch = r.fetch[:0]
	for _, q := range queries {
		r.fetch = append(r.fetch, r.keys.entity+godwit.Key(q.Entity))
	}
	for _, q := range queries {
		r.fetch = append(r.fetch, r.relation(q.Relation, q.Subjects))
	}
	n := len(queries)
	if err := r.pull(ctx, n); err != nil {
		return err
	}
	r.q, r.norms = buffer.Sized(r.q, n*d), buffer.Sized(r.norms, n)
	for i, q := range queries {
		r.task.model.query(buffer.Row(r.q, i, d), buffer.Row(r.vals, i, d), buffer.Row(r.vals[n*d:], i, rd), r.task.inverse(q.Subjects))
	}
	squaredNorms(r.norms, r.q, d)
	return nil
}

// A top holds the best entities so far of one query, as a heap whose first is the worst.
type top struct {
	most  int
	known []uint32 // ascending: left out
	heap  []Scored
}

// worse orders completions: ties go to the smaller number.
func worse(a, b Scored) int {
	return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(b.Entity, a.Entity))
}

// add looks at the scores of the entities from … .
func (t *top) add(scores []float32, from int) {
	for i, x := range scores {
		s := Scored{uint32(from + i), x}
		if x-x != 0 { // NaN or infinite
			continue
		}
		if len(t.heap) == t.most && worse(s, t.heap[0]) <= 0 {
			continue
		}
		if _, ok := slices.BinarySearch(t.known, s.Entity); ok {
			continue
		}
		t.push(s)
	}
}

// push adds an entity in the place of the worst one, or as one more.
func (t *top) push(s Scored) {
	if len(t.heap) < t.most {
		t.heap = append(t.heap, s)
		if len(t.heap) == t.most {
			slices.SortFunc(t.heap, worse) // which is a heap
		}
		return
	}
	h := t.heap
	i := 0
	for {
		c := 2*i + 1
		if c+1 < len(h) && worse(h[c+1], h[c]) < 0 {
			c++
		}
		if c >= len(h) || worse(s, h[c]) <= 0 {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = s
}

// sorted returns the entities, the best first.
func (t *top) sorted() []Scored {
	slices.SortFunc(t.heap, func(a, b Scored) int { return worse(b, a) })
	return t.heap
}
