package linear

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
)

// A Task trains by stochastic gradients. It implements [train.Task]. It is
// immutable and may be used by any number of goroutines.
type Task struct {
	*model
	cfg Config
}

// New checks the settings and the data, which must not change afterwards.
func New(cfg Config, data *libsvm.Splits) (*Task, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	m, err := newModel(data, cfg.Bias, cfg.Factors, 0)
	if err != nil {
		return nil, err
	}
	return taskOf(cfg, m), nil
}

// taskOf gives a model the tables of the settings.
func taskOf(cfg Config, m *model) *Task {
	data := m.data
	n := max(data.Train.Len(), 1)
	weight, bias := cfg.rules(float32(min(cfg.Batch, n)) / float32(n))
	rows := uint64(data.Train.Width)
	m.tables = []godwit.Table{{Name: WeightTable, Rows: rows, Dim: m.dim, Rule: weight}}
	if cfg.Bias {
		m.tables = append(m.tables, godwit.Table{Name: BiasTable, Rows: 1, Dim: m.dim, Rule: bias})
	}
	if cfg.Factors > 0 {
		m.tables = append(m.tables, godwit.Table{
			Name: FactorTable, Rows: rows, Dim: m.factorDim(), Rule: optim.AdaGrad{LR: cfg.FactorLR}, Init: godwit.Normal{Std: cfg.FactorStd},
		})
	}
	return &Task{m, cfg}
}

// Fingerprint names settings and data.
func (t *Task) Fingerprint() string { return fmt.Sprintf("linear %+v on %s", t.cfg, t.fingerprint()) }

// Chunks implements [train.Task].
func (t *Task) Chunks() int { return t.items().Chunks() }

func (t *Task) items() *schedule.Items {
	return schedule.NewItems(t.data.Train.Len(), t.cfg.Batch, t.cfg.Seed)
}

// Trainer returns a worker's trainer.
func (t *Task) Trainer(w godwit.Worker, _ train.Partition) (train.Trainer[Batch], error) {
	k, err := t.keys(w.Model())
	if err != nil {
		return nil, err
	}
	return newTrainer(t, w, k), nil
}

// Evaluate evaluates the model on the validation examples, or on the test examples
// where there are none.
func (t *Task) Evaluate(ctx context.Context, env *train.Env, epoch int) (train.Evaluation, error) {
	return t.evaluate(ctx, env, epoch)
}

// MaxAge is that of a [train.Aged]: with half as much again, eight nodes of small data do not always learn as well as one.
func (t *Task) MaxAge() float64 { return 0.5 }
