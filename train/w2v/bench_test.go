//go:build !race

package w2v

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/corpus"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

// BenchmarkStep trains a generated text of 20,000 different words with the
// default settings, on the plain server of the tests. The baseline is the
// arithmetic alone, on values that are there already.
func BenchmarkStep(b *testing.B) {
	g, err := corpus.Generate(corpus.Spec{Stems: 3000, Forms: 4, Words: 1_000_000, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	c, err := corpus.FromText("generated", g.Text, corpus.Options{MinCount: 5, Block: 250})
	if err != nil {
		b.Fatal(err)
	}
	for _, method := range []string{SkipGram, CBOW} {
		cfg := DefaultConfig()
		cfg.Method = method
		task, s := setup(b, cfg, c, nil, 1, 1)
		w := s.Workers(0)[0]
		perWord := func(b *testing.B, words int) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(words), "ns/word")
		}
		b.Run(method+"/whole", func(b *testing.B) {
			tr, batch, words := aTrainer(b, task, w), new(train.Batch[Batch]), 0
			for step := 0; b.Loop(); step++ {
				tr.Load(batch, traintest.At(tr, task.Chunks(), step))
				id, err := w.PrepareSample(batch.Sampler, batch.Samples, w.Clock(), godwit.Forever)
				if err != nil {
					b.Fatal(err)
				}
				batch.Sample = id
				if _, err := tr.Step(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
				w.FinishSample(id)
				words += batch.Data.raw
			}
			perWord(b, words)
		})
		b.Run(method+"/arithmetic", func(b *testing.B) {
			tr, batch, words := aTrainer(b, task, w), new(train.Batch[Batch]), 0
			tr.Load(batch, train.At{Epoch: 1})
			tr.layOut(batch.Keys, batch.Samples)
			for i := len(batch.Keys); i < len(tr.keysOf); i++ {
				tr.keysOf[i] = tr.keys.output + godwit.Key(i)
			}
			for b.Loop() {
				tr.lossAndGradient(batch)
				words += batch.Data.raw
			}
			perWord(b, words)
		})
		b.Run(method+"/load", func(b *testing.B) {
			tr, batch, words := aTrainer(b, task, w), new(train.Batch[Batch]), 0
			for step := 0; b.Loop(); step++ {
				tr.Load(batch, traintest.At(tr, task.Chunks(), step))
				words += batch.Data.raw
			}
			perWord(b, words)
		})
	}
}
