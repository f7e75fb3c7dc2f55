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
	Task  string // one of Tasks
	Quick bool   // small, to see the direction
	Calls Calls
	// Dim is the length of the rows, in floats; 0: the size's. A longer row is more
	// bytes to send, and more of each step: measure that anew.
	Dim int
}

// sizes are those of each task. The full ones take minutes of one processor for
// each simulated run, and train some hundred steps of each of 64 workers in an
// epoch.
var sizes = map[string]func(Choice) size{
	"kge": kgeSize,
	"mf":  mfSize,
	"w2v": w2vSize,
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

func (c Choice) size() (size, error) {
	of := sizes[c.Task]
	switch {
	case of == nil:
		return size{}, fmt.Errorf("experiment: no task %q, there are %s", c.Task, strings.Join(Tasks(), ", "))
	case !slices.Contains(AllCalls(), c.Calls):
		return size{}, fmt.Errorf("experiment: no calls %q, there are %v", c.Calls, AllCalls())
	}
	z := of(c)
	if c.Dim < 0 || c.Dim > 1<<16 {
		return size{}, fmt.Errorf("experiment: rows of %d floats, want 1 … %d, or 0 for the task's", c.Dim, 1<<16)
	}
	if c.Dim > 0 {
		switch s := z.settings.(type) {
		case *task.KGE:
			s.Dim = c.Dim
		case *task.MF:
			s.Dim = c.Dim
		case *task.W2V:
			s.Dim = c.Dim
		}
	}
	return z, z.settings.Check()
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
	if c.Quick {
		s.Graph.Entities, s.Graph.Triples = s.Graph.Entities/4, s.Graph.Triples/4
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
	if c.Quick {
		s.Matrix.Rows, s.Matrix.Cols, s.Matrix.Cells = s.Matrix.Rows/4, s.Matrix.Cols/4, s.Matrix.Cells/8
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
	if c.Quick {
		s.Corpus.Stems, s.Corpus.Words = s.Corpus.Stems/5, s.Corpus.Words/5
		z.epochs = 3
	}
	return z
}
