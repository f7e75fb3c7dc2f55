package filter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/node"
)

// Small pushes to another node are held back until together they matter. WaitSync
// sends what is left.
func ExampleParse() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	filters, err := filter.Parse("significant(threshold=1), sparse")
	if err != nil {
		panic(err)
	}
	tables := filter.On([]godwit.Table{{Name: "weights", Rows: 100, Dim: 1}}, filters...)
	model, err := godwit.NewModel(tables...)
	if err != nil {
		panic(err)
	}
	c, err := node.Local(ctx, 2, node.Config{Model: model, Workers: 1})
	if err != nil {
		panic(err)
	}
	defer c.Close(ctx)

	w, other := c.Nodes[0].Worker(0), c.Nodes[1].Worker(0)
	key, value := []godwit.Key{0}, make([]float32, 1)
	for w.PullIfLocal(key[0], value) { // find a key of the other node
		key[0]++
	}
	for range 3 {
		if err := w.Push(ctx, key, []float32{0.75}); err != nil {
			panic(err)
		}
		if err := other.Pull(ctx, key, value); err != nil {
			panic(err)
		}
		fmt.Println("arrived:", value[0])
	}
	if err := w.WaitSync(ctx); err != nil {
		panic(err)
	}
	if err := other.Pull(ctx, key, value); err != nil {
		panic(err)
	}
	fmt.Println("in the end:", value[0])
	// Output:
	// arrived: 0
	// arrived: 1.5
	// arrived: 1.5
	// in the end: 2.25
}
