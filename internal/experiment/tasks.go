package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit/train/task"
)

// A size is how large the experiments on a task are.
type size struct {
	settings  task.Settings // their skew and seed are the lab's
	epochs    int
	evaluated int // see Lab.Evaluated
}

// A Choice is what decides the sizes of a lab.
type Choice struct {
	Task  string // one of Tasks; "": kge, or all of them where Search is set
	Quick bool   // small, to see the direction
	Calls Calls
	// Dim is the length of the rows, in floats; 0: the size's. A longer row is more
	// bytes to send, and more of each step: measure that anew.
	Dim int
	// Epochs is how many are trained; 0: as many as the size has.
	Epochs int
	// Search is for "best", which trains hundreds of times on up to 64 workers: less data,
	// with rows as long as those of "godwit train", or half as long.
	Search bool
	// Given says that there are data, as large as they are: "best" trains on them what
	// "godwit train" does.
	Given bool
}

// sizes are those of each task. The full ones take minutes of one processor for
// each simulated run, and train some hundred steps of each of 64 workers in an
// epoch.
var sizes = map[string]func(Choice) size{
	"kge":    kgeSize,
	"mf":     mfSize,
	"w2v":    w2vSize,
	"linear": linearSize,
	"lda":    ldaSize,
	"sketch": sketchSize,
}

// Tasks lists the tasks that experiments can run.
func Tasks() []string {
	var names []string
	for _, name := range task.Names() {
		if sizes[name] != nil {
			names = append(names, name)
		}
	}
	return names
}

// sizes are those of the tasks that were chosen, at least one.
func (c Choice) sizes() ([]size, error) {
	names := []string{c.Task}
	switch {
	case c.Task == "" && c.Search:
		names = Tasks()
	case c.Task == "":
		names = []string{"kge"}
	}
	var all []size
	for _, name := range names {
		z, err := c.size(name)
		if err != nil {
			return nil, err
		}
		all = append(all, z)
	}
	return all, nil
}

func (c Choice) size(name string) (size, error) {
	of := sizes[name]
	switch {
	case of == nil:
		return size{}, fmt.Errorf("experiment: no task %q, there are %s", name, strings.Join(Tasks(), ", "))
	case !slices.Contains(AllCalls(), c.Calls):
		return size{}, fmt.Errorf("experiment: no calls %q, there are %v", c.Calls, AllCalls())
	case c.Dim < 0 || c.Dim > 1<<16:
		return size{}, fmt.Errorf("experiment: rows of %d floats, want 1 … %d, or 0 for the task's", c.Dim, 1<<16)
	case c.Epochs < 0:
		return size{}, fmt.Errorf("experiment: %d epochs, want at least 1, or 0 for the task's", c.Epochs)
	}
	z := of(c)
	if c.Search && c.Given {
		if err := z.asTrained(); err != nil {
			return size{}, err
		}
	}
	if c.Epochs > 0 {
		z.epochs = c.Epochs
	}
	if c.Dim > 0 {
		switch s := z.settings.(type) {
		case *task.KGE:
			s.Dim = c.Dim
		case *task.MF:
			s.Dim = c.Dim
		case *task.W2V:
			s.Dim = c.Dim
		default:
			return size{}, fmt.Errorf("experiment: the rows of %s have a length of their own: leave out that of %d floats", name, c.Dim)
		}
	}
	return z, z.settings.Check()
}

// asTrained gives a size the settings of "godwit train". The rule of a matrix stays: many workers
// at once are too much for plain SGD.
func (z *size) asTrained() error {
	defaults, err := task.New(z.settings.Name())
	if err != nil {
		return err
	}
	if d, ok := defaults.(*task.MF); ok {
		s := z.settings.(*task.MF)
		d.Rule, d.LR, d.BoldDriver = s.Rule, s.LR, s.BoldDriver
	}
	z.settings = defaults
	return nil
}

// smaller is by how much the data of a choice are smaller than its size's.
func (c Choice) smaller(quick int) int {
	if c.Quick {
		return quick
	}
	return 1
}

// kgeSize is a sparse task: the rows that 64 workers use at a moment are a
// tenth of all, and the few hot ones are among them. An epoch is 297 steps of
// each of them, and a simulated run takes about a minute of a processor.
func kgeSize(c Choice) size {
	s := task.DefaultKGE()
	s.Graph.Entities, s.Graph.Relations, s.Graph.Triples = 20_000, 50, 160_000
	s.Dim, s.Batch, s.Negatives = 32, 8, 24
	z := size{s, 6, 200}
	if c.Calls == Single {
		// A step of the programs for Lapse, NuPS and AdaPM is a triple and its
		// negatives, a hundred for each end with NuPS. Each is a message, so the
		// graph is smaller.
		s.Graph.Entities, s.Graph.Triples = 4000, 20_000
		s.Batch, s.Negatives = 1, 100
	}
	if c.Search {
		s.Graph.Entities, s.Graph.Triples = 2500, 20_000
		s.Dim = 128
		if c.Calls == Batched {
			s.Batch, s.Negatives = 16, 64
		}
		z.epochs, z.evaluated = 3, 500
	}
	if by := c.smaller(4); by > 1 {
		s.Graph.Entities, s.Graph.Triples = s.Graph.Entities/by, s.Graph.Triples/by
		z.epochs = 3
	}
	return z
}

// mfSize is a matrix whose columns are hot and whose rows are many, trained a
// column after the other.
func mfSize(c Choice) size {
	s := task.DefaultMF()
	s.Matrix.Rows, s.Matrix.Cols, s.Matrix.Cells = 20_000, 2000, 350_000
	s.Dim, s.Batch = 16, 16
	s.Rule, s.LR, s.BoldDriver = "adagrad", 0.1, false // many workers at once are too much for SGD
	z := size{s, 8, 5000}
	if c.Calls == Single {
		s.Batch = 1
		s.Matrix.Rows, s.Matrix.Cols, s.Matrix.Cells = 5000, 500, 50_000
	}
	if c.Search {
		s.Matrix.Rows, s.Matrix.Cols, s.Matrix.Cells = 5000, 500, 80_000
		s.Dim = 64
		z.epochs = 4
	}
	if by := c.smaller(4); by > 1 {
		s.Matrix.Rows, s.Matrix.Cols, s.Matrix.Cells = s.Matrix.Rows/by, s.Matrix.Cols/by, s.Matrix.Cells/(2*by)
		z.epochs = 3
	}
	return z
}

// w2vSize is a text of 2,000 words with a place in its structure, beside more
// that have none.
func w2vSize(c Choice) size {
	s := task.DefaultW2V()
	s.Corpus.Stems, s.Corpus.Words = 400, 500_000
	s.Dim, s.Batch, s.Pool = 32, 25, 24
	z := size{s, 6, 1000}
	if c.Calls == Single {
		// A step is a sentence of the programs, of which they read word by word.
		s.Corpus.Stems, s.Corpus.Words = 100, 100_000
	}
	if c.Search {
		s.Corpus.Stems, s.Corpus.Words = 200, 150_000
		s.Dim = 64
		s.LR, s.LastLR = 0.1, 1 // a rate for 32 workers, whatever the number of epochs
		z.epochs = 3
	}
	if by := c.smaller(5); by > 1 {
		s.Corpus.Stems, s.Corpus.Words = s.Corpus.Stems/by, s.Corpus.Words/by
		z.epochs = 3
	}
	return z
}

// linearSize is a sparse model of which most features are rare.
func linearSize(c Choice) size {
	s := task.DefaultLinear()
	s.Examples.Examples, s.Examples.Features, s.Examples.PerExample, s.Examples.Relevant = 160_000, 40_000, 20, 1000
	s.Batch = 16
	z := size{s, 6, 5000}
	if c.Calls == Single {
		s.Batch = 1
		s.Examples.Examples, s.Examples.Features = 40_000, 10_000
	}
	if c.Search {
		s.Examples.Examples, s.Examples.Features = 40_000, 10_000
		z.epochs = 3
	}
	if by := c.smaller(4); by > 1 {
		s.Examples.Examples, s.Examples.Features = s.Examples.Examples/by, s.Examples.Features/by
		s.Examples.Relevant = max(s.Examples.Features/40, 1)
		z.epochs = 3
	}
	return z
}

// ldaSize is documents of which each worker has some, and words that all have.
func ldaSize(c Choice) size {
	s := task.DefaultLDA()
	s.Documents.Documents, s.Documents.Length, s.Documents.Words, s.Documents.Topics = 20_000, 50, 5000, 20
	s.Topics, s.Batch = 20, 200
	z := size{s, 20, 200}
	if c.Calls == Single {
		s.Batch = 1 // a document
		s.Documents.Documents = 5000
	}
	if c.Search {
		s.Documents.Documents, s.Documents.Words = 4000, 2000
		s.Topics, z.epochs = 50, 10
	}
	if by := c.smaller(4); by > 1 {
		s.Documents.Documents, s.Documents.Words = s.Documents.Documents/by, max(s.Documents.Words/by, 100)
		z.epochs = 8
	}
	return z
}

// sketchSize is a stream of which some items are very frequent.
func sketchSize(c Choice) size {
	s := task.DefaultSketch()
	s.Stream.Items = 2_000_000
	z := size{s, 1, 1}
	if c.Calls == Single {
		s.Stream.Items = 500_000
	}
	if c.Search {
		s.Stream.Items = 1_000_000
	}
	if by := c.smaller(4); by > 1 {
		s.Stream.Items, s.Stream.Distinct, s.Width = s.Stream.Items/by, s.Stream.Distinct/by, s.Width/by
		s.Batch = max(s.Batch/by, 100)
	}
	return z
}
