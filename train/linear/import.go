package linear

import (
	"context"
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/buffer"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// Import implements [train.Importer]: weights and factors are found by the numbers of
// features. The models must have factors of one length, and both have a bias or none.
func (m *model) Import(src export.Source) ([]train.Rows, error) {
	rows, err := m.imported(src)
	if err != nil {
		return nil, fmt.Errorf("linear: the trained model does not fit: %w", err)
	}
	return rows, nil
}

func (m *model) imported(src export.Source) ([]train.Rows, error) {
	var d export.Model
	m.describe(&d)
	if err := tables.Same(src, "linear", d.Model, d.Dim); err != nil {
		return nil, err
	}
	if bias := src.Describe().File(BiasFile) != nil; bias != m.bias {
		return nil, fmt.Errorf("bias is %v of it, and %v is wanted", bias, m.bias)
	}
	if d := src.Describe(); len(d.Classes) != len(m.data.Train.Classes) && len(d.Classes) > 0 {
		return nil, fmt.Errorf("it has %d classes, and %d are wanted", len(d.Classes), len(m.data.Train.Classes))
	}
	// What Export made of values, in the units of these data.
	weight := func(x float32) float32 { return float32(float64(x) / m.scale) }
	root := math.Sqrt(m.scale)
	files := map[string]struct {
		name string
		cols int
		turn func(x float32) float32
	}{
		WeightTable: {WeightFile, m.outputs(), weight},
		BiasTable:   {BiasFile, m.outputs(), m.unit},
		FactorTable: {FactorFile, m.factorDim(), func(x float32) float32 { return float32(float64(x) / root) }},
	}
	var all []train.Rows
	for _, t := range m.tables {
		f, ok := files[t.Name]
		if !ok { // gradients of blocks
			all = append(all, nil)
			continue
		}
		v, err := tables.ArrayOf(src, f.name, f.cols)
		if err != nil {
			return nil, err
		}
		all = append(all, func(row uint64, dst []float32) bool {
			if row >= uint64(v.Rows) {
				return false
			}
			n := copy(dst, v.Row(int(row)))
			for i, x := range dst[:n] {
				dst[i] = f.turn(x)
			}
			clear(dst[n:]) // no pass has changed the weights of blocks
			return true
		})
	}
	return all, nil
}

// Outputs is how many floats Predict writes of an example.
func (m *model) Outputs() int { return m.outputs() }

// Predict writes what the model says of a set's examples into dst, one after the other: of two
// classes the probability of the second, of several the probability of each, or the value.
func (m *model) Predict(ctx context.Context, w godwit.Worker, set *libsvm.Set, dst []float32) error {
	if set.Width > m.data.Train.Width {
		return fmt.Errorf("linear: features up to %d for weights up to %d", set.Width-1, m.data.Train.Width-1)
	}
	k, err := m.keys(w.Model())
	if err != nil {
		return err
	}
	ev := &evaluator{gatherer: newGatherer(m, k, set), w: w}
	for from := 0; from < set.Len(); from += chunk {
		if err := ev.pull(ctx, from, min(from+chunk, set.Len())); err != nil {
			return err
		}
		ev.forward(&ev.batch, ev.vals, func(_ int, labels, margins []float32) {
			n := m.outputs()
			for i := range labels {
				m.predict(margins[i*n : (i+1)*n])
			}
			dst = dst[copy(dst, margins):]
		})
	}
	return nil
}

// pull reads what the examples from … to-1 need.
func (ev *evaluator) pull(ctx context.Context, from, to int) error {
	ev.list = ev.list[:0]
	for e := from; e < to; e++ {
		ev.list = append(ev.list, int32(e))
	}
	ev.ks = ev.gather(&ev.batch, ev.ks[:0], ev.list)
	ev.vals = buffer.Sized(ev.vals, ev.floats(&ev.batch))
	return ev.w.Pull(ctx, ev.ks, ev.vals)
}

// Reload returns a task of a model that is trained already, for a set to evaluate it
// on, whose features are below width. It is not to be trained. The set's classes are those of
// the model.
func Reload(cfg Config, width int, test *libsvm.Set) (*Task, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	none := &libsvm.Set{Width: width, Classes: test.Classes}
	m, err := checkedModel(&libsvm.Splits{Train: none, Valid: none, Test: test}, cfg.Bias, cfg.Factors, 0)
	if err != nil {
		return nil, err
	}
	return taskOf(cfg, m), nil
}
