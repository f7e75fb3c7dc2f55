package mf

import (
	"context"
	"errors"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/ratings"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// The names of the tables.
const (
	RowTable    = "row"
	ColumnTable = "column"
)

// A Task trains the factors of a matrix. It implements [train.Task]. It is
// immutable and may be used by any number of goroutines.
type Task struct {
	cfg        Config
	set        *ratings.Set
	rule       godwit.Rule
	mean       float32 // of the cells, where there are biases
	rows, cols []int   // how many cells each has
}

// New checks the settings and the matrix, which must not change afterwards.
func New(cfg Config, s *ratings.Set) (*Task, error) {
	t, err := Reload(cfg, s)
	switch {
	case err != nil:
		return nil, err
	case len(s.Train) == 0:
		return nil, errors.New("mf: the matrix has no cells to train")
	case len(s.Valid)+len(s.Test) == 0:
		return nil, errors.New("mf: the matrix has no cells to evaluate by: hold some out for valid or test")
	}
	return t, nil
}

// Reload is [New] for a model that is trained already: the matrix may lack cells, and
// the task is not to be trained.
func Reload(cfg Config, s *ratings.Set) (*Task, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Settle()
	rule, err := cfg.rule()
	if err != nil {
		return nil, err
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("mf: %w", err)
	}
	t := &Task{cfg: cfg, set: s, rule: rule}
	if cfg.Biased {
		t.mean = s.Mean()
	}
	t.rows, t.cols = s.Counts()
	return t, nil
}

// Tables describes the tables that the task trains, for [godwit.NewModel]. The
// model may have other tables beside. A row is its vector, then its bias.
func (t *Task) Tables() []godwit.Table {
	table := func(name string, rows int) godwit.Table {
		return godwit.Table{Name: name, Rows: uint64(rows), Dim: t.cfg.width(), Rule: t.rule, Init: godwit.Normal{Std: t.cfg.InitStd}}
	}
	return []godwit.Table{table(RowTable, t.set.Rows), table(ColumnTable, t.set.Cols)}
}

// Fingerprint names settings and data.
func (t *Task) Fingerprint() string {
	return fmt.Sprintf("mf %+v on %d rows, %d columns, %d/%d/%d cells (%s)", t.cfg,
		t.set.Rows, t.set.Cols, len(t.set.Train), len(t.set.Valid), len(t.set.Test), t.set.Fingerprint())
}

// Chunks implements [train.Task]. The orders Columns and Blocks divide the rows among the
// workers, and so are the workers' own.
func (t *Task) Chunks() int {
	if t.cfg.Order != Plain {
		return 0
	}
	return t.items().Chunks()
}

func (t *Task) items() *schedule.Items {
	return schedule.NewItems(len(t.set.Train), t.cfg.batch(len(t.set.Train), train.Partition{}), t.cfg.Seed)
}

// Trainer returns a worker's trainer.
func (t *Task) Trainer(w godwit.Worker, part train.Partition) (train.Trainer[Batch], error) {
	k, err := t.keys(w.Model())
	if err != nil {
		return nil, err
	}
	return &trainer{task: t, w: w, lr: t.cfg.LR, load: newLoader(t, k, part)}, nil
}

// Lockstep implements [train.Lockstep]: workers synchronize at the end of each
// part of an epoch of blocks.
func (t *Task) Lockstep() bool { return t.cfg.Order == Blocks }

// Stages implements [train.Staged]: there are as many blocks of columns as parts, and each worker trains one after the other.
func (t *Task) Stages(parts int) int {
	if t.cfg.Order != Blocks {
		return 0
	}
	return parts
}

// Evaluate computes the RMSE of the cells to validate, or to test where there
// are none, and beside it that of equally many cells to train.
func (t *Task) Evaluate(ctx context.Context, env *train.Env, epoch int) (train.Evaluation, error) {
	split, name := t.set.Valid, "valid"
	if len(split) == 0 {
		split, name = t.set.Test, "test"
	}
	ev := train.Evaluation{LowerIsBetter: true}
	for _, x := range []struct {
		name  string
		cells []ratings.Rating
	}{{name, split}, {"train", train.EvenlySpaced(t.set.Train, len(split))}} {
		rmse, err := t.RMSE(ctx, env, fmt.Sprintf("%s after epoch %d", x.name, epoch), x.cells)
		if err != nil {
			return ev, err
		}
		ev.Metrics = append(ev.Metrics, train.Metric{Name: "RMSE", Split: x.name, Value: rmse})
	}
	return ev, nil
}

// keys are the tables' first keys.
type keys struct{ row, column godwit.Key }

func (t *Task) keys(m *godwit.Model) (keys, error) {
	first, err := tables.Find(m, t.Tables())
	if err != nil {
		return keys{}, fmt.Errorf("mf: %w", err)
	}
	return keys{first[0], first[1]}, nil
}

// MaxAge is that of a [train.Aged]. Steps have the same rate whatever others have pushed, so those that were made without each other go too far
// together: with twice as much, eight nodes of small data do not always learn as well as one.
func (t *Task) MaxAge() float64 { return 0.35 }
