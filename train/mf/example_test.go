package mf_test

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/ratings"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/mf"
)

// Cells of a matrix of rank 2 are predicted that training never saw. Their standard
// deviation is 1, and that of the noise in them 0.1.
func Example() {
	set, err := ratings.Generate(ratings.Spec{
		Rows: 100, Cols: 50, Cells: 2000, Rank: 2, Noise: 0.1, Test: 0.1, Seed: 1,
	})
	if err != nil {
		panic(err)
	}
	cfg := mf.DefaultConfig()
	cfg.Dim, cfg.Batch, cfg.L2 = 4, 16, 0.01
	task, err := mf.New(cfg, set)
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
	before, err := task.RMSE(ctx, &env, "before", set.Test)
	if err != nil {
		panic(err)
	}
	if _, err := train.Run(ctx, env, task, train.Options{Epochs: 60}); err != nil {
		panic(err)
	}
	after, err := task.RMSE(ctx, &env, "after", set.Test)
	if err != nil {
		panic(err)
	}
	fmt.Printf("RMSE of the cells held out: %.1f, after training %.1f\n", before, after)
	// Output:
	// RMSE of the cells held out: 0.8, after training 0.1
}
