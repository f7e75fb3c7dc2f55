package task

import (
	"context"
	"fmt"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/internal/plural"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/linear"
)

// Import implements [train.Importer].
func (t *examplesTask[D]) Import(src export.Source) ([]train.Rows, error) {
	bits := 0
	if f := src.Describe().Features; f != nil {
		bits = f.Bits
	}
	if bits != t.bits {
		return nil, fmt.Errorf("linear: the trained model does not fit: its features are hashed to %d bits, and %d are wanted (0: they are not hashed)", bits, t.bits)
	}
	return t.linear.Import(src)
}

// Reload implements [Reusable]: the features are those that the model has weights for.
func (s *Linear) Reload(src export.Source, u Use, seed uint64) (Reloaded, error) {
	width, bits, err := featuresOf(src)
	if err != nil {
		return nil, err
	}
	m := &examplesModel{width: width, classes: classesOf(src)}
	o := libsvm.Options{HashBits: bits, Target: libsvm.ToClasses, Classes: m.classes}
	if len(m.classes) == 0 {
		o.Target = libsvm.ToValues
	}
	if m.parser, err = libsvm.NewParser(o); err != nil {
		return nil, err
	}
	test, left := &libsvm.Set{Width: width, Classes: m.classes}, 0
	if u.Test != "" {
		if test, err = libsvm.Load(u.Test, o); err != nil {
			return nil, err
		}
		left = test.Narrow(width)
	}
	cfg := s.Config
	cfg.Seed = seed
	t, err := linear.Reload(cfg, width, test)
	if err != nil {
		return nil, err
	}
	none := &libsvm.Set{Width: width, Classes: m.classes}
	data := &libsvm.Splits{Train: none, Valid: none, Test: test}
	m.examplesTask = examplesTask[linear.Batch]{Trained[linear.Batch]{Task: t}, t, data, 0, bits}
	m.left = left
	return m, nil
}

// classesOf returns the labels of a model's classes; none if it predicts values.
func classesOf(src export.Source) []string {
	d := src.Describe()
	if f := d.File(linear.WeightFile); len(d.Classes) == 0 && f != nil && !strings.HasPrefix(d.Score, linear.ValueScore) {
		return []string{"-1", "1"} // generated ones were not named once
	}
	return d.Classes
}

// featuresOf returns how many features a model has weights for, and to how many bits
// their names are hashed; 0 if they have numbers.
func featuresOf(src export.Source) (width, bits int, err error) {
	d := src.Describe()
	f := d.File(linear.WeightFile)
	if f == nil || len(f.Shape) != 2 || f.Shape[0] < 1 || f.Shape[0] > libsvm.MaxFeature+1 {
		return 0, 0, fmt.Errorf("linear: the model has no %s with a row for each feature", linear.WeightFile)
	}
	if d.Features == nil {
		return f.Shape[0], 0, nil
	}
	bits = d.Features.Bits
	if bits < 1 || bits > libsvm.MaxHashBits || f.Shape[0] != 1<<bits {
		return 0, 0, fmt.Errorf("linear: the model hashes features to %d bits, and has weights for %d", bits, f.Shape[0])
	}
	return f.Shape[0], bits, nil
}

// An examplesModel is a trained model of the task "linear".
type examplesModel struct {
	examplesTask[linear.Batch]
	parser  *libsvm.Parser
	classes []string // none: it predicts values
	width   int
	left    int // values left out of the examples to test
}

// Summary implements [Reloaded].
func (m *examplesModel) Summary() string { return plural.Of(m.data.Test.Len(), "example") }

// Warnings implements [Reloaded].
func (m *examplesModel) Warnings() []string {
	return append(m.data.Warnings(), left(m.left, "values", "the model has no weights for their features")...)
}

// Test implements [Reloaded]. How sparse the model is does not depend on the examples.
func (m *examplesModel) Test(ctx context.Context, env *train.Env, name string, part bool) ([]train.Metric, error) {
	ms, err := m.examplesTask.Test(ctx, env, name, part)
	return without(ms, "sparsity"), err
}

func without(ms []train.Metric, name string) (rest []train.Metric) {
	for _, x := range ms {
		if x.Name != name {
			rest = append(rest, x)
		}
	}
	return rest
}

// A class is an answer: to which class an example belongs.
type class struct {
	Label string `json:"label"` // as in the data of training
	// Probability is that of the positive label, where there are two, else that of Label.
	Probability float64 `json:"probability"`
	// Probabilities are those of all labels, where there are more than two.
	Probabilities map[string]float64 `json:"probabilities,omitempty"`
	unknown
}

// Text implements [Answer].
func (c class) Text() []string { return []string{fmt.Sprintf("%s\t%.6g", c.Label, c.Probability)} }

// A predicted is an answer: the value of an example.
type predicted struct {
	Value float64 `json:"value"`
	unknown
}

// Text implements [Answer].
func (p predicted) Text() []string { return []string{fmt.Sprintf("%.6g", p.Value)} }

// unknown is how many features of an example the model has no weights for.
type unknown struct {
	Unknown int `json:"unknown_features,omitempty"`
}

// Answer implements [Reloaded].
func (m *examplesModel) Answer(ctx context.Context, w godwit.Worker, lines [][]byte) ([]Answer, error) {
	set := &libsvm.Set{}
	left := make([]unknown, len(lines))
	var failed error
	for i, line := range lines {
		fs, xs, err := m.parser.Features(line)
		if err != nil {
			failed, lines = &LineError{i, err}, lines[:i]
			break
		}
		n := len(fs)
		for n > 0 && int(fs[n-1]) >= m.width {
			n--
		}
		left[i].Unknown = len(fs) - n
		set.Append(0, fs[:n], xs[:n])
	}
	n := m.examplesTask.linear.Outputs()
	said := make([]float32, set.Len()*n)
	if err := m.examplesTask.linear.Predict(ctx, w, set, said); err != nil {
		return nil, err
	}
	answers := make([]Answer, len(lines))
	for i := range answers {
		answers[i] = m.answer(said[i*n:(i+1)*n], left[i])
	}
	return answers, failed
}

// answer is what the model says of an example.
func (m *examplesModel) answer(said []float32, left unknown) Answer {
	switch len(m.classes) {
	case 0:
		return predicted{float64(said[0]), left}
	case 2:
		c := class{m.classes[0], float64(said[0]), nil, left}
		if said[0] > 0.5 {
			c.Label = m.classes[1]
		}
		return c
	}
	best := 0
	all := make(map[string]float64, len(said))
	for i, p := range said {
		all[m.classes[i]] = float64(p)
		if p > said[best] {
			best = i
		}
	}
	return class{m.classes[best], float64(said[best]), all, left}
}
