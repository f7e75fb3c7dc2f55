package task

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/ratings"
	"github.com/godwit-ps/godwit/internal/plural"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/mf"
)

// Import implements [train.Importer].
func (t *matrixTask) Import(src export.Source) ([]train.Rows, error) { return t.mf.Import(src) }

// Reload implements [Reusable]: the matrix has the model's rows and columns and the cells
// of the file.
func (s *MF) Reload(src export.Source, u Use, seed uint64) (Reloaded, error) {
	m := &ratings.Set{}
	var err error
	if m.RowNames, m.ColNames, err = mf.Names(src); err != nil {
		return nil, err
	}
	m.Rows, m.Cols = len(m.RowNames), len(m.ColNames)
	names := ratings.NewNames(m.RowNames, m.ColNames)
	var unknown int
	if u.Test != "" {
		if m.Test, unknown, err = ratings.LoadCells(u.Test, names); err != nil {
			return nil, err
		}
		if len(m.Test) == 0 {
			return nil, errNoTest(u.Test, "cell of its rows and columns")
		}
	}
	cfg := s.Config
	cfg.Seed = seed
	t, err := mf.Reload(cfg, m)
	if err != nil {
		return nil, err
	}
	warnings := left(unknown, "cells", "they are in a row or a column that the model does not have")
	return &matrixModel{matrixTask{Trained[mf.Batch]{Task: t}, t, m}, names, u.Top, warnings}, nil
}

// A matrixModel is a trained model of the task "mf".
type matrixModel struct {
	matrixTask
	names    *ratings.Names
	top      int
	warnings []string
}

// Summary implements [Reloaded].
func (m *matrixModel) Summary() string { return plural.Of(len(m.matrix.Test), "cell") }

// Warnings implements [Reloaded].
func (m *matrixModel) Warnings() []string { return m.warnings }

// A cell is an answer: the model's value of a cell.
type cell struct {
	Row    string  `json:"row"`
	Column string  `json:"column"`
	Value  float32 `json:"value"`
}

// Text implements [Answer].
func (c cell) Text() []string { return []string{fmt.Sprintf("%s\t%s\t%.6g", c.Row, c.Column, c.Value)} }

// bests are the cells with the largest values of a row or of a column, the largest first.
type bests struct {
	Cells []cell `json:"cells"`
}

// Text implements [Answer].
func (b bests) Text() (texts []string) {
	for _, c := range b.Cells {
		texts = append(texts, c.Text()...)
	}
	return texts
}

// Answer implements [Reloaded]: cells get their values; where row or column is "?", those
// with the largest values are found.
func (m *matrixModel) Answer(ctx context.Context, w godwit.Worker, lines [][]byte) ([]Answer, error) {
	return answerEach(lines, func(line []byte) (Answer, error) {
		r, c, err := ratings.Fields(line)
		if err != nil {
			return nil, err
		}
		return m.answer(ctx, w, string(r), string(c))
	})
}

func (m *matrixModel) answer(ctx context.Context, w godwit.Worker, row, col string) (Answer, error) {
	if row == asked && col == asked {
		return nil, fmt.Errorf("both row and column are %q, ask for one of them", asked)
	}
	r, rok := m.names.Row(row)
	c, cok := m.names.Col(col)
	switch {
	case !rok && row != asked:
		return Unknown{fmt.Sprintf("%q is none of the model's rows", row)}, nil
	case !cok && col != asked:
		return Unknown{fmt.Sprintf("%q is none of the model's columns", col)}, nil
	case rok && cok:
		cells, err := m.values(ctx, w, []ratings.Rating{{Row: r, Col: c}})
		if err != nil {
			return nil, err
		}
		return cells[0], nil
	case rok:
		return m.best(ctx, w, m.matrix.Cols, func(i uint32) ratings.Rating { return ratings.Rating{Row: r, Col: i} })
	}
	return m.best(ctx, w, m.matrix.Rows, func(i uint32) ratings.Rating { return ratings.Rating{Row: i, Col: c} })
}

// values returns the model's values of cells.
func (m *matrixModel) values(ctx context.Context, w godwit.Worker, at []ratings.Rating) ([]cell, error) {
	vals := make([]float32, len(at))
	if err := m.mf.Predict(ctx, w, at, vals); err != nil {
		return nil, err
	}
	cells := make([]cell, len(at))
	for i, x := range at {
		cells[i] = cell{m.matrix.RowName(int(x.Row)), m.matrix.ColName(int(x.Col)), vals[i]}
	}
	return cells, nil
}

// best returns the largest of n cells.
func (m *matrixModel) best(ctx context.Context, w godwit.Worker, n int, at func(i uint32) ratings.Rating) (Answer, error) {
	const block = 1 << 16
	b := bests{[]cell{}}
	for from := 0; from < n; from += block {
		var some []ratings.Rating
		for i := from; i < min(from+block, n); i++ {
			some = append(some, at(uint32(i)))
		}
		cells, err := m.values(ctx, w, some)
		if err != nil {
			return nil, err
		}
		b.Cells = append(b.Cells, slices.DeleteFunc(cells, func(c cell) bool { return c.Value-c.Value != 0 })...)
		slices.SortStableFunc(b.Cells, func(x, y cell) int { return cmp.Compare(y.Value, x.Value) })
		b.Cells = slices.Clone(b.Cells[:min(m.top, len(b.Cells))])
	}
	return b, nil
}
