package linear

import (
	"errors"
	"fmt"

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
	data    *libsvm.Splits
	tables  []godwit.Table
	bias    bool
	factors int
	// dim is the floats of a row of the weights and of the bias, whose first one
	// is the weight.
	dim int
	// used are the features that occur in training, ascending: no others have
	// weights other than those that they began with.
	used   []uint32
	counts []int32 // how often each does
}

// maxWidth bounds the features: the number of one has 32 bits.
const maxWidth = libsvm.MaxFeature + 1

// newModel checks the data, which are to be trained.
func newModel(data *libsvm.Splits, bias bool, factors, dim int) (*model, error) {
	m, err := checkedModel(data, bias, factors, dim)
	if err != nil {
		return nil, err
	}
	if err := checkTrain(data.Train); err != nil {
		return nil, err
	}
	m.used, m.counts = data.Train.Used()
	return m, nil
}

// checkedModel checks the data, which may lack examples to train.
func checkedModel(data *libsvm.Splits, bias bool, factors, dim int) (*model, error) {
	for _, x := range []struct {
		name string
		set  *libsvm.Set
	}{{"train", data.Train}, {"valid", data.Valid}, {"test", data.Test}} {
		if err := x.set.Check(); err != nil {
			return nil, fmt.Errorf("linear: %s: %w", x.name, err)
		}
		if x.set.Width > data.Train.Width {
			return nil, fmt.Errorf("linear: %s has features up to %d, train up to %d: give all splits the same width", x.name, x.set.Width-1, data.Train.Width-1)
		}
	}
	if w := data.Train.Width; uint64(w) > maxWidth {
		return nil, fmt.Errorf("linear: features up to %d, and no more than %d can have weights: hash them", w-1, uint32(maxWidth))
	}
	return &model{data: data, bias: bias, factors: factors, dim: dim}, nil
}

func checkTrain(s *libsvm.Set) error {
	positive := 0
	for _, y := range s.Labels {
		if y {
			positive++
		}
	}
	switch {
	case s.Len() == 0:
		return errors.New("linear: there are no examples to train")
	case positive == 0 || positive == s.Len():
		return fmt.Errorf("linear: of %d examples to train, %d are positive: both classes are needed", s.Len(), positive)
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
