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

// A loader fills batches from a run of blocks.
type loader struct {
	task   *Task
	part   train.Partition
	keys   keys
	blocks func(step int) int
	steps  int

	reader *corpus.Reader
	text   corpus.Text
	source rand.PCG
	rand   *rand.Rand
	number []int32 // of each word of the vocabulary in the batch, 0 … ; -1 in none
	words  []int32 // the batch's distinct words
}

// newLoader loads a worker's share of the blocks that are trained. It is a run
// of them, as near as possible to a run of the text: what is written together
// has words in common.
func newLoader(t *Task, part train.Partition) *loader {
	all := t.corpus.Blocks() - t.heldOut()
	from, to := all/part.Count*part.Index+min(part.Index, all%part.Count), all/part.Count*(part.Index+1)+min(part.Index+1, all%part.Count)
	l := &loader{task: t, part: part, steps: to - from, blocks: func(step int) int { return t.trained(from + step) }}
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

func (l *loader) load(b *train.Batch[Batch], epoch, step int) {
	d := &b.Data
	d.tokens, d.ends, d.spans = d.tokens[:0], d.ends[:0], d.spans[:0]
	for _, w := range l.words {
		l.number[w] = -1
	}
	l.words = l.words[:0]
	block := l.blocks(step)
	d.err = l.reader.Read(block, &l.text)
	if step == l.steps-1 && d.err == nil {
		d.err = l.reader.Close() // the next epoch begins elsewhere, if there is one
	}
	// The same block gives the same batch, whichever worker loads it.
	l.source.Seed(l.task.cfg.Seed, uint64(epoch)<<40^uint64(block))
	from := int32(0)
	for _, end := range l.text.Ends {
		l.sentence(d, l.text.Words[from:end])
		from = end
	}
	d.words, d.raw, d.rate = len(l.words), l.text.Raw, l.rate(epoch, step)
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
func (l *loader) rate(epoch, step int) float32 {
	last := float64(l.task.cfg.LastLR)
	done := (float64(epoch-1) + float64(step)/float64(l.steps)) / float64(max(l.part.Epochs, 1))
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
