package train_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/seedtest"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
)

// A ledger is a task that notes which example each worker trains in which epoch.
type ledger struct {
	counting
	mu      sync.Mutex
	trained map[godwit.WorkerID][][2]int // epoch and example, in order
	crossed map[godwit.WorkerID]int      // how many of them were before the cut
	left    int                          // steps until the workers are asked to cross
	stages  int                          // of an epoch; 0: none
	wrong   string                       // a load that was not behind the one before it of its chunk
}

// newLedger makes a ledger of chunks, of parts, or of parts in some stages. The steps of parts depend on the nodes.
func newLedger(rows int, chunked bool, stages int) *ledger {
	return &ledger{counting: counting{rows: rows, batch: 3, chunked: chunked, byNodes: true}, stages: stages, trained: map[godwit.WorkerID][][2]int{}, crossed: map[godwit.WorkerID]int{}}
}

func (l *ledger) Lockstep() bool { return l.stages > 0 }

func (l *ledger) Stages(int) int { return l.stages }

func (l *ledger) Trainer(w godwit.Worker, part train.Partition) (train.Trainer[work], error) {
	t, err := l.counting.Trainer(w, part)
	return &bookkeeper{Trainer: t, l: l, w: w, part: part}, err
}

type bookkeeper struct {
	train.Trainer[work]
	l    *ledger
	w    godwit.Worker
	part train.Partition
	last train.At // that was loaded
}

// Steps deals the steps of a part out to stages, so that in each epoch another stage may have none.
func (b *bookkeeper) Steps(epoch, chunk int) int {
	n := b.Trainer.Steps(epoch, chunk)
	if s := b.l.stages; s > 0 {
		n = (n + (chunk/b.part.Count+epoch)%s) / s
	}
	return n
}

func (b *bookkeeper) Load(x *train.Batch[work], at train.At) {
	if l := b.last; at.Step > 0 && (l.Epoch != at.Epoch || l.Chunk != at.Chunk || l.Step != at.Step-1) {
		b.l.mu.Lock()
		b.l.wrong = fmt.Sprintf("%+v is loaded behind %+v", at, l)
		b.l.mu.Unlock()
	}
	b.last = at
	if b.l.stages > 0 {
		for c := at.Chunk - b.part.Count; c >= 0; c -= b.part.Count {
			at.Step += b.Steps(at.Epoch, c)
		}
	}
	b.Trainer.Load(x, at)
}

func (b *bookkeeper) Step(_ context.Context, x *train.Batch[work]) (train.Loss, error) {
	b.l.mu.Lock()
	defer b.l.mu.Unlock()
	b.l.left--
	for _, k := range x.Keys {
		b.l.trained[b.w.ID()] = append(b.l.trained[b.w.ID()], [2]int{x.Data.epoch, int(k)})
	}
	return train.Loss{Sum: float64(len(x.Keys)), Examples: int64(len(x.Keys))}, nil
}

// run trains on some nodes, from a state on. The workers are asked to cross into a cut after so many
// steps, if that is not 0: run returns the state there, if there was time for it.
func (l *ledger) run(t *testing.T, workers []int, epochs int, from *train.State, steps int) (*train.State, *train.Report) {
	t.Helper()
	l.left = steps
	nodes, most := len(workers), 0
	for _, n := range workers {
		most = max(most, n)
	}
	s, x := server(t, l.rows, nodes, most), traintest.NewExchange(nodes)
	var states []*train.State
	var rep *train.Report
	var wg sync.WaitGroup
	for node := range nodes {
		ws := s.Workers(node)[:workers[node]]
		for _, w := range ws {
			w := w.(*traintest.Worker)
			w.Crosses = func() bool {
				l.mu.Lock()
				defer l.mu.Unlock()
				return steps > 0 && l.left <= 0
			}
			w.Cut = func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.crossed[w.ID()] = len(l.trained[w.ID()])
			}
		}
		env := train.Env{Workers: ws, Node: node, Nodes: nodes, Exchange: x.Of(node), Ask: x.Ask(node), Serve: x.Serve, Begin: from,
			OnCut: func(_ uint64, s *train.State, err error) {
				if err != nil {
					t.Error(err)
					return
				}
				l.mu.Lock()
				defer l.mu.Unlock()
				states = append(states, s)
			}}
		wg.Go(func() {
			r, err := train.Run(t.Context(), env, l, train.Options{Epochs: epochs})
			if err != nil {
				t.Errorf("node %d: %v", node, err)
			}
			if node == 0 {
				rep = r
			}
		})
	}
	wg.Wait()
	if l.wrong != "" {
		t.Error(l.wrong)
	}
	if len(states) < nodes || t.Failed() {
		return nil, rep // a worker never came to its clock
	}
	merged, err := train.MergeStates(states...)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(merged)
	if err != nil {
		t.Fatal(err)
	}
	again := new(train.State)
	if err := json.Unmarshal(text, again); err != nil {
		t.Fatal(err)
	}
	return again, rep
}

// Workers cross into a cut wherever they are; another number of nodes and workers goes on, and is cut again, perhaps in the same epoch.
func TestEachExampleIsTrainedOnceBeforeACutOrBehindIt(t *testing.T) {
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 0))
	cuts, again := 0, 0
	for i := 0; i < 90 || again < 3 && i < 900; i++ { // few draws have a second cut in an epoch
		const epochs = 3
		chunked, stages := i%3 == 0, 0
		if i%3 == 1 {
			stages = 1 + r.IntN(4)
		}
		rows := 1 + r.IntN(400)
		times, history := map[[2]int]int{}, ""
		var from *train.State
		var rep *train.Report
		for part := range 3 {
			l, nodes, steps := newLedger(rows, chunked, stages), 1+r.IntN(3), 0
			if part < 2 {
				steps = 1 + r.IntN((rows+2)/3*epochs)
			}
			var workers []int
			for range 1 + r.IntN(3) {
				workers = append(workers, nodes)
			}
			var state *train.State
			state, rep = l.run(t, workers, epochs, from, steps)
			history += fmt.Sprintf("; %v workers, ", workers)
			for id, xs := range l.trained {
				if state != nil {
					xs = xs[:l.crossed[id]]
				}
				for _, x := range xs {
					times[x]++
				}
			}
			if state == nil {
				history += "to the end"
				break
			}
			history += fmt.Sprintf("to a cut at %+v", state.Position)
			cuts++
			for _, e := range state.Position.Epochs {
				if chunked && e.Chunks != l.Chunks() {
					t.Errorf("seed %d: the position says that epoch %d has %d chunks, of %d", seed, e.Epoch, e.Chunks, l.Chunks())
				}
				if from != nil && from.Position.First == e.Epoch {
					again++
				}
			}
			from = state
		}
		if t.Failed() {
			t.Fatalf("seed %d: %d examples, %d stages%s", seed, rows, stages, history)
		}
		for e := 1; e <= epochs; e++ {
			for k := range rows {
				if n := times[[2]int{e, k}]; n != 1 {
					t.Fatalf("seed %d: %d examples, %d stages%s: example %d is trained %d times in epoch %d", seed, rows, stages, history, k, n, e)
				}
			}
			if got := rep.Losses[e-1]; got != (train.Loss{Sum: float64(rows), Examples: int64(rows)}) {
				t.Errorf("seed %d: the report has the loss %+v in epoch %d, of %d examples of loss 1", seed, got, e, rows)
			}
		}
	}
	if cuts < 30 || again < 3 {
		t.Errorf("seed %d: %d cuts, %d of them a second one in an epoch: the test is vacuous", seed, cuts, again)
	}
}

func TestAPositionThatCannotBeIsRefused(t *testing.T) {
	s := server(t, 30, 1, 2)
	state := func(p schedule.Position) *train.State { return &train.State{Position: p} }
	far := state(schedule.Position{First: 1, Epochs: []schedule.Epoch{{Epoch: 1, Done: []schedule.Run{{From: 0, To: 99}}}}})
	under := state(schedule.Position{First: 1, Epochs: []schedule.Epoch{{Epoch: 1, Under: []schedule.Under{{Chunk: 0, Steps: 2}}}}})
	divided := state(schedule.Position{First: 1, Epochs: []schedule.Epoch{{Epoch: 1, Chunks: 5, Done: []schedule.Run{{From: 0, To: 1}}}}})
	chunked := &counting{rows: 30, batch: 3, chunked: true}
	staged := state(schedule.Position{First: 1, Epochs: []schedule.Epoch{{Epoch: 1, Parts: 2, Stages: 3, Done: []schedule.Run{{From: 0, To: 1}}}}})
	for what, x := range map[string]struct {
		task train.Task[work]
		from *train.State
		says string
	}{
		"more chunks than there are":      {chunked, far, "chunks 0 … 98 are finished"},
		"another number of chunks":        {chunked, divided, "was divided into 5 chunks"},
		"more parts than workers":         {&counting{rows: 30, batch: 3}, far, "chunks 0 … 98 are finished"},
		"the middle of a lockstep's part": {lockstep{&counting{rows: 30, batch: 3}}, under, "different numbers of steps"},
		"another number of stages":        {newLedger(30, false, 2), staged, "3 stages of 2 parts, and the task has 2 stages"},
	} {
		_, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0), Begin: x.from}, x.task, train.Options{Epochs: 2})
		if err == nil || !strings.Contains(err.Error(), "cannot go on where an earlier run was") || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v, want an error that says %q", what, err, x.says)
		}
	}
}

// No run goes on from a state of workers that wait for each other in each step and have made different numbers of steps, and the error says so. One
// goes on from even states, and where workers do not wait, or meet at the ends of stages.
func TestAStateOfUnevenWorkersIsRefused(t *testing.T) {
	even := schedule.Epoch{Epoch: 1, Parts: 2, Under: []schedule.Under{{Chunk: 0, Steps: 3}, {Chunk: 1, Steps: 3}}}
	apart := schedule.Epoch{Epoch: 1, Parts: 2, Under: []schedule.Under{{Chunk: 0, Steps: 3}, {Chunk: 1, Steps: 2}}}
	begun := schedule.Epoch{Epoch: 1, Parts: 2, Under: []schedule.Under{{Chunk: 1, Steps: 3}}}
	half := schedule.Epoch{Epoch: 1, Parts: 2, Done: []schedule.Run{{To: 1}}}
	over := schedule.Epoch{Epoch: 1, Parts: 2, Done: []schedule.Run{{To: 2}}}
	together := lockstep{&counting{rows: 12, batch: 3}}
	for what, x := range map[string]struct {
		task  any
		epoch schedule.Epoch
		fails bool
	}{
		"as far":                        {together, even, false},
		"at the end":                    {together, over, false},
		"one is ahead":                  {together, apart, true},
		"one has not begun":             {together, begun, true},
		"one is at the end":             {together, half, true},
		"nobody waits for another":      {newLedger(12, false, 0), apart, false},
		"they meet at the ends of some": {newLedger(12, false, 2), apart, false},
	} {
		s := &train.State{Position: schedule.Position{First: 1, Epochs: []schedule.Epoch{x.epoch}}}
		if err := train.CheckState(x.task, s); errors.Is(err, train.ErrUneven) != x.fails || (err != nil) != x.fails {
			t.Errorf("%s: %v, want an error: %v", what, err, x.fails)
		}
	}
	env := train.Env{Workers: server(t, 12, 1, 2).Workers(0)[:2], Nodes: 1, Begin: &train.State{Position: schedule.Position{First: 1, Epochs: []schedule.Epoch{apart}}}}
	if _, err := train.Run(t.Context(), env, together, train.Options{Epochs: 1}); !errors.Is(err, train.ErrUneven) {
		t.Errorf("a run that goes on from uneven steps: %v", err)
	}
}
