package lda

import (
	"context"
	"fmt"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/bagofwords"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/train"
)

// BenchmarkStep loads and trains batches of documents whose topics were drawn before, on
// one node; the time is that of a word.
func BenchmarkStep(b *testing.B) {
	for _, topics := range []int{50, 500} {
		b.Run(fmt.Sprintf("topics=%d", topics), func(b *testing.B) {
			spec := bagofwords.DefaultSpec()
			spec.Words, spec.Topics = 10_000, 50
			all, err := bagofwords.Generate(spec)
			if err != nil {
				b.Fatal(err)
			}
			docs, held := all.Split(10)
			cfg := DefaultConfig()
			cfg.Topics = topics
			task, err := New(cfg, docs, held)
			if err != nil {
				b.Fatal(err)
			}
			t, err := task.Trainer(nodeOf(b, task).Worker(0), train.Partition{Count: 1})
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			var batch train.Batch[Batch]
			words := 0
			for epoch := 1; words < b.N; epoch++ {
				for chunk := 0; chunk < task.Chunks() && words < b.N; chunk++ {
					for step := range t.Steps(1, chunk) {
						t.Load(&batch, train.At{Epoch: epoch, Chunk: chunk, Step: step})
						loss, err := t.Step(b.Context(), &batch)
						if err != nil {
							b.Fatal(err)
						}
						words += int(loss.Examples)
					}
				}
			}
		})
	}
}

// nodeOf is a node that serves the task's tables alone.
func nodeOf(b *testing.B, task *Task) *node.Node {
	m, err := godwit.NewModel(task.Tables()...)
	if err != nil {
		b.Fatal(err)
	}
	c, err := node.Local(b.Context(), 1, node.Config{Model: m, Workers: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return c.Nodes[0]
}
