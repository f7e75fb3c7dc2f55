package train_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

// besides has evaluations take place beside training, when the next epoch has ended at the latest, and keeps the epochs of which they are.
func besides(t *testing.T, ws []godwit.Worker, epochs *[]int) func(context.Context, *train.State, train.Evaluator) (func(context.Context) (*train.State, error), error) {
	return func(ctx context.Context, s *train.State, evaluate train.Evaluator) (func(context.Context) (*train.State, error), error) {
		*epochs = append(*epochs, s.Epochs)
		if _, best := s.Last(); best {
			t.Errorf("epoch %d was evaluated before", s.Epochs)
		}
		return func(ctx context.Context) (*train.State, error) { return evaluate(ctx, ws) }, nil
	}
}

// A run ends where it ends without, and has the same best model.
func TestEvaluationsBesideTrainingDoNotMoveTheEnd(t *testing.T) {
	curve := map[int]float64{2: 0.1, 4: 0.3, 6: 0.2, 8: 0.3, 10: 0.9}
	for _, o := range []train.Options{{Epochs: 20, EvalEvery: 2, Patience: 1}, {Epochs: 20, EvalEvery: 2, Patience: 2}, {Epochs: 9, EvalEvery: 2}, {Epochs: 8, EvalEvery: 2}} {
		var reports [2]*train.Report
		var offered []int
		for i := range reports {
			s := server(t, 20, 1, 1)
			task := &counting{rows: 20, batch: 5, metrics: func(epoch int) train.Evaluation {
				return train.Evaluation{Metrics: []train.Metric{{Name: "m", Value: curve[epoch]}}}
			}}
			env := train.Env{Workers: s.Workers(0)}
			if i == 1 {
				env.Beside = besides(t, s.Workers(0), &offered)
			}
			var err error
			if reports[i], err = train.Run(t.Context(), env, task, o); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := fmt.Sprint(*reports[1]), fmt.Sprint(*reports[0]); got != want {
			t.Errorf("%+v: the report is %v, want %v", o, got, want)
		}
		if len(offered) == 0 || slices.Contains(offered, reports[0].Epochs) {
			t.Errorf("%+v: evaluations of epochs %v were beside training, the run ended after %d", o, offered, reports[0].Epochs)
		}
	}
}

// A cut in the next epoch has the evaluation, once it is there.
func TestACutHasTheEvaluationThatTookPlaceBesideTraining(t *testing.T) {
	s := server(t, 20, 1, 1)
	w := s.Workers(0)[0].(*traintest.Worker)
	w.Crosses, w.Cut = func() bool { return w.Clock() == 6 }, func() {} // four steps an epoch
	var at *train.State
	env := train.Env{Workers: s.Workers(0), OnCut: func(_ uint64, s *train.State, err error) { at = s },
		Beside: func(ctx context.Context, s *train.State, evaluate train.Evaluator) (func(context.Context) (*train.State, error), error) {
			s, err := evaluate(ctx, []godwit.Worker{w})
			return func(context.Context) (*train.State, error) { return s, nil }, err
		}}
	if _, err := train.Run(t.Context(), env, &counting{rows: 20, batch: 5}, train.Options{Epochs: 3, EvalEvery: 1}); err != nil {
		t.Fatal(err)
	}
	if at == nil || at.Within() != 2 || !slices.Equal(at.Evaluated, []int{1}) {
		t.Errorf("the state at the cut is %+v", at)
	}
}

func TestAnEvaluationBesideTrainingThatFailsEndsTheRun(t *testing.T) {
	s := server(t, 20, 1, 1)
	fails := errors.New("no figures")
	env := train.Env{Workers: s.Workers(0), Beside: func(context.Context, *train.State, train.Evaluator) (func(context.Context) (*train.State, error), error) {
		return func(context.Context) (*train.State, error) { return nil, fails }, nil
	}}
	if _, err := train.Run(t.Context(), env, &counting{rows: 20, batch: 5}, train.Options{Epochs: 3, EvalEvery: 1}); !errors.Is(err, fails) {
		t.Errorf("the run ended with %v", err)
	}
}
