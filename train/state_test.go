package train_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/internal/seedtest"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
)

// judged returns a state of some epochs, of which some were evaluated, with these results.
func judged(epochs int, results map[int]float64) *train.State {
	s := &train.State{Epochs: epochs, Losses: make([]train.Loss, epochs)}
	for e := 1; e <= epochs; e++ {
		if v, ok := results[e]; ok {
			s.Evaluated, s.Results = append(s.Evaluated, e), append(s.Results, train.Evaluation{Metrics: []train.Metric{{Name: "m", Value: v}}})
			if v > s.Results[s.Best].Metrics[0].Value {
				s.Best = len(s.Results) - 1
			}
		}
	}
	return s
}

// within is a position of which something of an epoch is trained.
func within(epoch int) schedule.Position {
	return schedule.Position{First: epoch, Epochs: []schedule.Epoch{{Epoch: epoch, Done: []schedule.Run{{To: 1}}}}}
}

func TestAStateKeepsEachBit(t *testing.T) {
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		draw := func() float64 { return math.Float64frombits(r.Uint64()) }
		s := judged(2, map[int]float64{1: draw(), 2: []float64{math.NaN(), math.Inf(1), draw()}[r.IntN(3)]})
		s.Losses = []train.Loss{{Sum: draw(), Examples: r.Int64()}, {Sum: draw(), Examples: r.Int64()}}
		s.Results[1].LowerIsBetter, s.Results[1].Warnings, s.Results[1].Metrics[0].Split = true, []string{"w"}, "valid"
		s.Position = within(3)
		s.Position.Epochs[0].LossBits, s.Position.Epochs[0].Examples = r.Uint64(), r.Int64()
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		got := new(train.State)
		if err := json.Unmarshal(text, got); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		same := func(what string, a, b float64) {
			if math.Float64bits(a) != math.Float64bits(b) && !(math.IsNaN(a) && math.IsNaN(b)) {
				t.Errorf("seed %d: %s was %x and is %x", seed, what, math.Float64bits(a), math.Float64bits(b))
			}
		}
		for i := range 2 {
			same("a loss", s.Losses[i].Sum, got.Losses[i].Sum)
			same("a result", s.Results[i].Metrics[0].Value, got.Results[i].Metrics[0].Value)
			got.Losses[i].Sum, got.Results[i].Metrics[0].Value = 0, 0
			s.Losses[i].Sum, s.Results[i].Metrics[0].Value = 0, 0
		}
		if !reflect.DeepEqual(s, got) {
			t.Fatalf("seed %d: %+v became %+v", seed, s, got)
		}
	}
}

func TestAStateThatNoRunHasIsRefused(t *testing.T) {
	good := func() *train.State { return judged(4, map[int]float64{2: 1, 4: 2}) }
	for says, spoil := range map[string]func(*train.State){
		"4 epochs with 3 losses":                 func(s *train.State) { s.Losses = s.Losses[:3] },
		"2 evaluations of 1 epochs":              func(s *train.State) { s.Evaluated = s.Evaluated[:1] },
		"of which number 2 is the best":          func(s *train.State) { s.Best = 2 },
		"4 epochs with epoch 4 under way":        func(s *train.State) { s.Position = within(4) },
		"chunks 0 … -1 are finished":             func(s *train.State) { s.Position = within(5); s.Position.Epochs[0].Done[0].To = 0 },
		"4 epochs with an evaluation of epoch 5": func(s *train.State) { s.Evaluated[1] = 5 },
		"4 epochs with an evaluation of epoch 2": func(s *train.State) { s.Evaluated[1] = 2 },
		"version 9":                              nil,
	} {
		s := good()
		if spoil != nil {
			spoil(s)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if spoil == nil {
			text = []byte(strings.Replace(string(text), `"version":1`, `"version":9`, 1))
		}
		if err := json.Unmarshal(text, new(train.State)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an error that says %q", text, err, says)
		}
	}
}

// An evaluation is that of the model only where nothing was trained since: else a checkpoint within an epoch would be taken for that of the best model.
func TestAnEvaluationIsNotThatOfAModelThatWasTrainedSince(t *testing.T) {
	for what, x := range map[string]struct {
		s           *train.State
		found, best bool
	}{
		"not evaluated":         {judged(2, nil), false, false},
		"evaluated":             {judged(2, map[int]float64{1: 1, 2: 2}), true, true},
		"not the best":          {judged(2, map[int]float64{1: 2, 2: 1}), true, false},
		"another epoch trained": {judged(3, map[int]float64{1: 1, 2: 2}), false, false},
	} {
		if e, best := x.s.Last(); (e != nil) != x.found || best != x.best {
			t.Errorf("%s: %v, the best: %v", what, e, best)
		}
		x.s.Position = within(x.s.Epochs + 1)
		if e, best := x.s.Last(); e != nil || best {
			t.Errorf("%s, and within the next epoch: %v, the best: %v", what, e, best)
		}
	}
}

// What nodes say of a cut goes together as of the one that is least far, and what is finished at all is no part of the position.
func TestStatesOfNodesThatAreInTwoEpochsGoTogether(t *testing.T) {
	behind := judged(1, map[int]float64{1: 2})
	behind.Position = schedule.Position{First: 2, Epochs: []schedule.Epoch{{Epoch: 1, Done: []schedule.Run{{From: 0, To: 3}}}}}
	ahead := judged(2, map[int]float64{1: 2, 2: 3})
	ahead.Position = schedule.Position{First: 3, Epochs: []schedule.Epoch{{Epoch: 2, Done: []schedule.Run{{From: 0, To: 2}}}}}
	for what, x := range map[string]struct {
		states []*train.State
		within int
	}{
		"one node":   {[]*train.State{behind}, 0},
		"both":       {[]*train.State{behind, ahead}, 2},
		"both again": {[]*train.State{ahead, behind}, 2},
	} {
		m, err := train.MergeStates(x.states...)
		if err != nil {
			t.Fatal(err)
		}
		if m.Epochs != 1 || m.Within() != x.within || !slices.Equal(m.Evaluated, []int{1}) {
			t.Errorf("%s: %+v, want within %d", what, m, x.within)
		}
	}
}

func TestAnEarlierStateHasTheBestOfItsOwn(t *testing.T) {
	s := judged(4, map[int]float64{1: 2, 2: 5, 3: 3, 4: 9})
	for epochs, best := range map[int]int{1: 0, 2: 1, 3: 1, 4: 3} {
		u := s.Until(epochs)
		if u.Epochs != epochs || len(u.Losses) != epochs || len(u.Evaluated) != epochs || len(u.Results) != epochs || u.Best != best {
			t.Errorf("until epoch %d: %+v, want number %d as the best", epochs, u, best)
		}
	}
}

// A run that goes on where patience was lost, or is lost by the patience that it has now, trains nothing.
func TestPatienceThatIsLostIsLostToTheRunThatGoesOn(t *testing.T) {
	for patience, epochs := range map[int]int{1: 3, 2: 3, 3: 4} {
		env := train.Env{Workers: server(t, 30, 1, 1).Workers(0), Begin: judged(3, map[int]float64{1: 9, 2: 1, 3: 2})}
		rep, err := train.Run(t.Context(), env, newLedger(30, false, 0), train.Options{Epochs: 9, EvalEvery: 1, Patience: patience})
		if err != nil {
			t.Fatal(err)
		}
		if rep.Epochs != epochs || rep.End != train.NoImprovement {
			t.Errorf("patience %d: %d epochs, %q; want %d", patience, rep.Epochs, rep.End, epochs)
		}
	}
}

// A learning rate that follows from the losses is as it was.
func TestTrainersOfARunThatGoesOnHearTheLossesBefore(t *testing.T) {
	task := &adjusted{counting: &counting{rows: 30, batch: 3}, heard: map[train.Partition][]train.Loss{}}
	from := judged(3, nil)
	for i := range from.Losses {
		from.Losses[i] = train.Loss{Sum: float64(i), Examples: 30}
	}
	if _, err := train.Run(t.Context(), train.Env{Workers: server(t, 30, 1, 2).Workers(0), Begin: from}, task, train.Options{Epochs: 3}); err != nil {
		t.Fatal(err)
	}
	if len(task.heard) != 2 {
		t.Errorf("%d trainers of 2 heard anything", len(task.heard))
	}
	for part, heard := range task.heard {
		if !slices.Equal(heard, from.Losses) {
			t.Errorf("%+v heard %v, want %v", part, heard, from.Losses)
		}
	}
}

// The epoch under way is the one behind those that were trained.
func TestAStateOfAnotherEpochUnderWayIsRefused(t *testing.T) {
	for first, ok := range map[int]bool{1: true, 2: false, 3: false} {
		text := fmt.Sprintf(`{"version":1,"epochs":0,"losses":[],"evaluated":[],"results":[],"best":0,"position":{"first":%d,"epochs":[]}}`, first)
		if err := json.Unmarshal([]byte(text), new(train.State)); (err == nil) != ok {
			t.Errorf("of no epochs, with epoch %d under way: %v", first, err)
		}
	}
}
