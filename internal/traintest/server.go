// Package traintest is a parameter server for the tests of training tasks: one
// process, several workers, plain memory.
//
// It keeps the contract of [godwit.Worker] for what a task can observe, checks
// that tasks keep it too (one goroutine a worker, samples that were prepared),
// and counts calls. Nodes are only simulated by number: every worker sees every
// update at once.
package traintest

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
)

const stripes = 256

// A Server holds the rows of a model. It may be used by any number of
// goroutines, through one [Worker] each.
type Server struct {
	model   *godwit.Model
	locks   [stripes]sync.Mutex // locks[k%stripes] guards row k
	rows    [][]float32
	used    []bool // rows that were accessed
	nodes   int
	workers []*Worker
	barrier barrier

	// Range is what the samplers draw from, uniformly: sampler i draws from
	// Range[i]. It is set before the first PrepareSample.
	Range []KeyRange
}

// A KeyRange is the keys First … First+N-1.
type KeyRange struct {
	First godwit.Key
	N     uint64
}

// NewServer makes a server with initialized rows and its workers, perNode on
// each of nodes nodes. One sampler draws from all rows of table 0. The seed
// decides the rows and the samples.
func NewServer(m *godwit.Model, nodes, perNode int, seed uint64) *Server {
	s := &Server{model: m, rows: make([][]float32, m.Keys()), used: make([]bool, m.Keys()), nodes: nodes}
	s.Range = []KeyRange{{m.Key(0, 0), m.Table(0).Rows}}
	for k := range s.rows {
		key := godwit.Key(k)
		t, _ := m.Locate(key)
		dim := m.Dim(key)
		s.rows[k] = make([]float32, m.RowLen(key))
		m.Table(t).Init.Init(s.rows[k][:dim], seed, key)
		s.begin(key)
	}
	for node := range nodes {
		for i := range perNode {
			s.workers = append(s.workers, &Worker{
				s: s, id: godwit.WorkerID{Node: godwit.NodeID(node), Local: i},
				rnd:     rand.New(rand.NewPCG(seed, uint64(len(s.workers)))),
				samples: map[godwit.SampleID]*sample{},
			})
		}
	}
	s.barrier.want = len(s.workers)
	return s
}

// begin makes a row of the value that is there.
func (s *Server) begin(k godwit.Key) {
	t, _ := s.model.Locate(k)
	dim := s.model.Dim(k)
	value, state, rule := s.rows[k][:dim], s.rows[k][dim:], s.model.Table(t).Rule
	rule.InitState(state)
	if q, ok := rule.(godwit.Querier); ok {
		q.Keep(value, state)
	}
}

// Rows returns a copy of all rows, with the state of their rules. No worker is to be in use, but
// the one that is in a cut.
func (s *Server) Rows() [][]float32 {
	rows := make([][]float32, len(s.rows))
	for i, r := range s.rows {
		rows[i] = slices.Clone(r)
	}
	return rows
}

// SetRows sets all rows to what Rows returned. They are in use then.
func (s *Server) SetRows(rows [][]float32) {
	for i, r := range rows {
		copy(s.rows[i], r)
		s.used[i] = true
	}
}

// Workers returns the workers of a node.
func (s *Server) Workers(node int) []godwit.Worker {
	var ws []godwit.Worker
	for _, w := range s.workers {
		if int(w.id.Node) == node {
			ws = append(ws, w)
		}
	}
	return ws
}

// A Counts says what a worker was asked to do.
type Counts struct {
	Pulls, Pushes, PullSamples, Intents int
	Prepared, Finished                  int
	// Covered counts the keys that were pulled in the span of an intent for
	// them, Uncovered the others.
	Covered, Uncovered int
	Age                godwit.Clock // of the last BoundAge
}

// A Worker is a worker of a [Server].
type Worker struct {
	s    *Server
	id   godwit.WorkerID
	rnd  *rand.Rand
	seed *rand.Rand // of the next sample
	busy atomic.Bool

	clock   godwit.Clock
	next    godwit.SampleID
	samples map[godwit.SampleID]*sample
	intents []intent // that have not passed

	// Counts may be read when the worker is not in use.
	Counts Counts
	// Crosses, if set, is asked in Advance, Rest, Finish and Barrier whether the worker is to cross
	// into a cut. The first time that it says so, the worker calls what OnCut was given, and then
	// Cut, which may read the server.
	Crosses func() bool
	Cut     func()
	crossed bool
	onCut   func(cut uint64)
	// Fail, if set, is asked before every operation with its name and makes it
	// fail with what it returns.
	Fail func(op string) error
}

type intent struct {
	keys       map[godwit.Key]bool
	start, end godwit.Clock
}

type sample struct {
	sampler, left int
	start, end    godwit.Clock
	rnd           *rand.Rand
}

var _ godwit.Worker = (*Worker)(nil)

// use marks the worker as in use and returns what ends that. Two uses at once
// are a mistake of the task that is under test.
func (w *Worker) use(op string) func() {
	if !w.busy.CompareAndSwap(false, true) {
		panic(fmt.Sprintf("traintest: %v: %s while another goroutine uses the worker", w.id, op))
	}
	return func() { w.busy.Store(false) }
}

func (w *Worker) fail(op string, keys []godwit.Key, err error) error {
	e := &godwit.OpError{Op: op, Worker: w.id, Peer: godwit.NoNode, Keys: len(keys), Err: err}
	if len(keys) > 0 {
		e.First, e.Last = keys[0], keys[len(keys)-1]
	}
	return e
}

// check looks at the arguments of an operation on keys.
func (w *Worker) check(ctx context.Context, op string, keys []godwit.Key, floats int) error {
	n, err := w.s.model.Floats(keys)
	if err == nil && n != floats {
		err = fmt.Errorf("%w: %d floats for keys with %d", godwit.ErrLength, floats, n)
	}
	return w.ready(ctx, op, keys, err)
}

func (w *Worker) ready(ctx context.Context, op string, keys []godwit.Key, err error) error {
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && w.Fail != nil {
		err = w.Fail(op)
	}
	if err != nil {
		return w.fail(op, keys, err)
	}
	return nil
}

// each hands the rows of keys and the parts of buf that belong to them to do.
func (w *Worker) each(keys []godwit.Key, buf []float32, do func(k godwit.Key, value, state, part []float32)) {
	for _, k := range keys {
		n := w.s.model.Dim(k)
		mu := &w.s.locks[k%stripes]
		mu.Lock()
		row := w.s.rows[k]
		w.s.used[k] = true
		do(k, row[:n:n], row[n:], buf[:n:n])
		mu.Unlock()
		buf = buf[n:]
	}
}

func (w *Worker) ID() godwit.WorkerID  { return w.id }
func (w *Worker) Model() *godwit.Model { return w.s.model }

func (w *Worker) Pull(ctx context.Context, keys []godwit.Key, dst []float32) error {
	defer w.use("pull")()
	if err := w.check(ctx, "pull", keys, len(dst)); err != nil {
		return err
	}
	w.Counts.Pulls++
	for _, k := range keys {
		w.count(k)
	}
	w.read(keys, dst)
	return nil
}

func (w *Worker) read(keys []godwit.Key, dst []float32) {
	w.each(keys, dst, func(k godwit.Key, value, state, part []float32) {
		t, _ := w.s.model.Locate(k)
		if q, ok := w.s.model.Table(t).Rule.(godwit.Querier); ok {
			q.Query(part, value, state)
			return
		}
		copy(part, value)
	})
}

// count notes whether an intent covers the key now.
func (w *Worker) count(k godwit.Key) {
	for i := range w.intents {
		if in := &w.intents[i]; in.start <= w.clock && in.keys[k] {
			w.Counts.Covered++
			return
		}
	}
	w.Counts.Uncovered++
}

func (w *Worker) Push(ctx context.Context, keys []godwit.Key, push []float32) error {
	defer w.use("push")()
	if err := w.check(ctx, "push", keys, len(push)); err != nil {
		return err
	}
	w.Counts.Pushes++
	w.each(keys, push, func(k godwit.Key, value, state, part []float32) {
		t, _ := w.s.model.Locate(k)
		w.s.model.Table(t).Rule.Apply(value, state, part)
	})
	return nil
}

func (w *Worker) Set(ctx context.Context, keys []godwit.Key, vals []float32) error {
	defer w.use("set")()
	if err := w.check(ctx, "set", keys, len(vals)); err != nil {
		return err
	}
	w.each(keys, vals, func(k godwit.Key, value, _, part []float32) {
		copy(value, part)
		w.s.begin(k)
	})
	return nil
}

// Scan finds keys in use. The home of key k is node k modulo the nodes.
func (w *Worker) Scan(ctx context.Context, first, end godwit.Key, home godwit.NodeID) iter.Seq2[godwit.Key, error] {
	return func(yield func(godwit.Key, error) bool) {
		_, err := w.s.model.RangeFloats(first, end)
		if err := w.ready(ctx, "scan", nil, err); err != nil {
			yield(0, err)
			return
		}
		for k := first; k < end; k++ {
			if home != godwit.NoNode && int(home) != int(k)%w.s.nodes {
				continue
			}
			mu := &w.s.locks[k%stripes]
			mu.Lock()
			used := w.s.used[k]
			mu.Unlock()
			if used && !yield(k, nil) {
				return
			}
		}
	}
}

func (w *Worker) PullIfLocal(k godwit.Key, dst []float32) bool {
	defer w.use("pull")()
	if !w.s.model.Has(k) || len(dst) != w.s.model.Dim(k) {
		return false
	}
	w.read([]godwit.Key{k}, dst)
	return true
}

func (w *Worker) PullAsync(ctx context.Context, keys []godwit.Key, dst []float32) (godwit.Handle, error) {
	return 0, w.Pull(ctx, keys, dst)
}

func (w *Worker) PushAsync(ctx context.Context, keys []godwit.Key, push []float32) (godwit.Handle, error) {
	return 0, w.Push(ctx, keys, push)
}

func (w *Worker) SetAsync(ctx context.Context, keys []godwit.Key, vals []float32) (godwit.Handle, error) {
	return 0, w.Set(ctx, keys, vals)
}

func (w *Worker) Wait(context.Context, ...godwit.Handle) error { return nil }

func (w *Worker) Localize(ctx context.Context, keys []godwit.Key) error {
	_, err := w.s.model.Floats(keys)
	return w.ready(ctx, "localize", keys, err)
}

func (w *Worker) LocalizeAsync(ctx context.Context, keys []godwit.Key) (godwit.Handle, error) {
	return 0, w.Localize(ctx, keys)
}

func (w *Worker) Intent(keys []godwit.Key, start, end godwit.Clock) error {
	defer w.use("intent")()
	_, err := w.s.model.Floats(keys)
	if err := w.ready(context.Background(), "intent", keys, err); err != nil {
		return err
	}
	w.Counts.Intents++
	if w.clock >= end || start >= end {
		return nil
	}
	in := intent{keys: make(map[godwit.Key]bool, len(keys)), start: start, end: end}
	for _, k := range keys {
		in.keys[k] = true
	}
	w.intents = append(w.intents, in)
	return nil
}

func (w *Worker) Advance() godwit.Clock {
	defer w.use("advance")()
	w.clock++
	kept := w.intents[:0]
	for _, in := range w.intents {
		if in.end > w.clock {
			kept = append(kept, in)
		}
	}
	clear(w.intents[len(kept):])
	w.intents = kept
	w.cross()
	return w.clock
}

// cross crosses into a cut, if it is time.
func (w *Worker) cross() {
	if !w.crossed && w.onCut != nil && w.Crosses != nil && w.Crosses() {
		w.crossed = true
		w.onCut(1)
		w.Cut()
	}
}

// OnCut implements [godwit.Cutter].
func (w *Worker) OnCut(f func(cut uint64)) { w.onCut = f }

// SeedSample implements [godwit.Seeder].
func (w *Worker) SeedSample(_ int, seed1, seed2 uint64) { w.seed = rand.New(rand.NewPCG(seed1, seed2)) }

func (w *Worker) Clock() godwit.Clock { return w.clock }

func (w *Worker) Lookahead() godwit.Clock { return 0 } // all keys are here

// BoundAge is that of a godwit.Worker: what workers push here is everywhere at once.
func (w *Worker) BoundAge(steps godwit.Clock) { w.Counts.Age = steps }

func (w *Worker) PrepareSample(sampler, n int, start, end godwit.Clock) (godwit.SampleID, error) {
	defer w.use("prepare")()
	var err error
	if sampler < 0 || sampler >= len(w.s.Range) || n < 0 {
		err = fmt.Errorf("%w: %d samples of sampler %d, there are %d samplers", godwit.ErrSample, n, sampler, len(w.s.Range))
	}
	if err := w.ready(context.Background(), "prepare", nil, err); err != nil {
		return 0, err
	}
	w.Counts.Prepared++
	w.next++
	w.samples[w.next] = &sample{sampler: sampler, left: n, start: start, end: end, rnd: w.rnd}
	if w.seed != nil {
		w.samples[w.next].rnd, w.seed = w.seed, nil
	}
	return w.next, nil
}

// PullSample demands that the sample was prepared for now: a real server only
// reaches samples late that are pulled at another time.
func (w *Worker) PullSample(ctx context.Context, id godwit.SampleID, keys []godwit.Key, dst []float32) error {
	defer w.use("pull sample")()
	x := w.samples[id]
	var err error
	switch {
	case x == nil:
		err = fmt.Errorf("%w: id %d", godwit.ErrSample, id)
	case x.left < len(keys):
		err = fmt.Errorf("%w: %d wanted, %d left", godwit.ErrSample, len(keys), x.left)
	case w.clock < x.start || w.clock >= x.end:
		err = fmt.Errorf("%w: prepared for clocks %d … %d, now is %d", godwit.ErrSample, x.start, x.end-1, w.clock)
	}
	if err := w.ready(ctx, "pull sample", nil, err); err != nil {
		return err
	}
	r := w.s.Range[x.sampler]
	for i := range keys {
		keys[i] = r.First + godwit.Key(x.rnd.Uint64N(r.N))
	}
	if err := w.check(ctx, "pull sample", keys, len(dst)); err != nil {
		return err
	}
	w.Counts.PullSamples++
	x.left -= len(keys)
	w.read(keys, dst)
	return nil
}

func (w *Worker) FinishSample(id godwit.SampleID) {
	defer w.use("finish")()
	if w.samples[id] != nil {
		w.Counts.Finished++
		delete(w.samples, id)
	}
}

func (w *Worker) WaitSync(ctx context.Context) error {
	return w.ready(ctx, "wait for sync", nil, nil)
}

func (w *Worker) SyncAll(ctx context.Context) error {
	if err := w.WaitSync(ctx); err != nil {
		return err
	}
	return w.Barrier(ctx)
}

// PullAfter is an error: no table of this server bounds staleness.
func (w *Worker) PullAfter(_ context.Context, _ godwit.Clock, keys []godwit.Key, _ []float32) (godwit.Handle, error) {
	defer w.use("pull after")()
	return 0, w.fail("pull", keys, godwit.ErrBound)
}

func (w *Worker) Finish() {
	defer w.use("finish")()
	w.cross()
}

// Rest implements [godwit.Cutter].
func (w *Worker) Rest() {
	defer w.use("rest")()
	w.cross()
}

func (w *Worker) Barrier(ctx context.Context) error {
	defer w.use("barrier")()
	w.cross()
	if err := w.ready(ctx, "barrier", nil, nil); err != nil {
		return err
	}
	if err := w.s.barrier.wait(ctx); err != nil {
		return w.fail("barrier", nil, err)
	}
	return nil
}
