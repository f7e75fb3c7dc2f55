package linear

import (
	"context"
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// The files that Export writes.
const (
	WeightFile = "weights.npy"
	BiasFile   = "bias.npy"
	FactorFile = "factors.npy"
)

// ValueScore is what the score of a model that predicts values begins with.
const ValueScore = "value(x) = "

// Export writes the model as NumPy arrays of float32: a row for each feature with
// its weight, one row with the bias, and a row for each feature with its factor; of several classes
// one weight, bias and factor each. Those of values are in the units of the labels. Parts
// that the model does not have are not written.
//
// One node of the run calls it, with a worker that nothing else uses meanwhile, after
// [train.Run].
func (m *model) Export(ctx context.Context, w godwit.Worker, s *export.Set) error {
	k, err := m.keys(w.Model())
	if err != nil {
		return err
	}
	m.describe(&s.Model)
	for _, a := range m.arrays(k) {
		if err := a.Write(ctx, w, s); err != nil {
			return fmt.Errorf("linear: export: %w", err)
		}
	}
	return nil
}

// arrays are the files of a model. Those of values are in the units of the labels.
func (m *model) arrays(k keys) []tables.Array {
	width, n, of := m.data.Train.Width, m.outputs(), ""
	if n > 1 {
		of = " for each class"
	}
	turn := func(by func(x float64) float64) func(dst, row []float32) {
		return func(dst, row []float32) {
			for i := range dst {
				dst[i] = float32(by(float64(row[i])))
			}
		}
	}
	root := math.Sqrt(m.scale) // as factors are multiplied by each other
	all := []tables.Array{{
		File: WeightFile, Layout: "the weight of the feature" + of, First: k.weight, Rows: width, Dim: m.dim, Cols: n,
		Turn: turn(func(x float64) float64 { return x * m.scale }),
	}}
	if m.bias {
		all = append(all, tables.Array{
			File: BiasFile, Layout: "the bias" + of, First: k.bias, Rows: 1, Dim: m.dim, Cols: n,
			Turn: turn(func(x float64) float64 { return x*m.scale + m.center }),
		})
	}
	if m.factors > 0 {
		all = append(all, tables.Array{
			File: FactorFile, Layout: "the factor of the feature" + of, First: k.factor, Rows: width, Dim: m.factorDim(), Cols: m.factorDim(),
			Turn: turn(func(x float64) float64 { return x * root }),
		})
	}
	return all
}

// describe says what a margin is made of.
func (m *model) describe(d *export.Model) {
	n := m.outputs()
	margin := "x @ weights[:, 0]"
	if n > 1 {
		margin = "x @ weights"
	}
	if m.bias && n > 1 {
		margin += " + bias[0]"
	} else if m.bias {
		margin += " + bias[0, 0]"
	}
	switch {
	case m.factors > 0 && n > 1:
		margin += fmt.Sprintf(" + (np.einsum('i,icf->cf', x, v)**2 - np.einsum('i,icf->cf', x**2, v**2)).sum(1)/2, v = factors.reshape(-1, %d, %d)", n, m.factors)
	case m.factors > 0:
		margin += " + (((x @ factors)**2).sum() - (x**2 @ factors**2).sum())/2"
	}
	d.Dim = m.factors
	kind := ""
	switch m.classes {
	case 0:
		d.Model, kind = "linear regression", " for values"
		d.Score = ValueScore + margin
	case 2:
		d.Model = "logistic regression"
		d.Score = "p(positive | x) = 1/(1 + np.exp(-m)), where m = " + margin
	default:
		d.Model, kind = "softmax regression", " for classes"
		d.Score = "p(class | x) = np.exp(m)/np.exp(m).sum(), where m = " + margin
	}
	if m.factors > 0 {
		d.Model = "factorization machine" + kind
	}
}
