package mf

import (
	"context"
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/ratings"
	"github.com/godwit-ps/godwit/train"
)

// chunk is how many cells are pulled at once.
const chunk = 4096

// RMSE returns the root of the mean squared error of the cells, which are split
// over all workers of all nodes. Every node calls it at the same point, with
// equal cells and a name that is not used twice, and gets the same result; NaN
// of no cells. It only reads, and takes the rows as they are: call it when all
// workers are done and synchronized, as [train.Run] leaves them.
func (t *Task) RMSE(ctx context.Context, env *train.Env, name string, cells []ratings.Rating) (float64, error) {
	sum, err := env.SumOverWorkers(ctx, "mf rmse "+name, 1, func(ctx context.Context, i int, w godwit.Worker, sums []float64) error {
		k, err := t.keys(w.Model())
		if err != nil {
			return err
		}
		from, to := env.Share(len(cells), i)
		sums[0], err = (&evaluator{task: t, w: w, num: numberer{keys: k}}).sum(ctx, cells[from:to])
		return err
	})
	if err != nil {
		return 0, err
	}
	return math.Sqrt(sum[0] / float64(len(cells))), nil
}

// An evaluator sums up the squared errors of one worker's cells.
type evaluator struct {
	task  *Task
	w     godwit.Worker
	num   numberer
	batch train.Batch[Batch]
	vals  []float32
}

func (ev *evaluator) sum(ctx context.Context, cells []ratings.Rating) (sum float64, err error) {
	for from := 0; from < len(cells); from += chunk {
		x, err := ev.chunk(ctx, cells[from:min(from+chunk, len(cells))])
		if err != nil {
			return 0, err
		}
		sum += x
	}
	return sum, nil
}

func (ev *evaluator) chunk(ctx context.Context, cells []ratings.Rating) (sum float64, err error) {
	if err := ev.pull(ctx, cells); err != nil {
		return 0, err
	}
	b := &ev.batch
	for _, c := range b.Data.cells {
		p, q := ev.task.sides(ev.vals, &b.Data, c)
		e := float64(c.value - ev.task.forward(p, q))
		sum += e * e
	}
	return sum, nil
}
