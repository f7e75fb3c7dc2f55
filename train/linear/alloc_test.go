//go:build !race

package linear

// The race detector's build drops pooled memory at random, to find more races.

import (
	"testing"

	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/buffer"
)

func TestStepsAllocateNothingOnceBuffersHaveGrown(t *testing.T) {
	data := generated(t, nil)
	for _, factors := range []int{0, 4} {
		c := DefaultConfig()
		c.Factors = factors
		task := newTask(t, c, data)
		x, err := task.Trainer(served(t, task.Tables(), 1, 1).Workers(0)[0], train.Partition{Count: 1})
		if err != nil {
			t.Fatal(err)
		}
		tr := x.(*trainer)
		var b train.Batch[Batch]
		step, chunks := 0, task.Chunks()
		work := func() {
			tr.Load(&b, traintest.At(tr, chunks, step))
			step++
			// What Step does, without the server.
			n := tr.floats(&b.Data)
			tr.vals, tr.grads = buffer.Sized(tr.vals, n), buffer.Sized(tr.grads, n)
			tr.gradient(&b.Data)
		}
		for range 2 * traintest.Count(tr, chunks) {
			work()
		}
		if n := testing.AllocsPerRun(3*traintest.Count(tr, chunks), work); n > 0 {
			t.Errorf("with %d factors, a step allocates %v times", factors, n)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	data := generated(b, nil)
	for _, factors := range []int{0, 16} {
		name := "linear"
		if factors > 0 {
			name = "factors16"
		}
		b.Run(name, func(b *testing.B) {
			c := DefaultConfig()
			c.Factors = factors
			task := newTask(b, c, data)
			tr, err := task.Trainer(served(b, task.Tables(), 1, 1).Workers(0)[0], train.Partition{Count: 1})
			if err != nil {
				b.Fatal(err)
			}
			var batch train.Batch[Batch]
			step, chunks := 0, task.Chunks()
			for b.Loop() {
				tr.Load(&batch, traintest.At(tr, chunks, step))
				if _, err := tr.Step(b.Context(), &batch); err != nil {
					b.Fatal(err)
				}
				step++
			}
			b.ReportMetric(float64(b.N*c.Batch)/b.Elapsed().Seconds(), "examples/s")
		})
	}
}
