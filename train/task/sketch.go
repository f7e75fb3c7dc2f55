package task

import (
	"context"
	"errors"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/bagofwords"
	"github.com/godwit-ps/godwit/data/corpus"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/sketch"
)

func init() { Register(func() Settings { return DefaultSketch() }) }

// Sketch are the settings of the task "sketch", a count-min sketch of a stream.
// The seed of its Config is set by Load.
type Sketch struct {
	sketch.Config
	// Stream is what is generated where there are no data.
	Stream sketch.Spec
	// Text says what a word is where the items are those of a text.
	Text bagofwords.Options
}

// DefaultSketch returns settings that count a million items.
func DefaultSketch() *Sketch {
	text := bagofwords.DefaultOptions()
	text.MinCount, text.Skip, text.Most = 1, 0, 0
	return &Sketch{Config: sketch.DefaultConfig(), Stream: sketch.DefaultSpec(), Text: text}
}

func (s *Sketch) Name() string { return "sketch" }
func (s *Sketch) Epochs() int  { return 1 }

// Generate implements [Generated].
func (s *Sketch) Generate(exponent float64, seed uint64) {
	s.Stream.Exponent, s.Stream.Seed = exponent, seed
}

func (s *Sketch) Check() error {
	return errors.Join(s.Config.Check(), s.Stream.Check(), s.Text.Check())
}

// Unused implements [Partial].
func (s *Sketch) Unused(data string) []Unused {
	return unusedData(data, []any{&s.Stream}, []any{&s.Text})
}

// Load reads the words of a text (see [bagofwords.Load]), or generates a stream.
func (s *Sketch) Load(setup Setup) (Task, error) {
	var stream *sketch.Stream
	var replaced int64
	var err error
	if setup.Data == "" {
		stream, err = sketch.Generate(s.Stream)
	} else {
		stream, replaced, err = s.words(setup.Data)
	}
	if err != nil {
		return nil, err
	}
	cfg := s.Config
	cfg.Seed = setup.Seed
	t, err := sketch.New(cfg, stream)
	if err != nil {
		return nil, err
	}
	return &streamTask{Trained[sketch.Batch]{t, setup.evalWorkers()}, t, cfg, len(stream.Items), stream.Fingerprint(), replaced}, nil
}

// words takes the words of a text, by their hashes.
func (s *Sketch) words(path string) (x *sketch.Stream, replaced int64, err error) {
	text, err := bagofwords.Load(path, s.Text)
	if err != nil {
		return nil, 0, err
	}
	hashes := make([]uint64, len(text.Names))
	for i, name := range text.Names {
		hashes[i] = wordItem(name)
	}
	x = &sketch.Stream{Items: make([]uint64, len(text.Words))}
	for i, w := range text.Words {
		x.Items[i] = hashes[w]
	}
	return x, text.Replaced, nil
}

// A streamTask is the task "sketch" with its stream.
type streamTask struct {
	Trained[sketch.Batch]
	sketch *sketch.Task
	cfg    sketch.Config
	items  int
	data   string // their fingerprint
	// replaced is how many bytes of the text are not UTF-8.
	replaced int64
}

func (t *streamTask) Unit() (string, int64) { return "items", 1 }
func (t *streamTask) Data() string          { return t.data }

func (t *streamTask) Warnings() []string { return corpus.ReplacedWarning(t.replaced) }

func (t *streamTask) Summary() string {
	return fmt.Sprintf("%d items, %d different; %d rows of %d cells", t.items, t.sketch.Distinct(), t.cfg.Depth, t.cfg.Width)
}

// Tables sets no Hot: which cells are hot is only known once the stream was counted.
func (t *streamTask) Tables() []godwit.Table {
	tables := t.sketch.Tables()
	tables[0].Hot = func(uint64) float64 { return float64(t.items) / float64(t.cfg.Width) }
	return tables
}

func (t *streamTask) Samplers() []sampling.Spec { return nil }

// Test estimates the counts of all items, or of a thousandth.
func (t *streamTask) Test(ctx context.Context, env *train.Env, name string, part bool) ([]train.Metric, error) {
	step := 1
	if part {
		step = 1000
	}
	q, err := t.sketch.EvaluateOn(ctx, env, name, step)
	if err != nil {
		return nil, err
	}
	return q.Metrics(), nil
}

func (t *streamTask) Export(ctx context.Context, w godwit.Worker, s *export.Set) error {
	return t.sketch.Export(ctx, w, s)
}
