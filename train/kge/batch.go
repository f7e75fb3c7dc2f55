package kge

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/buffer"
	"github.com/godwit-ps/godwit/train/internal/distinct"
)

// A Batch is the task's part of a [train.Batch]: triples as numbers of the
// batch's distinct relations and entities. The batch's keys are those of the
// relations, then those of the entities.
type Batch struct {
	relations, entities int
	triples             []local
	queries             []batchQuery
	answers             []int32 // entities, those of a query one after the other
	at                  train.At
}

// A batchQuery asks for objects or for subjects of an entity and a relation. Triples that
// ask the same share one, with an answer for each. Its answers are those before end,
// from the end of the query before on.
type batchQuery struct {
	entity, relation int32
	subjects         bool
	end              int32
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

	first, next []int32 // chains of the queries of entity i, -1 at the end
	of          []int32 // the query of each triple for objects, then of each for subjects
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
	l.ask(d)
	b.Keys = b.Keys[:0]
	for _, r := range l.rels.All() {
		b.Keys = append(b.Keys, l.keys.relation+godwit.Key(r))
	}
	for _, e := range l.ents.All() {
		b.Keys = append(b.Keys, l.keys.entity+godwit.Key(e))
	}
	b.Sampler, b.Samples = l.task.cfg.Sampler, l.task.cfg.Negatives
}

// ask finds the distinct queries of a batch's triples, in the order of the triples, those for
// objects first. With dropout each triple has its own, as its masks are its own.
func (l *loader) ask(d *Batch) {
	shared := l.task.cfg.EntityDropout == 0 && l.task.cfg.RelationDropout == 0
	m := len(d.triples)
	l.first, l.of = buffer.Sized(l.first, d.entities), buffer.Sized(l.of, 2*m)
	for i := range l.first {
		l.first[i] = -1
	}
	d.queries, l.next = d.queries[:0], l.next[:0]
	find := func(e, r int32, subjects bool) int32 {
		for q := l.first[e]; shared && q >= 0; q = l.next[q] {
			if x := &d.queries[q]; x.relation == r && x.subjects == subjects {
				return q
			}
		}
		q := int32(len(d.queries))
		d.queries = append(d.queries, batchQuery{entity: e, relation: r, subjects: subjects})
		l.next, l.first[e] = append(l.next, l.first[e]), q
		return q
	}
	for i, t := range d.triples {
		l.of[i] = find(t.s, t.object, false)
	}
	for i, t := range d.triples {
		l.of[m+i] = find(t.o, t.subject, true)
	}
	// Count the answers of each, sum up where they begin, and put them there.
	for _, q := range l.of {
		d.queries[q].end++
	}
	begin := int32(0)
	for q := range d.queries {
		begin, d.queries[q].end = begin+d.queries[q].end, begin
	}
	d.answers = buffer.Sized(d.answers, 2*m)
	for i, q := range l.of {
		x := &d.queries[q]
		if i < m {
			d.answers[x.end] = d.triples[i].o
		} else {
			d.answers[x.end] = d.triples[i-m].s
		}
		x.end++
	}
}
