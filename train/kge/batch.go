package kge

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/distinct"
)

// A Batch is the task's part of a [train.Batch]: triples as numbers of the
// batch's distinct relations and entities. The batch's keys are those of the
// relations, then those of the entities.
type Batch struct {
	relations, entities int
	triples             []local
	at                  train.At
}

// A local is a triple of a batch: s and o number its entities, object and
// subject its relation embeddings for object and for subject queries.
type local struct{ s, o, object, subject int32 }

// A loader fills batches with the training triples of chunks.
type loader struct {
	task  *Task
	keys  keys
	items *schedule.Items // positions in Graph.Train
	rels  distinct.Rows
	ents  distinct.Rows
}

func newLoader(t *Task, k keys) *loader {
	return &loader{task: t, keys: k, items: t.items()}
}

func (l *loader) load(b *train.Batch[Batch], at train.At) {
	l.rels.Reset()
	l.ents.Reset()
	d := &b.Data
	d.triples, d.at = d.triples[:0], at
	for _, i := range l.items.Batch(at.Epoch, at.Chunk, at.Step) {
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
