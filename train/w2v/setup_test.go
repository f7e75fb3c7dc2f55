package w2v

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/corpus"
	"github.com/godwit-ps/godwit/data/wordvec"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

// generated returns a small text with its questions.
func generated(t testing.TB, stems, forms, words, block int) (*corpus.Corpus, *wordvec.Questions, *corpus.Generated) {
	t.Helper()
	g, err := corpus.Generate(corpus.Spec{Stems: stems, Forms: forms, Words: words, Exponent: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := corpus.FromText("generated", g.Text, corpus.Options{MinCount: 5, Block: block})
	if err != nil {
		t.Fatal(err)
	}
	return c, &wordvec.Questions{Sections: []wordvec.Section{{Name: "all", Questions: g.Analogies}}}, g
}

// setup makes a task with a server of so many workers. A table in front moves
// the keys, so that keys and rows differ. The server draws negatives uniformly.
func setup(t testing.TB, cfg Config, c *corpus.Corpus, q *wordvec.Questions, nodes, perNode int) (*Task, *traintest.Server) {
	t.Helper()
	task, err := New(cfg, c, q)
	if err != nil {
		t.Fatal(err)
	}
	m, err := godwit.NewModel(append([]godwit.Table{{Name: "other", Rows: 7, Dim: 3}}, task.Tables()...)...)
	if err != nil {
		t.Fatal(err)
	}
	s := traintest.NewServer(m, nodes, perNode, cfg.Seed)
	s.Range = []traintest.KeyRange{{First: m.Key(2, 0), N: uint64(len(c.Vocabulary.Words))}}
	return task, s
}

// small are settings for tests of what steps do.
func small(method string) Config {
	c := DefaultConfig()
	c.Method, c.Dim, c.Window, c.Negatives, c.Pool, c.Subsample, c.HoldOut = method, 6, 3, 4, 9, 0.01, 5
	return c
}

// aTrainer returns a trainer of the whole text.
func aTrainer(t testing.TB, task *Task, w godwit.Worker) *trainer {
	t.Helper()
	tr, err := task.Trainer(w, train.Partition{Count: 1, Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	return tr.(*trainer)
}
