package task

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/ratings"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/mf"
)

func init() { Register(func() Settings { return DefaultMF() }) }

// MF are the settings of the task "mf", matrix factorization. The seed of its
// Config is set by Load.
type MF struct {
	mf.Config
	// Matrix is what is generated where there are no data.
	Matrix ratings.Spec
	// Held says which cells of the data are held out.
	Held ratings.Options
}

// DefaultMF returns settings that train in seconds on a generated matrix.
func DefaultMF() *MF {
	return &MF{mf.DefaultConfig(), ratings.DefaultSpec(), ratings.Options{Test: 0.1, Seed: 1}}
}

// UntrainedCells bounds the cells that Test uses if it is asked for a part of the data.
const UntrainedCells = 1000

func (s *MF) Name() string { return "mf" }
func (s *MF) Epochs() int  { return 30 }

// Generate implements [Generated].
func (s *MF) Generate(exponent float64, seed uint64) {
	s.Matrix.Exponent, s.Matrix.Seed = exponent, seed
}

// Settled implements [Settled]: of a rate that was left open, but for that of [mf.SGD], whose steps the tables do not make.
func (s *MF) Settled(_, rule string) { settle(&s.LR, rule) }

// Open implements [Settled].
func (s *MF) Open() []string { return open("LR", s.LR) }

// Unused implements [Partial].
func (s *MF) Unused(data string) []Unused {
	u := unusedData(data, []any{&s.Matrix}, []any{&s.Held})
	if divided, err := ratings.Divided(data, s.Held.Split); err == nil && divided {
		u = append(u, Unused{fmt.Sprintf("%s has a file of its own to test on", data), []any{&s.Held.Test}})
	}
	return u
}

// Check tries the settings with the smallest matrix.
func (s *MF) Check() error {
	for _, err := range []error{s.Held.Check(), s.Matrix.Check()} {
		if err != nil {
			return err
		}
	}
	cells := []ratings.Rating{{}}
	_, err := mf.New(s.Config, &ratings.Set{Rows: 1, Cols: 1, Train: cells, Test: cells})
	return err
}

// Load reads a matrix (see [ratings.Load]), or generates one.
func (s *MF) Load(setup Setup) (Task, error) {
	var m *ratings.Set
	var err error
	if setup.Data == "" {
		m, err = ratings.Generate(s.Matrix)
	} else {
		m, err = ratings.Load(setup.Data, s.Held)
	}
	if err != nil {
		return nil, err
	}
	m.Valid = train.EvenlySpaced(m.Valid, setup.MaxEvalItems)
	cfg := s.Config
	cfg.Seed = setup.Seed
	t, err := mf.New(cfg, m)
	if err != nil {
		return nil, err
	}
	return &matrixTask{Trained[mf.Batch]{t, setup.evalWorkers()}, t, m}, nil
}

// A matrixTask is the task "mf" with its matrix.
type matrixTask struct {
	Trained[mf.Batch]
	mf     *mf.Task
	matrix *ratings.Set
}

func (t *matrixTask) Warnings() []string { return t.matrix.Warnings() }
func (t *matrixTask) Unvalidated() bool  { return len(t.matrix.Valid) == 0 }

func (t *matrixTask) Unit() (string, int64) { return "cells", 1 }

func (t *matrixTask) Data() string { return t.matrix.Fingerprint() }

func (t *matrixTask) Summary() string {
	return fmt.Sprintf("%d rows, %d columns, %d cells to train, %d to validate, %d to test",
		t.matrix.Rows, t.matrix.Cols, len(t.matrix.Train), len(t.matrix.Valid), len(t.matrix.Test))
}

// Tables sets Hot: how many cells a row or column has.
func (t *matrixTask) Tables() []godwit.Table {
	rows, cols := t.matrix.Counts()
	tables := t.mf.Tables()
	for i, counts := range [][]int{rows, cols} {
		tables[i].Hot = func(row uint64) float64 { return float64(counts[row]) }
	}
	return tables
}

// Samplers are none.
func (t *matrixTask) Samplers() []sampling.Spec { return nil }

func (t *matrixTask) Test(ctx context.Context, env *train.Env, name string, part bool) ([]train.Metric, error) {
	cells := t.matrix.Test
	if len(cells) == 0 {
		cells = t.matrix.Valid
	}
	if part {
		cells = train.EvenlySpaced(cells, UntrainedCells)
	}
	rmse, err := t.mf.RMSE(ctx, env, name, cells)
	return []train.Metric{{Name: "RMSE", Value: rmse}}, err
}

func (t *matrixTask) Export(ctx context.Context, w godwit.Worker, s *export.Set) error {
	return t.mf.Export(ctx, w, s)
}
