package job_test

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/train/task"
)

// A generated matrix is factorized by one node. Spec.Nodes says how many nodes run in
// this process. On several machines, one process calls Lead with the same spec, and the
// others Join.
func ExampleLocal() {
	settings := task.DefaultMF()
	settings.Matrix.Rows, settings.Matrix.Cols, settings.Matrix.Cells = 200, 100, 8000
	settings.Matrix.Rank, settings.Matrix.Noise = 2, 0.1
	settings.Dim, settings.Batch, settings.L2 = 4, 16, 0.01
	spec := job.Default(settings)
	spec.Nodes, spec.Workers, spec.Options.Epochs, spec.Untrained = 1, 1, 30, true

	cfg := job.NodeConfig{Progress: func(e job.Event) {
		if e.Epoch != nil && e.Epoch.Epoch == e.Epoch.Of {
			fmt.Printf("epoch %d trained %d cells\n", e.Epoch.Epoch, e.Epoch.Items)
		}
	}}
	result, err := job.Local(context.Background(), "example", spec, cfg)
	if err != nil {
		panic(err)
	}
	fmt.Println(result.End)
	before, after := result.Untrained.At("RMSE"), result.Test.At("RMSE")
	fmt.Printf("error before training %.1f, after it %.1f\n", before, after)
	// Output:
	// epoch 30 trained 7200 cells
	// all epochs trained
	// error before training 1.0, after it 0.1
}
