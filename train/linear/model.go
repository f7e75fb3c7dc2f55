package linear

import (
	"errors"
	"fmt"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// The names of the tables.
const (
	WeightTable   = "weight"
	BiasTable     = "bias"
	FactorTable   = "factor"
	GradientTable = "gradient"
)

// A model is what the two tasks share: tables, and the data that they hold
// weights for. It is immutable.
type model struct {
	data   *libsvm.Splits
	tables []godwit.Table
	target
	bias    bool
	factors int // floats of a factor, of each output
	// dim is the floats of a row of the weights and of the bias, whose first ones
	// are the weights, one for each output.
	dim int
	// used are the features that occur in training, ascending: no others have
	// weights other than those that they began with.
	used   []uint32
	counts []int32 // how often each does
}

// maxWidth bounds the features: the number of one has 32 bits.
const maxWidth = libsvm.MaxFeature + 1

// newModel checks the data, which are to be trained. A row has more floats than outputs if
// it has extra ones.
func newModel(data *libsvm.Splits, bias bool, factors, extra int) (*model, error) {
	m, err := checkedModel(data, bias, factors, extra)
	if err != nil {
		return nil, err
	}
	if err := checkTrain(data.Train); err != nil {
		return nil, err
	}
	m.target = targetOf(data.Train, bias)
	m.used, m.counts = data.Train.Used()
	return m, nil
}

// checkedModel checks the data, which may lack examples to train.
func checkedModel(data *libsvm.Splits, bias bool, factors, extra int) (*model, error) {
	for _, x := range []struct {
		name string
		set  *libsvm.Set
	}{{"train", data.Train}, {"valid", data.Valid}, {"test", data.Test}} {
		if err := x.set.Check(); err != nil {
			return nil, fmt.Errorf("linear: %s: %w", x.name, err)
		}
		if x.set.Len() > 0 && !slices.Equal(x.set.Classes, data.Train.Classes) {
			return nil, fmt.Errorf("linear: %s has the classes %q, train %q: give all splits the same", x.name, x.set.Classes, data.Train.Classes)
		}
		if x.set.Width > data.Train.Width {
			return nil, fmt.Errorf("linear: %s has features up to %d, train up to %d: give all splits the same width", x.name, x.set.Width-1, data.Train.Width-1)
		}
	}
	if w := data.Train.Width; uint64(w) > maxWidth {
		return nil, fmt.Errorf("linear: features up to %d, and no more than %d can have weights: hash them", w-1, uint32(maxWidth))
	}
	m := &model{data: data, bias: bias, factors: factors, target: target{classes: len(data.Train.Classes), scale: 1}}
	m.dim = m.outputs() + extra
	if m.factorDim() > maxFactorDim {
		return nil, fmt.Errorf("linear: factors of %d floats for each of %d classes are more than %d floats a feature: have shorter ones, or none", factors, m.outputs(), maxFactorDim)
	}
	return m, nil
}

// maxFactorDim bounds the floats of a feature's factors.
const maxFactorDim = 1 << 15

// factorDim is the floats of a row of factors: one factor for each output.
func (m *model) factorDim() int { return m.factors * m.outputs() }

func checkTrain(s *libsvm.Set) error {
	switch {
	case s.Len() == 0:
		return errors.New("linear: there are no examples to train")
	case !slices.ContainsFunc(s.Labels, func(y float32) bool { return y != s.Labels[0] }):
		return fmt.Errorf("linear: all %d examples to train have the same label: there is nothing to tell apart", s.Len())
	case len(s.Features) == 0:
		return errors.New("linear: the examples to train have no features")
	}
	return nil
}

// Tables describes the tables that the task trains, for [godwit.NewModel]. The
// model may have other tables beside.
func (m *model) Tables() []godwit.Table { return append([]godwit.Table(nil), m.tables...) }

// fingerprint names the data.
func (m *model) fingerprint() string {
	return fmt.Sprintf("%d features, %d/%d/%d examples (%s)", m.data.Train.Width, m.data.Train.Len(), m.data.Valid.Len(), m.data.Test.Len(), m.data.Fingerprint())
}

// keys are the tables' first keys.
type keys struct{ weight, bias, factor, gradient godwit.Key }

// keys finds the task's tables in a model.
func (m *model) keys(in *godwit.Model) (keys, error) {
	var k keys
	at := map[string]*godwit.Key{WeightTable: &k.weight, BiasTable: &k.bias, FactorTable: &k.factor, GradientTable: &k.gradient}
	first, err := tables.Find(in, m.tables)
	if err != nil {
		return keys{}, fmt.Errorf("linear: %w", err)
	}
	for i, t := range m.tables {
		*at[t.Name] = first[i]
	}
	return k, nil
}
