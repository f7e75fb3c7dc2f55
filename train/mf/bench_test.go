package mf

import (
	"context"
	"fmt"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/ratings"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

// local is a worker whose rows are in one array: the server at its fastest.
type local struct {
	godwit.Worker
	vals []float32
	dim  int
}

func (w *local) Pull(_ context.Context, keys []godwit.Key, dst []float32) error {
	for i, k := range keys {
		copy(dst[i*w.dim:(i+1)*w.dim], w.vals[int(k)*w.dim:])
	}
	return nil
}

func (w *local) Push(_ context.Context, keys []godwit.Key, push []float32) error {
	for i, k := range keys {
		for j, x := range push[i*w.dim : (i+1)*w.dim] {
			w.vals[int(k)*w.dim+j] += x
		}
	}
	return nil
}

// BenchmarkStep loads and trains batches of a matrix; the time is that of a
// cell. The server costs a copy and an addition of each row.
func BenchmarkStep(b *testing.B) {
	set, err := ratings.Generate(ratings.DefaultSpec())
	if err != nil {
		b.Fatal(err)
	}
	for _, order := range []string{Plain, Columns} {
		for _, rule := range []string{SGD, "adagrad"} {
			for _, dim := range []int{16, 64, 256} {
				b.Run(fmt.Sprintf("%s/%s/%d", order, rule, dim), func(b *testing.B) {
					c := DefaultConfig()
					c.Order, c.Rule, c.BoldDriver, c.Dim = order, rule, false, dim
					task, s := setup(b, c, set, 1, 1)
					w := &local{s.Workers(0)[0], make([]float32, (int(s.Workers(0)[0].Model().Keys()))*(dim+1)), dim + 1}
					for i := range w.vals {
						w.vals[i] = 0.1
					}
					t, err := task.Trainer(w, train.Partition{Count: 1, Nodes: 1})
					if err != nil {
						b.Fatal(err)
					}
					var batch train.Batch[Batch]
					b.ResetTimer()
					for cells, step := 0, 0; cells < b.N; step++ {
						t.Load(&batch, traintest.At(t, max(1, task.Chunks()), step))
						l, err := t.Step(context.Background(), &batch)
						if err != nil {
							b.Fatal(err)
						}
						cells += int(l.Examples)
					}
				})
			}
		}
	}
}
