package sketch_test

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/train/sketch"
)

// Two nodes count the items that each of them sees in one sketch.
func ExampleClient() {
	s := sketch.Sketch{Depth: 4, Width: 1 << 12, Seed: 1}
	model, err := godwit.NewModel(s.Table())
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	c, err := node.Local(ctx, 2, node.Config{Model: model, Workers: 1})
	if err != nil {
		panic(err)
	}
	defer c.Close(ctx)

	const fox, hen, owl = 1, 2, 3
	seen := [][]uint64{{fox, hen, fox}, {fox, hen}}
	clients := make([]*sketch.Client, len(seen))
	for i, items := range seen {
		if clients[i], err = s.On(c.Nodes[i].Worker(0)); err != nil {
			panic(err)
		}
		if err := clients[i].Add(ctx, items); err != nil {
			panic(err)
		}
		if err := clients[i].Flush(ctx); err != nil {
			panic(err)
		}
	}
	counts := make([]int64, 3)
	if err := clients[0].Estimate(ctx, []uint64{fox, hen, owl}, counts); err != nil {
		panic(err)
	}
	fmt.Println("fox, hen, owl:", counts)
	// Output:
	// fox, hen, owl: [3 2 0]
}
