package task

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/kge"
)

// Import implements [train.Importer].
func (t *graphTask) Import(src export.Source) ([]train.Rows, error) { return t.kge.Import(src) }

// Reload implements [Reusable]: the graph has the model's names and the facts of the files.
func (s *KGE) Reload(src export.Source, u Use, seed uint64) (Reloaded, error) {
	g := &triples.Graph{}
	var err error
	if g.Entities, g.Relations, err = kge.Names(src); err != nil {
		return nil, err
	}
	names := triples.NewNames(g.Entities, g.Relations)
	var unknown int
	if u.Test != "" {
		if g.Test, unknown, err = triples.LoadFacts(u.Test, names, s.Files); err != nil {
			return nil, err
		}
		if len(g.Test) == 0 {
			return nil, errNoTest(u.Test, "fact with only names of its")
		}
	}
	if u.Known != "" {
		if g.Train, _, err = triples.LoadFacts(u.Known, names, s.Files); err != nil {
			return nil, err
		}
	}
	cfg := s.Config
	cfg.Seed, cfg.Sampler = seed, 0
	t, err := kge.Reload(cfg, g)
	if err != nil {
		return nil, err
	}
	m := &graphModel{graphTask: graphTask{Trained: Trained[kge.Batch]{Task: t}, kge: t, graph: g}, names: names, top: u.Top}
	m.warnings = left(unknown, "facts", "they have a name that the model does not have")
	if u.Known != "" {
		m.known = triples.NewFilter(g)
	}
	return m, nil
}

// A graphModel is a trained model of the task "kge".
type graphModel struct {
	graphTask
	names *triples.Names
	known *triples.Filter // nil: nothing is known
	top   int
}

// Summary implements [Reloaded].
func (m *graphModel) Summary() string {
	return fmt.Sprintf("%d facts, ranked among %d entities without the other facts of the file and %d that are known",
		len(m.graph.Test), len(m.graph.Entities), len(m.graph.Train))
}

// asked is what a line asks for where a name is missing.
const asked = "?"

// A fact is an answer: the score of a fact, or what completes it.
type fact struct {
	Head     string  `json:"head"`
	Relation string  `json:"relation"`
	Tail     string  `json:"tail"`
	Score    float32 `json:"score"`
}

// Text implements [Answer].
func (f fact) Text() []string {
	return []string{fmt.Sprintf("%s\t%s\t%s\t%.6g", f.Head, f.Relation, f.Tail, f.Score)}
}

// completions are facts that complete one of which head or tail is asked for, the most
// likely first.
type completions struct {
	Completions []fact `json:"completions"`
}

// Text implements [Answer].
func (c completions) Text() (texts []string) {
	for _, f := range c.Completions {
		texts = append(texts, f.Text()...)
	}
	return texts
}

// A question is a line "head relation tail", of which head or tail may be asked for.
type question struct {
	fact
	triple triples.Triple
	tails  bool // are asked for
	heads  bool
}

func (m *graphModel) question(line []byte) (q question, unknown error, err error) {
	h, r, t, err := triples.Fields(line)
	if err != nil {
		return q, nil, err
	}
	q.Head, q.Relation, q.Tail = string(h), string(r), string(t)
	q.heads, q.tails = q.Head == asked, q.Tail == asked
	if q.heads && q.tails {
		return q, nil, fmt.Errorf("both head and tail are %q, ask for one of them", asked)
	}
	var ok bool
	if q.triple.R, ok = m.names.Relation(q.Relation); !ok {
		return q, fmt.Errorf("%q is none of the model's relations", q.Relation), nil
	}
	for _, x := range []struct {
		asked bool
		name  string
		id    *uint32
	}{{q.heads, q.Head, &q.triple.S}, {q.tails, q.Tail, &q.triple.O}} {
		if x.asked {
			continue
		}
		if *x.id, ok = m.names.Entity(x.name); !ok {
			return q, fmt.Errorf("%q is none of the model's entities", x.name), nil
		}
	}
	return q, nil, nil
}

// Answer implements [Reloaded]: facts get their scores, and those with "?" as head or tail
// are completed.
func (m *graphModel) Answer(ctx context.Context, w godwit.Worker, lines [][]byte) ([]Answer, error) {
	answers := make([]Answer, len(lines))
	var facts, open []int // of lines
	var qs []question
	var ts []triples.Triple
	var queries []kge.Query
	var failed error
	for i, line := range lines {
		q, unknown, err := m.question(line)
		if err != nil {
			failed, answers = &LineError{i, err}, answers[:i]
			break
		}
		qs = append(qs, q)
		switch {
		case unknown != nil:
			answers[i] = Unknown{unknown.Error()}
		case q.tails:
			open, queries = append(open, i), append(queries, kge.Query{Entity: q.triple.S, Relation: q.triple.R})
		case q.heads:
			open, queries = append(open, i), append(queries, kge.Query{Entity: q.triple.O, Relation: q.triple.R, Subjects: true})
		default:
			facts, ts = append(facts, i), append(ts, q.triple)
		}
	}
	scores := make([]float32, len(ts))
	if err := m.kge.Score(ctx, w, ts, scores); err != nil {
		return nil, err
	}
	for i, line := range facts {
		f := qs[line].fact
		f.Score = scores[i]
		answers[line] = f
	}
	found, err := m.complete(ctx, w, queries)
	if err != nil {
		return nil, err
	}
	for i, line := range open {
		answers[line] = m.completed(qs[line], found[i])
	}
	return answers, failed
}

func (m *graphModel) complete(ctx context.Context, w godwit.Worker, queries []kge.Query) ([][]kge.Scored, error) {
	if len(queries) == 0 {
		return nil, nil
	}
	return m.kge.Complete(ctx, w, queries, m.top, m.known)
}

func (m *graphModel) completed(q question, found []kge.Scored) completions {
	c := completions{[]fact{}}
	for _, x := range found {
		f := q.fact
		f.Score = x.Score
		if q.heads {
			f.Head = m.graph.Entities[x.Entity]
		} else {
			f.Tail = m.graph.Entities[x.Entity]
		}
		c.Completions = append(c.Completions, f)
	}
	return c
}
