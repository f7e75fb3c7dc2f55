package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/kge"
)

// trainingCases are steps of training, against a loop over plain arrays with
// the same mathematics.
func trainingCases() []Case {
	return []Case{{Name: "training/ComplEx of 100 floats, batch 128, 100 negatives", Aim: 2, setup: setupComplEx}}
}

// The size of the training: the graph is as large as FB15k-237.
const (
	entities  = 14_541
	relations = 237
	dimension = 100
	negatives = 100
	batch     = 128
	rate      = 0.1
	std       = 1e-3
)

func setupComplEx(ctx context.Context, o *Options) (*Comparison, error) {
	g := randomGraph(o.Seed, 100_000)
	task, err := kge.New(complExConfig(o.Seed), g)
	if err != nil {
		return nil, err
	}
	m, err := godwit.NewModel(task.Tables()...)
	if err != nil {
		return nil, err
	}
	c, err := node.Local(ctx, 1, node.Config{Model: m, Workers: 1, Seed: o.Seed, Samplers: []sampling.Spec{
		{Name: "negatives", Dist: sampling.Uniform(entities), Scheme: sampling.Local{}},
	}})
	if err != nil {
		return nil, err
	}
	if err := touch(ctx, c.Nodes[0].Workers(), m.Keys(), dimension); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	s, err := newServed(ctx, task, c.Nodes[0].Worker(0))
	if err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	p := newPlain(g, o.Seed)
	return &Comparison{
		Units: batch, Unit: "triple", Path: func() error { _, err := s.step(); return err },
		Baselines: []Baseline{{"loop over arrays", func() error { p.step(); return nil }}},
		Close:     func() error { return c.Close(ctx) },
	}, nil
}

func complExConfig(seed uint64) kge.Config {
	return kge.Config{
		Model: "complex", Dim: dimension, Loss: kge.Softmax, Batch: batch, Negatives: negatives,
		Rule: "adagrad", LR: rate, InitStd: std, Seed: seed,
	}
}

func randomGraph(seed uint64, n int) *triples.Graph {
	r := rand.New(rand.NewPCG(seed, 3))
	g := &triples.Graph{}
	for i := range entities {
		g.Entities = append(g.Entities, fmt.Sprint("e", i))
	}
	for i := range relations {
		g.Relations = append(g.Relations, fmt.Sprint("r", i))
	}
	for range n {
		g.Train = append(g.Train, triples.Triple{S: r.Uint32N(entities), R: r.Uint32N(relations), O: r.Uint32N(entities)})
	}
	g.Test = g.Train[:1]
	return g
}

// served trains by a worker, as train.Run does for each of its workers.
type served struct {
	ctx    context.Context
	w      godwit.Worker
	t      train.Trainer[kge.Batch]
	b      train.Batch[kge.Batch]
	chunks int
	next   train.At
}

func newServed(ctx context.Context, task *kge.Task, w godwit.Worker) (*served, error) {
	t, err := task.Trainer(w, train.Partition{Count: 1})
	return &served{ctx: ctx, w: w, t: t, chunks: task.Chunks(), next: train.At{Epoch: 1}}, err
}

// load loads the next batch.
func (s *served) load(b *train.Batch[kge.Batch]) {
	s.t.Load(b, s.next)
	if s.next.Step++; s.next.Step == s.t.Steps(s.next.Epoch, s.next.Chunk) {
		s.next.Step, s.next.Chunk = 0, s.next.Chunk+1
	}
	if s.next.Chunk == s.chunks {
		s.next.Chunk, s.next.Epoch = 0, s.next.Epoch+1
	}
}

func (s *served) step() (loss float64, err error) {
	s.load(&s.b)
	now := s.w.Clock()
	if err := s.w.Intent(s.b.Keys, now, now+1); err != nil {
		return 0, err
	}
	if s.b.Sample, err = s.w.PrepareSample(s.b.Sampler, s.b.Samples, now, now+1); err != nil {
		return 0, err
	}
	l, err := s.t.Step(s.ctx, &s.b)
	s.w.FinishSample(s.b.Sample)
	s.w.Advance()
	return l.Sum, err
}

// plain trains the same by one goroutine on arrays of its own.
type plain struct {
	rng   *rand.Rand
	train []triples.Triple
	next  int
	shift float32 // log of how many entities a negative stands for

	ent, entAcc, entGrad []float32
	rel, relAcc, relGrad []float32
	touchedEnt           []uint32
	touchedRel           []uint32
	seenEnt, seenRel     []bool

	neg            []uint32
	negs, negGrads []float32 // negatives × dimension
	q, gq          []float32 // 2·batch × dimension
	scores         []float32 // 2·batch × negatives
}

func newPlain(g *triples.Graph, seed uint64) *plain {
	p := &plain{
		rng: rand.New(rand.NewPCG(seed, 4)), train: append([]triples.Triple(nil), g.Train...),
		shift: float32(math.Log(float64(entities-1) / negatives)),
		ent:   make([]float32, entities*dimension), entAcc: make([]float32, entities*dimension), entGrad: make([]float32, entities*dimension),
		rel: make([]float32, relations*dimension), relAcc: make([]float32, relations*dimension), relGrad: make([]float32, relations*dimension),
		seenEnt: make([]bool, entities), seenRel: make([]bool, relations),
		neg: make([]uint32, negatives), negs: make([]float32, negatives*dimension), negGrads: make([]float32, negatives*dimension),
		q: make([]float32, 2*batch*dimension), gq: make([]float32, 2*batch*dimension), scores: make([]float32, 2*batch*negatives),
	}
	for _, x := range [][]float32{p.ent, p.rel} {
		for i := range x {
			x[i] = std * float32(p.rng.NormFloat64())
		}
	}
	return p
}

func vector(x []float32, i uint32) []float32 { return x[int(i)*dimension:][:dimension] }

func (p *plain) step() (loss float64) {
	ts := p.batch()
	for i := range p.neg {
		p.neg[i] = p.rng.Uint32N(entities)
		copy(vector(p.negs, uint32(i)), vector(p.ent, p.neg[i]))
	}
	for i, t := range ts {
		vec.MulComplex(vector(p.q, uint32(2*i)), vector(p.ent, t.S), vector(p.rel, t.R))
		vec.MulConj(vector(p.q, uint32(2*i+1)), vector(p.rel, t.R), vector(p.ent, t.O))
		p.touch(t)
	}
	n := 2 * len(ts)
	q, gq, scores := p.q[:n*dimension], p.gq[:n*dimension], p.scores[:n*negatives]
	clear(gq)
	clear(p.negGrads)
	vec.MulABt(scores, q, p.negs, n, negatives, dimension)
	for i := range n {
		answer := ts[i/2].O
		if i%2 == 1 {
			answer = ts[i/2].S
		}
		loss += p.loss(vector(q, uint32(i)), vector(gq, uint32(i)), answer, scores[i*negatives:][:negatives])
	}
	vec.AddMulAB(gq, scores, p.negs, n, negatives, dimension)
	vec.AddMulAtB(p.negGrads, scores, q, n, negatives, dimension)
	for i, t := range ts {
		s, r, o := vector(p.ent, t.S), vector(p.rel, t.R), vector(p.ent, t.O)
		gs, gr, g := vector(p.entGrad, t.S), vector(p.relGrad, t.R), vector(gq, uint32(2*i))
		vec.AddMulConj(gs, r, g)
		vec.AddMulConj(gr, s, g)
		g = vector(gq, uint32(2*i+1))
		vec.AddMulComplex(vector(p.entGrad, t.O), r, g)
		vec.AddMulConj(gr, g, o)
	}
	p.update()
	return loss
}

// batch returns the next triples, in a new order in every epoch.
func (p *plain) batch() []triples.Triple {
	if p.next+batch > len(p.train) {
		p.next = 0
	}
	if p.next == 0 {
		p.rng.Shuffle(len(p.train), func(i, j int) { p.train[i], p.train[j] = p.train[j], p.train[i] })
	}
	p.next += batch
	return p.train[p.next-batch : p.next]
}

func (p *plain) touch(t triples.Triple) {
	for _, e := range [2]uint32{t.S, t.O} {
		if !p.seenEnt[e] {
			p.seenEnt[e] = true
			p.touchedEnt = append(p.touchedEnt, e)
		}
	}
	if !p.seenRel[t.R] {
		p.seenRel[t.R] = true
		p.touchedRel = append(p.touchedRel, t.R)
	}
}

// loss returns the cross-entropy of the answer among itself and the negatives. It
// turns their scores into gradients.
func (p *plain) loss(q, gq []float32, answer uint32, scores []float32) float64 {
	for j, e := range p.neg {
		if e == answer {
			scores[j] = float32(math.Inf(-1))
		}
	}
	a := vector(p.ent, answer)
	pos := vec.Dot(q, a) - p.shift
	top := pos
	for _, s := range scores {
		top = max(top, s)
	}
	for j := range scores {
		scores[j] -= top
	}
	vec.Exp(scores, scores)
	e := float32(math.Exp(float64(pos - top)))
	z := e
	for _, s := range scores {
		z += s
	}
	vec.Scale(scores, 1/z)
	g := e/z - 1
	vec.AXPY(gq, g, a)
	vec.AXPY(vector(p.entGrad, answer), g, q)
	return math.Log(float64(z)) - float64(pos-top)
}

// update makes the steps of the batch's rows, and of each negative.
func (p *plain) update() {
	for _, r := range p.touchedRel {
		g := vector(p.relGrad, r)
		vec.AdaGrad(vector(p.rel, r), vector(p.relAcc, r), g, rate, optim.AdaGradEps)
		clear(g)
		p.seenRel[r] = false
	}
	for _, e := range p.touchedEnt {
		g := vector(p.entGrad, e)
		vec.AdaGrad(vector(p.ent, e), vector(p.entAcc, e), g, rate, optim.AdaGradEps)
		clear(g)
		p.seenEnt[e] = false
	}
	p.touchedEnt, p.touchedRel = p.touchedEnt[:0], p.touchedRel[:0]
	for i, e := range p.neg {
		vec.AdaGrad(vector(p.ent, e), vector(p.entAcc, e), vector(p.negGrads, uint32(i)), rate, optim.AdaGradEps)
	}
}
