package sampling_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/sampling"
)

// A task that trains on negatives announces how many it will need and pulls them
// later, with their values. Rows are drawn in proportion to the square root of
// their frequencies: 9, 0 and 1 become 3, 0 and 1.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	model, err := godwit.NewModel(godwit.Table{Name: "words", Rows: 3, Dim: 2})
	if err != nil {
		panic(err)
	}
	frequencies, err := sampling.Power([]float64{9, 0, 1}, 0.5)
	if err != nil {
		panic(err)
	}
	negatives := sampling.Spec{Name: "negatives", Table: 0, Dist: frequencies, Level: sampling.IID}
	c, err := node.Local(ctx, 1, node.Config{
		Model: model, Workers: 1, Seed: 1, Samplers: []sampling.Spec{negatives},
	})
	if err != nil {
		panic(err)
	}
	defer c.Close(ctx)

	w := c.Nodes[0].Worker(0)
	const n = 100_000
	id, err := w.PrepareSample(0, n, 0, 1) // sampler 0, for the clock 0
	if err != nil {
		panic(err)
	}
	keys, values := make([]godwit.Key, 1000), make([]float32, 1000*2)
	drawn := map[godwit.Key]int{}
	for range n / len(keys) {
		if err := w.PullSample(ctx, id, keys, values); err != nil {
			panic(err)
		}
		for _, k := range keys {
			drawn[k]++
		}
	}
	for row := range uint64(3) {
		fmt.Printf("row %d: %.2f\n", row, float64(drawn[model.Key(0, row)])/n)
	}
	// Output:
	// row 0: 0.75
	// row 1: 0.00
	// row 2: 0.25
}
