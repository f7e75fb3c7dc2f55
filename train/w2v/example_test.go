package w2v_test

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/corpus"
	"github.com/godwit-ps/godwit/data/wordvec"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/w2v"
)

// Analogies that are true in a generated text are answered by the vectors of its
// words.
func Example() {
	g, err := corpus.Generate(corpus.Spec{Stems: 12, Forms: 3, Words: 40_000, Exponent: 0.5, Seed: 1})
	if err != nil {
		panic(err)
	}
	text, err := corpus.FromText("text.txt", g.Text, corpus.Options{MinCount: 5, Block: 250})
	if err != nil {
		panic(err)
	}
	questions := &wordvec.Questions{Sections: []wordvec.Section{{Name: "forms", Questions: g.Analogies}}}
	cfg := w2v.DefaultConfig()
	cfg.Dim = 32
	task, err := w2v.New(cfg, text, questions)
	if err != nil {
		panic(err)
	}
	model, err := godwit.NewModel(task.Tables()...)
	if err != nil {
		panic(err)
	}
	negatives := sampling.Spec{Name: "negatives", Table: 1, Dist: task.Distribution()}
	ctx := context.Background()
	c, err := node.Local(ctx, 1, node.Config{Model: model, Workers: 1, Seed: 1, Samplers: []sampling.Spec{negatives}})
	if err != nil {
		panic(err)
	}
	defer c.Close(ctx)

	env := train.Env{Workers: c.Nodes[0].Workers()}
	before, err := task.EvaluateOn(ctx, &env, "before", 0)
	if err != nil {
		panic(err)
	}
	if _, err := train.Run(ctx, env, task, train.Options{Epochs: 3}); err != nil {
		panic(err)
	}
	after, err := task.EvaluateOn(ctx, &env, "after", 0)
	if err != nil {
		panic(err)
	}
	right := func(q w2v.Quality) bool { return q.Score.Sum("all", wordvec.All).Accuracy() > 0.9 }
	fmt.Println("nine of ten answers are right:", right(before), "before training,", right(after), "after it")
	// Output:
	// nine of ten answers are right: false before training, true after it
}
