package linear

import (
	"context"
	"fmt"

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

// Export writes the model as NumPy arrays of float32: a row for each feature with
// its weight, one row with the bias, and a row for each feature with its factor. Parts
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
	width := m.data.Train.Width
	files := []tables.Array{{File: WeightFile, Layout: "the weight of the feature", First: k.weight, Rows: width, Dim: m.dim, Cols: 1}}
	if m.bias {
		files = append(files, tables.Array{File: BiasFile, Layout: "the bias", First: k.bias, Rows: 1, Dim: m.dim, Cols: 1})
	}
	if m.factors > 0 {
		files = append(files, tables.Array{File: FactorFile, Layout: "the factor of the feature", First: k.factor, Rows: width, Dim: m.factors, Cols: m.factors})
	}
	for _, a := range files {
		if err := a.Write(ctx, w, s); err != nil {
			return fmt.Errorf("linear: export: %w", err)
		}
	}
	return nil
}

// describe says what a margin is made of.
func (m *model) describe(d *export.Model) {
	d.Model = "logistic regression"
	margin := "x @ weights[:, 0]"
	if m.bias {
		margin += " + bias[0, 0]"
	}
	if m.factors > 0 {
		d.Model, d.Dim = "factorization machine", m.factors
		margin += " + (((x @ factors)**2).sum() - (x**2 @ factors**2).sum())/2"
	}
	d.Score = "p(positive | x) = 1/(1 + np.exp(-m)), where m = " + margin
}
