package w2v

import (
	"math/rand/v2"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/corpus"
	"github.com/godwit-ps/godwit/train"
)

// A Batch is the task's part of a [train.Batch]: the sentences of a block, less
// what subsampling left out, as numbers of the batch's distinct words. The
// batch's keys are the input rows of these words, then their output rows.
type Batch struct {
	words  int     // distinct ones
	tokens []int32 // the sentences
	ends   []int32 // of the sentences in tokens; each has two words at least
	spans  []uint8 // how far the context of each token reaches
	raw    int     // words of the block
	rate   float32 // what the learning rate has fallen to, as a share
	err    error   // the block could not be read: Step returns it
}

// A loader fills batches from the blocks of chunks.
type loader struct {
	task   *Task
	epochs int // of the run
	keys   keys

	reader *corpus.Reader
	text   corpus.Text
	source rand.PCG
	rand   *rand.Rand
	number []int32 // of each word of the vocabulary in the batch, 0 … ; -1 in none
	words  []int32 // the batch's distinct words
}

func newLoader(t *Task, epochs int) *loader {
	l := &loader{task: t, epochs: epochs}
	l.open()
	return l
}

func (l *loader) open() {
	l.reader = l.task.corpus.Reader()
	l.rand = rand.New(&l.source)
	l.number = make([]int32, len(l.task.keep))
	for i := range l.number {
		l.number[i] = -1
	}
}

func (l *loader) load(b *train.Batch[Batch], at train.At) {
	l.block(b, l.task.block(at.Chunk, at.Step), at)
}

// block fills a batch from a block.
func (l *loader) block(b *train.Batch[Batch], block int, at train.At) {
	d := &b.Data
	d.tokens, d.ends, d.spans = d.tokens[:0], d.ends[:0], d.spans[:0]
	for _, w := range l.words {
		l.number[w] = -1
	}
	l.words = l.words[:0]
	d.err = l.reader.Read(block, &l.text)
	// The same block gives the same batch, whichever worker loads it.
	l.source.Seed(l.task.cfg.Seed, uint64(at.Epoch)<<40^uint64(block))
	from := int32(0)
	for _, end := range l.text.Ends {
		l.sentence(d, l.text.Words[from:end])
		from = end
	}
	d.words, d.raw, d.rate = len(l.words), l.text.Raw, l.rate(at)
	b.Keys = b.Keys[:0]
	for _, w := range l.words {
		b.Keys = append(b.Keys, l.keys.input+godwit.Key(w))
	}
	for _, w := range l.words {
		b.Keys = append(b.Keys, l.keys.output+godwit.Key(w))
	}
	b.Sampler, b.Samples = l.task.cfg.Sampler, 0
	if len(l.words) > 0 {
		b.Samples = l.task.cfg.Pool
	}
}

// sentence adds a sentence to the batch, without the words that subsampling leaves out,
// if at least two words remain.
func (l *loader) sentence(d *Batch, words []int32) {
	begin := len(d.tokens)
	for _, w := range words {
		if p := l.task.keep[w]; p == 1 || l.rand.Float32() < p {
			d.tokens = append(d.tokens, w)
		}
	}
	if len(d.tokens) < begin+2 {
		d.tokens = d.tokens[:begin]
		return
	}
	for i := begin; i < len(d.tokens); i++ {
		w := d.tokens[i]
		if l.number[w] < 0 {
			l.number[w] = int32(len(l.words))
			l.words = append(l.words, w)
		}
		d.tokens[i] = l.number[w]
		d.spans = append(d.spans, uint8(1+l.rand.IntN(l.task.cfg.Window)))
	}
	d.ends = append(d.ends, int32(len(d.tokens)))
}

// rate is the share of the learning rate at a step: it falls linearly.
func (l *loader) rate(at train.At) float32 {
	last := float64(l.task.cfg.LastLR)
	done := (float64(at.Epoch-1) + at.Progress) / float64(max(l.epochs, 1))
	return float32(1 - (1-last)*min(done, 1))
}

// contexts calls do for every token and the tokens lo … hi-1 around it that its
// context reaches, itself among them.
func (b *Batch) contexts(do func(i, lo, hi int)) {
	from := 0
	for _, end := range b.ends {
		to := int(end)
		for i := from; i < to; i++ {
			span := int(b.spans[i])
			do(i, max(from, i-span), min(to, i+span+1))
		}
		from = to
	}
}
