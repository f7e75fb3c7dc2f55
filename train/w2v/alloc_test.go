//go:build !race

package w2v

// The race detector's build drops pooled memory at random, to find more races.

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

func TestStepsAllocateNothingOnceBuffersHaveGrown(t *testing.T) {
	c, q, _ := generated(t, 10, 2, 20_000, 100)
	for _, method := range []string{SkipGram, CBOW} {
		task, s := setup(t, small(method), c, q, 1, 1)
		tr := aTrainer(t, task, s.Workers(0)[0])
		var b train.Batch[Batch]
		step := 0
		work := func() {
			tr.Load(&b, traintest.At(tr, task.Chunks(), step))
			step = (step + 1) % (traintest.Count(tr, task.Chunks()) - 1) // after the last, the reader begins again
			// What pull does, without the server.
			tr.layOut(b.Keys, b.Samples)
			for i := len(b.Keys); i < len(tr.keysOf); i++ {
				tr.keysOf[i] = tr.keys.output + godwit.Key(i%20)
			}
			tr.lossAndGradient(&b)
		}
		for range 2 * traintest.Count(tr, task.Chunks()) {
			work()
		}
		step = 0
		if n := testing.AllocsPerRun(traintest.Count(tr, task.Chunks())/2, work); n > 0 {
			t.Errorf("%s: a step allocates %v times", method, n)
		}
	}
}
