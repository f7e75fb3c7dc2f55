package lda

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/buffer"
	"github.com/godwit-ps/godwit/train/internal/distinct"
)

// A Batch is the task's part of a [train.Batch]: some documents in a row, with
// their words as numbers of the batch's distinct ones. Its keys are those of the
// words, then all rows of the topics, then the rows with the topics of the documents' words.
type Batch struct {
	from, to int     // documents
	words    int     // distinct ones
	assigned int     // rows with topics of words
	local    []int32 // belongs to the task, which keeps it: see numbering
	at       train.At
}

// none is the topic of a word that has none yet.
const none = math.MaxUint16

// A trainer trains one worker's chunks of a [Task]. It belongs to one goroutine.
type trainer struct {
	task *Task
	w    godwit.Worker
	keys keys
	rand *rand.PCG

	topics []uint16 // of the words of the batch
	rows   distinct.Rows
	vals   []float32
	s      sampler

	// What is pushed: keys, and changes of counts and topics. Those of row i of the batch end at changed[i], 0 where there are none.
	ks      []godwit.Key
	diffs   []float32
	changed []uint32
	zeros   []float32 // of a row
}

func newTrainer(t *Task, w godwit.Worker, k keys) *trainer {
	return &trainer{task: t, w: w, keys: k, rand: new(rand.PCG), s: newSampler(t), zeros: make([]float32, max(t.cfg.Topics, perAssigned*t.digits()))}
}

// Steps, Load and Step implement [train.Trainer].
func (t *trainer) Steps(_, chunk int) int { return schedule.Steps(len(t.task.steps)-1, chunk) }

func (t *trainer) Load(b *train.Batch[Batch], at train.At) {
	d, docs := &b.Data, t.task.docs
	_, per := schedule.Cut(len(t.task.steps) - 1)
	step := at.Chunk*per + at.Step
	d.at, d.from, d.to = at, t.task.steps[step], t.task.steps[step+1]
	first, end := docs.Starts[d.from], docs.Starts[d.to]
	n := t.numbering(step)
	d.local, d.words = n.local, len(n.distinct)
	b.Keys = b.Keys[:0]
	for _, w := range n.distinct {
		b.Keys = append(b.Keys, t.keys.word+godwit.Key(w))
	}
	for r := range t.task.rows {
		b.Keys = append(b.Keys, t.keys.topic+godwit.Key(r))
	}
	d.assigned = 0
	for r := first / perAssigned; r*perAssigned < end; r++ {
		b.Keys = append(b.Keys, t.keys.assigned+godwit.Key(r))
		d.assigned++
	}
}

// A numbering is the words of a step's documents as numbers of its distinct ones. A step has the same
// documents in each epoch, so that the first who loads it leaves its numbering in the task, for all of the
// process. It does not change.
type numbering struct {
	distinct []uint32
	local    []int32
}

// numbering returns that of a step.
func (t *trainer) numbering(step int) *numbering {
	kept := &t.task.numberings[step]
	if n := kept.Load(); n != nil {
		return n
	}
	docs := t.task.docs
	words := docs.Words[docs.Starts[t.task.steps[step]]:docs.Starts[t.task.steps[step+1]]]
	n := &numbering{local: make([]int32, len(words))}
	t.rows.Reset()
	for i, w := range words {
		n.local[i] = t.rows.Add(uint32(w))
	}
	n.distinct = slices.Clone(t.rows.All())
	kept.Store(n) // who loads it at the same time makes an equal one
	return n
}

func (t *trainer) Step(ctx context.Context, b *train.Batch[Batch]) (train.Loss, error) {
	counts := (b.Data.words + t.task.rows) * t.task.cfg.Topics
	n := counts + b.Data.assigned*perAssigned*t.task.digits()
	t.vals = buffer.Sized(t.vals, n)
	if err := t.w.Pull(ctx, b.Keys, t.vals); err != nil {
		return train.Loss{}, err
	}
	t.changed = buffer.Sized(t.changed, len(b.Keys))
	clear(t.changed)
	t.ks, t.diffs = t.ks[:0], t.diffs[:0]
	t.readTopics(&b.Data, t.vals[counts:])
	loss := t.sweep(b)
	return train.Loss{Sum: loss, Examples: int64(len(b.Data.local))}, t.w.Push(ctx, t.ks, t.diffs)
}

// offset is where the topic of a batch's first word is in its rows.
func (t *trainer) offset(b *Batch) int {
	return t.task.docs.Starts[b.from] % perAssigned * t.task.digits()
}

// readTopics reads the topics of a batch's words from their rows.
func (t *trainer) readTopics(b *Batch, rows []float32) {
	t.topics = buffer.Sized(t.topics, len(b.local))
	digits := t.task.digits()
	for i, from := 0, t.offset(b); i < len(t.topics); i, from = i+1, from+digits {
		x := 0
		for d := digits - 1; d >= 0; d-- {
			x = x<<8 + int(rows[from+d])
		}
		if x < 0 || x > t.task.cfg.Topics {
			x = 0 // no topic: somebody else has written the row
		}
		t.topics[i] = uint16(x - 1) // none is 2¹⁶-1
	}
}

// writeTopic notes that the topic of a batch's word is z.
func (t *trainer) writeTopic(b *train.Batch[Batch], word, z int) {
	digits, size := t.task.digits(), perAssigned*t.task.digits()
	at := t.offset(&b.Data) + word*digits
	before := b.Data.words + t.task.rows
	diffs, vals := t.change(b, before+at/size, size), t.vals[before*t.task.cfg.Topics+at:]
	for d, x := 0, z+1; d < digits; d++ {
		diffs[at%size+d] = float32(x&255) - vals[d]
		x >>= 8
	}
}

// change returns the changes of a row of the batch, which are pushed. Most words keep their topic, and many rows have no changes.
func (t *trainer) change(b *train.Batch[Batch], row, size int) []float32 {
	n := int(t.changed[row])
	if n == 0 {
		t.ks = append(t.ks, b.Keys[row])
		t.diffs = append(t.diffs, t.zeros[:size]...)
		n = len(t.diffs)
		t.changed[row] = uint32(n)
	}
	return t.diffs[n-size : n]
}

// sweep makes a sweep of Gibbs sampling over the words of a batch: it samples each
// word's topic anew. It leaves the changes of the counts and topics to be pushed, and returns the
// summed loss: -log of the probability that the counts gave each word before it was
// counted.
func (t *trainer) sweep(batch *train.Batch[Batch]) (loss float64) {
	b, vals := &batch.Data, t.vals
	t.rand.Seed(b.at.Seed(t.task.cfg.Seed))
	k, docs := t.task.cfg.Topics, t.task.docs
	t.s.setTotals(vals[b.words*k : (b.words+t.task.rows)*k])
	product := likelihood(1)
	for doc, i := b.from, 0; doc < b.to; doc++ {
		end := i + len(docs.Doc(doc))
		t.s.beginDocument(t.topics[i:end])
		row := b.words + t.task.row(doc)
		for ; i < end; i++ {
			id, was := int(b.local[i]), t.topics[i]
			// Behind the counts of the last word are those of the topics, and a row of assigned ones.
			counts := vals[id*k:]
			var z int
			var p float32
			if was == none {
				z, p = t.s.sample(counts, t.rand)
			} else {
				z, p = t.s.resample(counts, int(was), t.rand)
			}
			if product *= likelihood(p); product < small {
				loss += product.end()
			}
			if z != int(was) {
				t.move(counts, int(was), z, t.change(batch, id, k))
				addMove(t.change(batch, row, k), int(was), z)
				t.topics[i] = uint16(z)
				t.writeTopic(batch, i, z)
			}
		}
	}
	return loss + product.end()
}

// move counts a word in another topic than before, if any, and adds that to the changes of its counts.
func (t *trainer) move(counts []float32, from, to int, diffs []float32) {
	if from != none {
		t.s.count(counts, from, -1)
	}
	t.s.count(counts, to, 1)
	addMove(diffs, from, to)
}

// addMove adds a move from a topic, or none, to another to the changes of counts.
func addMove(diffs []float32, from, to int) {
	if from != none {
		diffs[from]--
	}
	diffs[to]++
}

// A likelihood is a product of probabilities. Its logarithm is taken when it gets small,
// which is after some twenty words.
type likelihood float64

// small is when it does. A probability is above 2⁻¹⁵⁰.
const small likelihood = 1e-200

// end returns -log of the product, which begins anew.
func (l *likelihood) end() float64 {
	loss := -math.Log(float64(*l))
	*l = 1
	return loss
}
