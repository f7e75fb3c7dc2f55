package linear_test

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/linear"
)

// A sparse model is learned from examples of which few features matter.
func Example() {
	examples, err := libsvm.Generate(libsvm.Spec{
		Examples: 10_000, Features: 500, PerExample: 10, Relevant: 20, Exponent: 1, Classes: 2, Seed: 1,
	})
	if err != nil {
		panic(err)
	}
	splits := &libsvm.Splits{Train: examples}
	splits.HoldOut(libsvm.Share{Test: 10})
	cfg := linear.DefaultConfig()
	cfg.L1 = 20
	task, err := linear.New(cfg, splits)
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
	if _, err := train.Run(ctx, env, task, train.Options{Epochs: 5}); err != nil {
		panic(err)
	}
	q, err := task.EvaluateOn(ctx, &env, "test", splits.Test)
	if err != nil {
		panic(err)
	}
	fmt.Printf("AUC %.1f; most weights are zero: %t\n", q.AUC, q.Sparsity() > 0.5)
	// Output:
	// AUC 0.8; most weights are zero: true
}
