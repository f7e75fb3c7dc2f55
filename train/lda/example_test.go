package lda_test

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/bagofwords"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/lda"
)

// Topics are learned from documents whose topics are known to exist: half the words
// of a new document say what it is about, and the others are easier to predict. The
// shared counts stay exact.
func Example() {
	all, err := bagofwords.Generate(bagofwords.Spec{Documents: 300, Length: 60, Words: 500, Topics: 5, Exponent: 1, Seed: 1})
	if err != nil {
		panic(err)
	}
	docs, held := all.Split(10)
	cfg := lda.DefaultConfig()
	cfg.Topics, cfg.Batch = 5, 500
	task, err := lda.New(cfg, docs, held)
	if err != nil {
		panic(err)
	}
	model, err := godwit.NewModel(task.Tables()...)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	c, err := node.Local(ctx, 1, node.Config{Model: model, Workers: 1, Seed: 1})
	if err != nil {
		panic(err)
	}
	defer c.Close(ctx)

	env := train.Env{Workers: c.Nodes[0].Workers()}
	before, err := task.EvaluateOn(ctx, &env, "before", held)
	if err != nil {
		panic(err)
	}
	if _, err := train.Run(ctx, env, task, train.Options{Epochs: 30}); err != nil {
		panic(err)
	}
	after, err := task.EvaluateOn(ctx, &env, "after", held)
	if err != nil {
		panic(err)
	}
	fmt.Printf("perplexity before training: %.0f; below half of it after: %t\n", before.Perplexity, after.Perplexity < before.Perplexity/2)
	fmt.Println("error of the counts:", task.Check(ctx, &env, "counts"))
	// Output:
	// perplexity before training: 500; below half of it after: true
	// error of the counts: <nil>
}
