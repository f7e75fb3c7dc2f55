package task

import (
	"context"
	"fmt"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/linear"

	"github.com/godwit-ps/godwit/data/setting"
)

func init() { Register(func() Settings { return DefaultLinear() }) }

// The solvers of the task "linear".
const (
	Stochastic = "stochastic" // [linear.Task]
	Blocks     = "blocks"     // [linear.Blocks]
)

// Linear are the settings of the task "linear", sparse linear models and factorization
// machines, of two classes, of several, or of values. The seed of its Config is set by Load.
type Linear struct {
	linear.Config
	// Solver is Stochastic or Blocks.
	Solver string
	// ByBlocks holds the settings of Blocks, but for the penalty and the bias,
	// which are those of Config.
	ByBlocks linear.BlockConfig
	// Examples is what is generated where there are no data.
	Examples libsvm.Spec
	// Target says what the labels of a file are. It is a setting because whole numbers
	// can be either; see [libsvm.Auto].
	Target libsvm.Target
	// HashBits, if not 0, hashes the names of features to so many bits.
	HashBits int
	// Share is what is held out of the examples to train where there are no
	// files for it.
	Share libsvm.Share
	// MinCount leaves out the features that stand in fewer of the examples to
	// train, 1 (none) … libsvm.MaxLeast; see [libsvm.Splits.KeepFrequent]. It is a
	// setting because it changes the model: no measurement during a run can decide
	// whether that is acceptable.
	MinCount int
}

// DefaultLinear returns settings that train in seconds on generated examples.
func DefaultLinear() *Linear {
	return &Linear{
		Config: linear.DefaultConfig(), Solver: Stochastic, ByBlocks: linear.DefaultBlockConfig(),
		Examples: libsvm.DefaultSpec(), Target: libsvm.Auto, Share: libsvm.Share{Valid: 20, Test: 10}, MinCount: 1,
	}
}

// UntrainedExamples bounds the examples that Test uses if it is asked for a part of the
// data.
const UntrainedExamples = 1000

func (s *Linear) Name() string { return "linear" }
func (s *Linear) Epochs() int  { return 10 }

// Generate implements [Generated].
func (s *Linear) Generate(exponent float64, seed uint64) {
	s.Examples.Exponent, s.Examples.Seed = exponent, seed
}

func (s *Linear) Check() error {
	switch {
	case s.Solver != Stochastic && s.Solver != Blocks:
		return fmt.Errorf("linear: no solver %q, there are %s and %s", s.Solver, Stochastic, Blocks)
	case s.Solver == Blocks && s.Factors > 0:
		return fmt.Errorf("linear: the solver %s trains no factors: have none, or the solver %s", Blocks, Stochastic)
	case s.MinCount < 1 || s.MinCount > libsvm.MaxLeast:
		return setting.Bad("task.Linear", "MinCount", s.MinCount, fmt.Sprintf("1 (keep all features) … %d", libsvm.MaxLeast))
	}
	blocks := s.blocks()
	for _, err := range []error{blocks.Check(), s.Config.Check(), s.Examples.Check(), s.options().Check(), s.Share.Check()} {
		if err != nil {
			return err
		}
	}
	return nil
}

// Unused implements [Partial].
func (s *Linear) Unused(data string) []Unused {
	u := unusedData(data, []any{&s.Examples}, []any{&s.HashBits, &s.Target})
	if valid, test, err := libsvm.Divided(data); err == nil {
		if valid {
			u = append(u, Unused{fmt.Sprintf("%s has a file of its own to validate on", data), []any{&s.Share.Valid}})
		}
		if test {
			u = append(u, Unused{fmt.Sprintf("%s has a file of its own to test on", data), []any{&s.Share.Test}})
		}
	}
	if s.Solver == Blocks {
		u = append(u, Unused{fmt.Sprintf("it is for the solver %s", Stochastic), []any{&s.Batch, &s.Rule, &s.LR, &s.Beta}})
	} else {
		u = append(u, Unused{fmt.Sprintf("it is for the solver %s", Blocks), []any{&s.ByBlocks}})
	}
	if s.Rule != linear.FTRL {
		u = append(u, Unused{fmt.Sprintf("only the rule %s has it", linear.FTRL), []any{&s.Beta}})
	}
	if s.Factors == 0 {
		u = append(u, Unused{"a model without --factors has none", []any{&s.FactorLR, &s.FactorL2, &s.FactorStd}})
	}
	return u
}

func (s *Linear) blocks() linear.BlockConfig {
	c := s.ByBlocks
	c.L1, c.L2, c.Bias = s.L1, s.L2, s.Bias
	return c
}

func (s *Linear) options() libsvm.Options {
	return libsvm.Options{HashBits: s.HashBits, Target: s.Target}
}

// Load reads a file or a folder of examples (see [libsvm.LoadSplits]), or
// generates some.
func (s *Linear) Load(setup Setup) (Task, error) {
	data, err := s.data(setup.Data)
	if err != nil {
		return nil, err
	}
	bits := s.HashBits
	if setup.Data == "" {
		bits = 0 // what is generated has numbers
	}
	rare, err := data.KeepFrequent(s.MinCount)
	if err != nil {
		return nil, err
	}
	if n := data.Valid.Len(); setup.MaxEvalItems > 0 && n > setup.MaxEvalItems {
		data.Valid = data.Valid.Pick(train.EvenlySpaced(numbers(n), setup.MaxEvalItems))
	}
	if s.Solver == Blocks {
		t, err := linear.NewBlocks(s.blocks(), data)
		if err != nil {
			return nil, err
		}
		return &examplesTask[linear.Turn]{Trained[linear.Turn]{t, setup.evalWorkers()}, t, data, rare, bits}, nil
	}
	cfg := s.Config
	cfg.Seed = setup.Seed
	t, err := linear.New(cfg, data)
	if err != nil {
		return nil, err
	}
	return &examplesTask[linear.Batch]{Trained[linear.Batch]{t, setup.evalWorkers()}, t, data, rare, bits}, nil
}

func (s *Linear) data(path string) (*libsvm.Splits, error) {
	if path != "" {
		return libsvm.LoadSplits(path, s.options(), s.Share)
	}
	set, err := libsvm.Generate(s.Examples)
	if err != nil {
		return nil, err
	}
	data := &libsvm.Splits{Train: set}
	data.HoldOut(s.Share)
	return data, nil
}

func numbers(n int) []int {
	x := make([]int, n)
	for i := range x {
		x[i] = i
	}
	return x
}

// An examplesTask is the task "linear" with its data, by either solver.
type examplesTask[D any] struct {
	Trained[D]
	linear solver
	data   *libsvm.Splits
	rare   int // values left out of the examples to train
	bits   int // that names of features were hashed to, or 0
}

// A solver is what the tasks of both solvers have in common.
type solver interface {
	Tables() []godwit.Table
	EvaluateOn(ctx context.Context, env *train.Env, name string, set *libsvm.Set) (linear.Quality, error)
	Export(ctx context.Context, w godwit.Worker, s *export.Set) error
	Import(src export.Source) ([]train.Rows, error)
	Outputs() int
	Predict(ctx context.Context, w godwit.Worker, set *libsvm.Set, dst []float32) error
}

func (t *examplesTask[D]) Warnings() []string {
	warnings := t.data.Warnings()
	if st := t.data.Train.Stats(); st.Width >= wideFeatures && st.Used < st.Width/16 {
		warnings = append(warnings, fmt.Sprintf("the numbers of features reach %d, and %d features are used: an export has a row for each number, and takes %.1f GB or more; hash features to fewer numbers (--hash BITS)",
			st.Width-1, st.Used, 4*float64(st.Width)/1e9))
	}
	return warnings
}

// wideFeatures are numbers of features of which an export takes a gigabyte or more.
const wideFeatures = 1 << 28

func (t *examplesTask[D]) Unvalidated() bool { return t.data.Valid.Len() == 0 }

func (t *examplesTask[D]) Unit() (string, int64) { return "examples", 1 }

func (t *examplesTask[D]) Data() string { return t.data.Fingerprint() }

func (t *examplesTask[D]) Summary() string {
	st := t.data.Train.Stats()
	about := fmt.Sprintf("%d examples to train%s, %d to validate, %d to test; %d of %d features used, %.1f an example",
		st.Examples, labelled(t.data.Train), t.data.Valid.Len(), t.data.Test.Len(), st.Used, st.Width, float64(st.NonZeros)/float64(st.Examples))
	if t.rare > 0 {
		about += fmt.Sprintf("; %d of %d values left out with rare features", t.rare, t.rare+st.NonZeros)
	}
	return about
}

// labelled says what labels are, if they are not of two classes.
func labelled(set *libsvm.Set) string {
	switch n := len(set.Classes); n {
	case 0:
		return " for values"
	case 2:
		return ""
	default:
		return fmt.Sprintf(" of %d classes", n)
	}
}

// Tables sets Hot: how often training reads a row in an epoch, which is at most as often as its feature occurs, and the bias in every example.
func (t *examplesTask[D]) Tables() []godwit.Table {
	return hotFeatures(t.linear.Tables(), t.data.Train)
}

func hotFeatures(tables []godwit.Table, set *libsvm.Set) []godwit.Table {
	used, counts := set.Used()
	for i := range tables {
		bias := tables[i].Name == linear.BiasTable
		tables[i].Hot = func(row uint64) float64 {
			if bias || row >= uint64(set.Width) { // the gradients' last row is that of the bias
				return float64(set.Len())
			}
			if p, ok := slices.BinarySearch(used, uint32(row)); ok {
				return float64(counts[p])
			}
			return 0
		}
	}
	return tables
}

func (t *examplesTask[D]) Samplers() []sampling.Spec { return nil }

func (t *examplesTask[D]) Test(ctx context.Context, env *train.Env, name string, part bool) ([]train.Metric, error) {
	set := t.data.Test
	if set.Len() == 0 {
		set = t.data.Valid
	}
	if n := set.Len(); part && n > UntrainedExamples {
		set = set.Pick(numbers(UntrainedExamples))
	}
	q, err := t.linear.EvaluateOn(ctx, env, name, set)
	if err != nil {
		return nil, err
	}
	return shown(q), nil
}

// shown are the figures of a test: what people look at first comes first.
func shown(q linear.Quality) []train.Metric {
	ms, _ := q.Metrics()
	if q.Classes > 0 {
		i := slices.IndexFunc(ms, func(m train.Metric) bool { return m.Name == "accuracy" })
		accuracy := ms[i]
		copy(ms[1:], ms[:i])
		ms[0] = accuracy
		if q.Classes == 2 {
			ms[1], ms[2] = ms[2], ms[1] // AUC before the loss
		}
	}
	return ms
}

func (t *examplesTask[D]) Export(ctx context.Context, w godwit.Worker, s *export.Set) error {
	s.Model.Classes = t.data.Train.Classes
	if t.bits > 0 {
		s.Model.Features = &export.Features{Bits: t.bits, Hash: libsvm.HashAbout}
	}
	return t.linear.Export(ctx, w, s)
}
