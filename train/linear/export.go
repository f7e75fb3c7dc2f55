package linear

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// The files that Export writes.
const (
	WeightFile = "weights.npy"
	BiasFile   = "bias.npy"
	FactorFile = "factors.npy"
)

// Export writes the model into dir, which it makes where needed, as NumPy arrays
// of float32: a row for each feature with its weight, one row with the bias, and
// a row for each feature with its factor. What the model has not is not
// written.
//
// Each file appears complete or not at all. One node of the run calls it, with
// a worker that nothing else uses meanwhile, after [train.Run].
func (m *model) Export(ctx context.Context, w godwit.Worker, dir string) error {
	k, err := m.keys(w.Model())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("linear: export: %w", err)
	}
	file := func(name string, first godwit.Key, rows, dim, cols int) tables.Array {
		return tables.Array{Path: filepath.Join(dir, name), First: first, Rows: rows, Dim: dim, Cols: cols}
	}
	files := []tables.Array{file(WeightFile, k.weight, m.data.Train.Width, m.dim, 1)}
	if m.bias {
		files = append(files, file(BiasFile, k.bias, 1, m.dim, 1))
	}
	if m.factors > 0 {
		files = append(files, file(FactorFile, k.factor, m.data.Train.Width, m.factors, m.factors))
	}
	for _, a := range files {
		if err := a.Write(ctx, w); err != nil {
			return fmt.Errorf("linear: export: %w", err)
		}
	}
	return nil
}
