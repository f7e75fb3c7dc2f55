package kge

import (
	"math/rand/v2"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train"
)

// A Batch is the task's part of a [train.Batch]: triples as numbers of the
// batch's distinct relations and entities. The batch's keys are those of the
// relations, then those of the entities.
type Batch struct {
	relations, entities int
	triples             []local
}

// A local is a triple of a batch: s and o number its entities, object and
// subject its relation embeddings for object and for subject queries.
type local struct{ s, o, object, subject int32 }

// A loader fills batches with one worker's share of the training triples, in
// an order that seed, part and epoch decide.
type loader struct {
	task  *Task
	keys  keys
	part  train.Part
	order []uint32 // the share, as positions in Graph.Train
	rels  *index
	ents  *index
}

func newLoader(t *Task, k keys, part train.Part) *loader {
	l := &loader{task: t, keys: k, part: part}
	for i := part.Index; i < len(t.graph.Train); i += part.Of {
		l.order = append(l.order, uint32(i))
	}
	b := min(t.cfg.Batch, len(l.order))
	l.rels, l.ents = newIndex(2*b), newIndex(2*b)
	return l
}

func (l *loader) steps() int { return (len(l.order) + l.task.cfg.Batch - 1) / l.task.cfg.Batch }

func (l *loader) load(b *train.Batch[Batch], epoch, step int) {
	if step == 0 {
		r := rand.New(rand.NewPCG(l.task.cfg.Seed, uint64(epoch)<<32|uint64(l.part.Index)))
		r.Shuffle(len(l.order), func(i, j int) { l.order[i], l.order[j] = l.order[j], l.order[i] })
	}
	from := step * l.task.cfg.Batch
	to := min(from+l.task.cfg.Batch, len(l.order))
	l.rels.reset()
	l.ents.reset()
	d := &b.Data
	d.triples = d.triples[:0]
	for _, i := range l.order[from:to] {
		t := l.task.graph.Train[i]
		d.triples = append(d.triples, local{
			s: l.ents.add(t.S), o: l.ents.add(t.O),
			object:  l.rels.add(l.task.relationRow(t.R, false)),
			subject: l.rels.add(l.task.relationRow(t.R, true)),
		})
	}
	d.relations, d.entities = len(l.rels.rows), len(l.ents.rows)
	b.Keys = b.Keys[:0]
	for _, r := range l.rels.rows {
		b.Keys = append(b.Keys, l.keys.relation+godwit.Key(r))
	}
	for _, e := range l.ents.rows {
		b.Keys = append(b.Keys, l.keys.entity+godwit.Key(e))
	}
	b.Sampler, b.Samples = l.task.cfg.Sampler, l.task.cfg.Negatives
}
