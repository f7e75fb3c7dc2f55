package train_test

import (
	"context"
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
)

// A reading is an example: what a sensor measured.
type reading struct {
	sensor uint64
	value  float32
}

// sensors is a task that learns a value for each sensor.
type sensors struct{ readings []reading }

// Fingerprint stands for the data: nodes with other data are refused.
func (s *sensors) Fingerprint() string { return fmt.Sprint("sensors ", s.readings) }

// Chunks divides the readings: one is a step.
func (s *sensors) Chunks() int {
	n, _ := schedule.Cut(len(s.readings))
	return n
}

// Trainer makes the trainer of a worker.
func (s *sensors) Trainer(w godwit.Worker, _ train.Partition) (train.Trainer[reading], error) {
	return &trainer{w: w, readings: s.readings}, nil
}

// Evaluate computes the error of all readings, the same at every node.
func (s *sensors) Evaluate(ctx context.Context, env *train.Env, _ int) (train.Evaluation, error) {
	w, sum, value := env.Workers[0], 0.0, make([]float32, 1)
	for _, r := range s.readings {
		if err := w.Pull(ctx, []godwit.Key{w.Model().Key(0, r.sensor)}, value); err != nil {
			return train.Evaluation{}, err
		}
		sum += math.Pow(float64(value[0]-r.value), 2)
	}
	rmse := math.Sqrt(sum / float64(len(s.readings)))
	return train.Evaluation{Metrics: []train.Metric{{Name: "RMSE", Value: rmse}}, LowerIsBetter: true}, nil
}

// A trainer trains the readings of chunks, one a step.
type trainer struct {
	w        godwit.Worker
	readings []reading
}

// Steps says how many steps a chunk has.
func (t *trainer) Steps(_, chunk int) int { return schedule.Steps(len(t.readings), chunk) }

// Load says long before a step which keys it needs.
func (t *trainer) Load(b *train.Batch[reading], at train.At) {
	_, perChunk := schedule.Cut(len(t.readings))
	b.Data = t.readings[at.Chunk*perChunk+at.Step]
	b.Keys = append(b.Keys[:0], t.w.Model().Key(0, b.Data.sensor))
}

// Step pulls, computes and pushes a gradient.
func (t *trainer) Step(ctx context.Context, b *train.Batch[reading]) (train.Loss, error) {
	value := make([]float32, 1)
	if err := t.w.Pull(ctx, b.Keys, value); err != nil {
		return train.Loss{}, err
	}
	off := value[0] - b.Data.value
	err := t.w.Push(ctx, b.Keys, []float32{2 * off})
	return train.Loss{Sum: float64(off * off), Examples: 1}, err
}

// A task of one's own is trained by the same loop as those of the folders below.
func ExampleRun() {
	task := &sensors{readings: []reading{{0, 20}, {1, -5}, {2, 13}, {1, -5}}}
	model, err := godwit.NewModel(godwit.Table{Name: "sensor", Rows: 3, Dim: 1, Rule: optim.SGD{LR: 0.1}})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	c, err := node.Local(ctx, 1, node.Config{Model: model, Workers: 2})
	if err != nil {
		panic(err)
	}
	defer c.Close(ctx)

	env := train.Env{Workers: c.Nodes[0].Workers(), Progress: func(e train.Event) {
		if e.Evaluation != nil {
			fmt.Printf("epoch %d: %s %.1f\n", e.Epoch, e.Evaluation.Metrics[0].Name, e.Evaluation.Metrics[0].Value)
		}
	}}
	report, err := train.Run(ctx, env, task, train.Options{Epochs: 20, EvalEvery: 10})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d epochs: %s\n", report.Epochs, report.End)
	// Output:
	// epoch 10: RMSE 1.3
	// epoch 20: RMSE 0.1
	// 20 epochs: all epochs trained
}
