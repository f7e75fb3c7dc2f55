package traintest

import (
	"iter"

	"github.com/godwit-ps/godwit/train"
)

// Steps yields the steps of an epoch of so many chunks, as one worker trains them.
func Steps[D any](t train.Trainer[D], chunks, epoch int) iter.Seq[train.At] {
	return func(yield func(train.At) bool) {
		for chunk := range chunks {
			for step := range t.Steps(epoch, chunk) {
				share := float64(step) / float64(t.Steps(epoch, chunk))
				if !yield(train.At{Epoch: epoch, Chunk: chunk, Step: step, Progress: (float64(chunk) + share) / float64(chunks)}) {
					return
				}
			}
		}
	}
}

// Count returns the number of steps of an epoch of so many chunks.
func Count[D any](t train.Trainer[D], chunks int) (n int) {
	for chunk := range chunks {
		n += t.Steps(1, chunk)
	}
	return n
}

// At returns the i-th step that one worker trains, from epoch 1 on, with so many chunks an epoch.
func At[D any](t train.Trainer[D], chunks, i int) train.At {
	n := Count(t, chunks)
	at := train.At{Epoch: 1 + i/n, Step: i % n, Progress: float64(i%n) / float64(n)}
	for at.Step >= t.Steps(at.Epoch, at.Chunk) {
		at.Step -= t.Steps(at.Epoch, at.Chunk)
		at.Chunk++
	}
	return at
}
