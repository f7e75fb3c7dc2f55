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
	src  *rand.PCG
	rand *rand.Rand

	topics []uint16 // of the words of the batch
	moved  []bool   // of its distinct words, then of the rows of the topics: a count may have changed
	rows   distinct.Rows
	vals   []float32
	diffs  []float32 // changes of the counts and topics, to be pushed
	ks     []godwit.Key
	s      sampler
}

func newTrainer(t *Task, w godwit.Worker, k keys) *trainer {
	tr := &trainer{task: t, w: w, keys: k, src: new(rand.PCG), s: newSampler(t)}
	tr.rand = rand.New(tr.src)
	return tr
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
	t.vals, t.diffs = buffer.Sized(t.vals, n), buffer.Sized(t.diffs, n)
	if err := t.w.Pull(ctx, b.Keys, t.vals); err != nil {
		return train.Loss{}, err
	}
	clear(t.diffs)
	t.readTopics(&b.Data, t.vals[counts:])
	loss := t.sweep(&b.Data, t.vals[:counts])
	t.writeTopics(&b.Data, t.vals[counts:], t.diffs[counts:])
	return train.Loss{Sum: loss, Examples: int64(len(b.Data.local))}, t.update(ctx, b.Keys)
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

// writeTopics leaves in diffs how the rows change.
func (t *trainer) writeTopics(b *Batch, rows, diffs []float32) {
	digits := t.task.digits()
	for i, from := 0, t.offset(b); i < len(t.topics); i, from = i+1, from+digits {
		x := int(t.topics[i]) + 1
		for d := range digits {
			diffs[from+d] = float32(x&255) - rows[from+d]
			x >>= 8
		}
	}
}

// update pushes the changes.
func (t *trainer) update(ctx context.Context, keys []godwit.Key) error {
	ks, diffs := t.changed(keys)
	return t.w.Push(ctx, ks, diffs)
}

// changed returns the keys whose rows changed, and their changes. After some epochs,
// most words keep their topic.
func (t *trainer) changed(ks []godwit.Key) ([]godwit.Key, []float32) {
	t.ks = t.ks[:0]
	from, to := 0, 0
	for i, key := range ks {
		k := t.task.cfg.Topics
		if i >= len(t.moved) {
			k = perAssigned * t.task.digits()
		}
		row := t.diffs[from : from+k]
		from += k
		if (i >= len(t.moved) || t.moved[i]) && slices.ContainsFunc(row, func(x float32) bool { return x != 0 }) {
			to += copy(t.diffs[to:], row)
			t.ks = append(t.ks, key)
		}
	}
	return t.ks, t.diffs[:to]
}

// sweep makes a sweep of Gibbs sampling over the words of a batch: it samples each
// word's topic anew. It leaves the changes of the counts in t.diffs, and returns the
// summed loss: -log of the probability that the counts gave each word before it was
// counted.
func (t *trainer) sweep(b *Batch, vals []float32) (loss float64) {
	t.src.Seed(b.at.Seed(t.task.cfg.Seed))
	k, docs := t.task.cfg.Topics, t.task.docs
	t.s.setTotals(vals[b.words*k:])
	t.moved = buffer.Sized(t.moved, b.words+t.task.rows)
	clear(t.moved)
	product := likelihood(1)
	local, rest := b.local, t.topics
	for doc := b.from; doc < b.to; doc++ {
		n := len(docs.Doc(doc))
		topics := rest[:n]
		rest = rest[n:]
		t.s.beginDocument(topics)
		row := b.words + t.task.row(doc)
		for i, id := range local[:n] {
			counts, was := vals[int(id)*k:(int(id)+1)*k], topics[i]
			if was != none {
				t.s.count(counts, int(was), -1)
			}
			z, p := t.s.sample(counts, t.rand)
			loss += product.and(p)
			t.s.count(counts, z, 1)
			if z != int(was) {
				t.move(int(id), was, z)
				t.move(row, was, z)
				topics[i] = uint16(z)
			}
		}
		local = local[n:]
	}
	return loss + product.end()
}

// A likelihood is a product of probabilities. Its logarithm is taken when it gets small,
// which is after some twenty words.
type likelihood float64

// and multiplies p to the product, and returns -log of what it takes out of it, if anything.
func (l *likelihood) and(p float64) float64 {
	*l *= likelihood(p)
	if *l > 1e-200 {
		return 0
	}
	return l.end()
}

// end returns -log of the product, which begins anew.
func (l *likelihood) end() float64 {
	loss := -math.Log(float64(*l))
	*l = 1
	return loss
}

// move notes that a word moved from one topic, or none, to another, in a row of the batch.
func (t *trainer) move(row int, from uint16, to int) {
	k := t.task.cfg.Topics
	diffs := t.diffs[row*k : (row+1)*k]
	if from != none {
		diffs[from]--
	}
	diffs[to]++
	t.moved[row] = true
}
