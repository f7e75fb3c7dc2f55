package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/lines"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/frozen"
)

// Reusable are settings of a task whose trained models can be used: those of all tasks
// of Godwit.
type Reusable interface {
	Settings
	// Reload returns a trained model with its names and without the data of its
	// training. The settings are those of its run, and so is the seed.
	Reload(src export.Source, u Use, seed uint64) (Reloaded, error)
}

// A Use is what a trained model is used on.
type Use struct {
	// Test is a file of examples to evaluate the model on, all of them; empty: none.
	Test string
	// Known is a file or folder of facts that are known: a graph's answers leave them
	// out. Other tasks have none.
	Known string
	// Top bounds the answers to a question that has many, at least 1.
	Top int
}

// Reloaded is a trained model that can be used. It may be used by any number of
// goroutines, but for Answer, which one calls.
type Reloaded interface {
	train.Importer
	// Tables are those of which Import has rows.
	Tables() []godwit.Table
	// Summary is a line about what the model is used on, for people.
	Summary() string
	// Warnings are what may make its figures misleading, a sentence each, for people.
	Warnings() []string
	// Test evaluates the model on all examples of Use.Test, as [Task.Test] does.
	Test(ctx context.Context, env *train.Env, name string, part bool) ([]train.Metric, error)
	// Answer answers questions, a line each. An error is a *LineError where a line is
	// no question. What a model does not know is an answer: [Unknown].
	Answer(ctx context.Context, w godwit.Worker, questions [][]byte) ([]Answer, error)
}

// An Answer is what a model says to one question. As JSON it is an object.
type Answer interface {
	// Text returns the answer as lines of fields that are separated by tabs.
	Text() []string
}

// Unknown is the answer to a question with a name that the model does not have.
type Unknown struct {
	Unknown string `json:"unknown"` // what it does not have
}

// Text implements [Answer].
func (u Unknown) Text() []string { return []string{"?\t" + u.Unknown} }

// A LineError says that a line is no question.
type LineError struct {
	Index int   // of the line, among those asked
	Err   error // what is wrong with it
}

func (e *LineError) Error() string { return e.Err.Error() }
func (e *LineError) Unwrap() error { return e.Err }

// A Model is a trained model that is used: from an export, or wherever its
// [export.Source] keeps it.
type Model struct {
	src      export.Source
	settings Reusable
	seed     uint64
}

// Open finds out which task trained a model, and with which settings.
func Open(src export.Source) (*Model, error) {
	d := src.Describe()
	if d.Run == nil {
		return nil, fmt.Errorf("task: the model of %s does not say how it was trained", d.Task)
	}
	var spec struct {
		Task     string          `json:"task"`
		Settings json.RawMessage `json:"settings"`
	}
	if err := json.Unmarshal(d.Run.Spec, &spec); err != nil {
		return nil, fmt.Errorf("task: the description of the run cannot be read: %w", err)
	}
	if spec.Task != d.Task {
		return nil, fmt.Errorf("task: a model of the task %s, by the settings of %s", d.Task, spec.Task)
	}
	s, err := Decode(spec.Task, spec.Settings)
	if err != nil {
		return nil, fmt.Errorf("task: the settings of the run cannot be read, was it another version? %w", err)
	}
	r, ok := s.(Reusable)
	if !ok {
		return nil, fmt.Errorf("task: models of %s cannot be used without training data", d.Task)
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	return &Model{src, r, d.Run.Seed}, nil
}

// A Test is an evaluation of a trained model.
type Test struct {
	Metrics []train.Metric // the same as training has
	Data    string         // a line about the data, for people
	// Warnings are what may make the figures misleading, a sentence each.
	Warnings []string
	// Links are the metrics of link prediction in parts; nil where the model is none of a graph.
	Links *Links
}

// Links are the metrics of link prediction by what was predicted.
type Links struct {
	Directions
	// Relations are those with facts to evaluate on: that with the most first, equal ones by name.
	Relations []Relation
}

// Directions are metrics by the direction of prediction. Those of both together are the means
// of these.
type Directions struct {
	Head []train.Metric // of finding the heads of facts
	Tail []train.Metric // of finding their tails
}

// A Relation has the metrics of the facts of a relation.
type Relation struct {
	Name  string // of the relation
	Facts int64  // how many the metrics are of
	Directions
}

// TestHeldOut evaluates the model on the data that were held out of training, as at the
// end of training. The data are found where they were then, or else at a path.
func (m *Model) TestHeldOut(ctx context.Context, path string) (*Test, error) {
	data := m.src.Describe().Run.Data
	if path == "" {
		path = data.Path
	}
	t, err := m.settings.Load(Setup{Data: path, Seed: m.seed})
	if err != nil {
		return nil, err
	}
	i, ok := t.(train.Importer)
	if !ok {
		return nil, fmt.Errorf("task: models of %s cannot be evaluated after training", m.settings.Name())
	}
	test, err := m.test(ctx, t, i)
	if err == nil && t.Data() != data.Fingerprint {
		test.Warnings = append(test.Warnings, "these are not the data that the model was trained with: what is held out of them may have been trained")
	}
	return test, err
}

// Test evaluates the model on all examples of a file.
func (m *Model) Test(ctx context.Context, u Use) (*Test, error) {
	r, err := m.settings.Reload(m.src, u, m.seed)
	if err != nil {
		return nil, err
	}
	return m.test(ctx, r, r)
}

// tested is what can be evaluated: a [Task] or a [Reloaded] model.
type tested interface {
	Tables() []godwit.Table
	Summary() string
	Warnings() []string
	Test(ctx context.Context, env *train.Env, name string, part bool) ([]train.Metric, error)
}

// linked is what is evaluated by link prediction.
type linked interface {
	// testLinks is Test on all that it has, and tells apart what was predicted.
	testLinks(ctx context.Context, env *train.Env, name string) ([]train.Metric, *Links, error)
}

func (m *Model) test(ctx context.Context, t tested, i train.Importer) (*Test, error) {
	ws, err := m.workers(runtime.GOMAXPROCS(0), t.Tables(), i)
	if err != nil {
		return nil, err
	}
	test := &Test{Data: t.Summary(), Warnings: t.Warnings()}
	env := &train.Env{Workers: ws}
	if l, ok := t.(linked); ok {
		test.Metrics, test.Links, err = l.testLinks(ctx, env, "test")
	} else {
		test.Metrics, err = t.Test(ctx, env, "test", false)
	}
	if err != nil {
		return nil, err
	}
	return test, nil
}

// workers returns workers that read the model.
func (m *Model) workers(n int, tables []godwit.Table, i train.Importer) ([]godwit.Worker, error) {
	rows, err := i.Import(m.src)
	if err != nil {
		return nil, err
	}
	return frozen.Workers(n, tables, rows, m.seed)
}

// batch is how many questions are answered at once, if so many are there.
const batch = 256

// MaxQuestion bounds a question, in bytes.
const MaxQuestion = 1 << 22

// Answer answers the questions that a scanner reads, a line each, and hands on each
// answer with the number of its line. Empty lines are no questions. It answers at once
// what there is to read, so that somebody may wait for an answer before asking more.
func (m *Model) Answer(ctx context.Context, u Use, in *lines.Scanner, answer func(line int, a Answer) error) error {
	u.Test = ""
	r, err := m.settings.Reload(m.src, u, m.seed)
	if err != nil {
		return err
	}
	ws, err := m.workers(1, r.Tables(), r)
	if err != nil {
		return err
	}
	a := asking{r: r, w: ws[0], in: in, answer: answer}
	for in.Scan() {
		if err := a.take(ctx); err != nil {
			return err
		}
	}
	return errors.Join(a.flush(ctx), in.Err())
}

// asking is a stream of questions.
type asking struct {
	r      Reloaded
	w      godwit.Worker
	in     *lines.Scanner
	answer func(line int, a Answer) error

	texts   [][]byte
	numbers []int
}

// take takes the line that was read.
func (a *asking) take(ctx context.Context) error {
	if text := a.in.Text(); len(text) > 0 {
		a.texts, a.numbers = append(a.texts, append([]byte(nil), text...)), append(a.numbers, a.in.Line())
	}
	if len(a.texts) < batch && a.in.More() {
		return nil
	}
	return a.flush(ctx)
}

// flush answers what was taken.
func (a *asking) flush(ctx context.Context) error {
	if len(a.texts) == 0 {
		return nil
	}
	answers, err := a.r.Answer(ctx, a.w, a.texts)
	for i, x := range answers {
		if err := a.answer(a.numbers[i], x); err != nil {
			return err
		}
	}
	var l *LineError
	if errors.As(err, &l) {
		return a.in.FailAt(a.numbers[l.Index], l.Err)
	}
	a.texts, a.numbers = a.texts[:0], a.numbers[:0]
	return err
}

// answerEach answers questions one by one; the answers before a line that is none come
// with its error.
func answerEach(questions [][]byte, answer func(q []byte) (Answer, error)) (all []Answer, err error) {
	for i, q := range questions {
		a, err := answer(q)
		if err != nil {
			return all, &LineError{i, err}
		}
		all = append(all, a)
	}
	return all, nil
}

// left is a warning about examples that were left out of an evaluation.
func left(n int, what, why string) []string {
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d %s are left out: %s", n, what, why)}
}

// errNoTest is the error of a file without anything to evaluate on.
func errNoTest(path, what string) error {
	return fmt.Errorf("%s holds no %s that the model can be evaluated on", path, what)
}
