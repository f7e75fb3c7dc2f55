package kge_test

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/kge"
)

// The right answers to queries that training never saw come near the first place
// among all entities.
func Example() {
	graph, err := triples.Generate(triples.Spec{
		Entities: 100, Relations: 4, Triples: 2000, Exponent: 0.5, Valid: 0.05, Test: 0.05, Seed: 1,
	})
	if err != nil {
		panic(err)
	}
	cfg := kge.DefaultConfig()
	cfg.Dim, cfg.Batch, cfg.Negatives = 32, 64, 50
	task, err := kge.New(cfg, graph)
	if err != nil {
		panic(err)
	}
	model, err := godwit.NewModel(task.Tables()...)
	if err != nil {
		panic(err)
	}
	negatives := sampling.Spec{Name: "negatives", Table: 0, Dist: sampling.Uniform(uint64(len(graph.Entities)))}
	ctx := context.Background()
	c, err := node.Local(ctx, 1, node.Config{Model: model, Workers: 1, Seed: 1, Samplers: []sampling.Spec{negatives}})
	if err != nil {
		panic(err)
	}
	defer c.Close(ctx)

	env := train.Env{Workers: c.Nodes[0].Workers()}
	before, err := task.Rank(ctx, &env, "before", graph.Test)
	if err != nil {
		panic(err)
	}
	if _, err := train.Run(ctx, env, task, train.Options{Epochs: 20}); err != nil {
		panic(err)
	}
	after, err := task.Rank(ctx, &env, "after", graph.Test)
	if err != nil {
		panic(err)
	}
	fmt.Printf("mean reciprocal rank: %.2f, after training %.1f\n", before.MRR, after.MRR)
	// Output:
	// mean reciprocal rank: 0.05, after training 0.9
}
