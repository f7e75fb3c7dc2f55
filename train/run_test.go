package train_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
)

// counting is a task whose rows count: each step adds 1 to two rows of its
// share and reads two samples. What it does beyond that is set by functions.
type counting struct {
	rows, batch int
	chunked     bool // else each worker has its part
	byNodes     bool // a step of a part has batch rows times the nodes of the run that made it
	name        string
	metrics     func(epoch int) train.Evaluation
	loss        func(epoch, step int) float64
	onStep      func(part train.Partition, epoch, step int) error

	mu    sync.Mutex
	parts []train.Partition
	evals []int
}

type work struct{ epoch, step int }

func (c *counting) Fingerprint() string { return c.name }

func (c *counting) steps() int { return (c.rows + c.batch - 1) / c.batch }

func (c *counting) Chunks() int {
	if !c.chunked {
		return 0
	}
	n, _ := schedule.Cut(c.steps())
	return n
}

func (c *counting) Trainer(w godwit.Worker, part train.Partition) (train.Trainer[work], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts = append(c.parts, part)
	return &counter{c: c, w: w, part: part}, nil
}

func (c *counting) Evaluate(_ context.Context, env *train.Env, epoch int) (train.Evaluation, error) {
	if env.Node == 0 {
		c.evals = append(c.evals, epoch)
	}
	if c.metrics != nil {
		return c.metrics(epoch), nil
	}
	return train.Evaluation{Metrics: []train.Metric{{Name: "epoch", Value: float64(epoch)}}}, nil
}

type counter struct {
	c    *counting
	w    godwit.Worker
	part train.Partition
}

func (c *counter) mine() []godwit.Key {
	var ks []godwit.Key
	for k := c.part.Index; k < c.c.rows; k += c.part.Count {
		ks = append(ks, godwit.Key(k))
	}
	return ks
}

func (c *counter) Steps(_, chunk int) int {
	if c.c.chunked {
		return schedule.Steps(c.c.steps(), chunk)
	}
	return (len(c.mine()) + c.batch() - 1) / c.batch()
}

func (c *counter) batch() int {
	if c.c.byNodes && !c.c.chunked {
		return c.c.batch * c.part.Nodes
	}
	return c.c.batch
}

func (c *counter) Load(b *train.Batch[work], at train.At) {
	ks, step := c.mine(), at.Step
	if c.c.chunked {
		_, per := schedule.Cut(c.c.steps())
		ks, step = keysTo(c.c.rows), at.Chunk*per+at.Step
	}
	b.Keys = append(b.Keys[:0], ks[step*c.batch():min(len(ks), (step+1)*c.batch())]...)
	b.Samples = 2
	b.Data = work{at.Epoch, at.Step}
}

func keysTo(n int) []godwit.Key {
	ks := make([]godwit.Key, n)
	for i := range ks {
		ks[i] = godwit.Key(i)
	}
	return ks
}

func (c *counter) Step(ctx context.Context, b *train.Batch[work]) (train.Loss, error) {
	vals := make([]float32, len(b.Keys))
	if err := c.w.Pull(ctx, b.Keys, vals); err != nil {
		return train.Loss{}, err
	}
	for i, v := range vals {
		if v != float32(b.Data.epoch-1) {
			return train.Loss{}, fmt.Errorf("key %d is %v in epoch %d", b.Keys[i], v, b.Data.epoch)
		}
		vals[i] = 1
	}
	if err := c.w.PullSample(ctx, b.Sample, make([]godwit.Key, 2), make([]float32, 2)); err != nil {
		return train.Loss{}, err
	}
	if c.c.onStep != nil {
		if err := c.c.onStep(c.part, b.Data.epoch, b.Data.step); err != nil {
			return train.Loss{}, err
		}
	}
	l := 1.0
	if c.c.loss != nil {
		l = c.c.loss(b.Data.epoch, b.Data.step)
	}
	return train.Loss{Sum: l, Examples: int64(len(b.Keys))}, c.w.Push(ctx, b.Keys, vals)
}

func server(t *testing.T, rows, nodes, perNode int) *traintest.Server {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "count", Rows: uint64(rows), Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	return traintest.NewServer(m, nodes, perNode, 1)
}

// onNodes calls train.Run on every node and returns the reports and errors.
func onNodes(s *traintest.Server, nodes int, task func(node int) *counting, o train.Options, stop <-chan struct{}) ([]*train.Report, []error) {
	x := traintest.NewExchange(nodes)
	reps, errs := make([]*train.Report, nodes), make([]error, nodes)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	for node := range nodes {
		wg.Go(func() {
			env := train.Env{Workers: s.Workers(node), Node: node, Nodes: nodes, Exchange: x.Of(node), Ask: x.Ask(node), Serve: x.Serve, Stop: stop}
			reps[node], errs[node] = train.Run(ctx, env, task(node), o)
			if errs[node] != nil {
				cancel() // as the loss of a node ends a run
			}
		})
	}
	wg.Wait()
	return reps, errs
}

func TestEveryKeyIsTrainedOncePerEpochByOneOfAllWorkers(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		everyKeyOnce(t, chunked)
	}
}

func everyKeyOnce(t *testing.T, chunked bool) {
	const rows, nodes, perNode, epochs = 1003, 3, 2, 4
	s := server(t, rows, nodes, perNode)
	task := &counting{rows: rows, batch: 10, chunked: chunked}
	reps, errs := onNodes(s, nodes, func(int) *counting { return task }, train.Options{Epochs: epochs}, nil)
	for node := range nodes {
		if errs[node] != nil {
			t.Fatalf("node %d: %v", node, errs[node])
		}
		r := reps[node]
		if r.Epochs != epochs || r.End != train.AllEpochs || len(r.Losses) != epochs {
			t.Errorf("node %d reports %+v", node, r)
		}
		if got := r.Losses[0]; got.Examples != rows {
			t.Errorf("node %d counts %d examples an epoch, want those of all nodes, %d", node, got.Examples, rows)
		}
	}
	w := s.Workers(0)[0]
	got := make([]float32, 1)
	for k := range rows {
		if err := w.Pull(t.Context(), []godwit.Key{godwit.Key(k)}, got); err != nil {
			t.Fatal(err)
		}
		if got[0] != epochs {
			t.Fatalf("key %d was trained %v times, want %d", k, got[0], epochs)
		}
	}
	seen := map[int]bool{}
	for _, p := range task.parts {
		if p.Count != nodes*perNode || p.Epochs != epochs || seen[p.Index] {
			t.Errorf("parts are %v", task.parts)
		}
		seen[p.Index] = true
	}
}

func TestEveryPullIsCoveredByAnIntentAndEverySampleIsFinished(t *testing.T) {
	const rows = 500
	s := server(t, rows, 1, 2)
	task := &counting{rows: rows, batch: 7}
	if _, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 3}); err != nil {
		t.Fatal(err)
	}
	for _, w := range s.Workers(0) {
		c := w.(*traintest.Worker).Counts
		if c.Uncovered != 0 || c.Covered != 3*rows/2 {
			t.Errorf("%v: %d of %d pulled keys had an intent", w.ID(), c.Covered, c.Covered+c.Uncovered)
		}
		if c.Prepared == 0 || c.Prepared != c.Finished {
			t.Errorf("%v: %d samples were prepared, %d finished", w.ID(), c.Prepared, c.Finished)
		}
		if want := godwit.Clock(3 * 36); w.Clock() != want {
			t.Errorf("%v: clock is %d after %d batches", w.ID(), w.Clock(), want)
		}
	}
}

// heavy is a trainer whose batches have many keys (the same one, to be cheap).
type heavy struct {
	keys, steps int
	w           *traintest.Worker
	most        int
}

func (h *heavy) Steps(int, int) int { return h.steps }

func (h *heavy) Load(b *train.Batch[work], _ train.At) {
	b.Keys = append(b.Keys[:0], make([]godwit.Key, h.keys)...)
	b.Samples = 1
}

func (h *heavy) Step(context.Context, *train.Batch[work]) (train.Loss, error) {
	h.most = max(h.most, h.w.Counts.Prepared-h.w.Counts.Finished)
	return train.Loss{Sum: 1, Examples: 1}, nil
}

type heavyTask struct {
	*counting
	h *heavy
}

func (t heavyTask) Trainer(godwit.Worker, train.Partition) (train.Trainer[work], error) {
	return t.h, nil
}

func TestBatchesAreLoadedFarAheadButNotWithoutBound(t *testing.T) {
	for _, c := range []struct{ keys, steps, least, most int }{
		{1 << 15, 40, 10, 17}, // heavy batches: bounded by their keys
		{0, 5000, 2000, 2100}, // empty ones: by their number
		{100, 20, 20, 20},     // few: all of them
		{1 << 20, 3, 1, 1},    // one is too much already: one must be
	} {
		s := server(t, 1, 1, 1)
		h := &heavy{keys: c.keys, steps: c.steps, w: s.Workers(0)[0].(*traintest.Worker)}
		task := heavyTask{&counting{}, h}
		if _, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 1}); err != nil {
			t.Fatal(err)
		}
		if h.most < c.least || h.most > c.most {
			t.Errorf("up to %d batches of %d keys were loaded at once, want %d … %d", h.most, c.keys, c.least, c.most)
		}
	}
}

func TestTheFirstErrorOfAWorkerEndsTheRun(t *testing.T) {
	boom := errors.New("boom")
	s := server(t, 600, 2, 2)
	_, errs := onNodes(s, 2, func(int) *counting {
		return &counting{rows: 600, batch: 5, onStep: func(p train.Partition, epoch, step int) error {
			if p.Index == 3 && epoch == 2 && step == 4 {
				return boom
			}
			return nil
		}}
	}, train.Options{Epochs: 3}, nil)
	if !errors.Is(errs[1], boom) {
		t.Errorf("the failing node returned %v, want the worker's error", errs[1])
	}
	if errs[0] == nil {
		t.Error("the other node returned no error")
	}
}

// A closing task counts how often its trainers are closed.
type closing struct {
	*counting
	workers int // whose trainers it makes
	fails   error

	closed []int // by worker
}

type closer struct {
	train.Trainer[work]
	c *closing
	i int
}

func (c *closing) Trainer(w godwit.Worker, part train.Partition) (train.Trainer[work], error) {
	if part.Index == c.workers {
		return nil, errors.New("no more")
	}
	t, err := c.counting.Trainer(w, part)
	c.closed = append(c.closed, 0)
	return &closer{t, c, part.Index}, err
}

func (c *closer) Close() error {
	c.c.closed[c.i]++
	if c.i == 0 {
		return nil
	}
	return c.c.fails
}

func TestTrainersAreClosedOnceHoweverTheRunEnds(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	bad := errors.New("bad file")
	for what, x := range map[string]struct {
		task closing
		stop <-chan struct{}
		says string // of the error
	}{
		"well":                         {task: closing{workers: 3}},
		"early":                        {task: closing{workers: 3}, stop: stop},
		"with the error of a step":     {task: closing{workers: 3, fails: bad, counting: &counting{onStep: func(train.Partition, int, int) error { return errors.New("boom") }}}, says: "boom"},
		"before it began":              {task: closing{workers: 2, fails: bad}, says: "no more"},
		"with the error of the closer": {task: closing{workers: 3, fails: bad}, says: "bad file"},
	} {
		task := &x.task
		if task.counting == nil {
			task.counting = &counting{}
		}
		task.rows, task.batch = 60, 5
		rep, err := train.Run(t.Context(), train.Env{Workers: server(t, 60, 1, 3).Workers(0), Stop: x.stop}, task, train.Options{Epochs: 2})
		if (err == nil) != (x.says == "") || err != nil && (!strings.Contains(err.Error(), x.says) || rep != nil) {
			t.Errorf("%s: Run returned %v and %v", what, rep, err)
		}
		want := []int{1, 1, 1}[:task.workers]
		if !slices.Equal(task.closed, want) {
			t.Errorf("%s: the trainers are closed %v times, want %v", what, task.closed, want)
		}
	}
}

// A gathering task keeps the keys of its steps until it is to hand them on.
type gathering struct {
	counting
	kept, handed int
	flushes      int
}

func (g *gathering) Trainer(w godwit.Worker, part train.Partition) (train.Trainer[work], error) {
	t, err := g.counting.Trainer(w, part)
	return &gatherer{t.(*counter), g}, err
}

type gatherer struct {
	*counter
	g *gathering
}

func (t *gatherer) Step(_ context.Context, b *train.Batch[work]) (train.Loss, error) {
	t.g.kept += len(b.Keys)
	if t.c.onStep != nil {
		if err := t.c.onStep(t.part, b.Data.epoch, b.Data.step); err != nil {
			return train.Loss{}, err
		}
	}
	return train.Loss{Examples: int64(len(b.Keys))}, nil
}

func (t *gatherer) Held() int { return 0 }

func (t *gatherer) Flush(context.Context) error {
	t.g.handed, t.g.kept = t.g.handed+t.g.kept, 0
	t.g.flushes++
	return nil
}

func TestWhatATrainerGathersIsHandedOnOnceAnEpochAlsoWhereItIsCutShort(t *testing.T) {
	stop := make(chan struct{})
	task := &gathering{counting: counting{rows: 100, batch: 5}}
	task.onStep = func(_ train.Partition, epoch, step int) error {
		if epoch == 2 && step == 3 {
			close(stop)
		}
		return nil
	}
	rep, err := train.Run(t.Context(), train.Env{Workers: server(t, 100, 1, 1).Workers(0), Stop: stop}, task, train.Options{Epochs: 5})
	if err != nil {
		t.Fatal(err)
	}
	if rep.End != train.Stopped || task.flushes != 2 || task.kept != 0 || task.handed != 100+4*5 {
		t.Errorf("%v: %d keys were handed on at %d flushes, %d were not; want 120 at 2, and 0", rep.End, task.handed, task.flushes, task.kept)
	}
}

// A handover keeps state of its examples in rows.
type handover struct{ *counting }

func (handover) Handover() bool { return true }

// Between two epochs, all updates come to all nodes where tasks hand over rows and there is another node; and at the end, for the evaluation.
func TestNodesMeetBetweenEpochsOfATaskThatHandsOverRows(t *testing.T) {
	const epochs = 3
	for _, nodes := range []int{1, 2} {
		for _, hands := range []bool{false, true} {
			var meetings atomic.Int64
			s, x := server(t, 40, nodes, 1), traintest.NewExchange(nodes)
			var wg sync.WaitGroup
			for node := range nodes {
				ws := s.Workers(node)
				ws[0].(*traintest.Worker).Fail = func(op string) error {
					if op == "wait for sync" {
						meetings.Add(1)
					}
					return nil
				}
				var task train.Task[work] = &counting{rows: 40, batch: 5}
				if hands {
					task = handover{task.(*counting)}
				}
				wg.Go(func() {
					env := train.Env{Workers: ws, Node: node, Nodes: nodes, Exchange: x.Of(node), Ask: x.Ask(node), Serve: x.Serve}
					if _, err := train.Run(t.Context(), env, task, train.Options{Epochs: epochs}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			want := nodes
			if hands && nodes > 1 {
				want += nodes * epochs
			}
			if got := int(meetings.Load()); got != want {
				t.Errorf("%d nodes, rows are handed over: %v: workers met %d times, want %d", nodes, hands, got, want)
			}
		}
	}
}

// A state need not say which epoch is under way.
func TestARunGoesOnBehindTheEpochsOfAState(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		s, task, from := server(t, 40, 1, 2), &counting{rows: 40, batch: 5, chunked: chunked}, (*train.State)(nil)
		for _, epochs := range []int{2, 3} {
			rep, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0), Begin: from}, task, train.Options{Epochs: epochs})
			if err != nil || rep.Epochs != epochs || len(rep.Losses) != epochs || rep.Losses[epochs-1].Examples != 40 {
				t.Fatalf("in chunks: %v: of %d epochs: %+v, %v", chunked, epochs, rep, err)
			}
			from = &train.State{Epochs: rep.Epochs, Losses: rep.Losses, Evaluated: rep.Evaluated, Results: rep.Results, Best: rep.Best}
		}
	}
}

// A run that goes on makes trainers of another division only where an epoch had one.
func TestARunThatGoesOnMakesTrainersOfTheFormerDivision(t *testing.T) {
	for _, c := range []struct{ parts, nodes, want int }{{2, 1, 2}, {2, 0, 2}, {2, 2, 4}, {5, 1, 7}} {
		task := &counting{rows: 40, batch: 5}
		at := schedule.Position{First: 1, Epochs: []schedule.Epoch{{Epoch: 1, Parts: c.parts, Nodes: c.nodes}}}
		env := train.Env{Workers: server(t, 40, 1, 2).Workers(0), Begin: &train.State{Position: at}}
		if _, err := train.Run(t.Context(), env, task, train.Options{Epochs: 1}); err != nil {
			t.Fatal(err)
		}
		if len(task.parts) != c.want {
			t.Errorf("with %d parts of %d nodes, 2 workers of one node have %d trainers, want %d: %+v", c.parts, c.nodes, len(task.parts), c.want, task.parts)
		}
	}
}

func TestAServerErrorIsReturnedAsItIs(t *testing.T) {
	s := server(t, 100, 1, 2)
	s.Workers(0)[1].(*traintest.Worker).Fail = func(op string) error {
		if op == "push" {
			return godwit.ErrPeerLost
		}
		return nil
	}
	_, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, &counting{rows: 100, batch: 5}, train.Options{Epochs: 1})
	var op *godwit.OpError
	if !errors.Is(err, godwit.ErrPeerLost) || !errors.As(err, &op) || op.Op != "push" {
		t.Errorf("Run returned %v, want the push's OpError", err)
	}
}

func TestStopEndsAllNodesAfterAnEvaluation(t *testing.T) {
	stop := make(chan struct{})
	var once sync.Once
	s := server(t, 400, 2, 1)
	task := &counting{rows: 400, batch: 5, onStep: func(p train.Partition, epoch, step int) error {
		if epoch == 2 && step == 3 {
			once.Do(func() { close(stop) })
		}
		return nil
	}}
	reps, errs := onNodes(s, 2, func(int) *counting { return task }, train.Options{Epochs: 50}, stop)
	for node, r := range reps {
		if errs[node] != nil {
			t.Fatal(errs[node])
		}
		if r.Epochs != 2 || r.End != train.Stopped || len(r.Evaluated) != 1 {
			t.Errorf("node %d reports %d epochs, %q, evaluated %v", node, r.Epochs, r.End, r.Evaluated)
		}
	}
	for node := range 2 {
		c := s.Workers(node)[0].(*traintest.Worker).Counts
		if c.Prepared != c.Finished {
			t.Errorf("node %d leaves %d prepared samples behind", node, c.Prepared-c.Finished)
		}
	}
}

// A lockstep is a task whose workers all meet in each step.
type lockstep struct{ *counting }

func (lockstep) Lockstep() bool { return true }

func (l lockstep) Trainer(w godwit.Worker, part train.Partition) (train.Trainer[work], error) {
	t, err := l.counting.Trainer(w, part)
	return meeting{t, w}, err
}

type meeting struct {
	train.Trainer[work]
	w godwit.Worker
}

func (m meeting) Step(ctx context.Context, b *train.Batch[work]) (train.Loss, error) {
	if err := m.w.Barrier(ctx); err != nil {
		return train.Loss{}, err
	}
	return m.Trainer.Step(ctx, b)
}

func TestWorkersInLockstepFinishTheirEpochTogetherWhenStopped(t *testing.T) {
	for range 20 {
		stop := make(chan struct{})
		var once sync.Once
		s := server(t, 400, 1, 4)
		task := lockstep{&counting{rows: 400, batch: 5, onStep: func(p train.Partition, epoch, step int) error {
			if epoch == 2 && step == 3 {
				once.Do(func() { close(stop) })
			}
			return nil
		}}}
		rep, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0), Stop: stop}, task, train.Options{Epochs: 50})
		if err != nil {
			t.Fatal(err)
		}
		if rep.Epochs != 2 || rep.End != train.Stopped || rep.Losses[1].Examples != 400 {
			t.Fatalf("%d epochs, %q, %d examples in the last one, want 2 of 400", rep.Epochs, rep.End, rep.Losses[1].Examples)
		}
	}
}

// A run that is stopped in an epoch, and one that goes on with what it left, evaluate together what one does that is not interrupted: also the
// epoch that was cut short, or, where workers wait for each other, trained whole, and also if it is the last one. What was left is of before the evaluation.
func TestAnEpochInWhichARunWasStoppedIsEvaluatedByTheRunThatGoesOn(t *testing.T) {
	for _, together := range []bool{false, true} {
		for _, last := range []int{2, 4} {
			stop := make(chan struct{})
			var once sync.Once
			s := server(t, 40, 1, 2)
			var task train.Task[work] = &counting{rows: 40, batch: 5, onStep: func(_ train.Partition, epoch, step int) error {
				if epoch == 2 && step == 1 {
					once.Do(func() { close(stop) })
				}
				return nil
			}}
			if together {
				task = lockstep{task.(*counting)}
			}
			var left *train.State
			o := train.Options{Epochs: last, EvalEvery: 1}
			env := train.Env{Workers: s.Workers(0), Stop: stop, EpochEnd: func(_ context.Context, s *train.State) error { left = s; return nil }}
			if rep, err := train.Run(t.Context(), env, task, o); err != nil || rep.End != train.Stopped || left.End != train.Stopped || len(left.Evaluated) != 1 {
				t.Fatalf("together: %v: %+v, %v, and leaves %+v", together, rep, err, left)
			}
			rep, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0), Begin: left}, task, o)
			if err != nil {
				t.Fatal(err)
			}
			if want := []int{1, 2, 3, 4}[:last]; !slices.Equal(rep.Evaluated, want) || rep.Epochs != last || rep.Best != last-1 {
				t.Errorf("together: %v: %d epochs, evaluated %v, the best is number %d; want evaluations of %v", together, rep.Epochs, rep.Evaluated, rep.Best, want)
			}
			for i, l := range rep.Losses {
				if l.Examples != 40 {
					t.Errorf("together: %v: epoch %d has %d examples", together, i+1, l.Examples)
				}
			}
		}
	}
}

// The last epoch is evaluated also where it is so only because the run goes on with fewer epochs than the one before was to train.
func TestALastEpochOfARunThatTrainsNothingIsEvaluatedOnce(t *testing.T) {
	s := server(t, 40, 1, 1)
	for _, evaluated := range [][]int{nil, {2}, {2, 5}} {
		from := &train.State{Epochs: 5, Losses: make([]train.Loss, 5), Evaluated: evaluated}
		for _, e := range evaluated {
			from.Results = append(from.Results, train.Evaluation{Metrics: []train.Metric{{Name: "epoch", Value: float64(e)}}})
			from.Best = len(from.Results) - 1
		}
		var end *train.State
		env := train.Env{Workers: s.Workers(0), Begin: from, EpochEnd: func(_ context.Context, s *train.State) error { end = s; return nil }}
		rep, err := train.Run(t.Context(), env, &counting{rows: 40, batch: 5}, train.Options{Epochs: 4, EvalEvery: 2})
		if err != nil {
			t.Fatal(err)
		}
		want := append(slices.DeleteFunc(slices.Clone(evaluated), func(e int) bool { return e == 5 }), 5)
		if !slices.Equal(rep.Evaluated, want) || !slices.Equal(end.Evaluated, want) || rep.Best != len(want)-1 || rep.End != train.AllEpochs || end.End != train.AllEpochs {
			t.Errorf("it had evaluated %v: %+v, and tells of %v at the end", evaluated, rep, end.Evaluated)
		}
	}
}

// A phased task has stages of three steps.
type phased struct {
	lockstep
	workers int

	mu    sync.Mutex
	ended map[[2]int]int // how many workers have ended a phase of an epoch
}

const phaseSteps = 3

func (p *phased) Stages(parts int) int {
	return (p.rows/parts + phaseSteps*p.batch - 1) / (phaseSteps * p.batch)
}

func (p *phased) Trainer(w godwit.Worker, part train.Partition) (train.Trainer[work], error) {
	t, err := p.counting.Trainer(w, part)
	return &inPhases{t, p, part.Count, w.(*traintest.Worker), 0}, err
}

type inPhases struct {
	train.Trainer[work]
	p     *phased
	parts int
	w     *traintest.Worker
	steps int
}

func (t *inPhases) Steps(epoch, chunk int) int {
	return min(phaseSteps, t.Trainer.Steps(epoch, chunk)-phaseSteps*(chunk/t.parts))
}

func (t *inPhases) Load(b *train.Batch[work], at train.At) {
	at.Step += phaseSteps * (at.Chunk / t.parts)
	t.Trainer.Load(b, at)
}

func (t *inPhases) Step(ctx context.Context, b *train.Batch[work]) (train.Loss, error) {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	phase := b.Data.step / phaseSteps
	if phase > 0 && t.p.ended[[2]int{b.Data.epoch, phase - 1}] != t.p.workers {
		return train.Loss{}, fmt.Errorf("%v begins phase %d of epoch %d before all have ended the one before", t.w.ID(), phase, b.Data.epoch)
	}
	last := b.Data.step%phaseSteps == phaseSteps-1 || b.Data.step == t.Trainer.Steps(1, 0)-1
	if last {
		t.p.ended[[2]int{b.Data.epoch, phase}]++
	}
	t.steps++
	if n := t.w.Counts; last && (n.Intents != t.steps || n.Prepared != t.steps) {
		return train.Loss{}, fmt.Errorf("%v has announced %d batches in its step %d, the last before a meeting", t.w.ID(), n.Intents, t.steps)
	}
	return t.Trainer.Step(ctx, b)
}

func TestWorkersMeetBetweenBatchesAndAnnounceNothingBehind(t *testing.T) {
	const nodes, perNode, rows, epochs = 2, 3, 480, 4
	for _, batch := range []int{80, 10, 7} { // 1, 8, 12 steps an epoch
		s := server(t, rows, nodes, perNode)
		task := &phased{
			lockstep: lockstep{&counting{rows: rows, batch: batch}}, workers: nodes * perNode, ended: map[[2]int]int{},
		}
		x := traintest.NewExchange(nodes)
		var wg sync.WaitGroup
		for node := range nodes {
			wg.Go(func() {
				env := train.Env{Workers: s.Workers(node), Node: node, Nodes: nodes, Exchange: x.Of(node), Ask: x.Ask(node), Serve: x.Serve}
				rep, err := train.Run(t.Context(), env, task, train.Options{Epochs: epochs, EvalEvery: 2})
				if err != nil || rep.Epochs != epochs || rep.Losses[0].Examples != rows {
					t.Errorf("batches of %d: node %d: %+v, %v", batch, node, rep, err)
				}
			})
		}
		wg.Wait()
		for node := range nodes {
			for _, w := range s.Workers(node) {
				if n := w.(*traintest.Worker).Counts; n.Prepared != n.Finished || n.Uncovered > 0 {
					t.Errorf("batches of %d: %v: %+v", batch, w.ID(), n)
				}
			}
		}
	}
}

func TestARunThatIsCutShortBeforeAMeetingForgetsWhatWasPrepared(t *testing.T) {
	s := server(t, 480, 1, 2)
	task := &phased{lockstep: lockstep{&counting{rows: 480, batch: 10, onStep: func(p train.Partition, epoch, step int) error {
		if epoch == 2 && step == 4 && p.Index == 1 {
			return errors.New("enough")
		}
		return nil
	}}}, workers: 2, ended: map[[2]int]int{}}
	if _, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 3}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("the error is %v", err)
	}
	for _, w := range s.Workers(0) {
		if n := w.(*traintest.Worker).Counts; n.Prepared != n.Finished {
			t.Errorf("%v: %+v", w.ID(), n)
		}
	}
}

// An adjusted task notes what its trainers are told.
type adjusted struct {
	*counting
	mu    sync.Mutex
	heard map[train.Partition][]train.Loss
}

func (a *adjusted) Trainer(w godwit.Worker, part train.Partition) (train.Trainer[work], error) {
	t, err := a.counting.Trainer(w, part)
	return &adjuster{t, a, part}, err
}

type adjuster struct {
	train.Trainer[work]
	a    *adjusted
	part train.Partition
}

func (t *adjuster) Adjust(l train.Loss) {
	t.a.mu.Lock()
	defer t.a.mu.Unlock()
	t.a.heard[t.part] = append(t.a.heard[t.part], l)
}

func TestEveryTrainerHearsTheLossOfAllNodesBetweenEpochs(t *testing.T) {
	const nodes, rows, epochs = 2, 60, 3
	s := server(t, rows, nodes, 2)
	task := &adjusted{counting: &counting{rows: rows, batch: 10, loss: func(epoch, _ int) float64 { return float64(epoch) }}, heard: map[train.Partition][]train.Loss{}}
	x := traintest.NewExchange(nodes)
	var wg sync.WaitGroup
	var seen [nodes]atomic.Int64
	var losses []train.Loss
	for node := range nodes {
		wg.Go(func() {
			env := train.Env{Workers: s.Workers(node), Node: node, Nodes: nodes, Exchange: x.Of(node), Ask: x.Ask(node), Serve: x.Serve, Seen: &seen[node]}
			rep, err := train.Run(t.Context(), env, task, train.Options{Epochs: epochs})
			if err != nil {
				t.Errorf("node %d: %v", node, err)
			} else if node == 0 {
				losses = rep.Losses
			}
		})
	}
	wg.Wait()
	for part, heard := range task.heard {
		if !slices.Equal(heard, losses) {
			t.Errorf("%v heard %v, the losses were %v", part, heard, losses)
		}
	}
	if len(task.heard) != 2*nodes {
		t.Errorf("%d trainers heard something, want %d", len(task.heard), 2*nodes)
	}
	for node := range seen {
		if n := seen[node].Load(); n != rows/nodes*epochs {
			t.Errorf("node %d has seen %d examples, want %d", node, n, rows/nodes*epochs)
		}
	}
}

func TestPatienceEndsARunThatStoppedImproving(t *testing.T) {
	curve := map[int]float64{2: 0.1, 4: 0.3, 6: 0.2, 8: 0.3, 10: 0.9}
	for _, lower := range []bool{false, true} {
		s := server(t, 20, 1, 1)
		task := &counting{rows: 20, batch: 5, metrics: func(epoch int) train.Evaluation {
			v := curve[epoch]
			if lower {
				v = 1 - v
			}
			return train.Evaluation{Metrics: []train.Metric{{Name: "m", Value: v}}, LowerIsBetter: lower}
		}}
		rep, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 20, EvalEvery: 2, Patience: 2})
		if err != nil {
			t.Fatal(err)
		}
		if rep.Epochs != 8 || rep.End != train.NoImprovement || rep.Evaluated[rep.Best] != 4 {
			t.Errorf("lower is better %v: %d epochs, %q, best %d, want 8, no improvement, 4", lower, rep.Epochs, rep.End, rep.Evaluated[rep.Best])
		}
	}
}

func TestAnEvaluationThatIsNoNumberIsNeverBest(t *testing.T) {
	s := server(t, 20, 1, 1)
	task := &counting{rows: 20, batch: 5, metrics: func(epoch int) train.Evaluation {
		v := math.NaN()
		if epoch == 2 {
			v = 0.1
		}
		return train.Evaluation{Metrics: []train.Metric{{Name: "m", Value: v}}}
	}}
	rep, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 3, EvalEvery: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := rep.Evaluated[rep.Best]; got != 2 {
		t.Errorf("epoch %d is best, want 2", got)
	}
}

func TestALossThatIsNoNumberFailsWithErrDiverged(t *testing.T) {
	for _, no := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		s := server(t, 20, 1, 1)
		task := &counting{rows: 20, batch: 5, loss: func(epoch, step int) float64 {
			if epoch == 2 && step == 1 {
				return no
			}
			return 1
		}}
		_, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 5})
		if !errors.Is(err, train.ErrDiverged) || !strings.Contains(err.Error(), "epoch 2") {
			t.Errorf("a loss of %v: Run returned %v, want ErrDiverged in epoch 2", no, err)
		}
	}
}

func TestNodesThatTrainDifferentThingsAreRefused(t *testing.T) {
	s := server(t, 20, 2, 1)
	_, errs := onNodes(s, 2, func(node int) *counting {
		return &counting{rows: 20, batch: 5, name: fmt.Sprint("task ", node)}
	}, train.Options{Epochs: 1}, nil)
	for node, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "task 0") || !strings.Contains(err.Error(), "task 1") {
			t.Errorf("node %d returned %v, want an error that names both tasks", node, err)
		}
	}
}

func TestCancellingTheContextEndsTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := server(t, 100, 1, 2)
	task := &counting{rows: 100, batch: 5, onStep: func(_ train.Partition, epoch, _ int) error {
		if epoch == 3 {
			cancel()
		}
		return nil
	}}
	_, err := train.Run(ctx, train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 1 << 40})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v, want context.Canceled", err)
	}
}

func TestBadOptionsAndEnvironmentsSayWhatIsWrong(t *testing.T) {
	s := server(t, 20, 1, 1)
	good := train.Env{Workers: s.Workers(0)}
	for _, c := range []struct {
		env  train.Env
		o    train.Options
		want string
	}{
		{good, train.Options{}, "Epochs is 0"},
		{good, train.Options{Epochs: 1, EvalEvery: -1}, "EvalEvery is -1"},
		{good, train.Options{Epochs: 1, EvalEvery: 1, Patience: -1}, "Patience is"},
		{good, train.Options{Epochs: 1, Patience: 1}, "EvalEvery"},
		{train.Env{}, train.Options{Epochs: 1}, "no workers"},
		{train.Env{Workers: s.Workers(0), Nodes: 2}, train.Options{Epochs: 1}, "Exchange"},
		{train.Env{Workers: s.Workers(0), Node: 1}, train.Options{Epochs: 1}, "node 1 of 1"},
	} {
		_, err := train.Run(t.Context(), c.env, &counting{rows: 20, batch: 5}, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v in %+v: error %v, want one that mentions %q", c.o, c.env, err, c.want)
		}
	}
}

func TestProgressHearsOfEveryEpochAndEvaluation(t *testing.T) {
	s := server(t, 20, 1, 1)
	var got []string
	env := train.Env{Workers: s.Workers(0), Progress: func(e train.Event) { got = append(got, e.String()) }}
	task := &counting{rows: 20, batch: 5, metrics: func(int) train.Evaluation {
		return train.Evaluation{Metrics: []train.Metric{{Name: "MRR", Value: 0.5}, {Name: "Hits@1", Value: 0.25}}, Warnings: []string{"careful"}}
	}}
	if _, err := train.Run(t.Context(), env, task, train.Options{Epochs: 2, EvalEvery: 2}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"epoch 1: loss 0.2000 over 20 examples",
		"epoch 2: loss 0.2000 over 20 examples",
		"epoch 2: MRR 0.5000, Hits@1 0.2500; WARNING: careful",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("progress is %q, want %q", got, want)
	}
}

func TestNodesWithDifferentlyManyWorkersDivideItemsAndAddUpTheirFigures(t *testing.T) {
	workers := []int{2, 1, 4}
	nodes := len(workers)
	for _, n := range []int{0, 1, 2, 7, 100} {
		s := server(t, 10, nodes, 4)
		x := traintest.NewExchange(nodes)
		var wg sync.WaitGroup
		for node := range nodes {
			wg.Go(func() {
				env := train.Env{Workers: s.Workers(node)[:workers[node]], Node: node, Nodes: nodes, Exchange: x.Of(node), Ask: x.Ask(node), Serve: x.Serve}
				// The numbers of times that each item is done, and a sum.
				got, err := env.SumOverWorkers(t.Context(), "items", n+1, func(_ context.Context, i int, _ godwit.Worker, sums []float64) error {
					from, to := env.Share(n, i)
					for item := from; item < to; item++ {
						sums[item]++
						sums[n] += float64(item)
					}
					return nil
				})
				if err != nil || len(got) != n+1 {
					t.Errorf("node %d: %v, %v", node, got, err)
					return
				}
				for item, times := range got[:n] {
					if times != 1 {
						t.Errorf("item %d of %d is done %v times", item, n, times)
					}
				}
				if got[n] != float64(n*(n-1)/2) {
					t.Errorf("the sum over %d items is %v", n, got[n])
				}
			})
		}
		wg.Wait()
	}
}

func TestATallyFailsWithItsWorker(t *testing.T) {
	s := server(t, 10, 1, 3)
	env := train.Env{Workers: s.Workers(0)}
	if _, err := env.SumOverWorkers(t.Context(), "figures", 1, func(_ context.Context, i int, _ godwit.Worker, _ []float64) error {
		if i == 1 {
			return errors.New("enough")
		}
		return nil
	}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("the error is %v", err)
	}
}

func TestFewIsEvenlySpread(t *testing.T) {
	items := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	for n, want := range map[int][]int{0: items, 10: items, 20: items, 5: {0, 2, 4, 6, 8}, 1: {0}, 3: {0, 3, 6}} {
		if got := train.EvenlySpaced(items, n); !slices.Equal(got, want) {
			t.Errorf("%d of ten: %v, want %v", n, got, want)
		}
	}
}

// A stop that comes before the first step of an epoch makes no epoch of it.
func TestAStopAtTheBorderOfAnEpochMakesNoEpochOfNothing(t *testing.T) {
	for _, every := range []int{0, 1} {
		for last := range 3 {
			stop := make(chan struct{})
			if last == 0 {
				close(stop)
			}
			var told []train.Event
			env := train.Env{Workers: server(t, 100, 1, 1).Workers(0), Stop: stop, Progress: func(e train.Event) {
				if told = append(told, e); e.Loss != nil && e.Epoch == last {
					close(stop)
				}
			}}
			rep, err := train.Run(t.Context(), env, &counting{rows: 100, batch: 5}, train.Options{Epochs: 50, EvalEvery: every})
			if err != nil {
				t.Fatal(err)
			}
			if rep.Epochs != last || len(rep.Losses) != last || rep.End != train.Stopped || len(rep.Evaluated) == 0 || rep.Evaluated[len(rep.Evaluated)-1] != last {
				t.Errorf("stopped after %d epochs: %+v", last, rep)
			}
			evaluated := 0
			for _, e := range told {
				if e.Loss != nil && e.Loss.Examples == 0 {
					t.Errorf("stopped after %d epochs, it tells of one without examples", last)
				}
				if e.Evaluation != nil && e.Epoch == last {
					evaluated++
				}
			}
			if evaluated != 1 {
				t.Errorf("stopped after %d epochs, the last is evaluated %d times", last, evaluated)
			}
		}
	}
}

// aged is a task whose workers may go on for some epochs while they hear nothing.
type aged struct {
	*counting
	age float64
}

func (a aged) MaxAge() float64 { return a.age }

// Workers are told for how many steps they may hear nothing of each other: so many epochs by the square root of
// the number of nodes, of the steps that each makes in one, but one at least.
func TestWorkersHearForHowManyStepsTheyMayHearNothing(t *testing.T) {
	const rows, nodes, perNode, batch = 19200, 4, 3, 10 // 1920 steps, 160 a worker
	for _, c := range []struct {
		age     float64
		chunked bool
		want    godwit.Clock
	}{{0, true, 0}, {0.5, true, 40}, {0.5, false, 40}, {4, false, 320}, {1e-6, true, 1}} {
		s := server(t, rows, nodes, perNode)
		x := traintest.NewExchange(nodes)
		task := aged{&counting{rows: rows, batch: batch, chunked: c.chunked}, c.age}
		var wg sync.WaitGroup
		for node := range nodes {
			wg.Go(func() {
				env := train.Env{Workers: s.Workers(node), Node: node, Nodes: nodes, Exchange: x.Of(node), Ask: x.Ask(node), Serve: x.Serve}
				if _, err := train.Run(t.Context(), env, task, train.Options{Epochs: 1}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for node := range nodes {
			for i, w := range s.Workers(node) {
				if got := w.(*traintest.Worker).Counts.Age; got != c.want && !(got == 0 && c.chunked) { // it may have got no chunk
					t.Errorf("%v epochs, chunks: %v: worker %d.%d may make %d steps, want %d", c.age, c.chunked, node, i, got, c.want)
				}
			}
		}
	}
}

// A seeded worker notes the seeds of its samples.
type seeded struct {
	*traintest.Worker
	note func(seed1, seed2 uint64)
}

func (w seeded) SeedSample(sampler int, seed1, seed2 uint64) {
	w.note(seed1, seed2)
	w.Worker.SeedSample(sampler, seed1, seed2)
}

// Samples follow from the place of their step, and not from who trains it: each step of a run has seeds of its own, the same ones on any number of workers.
func TestEachStepHasSeedsOfItsOwnWhoeverTrainsIt(t *testing.T) {
	const rows, epochs = 100, 2
	seeds := func(workers int, chunked bool) [][2]uint64 {
		var mu sync.Mutex
		var all [][2]uint64
		s := server(t, rows, 1, workers)
		env := train.Env{}
		for _, w := range s.Workers(0) {
			env.Workers = append(env.Workers, seeded{w.(*traintest.Worker), func(seed1, seed2 uint64) {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, [2]uint64{seed1, seed2})
			}})
		}
		if _, err := train.Run(t.Context(), env, &counting{rows: rows, batch: 1, chunked: chunked}, train.Options{Epochs: epochs}); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(all, func(a, b [2]uint64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
		if n := len(slices.Compact(slices.Clone(all))); n != rows*epochs || len(all) != n {
			t.Errorf("%d workers, chunks: %v: %d seeds, %d of them different, for %d steps", workers, chunked, len(all), n, rows*epochs)
		}
		return all
	}
	if !slices.Equal(seeds(1, true), seeds(3, true)) {
		t.Error("three workers have other seeds than one")
	}
	if a, b := seeds(2, false), seeds(2, false); !slices.Equal(a, b) {
		t.Error("two runs of two workers with parts have different seeds")
	}
	a, b := train.At{Epoch: 1}.Seed(1)
	if c, d := (train.At{Epoch: 1}).Seed(2); a == c && b == d {
		t.Error("the seed of the run makes no difference")
	}
}
