package kge

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/buffer"
)

// A Quality sums up filtered ranks: of each triple (s, r, o), o among all
// entities as answers of (s, r, ?), and s as answers of (?, r, o), where other
// answers that are known from any split are left out (Bordes et al., NIPS 2013,
// section 4.1).
//
// A rank is 1 + the candidates with a greater score + half of those with an
// equal one, the mean over all ways to order ties, so that a model which gives
// every triple the same score ranks them in the middle. A score that is no
// finite number is ranked last.
type Quality struct {
	MRR                  float64 // mean reciprocal rank
	Hits1, Hits3, Hits10 float64 // shares of ranks up to 1, 3, 10
	MeanRank             float64 // 1 is the best
	Queries              int64   // two for each triple
	// Broken is the number of comparisons with a score that is no finite number.
	// It is 0 unless the model has diverged.
	Broken int64
}

// String returns a line for people.
func (q Quality) String() string {
	return fmt.Sprintf("MRR %.4f, Hits@1 %.4f, Hits@3 %.4f, Hits@10 %.4f, mean rank %.1f over %d queries", q.MRR, q.Hits1, q.Hits3, q.Hits10, q.MeanRank, q.Queries)
}

func (q *Quality) evaluation(split string) train.Evaluation {
	ev := train.Evaluation{Metrics: []train.Metric{
		{Name: "MRR", Split: split, Value: q.MRR}, {Name: "Hits@1", Split: split, Value: q.Hits1},
		{Name: "Hits@3", Split: split, Value: q.Hits3}, {Name: "Hits@10", Split: split, Value: q.Hits10},
	}}
	if q.Broken > 0 {
		ev.Warnings = append(ev.Warnings, fmt.Sprintf("%d comparisons met scores that are NaN or infinite, which were ranked last: the model has diverged, lower the learning rate", q.Broken))
	}
	return ev
}

// Rank ranks the triples, which are split over all workers of all nodes. Every
// node calls it at the same point, with equal triples and a name that is not
// used twice, and gets the same result. It only reads, in blocks of bounded
// size, and takes the rows as they are when it reads them: call it when all
// workers of the run are done and synchronized, as [train.Run] leaves them, for
// a result of one state of the model.
func (t *Task) Rank(ctx context.Context, env *train.Env, name string, ts []triples.Triple) (Quality, error) {
	all, err := t.rankGroups(ctx, env, name, ts, 1, func(triples.Triple, bool) int { return 0 })
	if err != nil {
		return Quality{}, err
	}
	return all[0].quality(), nil
}

// rankGroups sums up the ranks of the triples in groups; group is the one of a query:
// of the triple's subject or of its object. Triples are distributed as [Task.Rank] says.
// The sums are exact, so that they do not depend on who ranks what.
func (t *Task) rankGroups(ctx context.Context, env *train.Env, name string, ts []triples.Triple, groups int, group func(x triples.Triple, subjects bool) int) ([]sums, error) {
	total, err := env.SumOverWorkers(ctx, "kge rank "+name, groups*len(sums{}), func(ctx context.Context, i int, w godwit.Worker, all []float64) error {
		k, err := t.keys(w.Model())
		if err != nil {
			return err
		}
		from, to := env.Share(len(ts), i)
		return newRanker(t, w, k).rank(ctx, ts[from:to], func(x triples.Triple, subjects bool) *sums {
			return sumsOf(all, group(x, subjects))
		})
	})
	if err != nil {
		return nil, err
	}
	all := make([]sums, groups)
	for i := range all {
		all[i] = *sumsOf(total, i)
	}
	return all, nil
}

// sums are sums over ranks. Each is a whole number or a half, and at most 2^52 for up to 2^26
// ranks among up to 2^26 entities, so that adding them up is exact in any order.
type sums [8]float64

// What sums are of.
const (
	sumCoarse  = iota // reciprocals, in multiples of 1 / coarse
	sumFine           // and what these lack, in multiples of 1 / fine
	sumTop1           // ranks up to 1,
	sumTop3           // 3
	sumTop10          // and 10
	sumRanks          // ranks
	sumQueries        // ones
	sumBroken         // broken scores
)

// A reciprocal is rounded to a multiple of 1 / fine, as exact as a float64 near 1 is.
const (
	coarse = 1 << 26
	fine   = 1 << 52
)

// sumsOf are the sums of a group, among those of all groups.
func sumsOf(all []float64, group int) *sums {
	n := len(sums{})
	return (*sums)(all[group*n : (group+1)*n])
}

func (s *sums) add(rank float64, broken int) {
	reciprocal := math.Round(fine / rank)
	whole := math.Floor(reciprocal / (fine / coarse))
	s[sumCoarse] += whole
	s[sumFine] += reciprocal - whole*(fine/coarse)
	for i, top := range [3]float64{1, 3, 10} {
		if rank <= top {
			s[sumTop1+i]++
		}
	}
	s[sumRanks] += rank
	s[sumQueries]++
	s[sumBroken] += float64(broken)
}

// merge adds the sums of other ranks.
func (s *sums) merge(other *sums) {
	for i, x := range other {
		s[i] += x
	}
}

func (s *sums) quality() Quality {
	n := max(s[sumQueries], 1)
	return Quality{
		MRR:   (s[sumCoarse]/coarse + s[sumFine]/fine) / n,
		Hits1: s[sumTop1] / n, Hits3: s[sumTop3] / n, Hits10: s[sumTop10] / n, MeanRank: s[sumRanks] / n,
		Queries: int64(s[sumQueries]), Broken: int64(s[sumBroken]),
	}
}

// The sizes of blocks of a ranker. It compares a chunk of queries with all entities,
// block by block; a tile of scores is computed at a time. As each chunk pulls every
// entity once, a chunk is as large as its memory allows.
const (
	chunkFloats = 8 << 20
	maxChunk    = 1 << 14
	tileQueries = 128
	tileCands   = 1024
)

// A ranker ranks one worker's triples.
type ranker struct {
	task *Task
	w    godwit.Worker
	keys keys

	queries []query
	q       []float32 // the queries' vectors, by rows
	norms   []float32 // and squared norms, for distances

	fetch      []godwit.Key
	vals       []float32
	cands      []float32 // a block of entities, and
	candNorms  []float32 // their squared norms
	scores     []float32 // a tile
	chunkSize  int
	candidates int
}

// A query is one side of a triple, with the counts that rank its answer.
type query struct {
	answer  uint32
	known   []uint32 // ascending: all known answers
	score   float32  // of the answer
	greater int
	equal   int
	broken  int
}

func newRanker(t *Task, w godwit.Worker, k keys) *ranker {
	chunk := min(maxChunk, max(tileQueries, chunkFloats/t.cfg.Dim))
	return &ranker{task: t, w: w, keys: k, chunkSize: chunk, candidates: len(t.graph.Entities)}
}

// rank adds the ranks of triples to sums; out returns those of a triple's subject or object.
func (r *ranker) rank(ctx context.Context, ts []triples.Triple, out func(x triples.Triple, subjects bool) *sums) error {
	for len(ts) > 0 {
		n := min(len(ts), r.chunkSize/2)
		if err := r.load(ctx, ts[:n]); err != nil {
			return err
		}
		for from := 0; from < r.candidates; from += tileCands {
			if err := r.block(ctx, from, min(from+tileCands, r.candidates)); err != nil {
				return err
			}
		}
		for i := range r.queries {
			q := &r.queries[i] // of objects and subjects in turn
			rank := q.rank(r.candidates)
			out(ts[i/2], i%2 == 1).add(rank, q.broken)
		}
		ts = ts[n:]
	}
	return nil
}

// load makes the chunk of queries of ts and scores their answers.
func (r *ranker) load(ctx context.Context, ts []triples.Triple) error {
	d := r.task.cfg.Dim
	r.queries = r.queries[:0]
	r.q = buffer.Sized(r.q, 2*len(ts)*d)
	for len(ts) > 0 {
		n := min(len(ts), tileQueries/2)
		if err := r.loadTile(ctx, ts[:n]); err != nil {
			return err
		}
		ts = ts[n:]
	}
	r.norms = buffer.Sized(r.norms, len(r.queries))
	squaredNorms(r.norms, r.q, d)
	return nil
}

// pull reads the n entities and then the n relations of fetch.
func (r *ranker) pull(ctx context.Context, n int) error {
	d, rd, x := r.task.cfg.Dim, r.task.relDim, r.task.extra
	r.vals = buffer.Sized(r.vals, n*(d+rd+2*x))
	if err := r.w.Pull(ctx, r.fetch, r.vals); err != nil {
		return err
	}
	r.vals = r.task.narrow(r.vals, block{n, d}, block{n, rd})
	return nil
}

// loadTile appends the queries of a few triples. Their answers are scored by
// the same matrix product that scores the candidates, as candidates of a tile
// of their own, since an answer must get the very bits that an equal candidate
// gets: otherwise rounding would decide ties.
func (r *ranker) loadTile(ctx context.Context, ts []triples.Triple) error {
	d, rd := r.task.cfg.Dim, r.task.relDim
	r.fetch = r.fetch[:0]
	for _, t := range ts {
		r.fetch = append(r.fetch, r.keys.entity+godwit.Key(t.O), r.keys.entity+godwit.Key(t.S))
	}
	for _, t := range ts {
		r.fetch = append(r.fetch, r.relation(t.R, false), r.relation(t.R, true))
	}
	n := 2 * len(ts) // queries, answers
	if err := r.pull(ctx, n); err != nil {
		return err
	}
	answers, rels := r.vals[:n*d], r.vals[n*d:]
	first := len(r.queries)
	for i, t := range ts {
		for side, q := range [2]query{
			{answer: t.O, known: r.task.filter.Objects(t.S, t.R)},
			{answer: t.S, known: r.task.filter.Subjects(t.R, t.O)},
		} {
			// The answer of the one side is the entity of the other's query.
			at := int32(2*i + side)
			r.task.model.query(buffer.Row(r.q, int32(len(r.queries)), d), buffer.Row(answers, at^1, d), buffer.Row(rels, at, rd), r.task.inverse(side == 1))
			r.queries = append(r.queries, q)
		}
	}
	q := r.q[first*d : (first+n)*d]
	r.norms, r.candNorms = buffer.Sized(r.norms, n), buffer.Sized(r.candNorms, n)
	squaredNorms(r.norms, q, d)
	squaredNorms(r.candNorms, answers, d)
	scores := r.tile(q, r.norms, answers, r.candNorms)
	for i := range n {
		r.queries[first+i].score = scores[i*n+i]
	}
	return nil
}

func (r *ranker) relation(rel uint32, subjects bool) godwit.Key {
	return r.keys.relation + godwit.Key(r.task.relationRow(rel, subjects))
}

// tile scores queries against candidates; norms are their squared norms.
func (r *ranker) tile(q, qNorms, cands, candNorms []float32) []float32 {
	m, n := len(qNorms), len(candNorms)
	r.scores = buffer.Sized(r.scores, m*n)
	vec.MulABt(r.scores, q, cands, m, n, r.task.cfg.Dim)
	if r.task.model.distance() {
		for i, norm := range qNorms {
			toDistances(r.scores[i*n:(i+1)*n], norm, candNorms)
		}
		vec.Scale(r.scores, -1)
	}
	return r.scores
}

// block compares all queries of the chunk with the entities from … to-1.
func (r *ranker) block(ctx context.Context, from, to int) error {
	d, n := r.task.cfg.Dim, to-from
	if err := r.candidatesOf(ctx, from, n); err != nil {
		return err
	}
	for i := 0; i < len(r.queries); i += tileQueries {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		j := min(i+tileQueries, len(r.queries))
		scores := r.tile(r.q[i*d:j*d], r.norms[i:j], r.cands, r.candNorms)
		for k := i; k < j; k++ {
			r.queries[k].count(scores[(k-i)*n:(k-i+1)*n], from)
		}
	}
	return nil
}

// candidatesOf reads the block of n entities from from on, with their norms.
func (r *ranker) candidatesOf(ctx context.Context, from, n int) error {
	d := r.task.cfg.Dim
	r.fetch = r.fetch[:0]
	for e := from; e < from+n; e++ {
		r.fetch = append(r.fetch, r.keys.entity+godwit.Key(e))
	}
	r.cands, r.candNorms = buffer.Sized(r.cands, n*(d+r.task.extra)), buffer.Sized(r.candNorms, n)
	if err := r.w.Pull(ctx, r.fetch, r.cands); err != nil {
		return err
	}
	r.cands = r.task.narrow(r.cands, block{n, d})
	squaredNorms(r.candNorms, r.cands, d)
	return nil
}

// count adds up how the candidates of a block, which begins at entity from,
// compare with the answer. Known answers are no candidates, and what scores +Inf is not
// ahead of an answer.
func (q *query) count(scores []float32, from int) {
	q.leaveOut(scores, from)
	var greater, equal, less, infinite int
	answer := q.score
	for _, x := range scores {
		if x > answer {
			greater++
		}
		if x == answer {
			equal++
		}
		if x < answer {
			less++
		}
		if x > math.MaxFloat32 {
			infinite++
		}
	}
	if answer <= math.MaxFloat32 {
		greater -= infinite
	}
	q.greater += greater
	q.equal += equal
	q.broken += len(scores) - greater - equal - less
}

// leaveOut makes the scores of the answer and of the known answers the least
// ones.
func (q *query) leaveOut(scores []float32, from int) {
	if i := int(q.answer) - from; i >= 0 && i < len(scores) {
		scores[i] = minusInf
	}
	first, _ := slices.BinarySearch(q.known, uint32(from))
	for _, e := range q.known[first:] {
		if int(e)-from >= len(scores) {
			return
		}
		scores[int(e)-from] = minusInf
	}
}

// rank is the rank of the answer among n candidates and known answers.
func (q *query) rank(n int) float64 {
	if x := float64(q.score); math.IsNaN(x) || math.IsInf(x, 0) {
		q.broken = max(q.broken, 1)
		return float64(max(1, n-len(q.known)+1))
	}
	return 1 + float64(q.greater) + float64(q.equal)/2
}
