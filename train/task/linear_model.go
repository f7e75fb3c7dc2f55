package task

import (
	"context"
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/libsvm"
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
	m := &examplesModel{width: width, classes: [2]string{"-1", "1"}}
	if c := src.Describe().Classes; len(c) == 2 {
		m.classes = [2]string(c)
	}
	o := libsvm.Options{HashBits: bits, Classes: m.classes}
	if m.parser, err = libsvm.NewParser(o); err != nil {
		return nil, err
	}
	test, left := &libsvm.Set{Width: width}, 0
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
	data := &libsvm.Splits{Train: &libsvm.Set{Width: width}, Valid: &libsvm.Set{Width: width}, Test: test}
	m.examplesTask = examplesTask[linear.Batch]{Trained[linear.Batch]{Task: t}, t, data, 0, bits}
	m.left = left
	return m, nil
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
	classes [2]string // negative, positive
	width   int
	left    int // values left out of the examples to test
}

// Summary implements [Reloaded].
func (m *examplesModel) Summary() string { return fmt.Sprintf("%d examples", m.data.Test.Len()) }

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
	Label       string  `json:"label"`       // as in the data of training
	Probability float64 `json:"probability"` // of the positive label
	// Unknown is how many of its features the model has no weights for.
	Unknown int `json:"unknown_features,omitempty"`
}

// Text implements [Answer].
func (c class) Text() []string { return []string{fmt.Sprintf("%s\t%.6g", c.Label, c.Probability)} }

// Answer implements [Reloaded].
func (m *examplesModel) Answer(ctx context.Context, w godwit.Worker, lines [][]byte) ([]Answer, error) {
	set := &libsvm.Set{}
	unknown := make([]int, len(lines))
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
		unknown[i] = len(fs) - n
		set.Append(false, fs[:n], xs[:n])
	}
	margins := make([]float32, set.Len())
	if err := m.examplesTask.linear.Margins(ctx, w, set, margins); err != nil {
		return nil, err
	}
	answers := make([]Answer, len(lines))
	for i, x := range margins {
		c := class{m.classes[0], 1 / (1 + math.Exp(-float64(x))), unknown[i]}
		if x > 0 {
			c.Label = m.classes[1]
		}
		answers[i] = c
	}
	return answers, failed
}
