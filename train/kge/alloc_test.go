//go:build !race

package kge

// The race detector's build drops pooled memory at random, to find more races.

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/buffer"
)

func TestStepsAllocateNothingOnceBuffersHaveGrown(t *testing.T) {
	g := randomGraph(100, 5, 640, 4)
	for _, drop := range []float32{0, 0.3} {
		c := DefaultConfig()
		c.Dim, c.Batch, c.Negatives, c.EntityDropout = 8, 64, 20, drop
		task, s := setup(t, c, g, 1, 1)
		w := s.Workers(0)[0]
		tr, _ := firstStep(t, task, w)
		var b train.Batch[Batch]
		step, chunks := 0, task.Chunks()
		work := func() {
			tr.Load(&b, traintest.At(tr, chunks, step))
			step++
			// What pull does, without the server.
			tr.keysOf = append(append(tr.keysOf[:0], b.Keys...), make([]godwit.Key, b.Samples)...)
			for i := range b.Samples {
				tr.keysOf[len(b.Keys)+i] = tr.keys.entity + godwit.Key(i)
			}
			n := b.Data.relations*tr.task.relDim + (b.Data.entities+b.Samples)*tr.task.cfg.Dim
			tr.vals = buffer.Sized(tr.vals, n)
			tr.distinct(&b.Data)
			st := tr.split(&b.Data)
			tr.forward(&st)
			tr.loss(&st)
			tr.backward(&st)
			tr.regularize(&st)
		}
		for range 40 {
			work()
		}
		if n := testing.AllocsPerRun(3*traintest.Count(tr, chunks), work); n > 0 {
			t.Errorf("with dropout %v, a step allocates %v times", drop, n)
		}
	}
}
