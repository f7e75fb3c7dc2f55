package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/job/internal/cuts"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

// A course is what a run tells of its model on the way.
type course struct {
	evaluations []string
	kinds       string // of the events, in order
	result      *Result
	digests     map[int]checkpoint.Digest
}

func courseOf(t *testing.T, spec Spec, cfg NodeConfig) (c course) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "runs")
	cfg.cuts = func(o *cuts.Owner) { o.Due = func() (never time.Time) { return never } }
	cfg.Export = filepath.Join(t.TempDir(), "model")
	cfg.Progress = func(e Event) {
		switch {
		case e.Evaluation != nil:
			c.evaluations = append(c.evaluations, fmt.Sprint(e.Evaluation.Epoch, e.Evaluation.Metrics))
			c.kinds += fmt.Sprint(" evaluation ", e.Evaluation.Epoch)
		case e.Epoch != nil:
			c.kinds += fmt.Sprint(" epoch ", e.Epoch.Epoch)
		case e.Warning != "":
			t.Error(e.Warning)
		}
	}
	c.result = local(t, spec, dir, cfg)
	c.digests = digests(t, dir)
	return c
}

// Whether evaluations hold up training or take place beside it: figures, checkpoints, the end and the best model are the same, bit by bit. On
// several nodes so where pushes are whole numbers.
func TestEvaluationsBesideTrainingChangeNothing(t *testing.T) {
	for _, x := range []struct {
		name  string
		nodes int
	}{{"complex", 1}, {"mf, biased true", 1}, {"weights", 1}, {"lda", 1}, {"sketch", 1}, {"sketch", 3}} {
		t.Run(fmt.Sprint(x), func(t *testing.T) {
			spec := reusable()[x.name]
			spec.Nodes, spec.Workers, spec.Options = x.nodes, 1, train.Options{Epochs: 2 + x.nodes, EvalEvery: 1, Patience: 2}
			var asked atomic.Int32
			want := courseOf(t, spec, NodeConfig{beside: func(int) bool { return false }})
			got := courseOf(t, spec, NodeConfig{beside: func(int) bool { asked.Add(1); return true }})
			if fmt.Sprint(got.evaluations) != fmt.Sprint(want.evaluations) {
				t.Errorf("the evaluations are %v, want %v", got.evaluations, want.evaluations)
			}
			if spec.Task.Name() == "linear" { // an evaluation that holds up training reads features that were not trained, which are rows then
				got.digests, want.digests = nil, nil
			}
			if fmt.Sprint(got.digests) != fmt.Sprint(want.digests) {
				t.Errorf("the models are %v, want %v", got.digests, want.digests)
			}
			g, w := got.result, want.result
			if fmt.Sprint(g.Test, g.Epochs, g.End, g.Best) != fmt.Sprint(w.Test, w.Epochs, w.End, w.Best) {
				t.Errorf("the result is %+v, want %+v", g, w)
			}
			if asked.Load() == 0 || strings.Contains(got.kinds, "epoch 2 evaluation 1") || !strings.HasPrefix(got.kinds, " epoch 1 evaluation 1") {
				t.Errorf("%d evaluations could be beside training; it told of%s", asked.Load(), got.kinds)
			}
		})
	}
}

// Several nodes evaluate the model of an epoch's end, though they train on: the figures are those of the checkpoint of that moment, whose counts add
// up.
func TestEvaluationsBesideTheTrainingOfSeveralNodes(t *testing.T) {
	for _, relayed := range []bool{false, true} {
		spec := reusable()["lda"]
		spec.Nodes, spec.Workers, spec.Relayed, spec.Options = 3, 1, relayed, train.Options{Epochs: 4, EvalEvery: 1}
		dir := filepath.Join(t.TempDir(), "runs")
		figures, all, told := map[int]float64{}, []float64(nil), ""
		local(t, spec, dir, NodeConfig{beside: func(epoch int) bool { return epoch != 2 }, Progress: func(e Event) {
			switch {
			case e.Evaluation != nil:
				for _, w := range e.Evaluation.Warnings { // counts do not add up
					t.Error(w)
				}
				all = append(all, e.Evaluation.Metrics[0].Value)
				figures[e.Evaluation.Epoch] = all[len(all)-1]
				told += fmt.Sprint(" evaluation ", e.Evaluation.Epoch)
			case e.Epoch != nil:
				told += fmt.Sprint(" epoch ", e.Epoch.Epoch)
			case e.Warning != "" || e.Checkpoint != nil && e.Checkpoint.Error != "":
				t.Errorf("%+v", e)
			}
		}})
		if want := " epoch 1 evaluation 1 epoch 2 evaluation 2 epoch 3 evaluation 3 epoch 4 evaluation 4"; told != want {
			t.Errorf("it told of%s, want%s", told, want)
		}
		for _, m := range manifests(t, dir) {
			if m.Score == nil {
				continue // within an epoch
			}
			parts := 3
			if relayed || m.Epochs == 1 || m.Epochs == 3 {
				parts = 1
			}
			if len(m.Parts) != parts {
				t.Errorf("the checkpoint behind epoch %d has %d parts, want %d", m.Epochs, len(m.Parts), parts)
			}
			r, err := ExportCheckpoint(timeout(t), numberedPlace(dir, m.Number), NodeConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := r.Test[0].Value, figures[m.Epochs]; math.Abs(got-want) > 1e-9*want {
				t.Errorf("the evaluation behind epoch %d is %v, that of its checkpoint %v", m.Epochs, want, got)
			}
			delete(figures, m.Epochs)
		}
		for epoch, x := range figures {
			if best := slices.Min(all[:epoch]); x == best {
				t.Errorf("there is no checkpoint of epoch %d, the best of %v", epoch, all)
			}
		}
	}
}

// A meanwhile is a task that does something while the first evaluation takes place beside training.
type meanwhile struct {
	task.Settings
	began chan struct{}         // closed when that has begun
	do    func(context.Context) // the evaluation waits for it
	fails error                 // of the last node, once that has begun
}

// MarshalJSON has the settings as a run writes them.
func (m *meanwhile) MarshalJSON() ([]byte, error) { return json.Marshal(m.Settings) }

func (m *meanwhile) Load(s task.Setup) (task.Task, error) {
	t, err := m.Settings.Load(s)
	return meanwhileTask{t, t.(train.Importer), m}, err
}

type meanwhileTask struct {
	task.Task
	train.Importer
	m *meanwhile
}

func (t meanwhileTask) Train(ctx context.Context, env train.Env, o train.Options, seen *atomic.Int64) (*train.Report, error) {
	beside := env.Beside
	env.Beside = func(ctx context.Context, s *train.State, evaluate train.Evaluator) (func(context.Context) (*train.State, error), error) {
		if s.Epochs > 1 {
			return beside(ctx, s, evaluate)
		}
		wait, err := beside(ctx, s, func(ctx context.Context, ws []godwit.Worker) (*train.State, error) {
			close(t.m.began)
			t.m.do(ctx)
			return evaluate(ctx, ws)
		})
		if env.Node == env.Nodes-1 && t.m.fails != nil && err == nil {
			<-t.m.began
			err = t.m.fails
		}
		return wait, err
	}
	return t.Task.Train(ctx, env, o, seen)
}

// A run that is stopped while an evaluation takes place ends with it, at all nodes.
func TestARunIsStoppedDuringAnEvaluationBesideTraining(t *testing.T) {
	stop := make(chan struct{})
	spec := tiny(3)
	spec.Options, spec.Untrained = train.Options{Epochs: 50, EvalEvery: 1}, false
	spec.Task = &meanwhile{Settings: spec.Task, began: make(chan struct{}), do: func(context.Context) { close(stop) }}
	var evaluated []int
	r, err := Local(timeout(t), "r", spec, NodeConfig{Stop: stop, beside: func(int) bool { return true }, Progress: func(e Event) {
		if e.Evaluation != nil {
			evaluated = append(evaluated, e.Evaluation.Epoch)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted() || !slices.Equal(evaluated[:1], []int{1}) || evaluated[len(evaluated)-1] != r.Epochs {
		t.Errorf("the run ended with %+v, after evaluations of epochs %v", r, evaluated)
	}
}

// A node that fails while an evaluation takes place ends the run and the evaluation.
func TestANodeFailsDuringAnEvaluationBesideTraining(t *testing.T) {
	spec := tiny(3)
	spec.Options = train.Options{Epochs: 50, EvalEvery: 1}
	m, ended := &meanwhile{Settings: spec.Task, began: make(chan struct{}), fails: errors.New("no disk")}, false
	m.do = func(ctx context.Context) { <-ctx.Done(); ended = true }
	spec.Task = m
	_, err := Local(timeout(t), "r", spec, NodeConfig{beside: func(int) bool { return true }})
	if err == nil || !strings.Contains(err.Error(), m.fails.Error()) || !ended {
		t.Errorf("the run ended with %v; that the evaluation ended is %v", err, ended)
	}
}

// Without a place for checkpoints, too.
func TestEvaluationsBesideTrainingNeedNoCheckpoints(t *testing.T) {
	spec := tiny(1)
	spec.Options.EvalEvery = 1
	var figures [2][]string
	for i, beside := range []bool{false, true} {
		_, err := Local(timeout(t), "r", spec, NodeConfig{beside: func(int) bool { return beside }, Progress: func(e Event) {
			if e.Evaluation != nil {
				figures[i] = append(figures[i], fmt.Sprint(e.Evaluation.Epoch, e.Evaluation.Metrics))
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(figures[0]) != fmt.Sprint(figures[1]) || len(figures[0]) < 3 {
		t.Errorf("the figures are %v, want %v", figures[1], figures[0])
	}
}
