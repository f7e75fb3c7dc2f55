package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/fingerprint"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

// The tables, by their index. Rows of the two layers end with their bias.
const (
	embeddings = iota
	hiddenLayer
	outputLayer
)

// A loaded is what a job sees: the model with what describes it.
type loaded struct {
	task.Trained[batch]
	m *model
}

func (l *loaded) Unit() (string, int64)     { return "impressions", 1 }
func (l *loaded) Samplers() []sampling.Spec { return nil }

func (l *loaded) Summary() string {
	return fmt.Sprintf("%d impressions of %d fields, every tenth to validate, another to test", len(l.m.data.clicked), l.m.data.fields)
}

// Data stands for the data: nodes that have others are refused.
func (l *loaded) Data() string {
	var h fingerprint.Hash
	h.Number(l.m.data.fields)
	for _, r := range l.m.data.rows {
		h.ID(r)
	}
	for _, c := range l.m.data.clicked {
		if c {
			h.Number(1)
		} else {
			h.Number(0)
		}
	}
	return h.String()
}

// Tables bring their rules and filters as values, so these may be types of one's own.
func (l *loaded) Tables() []godwit.Table {
	m, rule := l.m, optim.AdaGrad{LR: l.m.LR}
	scale := float32(1 / math.Sqrt(float64(m.in)))
	return []godwit.Table{
		{Name: "embeddings", Rows: 1 << m.Bits, Dim: m.Dim, Rule: rule, Init: godwit.Normal{Std: 0.05}},
		{Name: "hidden", Rows: uint64(m.Hidden), Dim: m.in + 1, Rule: rule, Init: godwit.Uniform{Lo: -scale, Hi: scale}},
		{Name: "output", Rows: 1, Dim: m.Hidden + 1, Rule: rule, Init: godwit.Uniform{Lo: -0.3, Hi: 0.3}},
	}
}

// Test evaluates the model on the impressions to test, or by a part of them.
func (l *loaded) Test(ctx context.Context, env *train.Env, name string, part bool) ([]train.Metric, error) {
	is := l.m.data.split(2)
	if part {
		is = train.EvenlySpaced(is, 1000)
	}
	return l.m.evaluateOn(ctx, env, name, "", is)
}

// Export writes a NumPy array a table.
func (l *loaded) Export(ctx context.Context, w godwit.Worker, s *export.Set) error {
	s.Model.Model, s.Model.Dim = "embeddings with a hidden layer", l.m.Dim
	s.Model.Features = &export.Features{Bits: l.m.Bits, Hash: "the low bits of FNV-1a (64) of field=category, fields counted from 0"}
	s.Model.Score = "p(click) = 1/(1+np.exp(-output[0] @ np.append(np.maximum(hidden @ np.append(embeddings[rows].ravel(), 1), 0), 1)))"
	return errors.Join(
		task.ExportTable(ctx, w, s, embeddings, "the embedding of the categories with this hash"),
		task.ExportTable(ctx, w, s, hiddenLayer, "the weights of the unit, and its bias"),
		task.ExportTable(ctx, w, s, outputLayer, "the weights of the units, and the bias"),
	)
}
