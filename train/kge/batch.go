package kge

import (
	"math/rand/v2"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/distinct"
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
	rels  distinct.Rows
	ents  distinct.Rows
}

func newLoader(t *Task, k keys, part train.Part) *loader {
	l := &loader{task: t, keys: k, part: part}
	for i := part.Index; i < len(t.graph.Train); i += part.Of {
		l.order = append(l.order, uint32(i))
	}
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
	l.rels.Reset()
	l.ents.Reset()
	d := &b.Data
	d.triples = d.triples[:0]
	for _, i := range l.order[from:to] {
		t := l.task.graph.Train[i]
		d.triples = append(d.triples, local{
			s: l.ents.Add(t.S), o: l.ents.Add(t.O),
			object:  l.rels.Add(l.task.relationRow(t.R, false)),
			subject: l.rels.Add(l.task.relationRow(t.R, true)),
		})
	}
	d.relations, d.entities = l.rels.Len(), l.ents.Len()
	b.Keys = b.Keys[:0]
	for _, r := range l.rels.All() {
		b.Keys = append(b.Keys, l.keys.relation+godwit.Key(r))
	}
	for _, e := range l.ents.All() {
		b.Keys = append(b.Keys, l.keys.entity+godwit.Key(e))
	}
	b.Sampler, b.Samples = l.task.cfg.Sampler, l.task.cfg.Negatives
}
