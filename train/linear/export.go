package linear

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/npy"
)

// The files that Export writes.
const (
	WeightFile = "weights.npy"
	BiasFile   = "bias.npy"
	FactorFile = "factors.npy"
)

// exportRows bounds the rows that an export pulls at once.
const exportRows = 1 << 14

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
	files := []array{{WeightFile, k.weight, m.data.Train.Width, m.dim, 1}}
	if m.bias {
		files = append(files, array{BiasFile, k.bias, 1, m.dim, 1})
	}
	if m.factors > 0 {
		files = append(files, array{FactorFile, k.factor, m.data.Train.Width, m.factors, m.factors})
	}
	for _, a := range files {
		if err := a.write(ctx, w, dir); err != nil {
			return fmt.Errorf("linear: export: %w", err)
		}
	}
	return nil
}

// An array is a file of the first keep floats of rows of dim floats.
type array struct {
	name            string
	first           godwit.Key
	rows, dim, keep int
}

func (a *array) write(ctx context.Context, w godwit.Worker, dir string) (err error) {
	out, err := npy.Create(filepath.Join(dir, a.name), a.rows, a.keep)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	var ks []godwit.Key
	var vals []float32
	for from := 0; from < a.rows; from += exportRows {
		n := min(exportRows, a.rows-from)
		ks = ks[:0]
		for i := range n {
			ks = append(ks, a.first+godwit.Key(from+i))
		}
		vals = sized(vals, n*a.dim)
		if err := w.Pull(ctx, ks, vals); err != nil {
			return err
		}
		for i := range n {
			copy(vals[i*a.keep:(i+1)*a.keep], vals[i*a.dim:])
		}
		if err := out.WriteRows(vals[:n*a.keep]); err != nil {
			return err
		}
	}
	return nil
}
