package kge

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// The names of the tables.
const (
	EntityTable   = "entity"
	RelationTable = "relation"
)

// A Task trains a knowledge graph's embeddings. It implements [train.Task]. It
// is immutable and may be used by any number of goroutines.
type Task struct {
	cfg    Config
	graph  *triples.Graph
	filter *triples.Filter
	model  model
	loss   loss
	rule   godwit.Rule
	relDim int
	extra  int // floats of a row behind those of the embedding: 1 if pushes bring their rate
}

// New checks the settings and the graph, which must not change afterwards.
func New(cfg Config, g *triples.Graph) (*Task, error) {
	t, err := load(cfg, g)
	switch {
	case err != nil:
		return nil, err
	case len(g.Train) == 0:
		return nil, errors.New("kge: the graph has no triples to train")
	}
	return t, nil
}

// Reload is [New] for a model that is trained already: the graph may lack triples, and
// the task is not to be trained.
func Reload(cfg Config, g *triples.Graph) (*Task, error) {
	cfg.LRSchedule = Constant // rows are then their embeddings
	return load(cfg, g)
}

func load(cfg Config, g *triples.Graph) (*Task, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	m, err := modelNamed(cfg.Model)
	if err != nil {
		return nil, err
	}
	cfg.Settle()
	rule, err := cfg.rule()
	if err != nil {
		return nil, err
	}
	if err := m.check(cfg.Dim); err != nil {
		return nil, err
	}
	if d := m.relationDim(cfg.Dim); d >= godwit.MaxDim { // a row may have a float more
		return nil, fmt.Errorf("kge: relations of %s at Dim %d have %d floats, at most %d are possible", m.name(), cfg.Dim, d, godwit.MaxDim-1)
	}
	if err := checkGraph(g); err != nil {
		return nil, err
	}
	l, err := lossNamed(cfg.Loss, float64(len(g.Entities)), cfg.Margin, cfg.Adversarial)
	if err != nil {
		return nil, err
	}
	extra := 0
	if cfg.rated() {
		extra = 1
	}
	return &Task{
		cfg: cfg, extra: extra, graph: g, filter: triples.NewFilter(g), model: m, loss: l, rule: rule,
		relDim: m.relationDim(cfg.Dim),
	}, nil
}

func checkGraph(g *triples.Graph) error {
	switch {
	case len(g.Entities) < 2:
		return fmt.Errorf("kge: the graph has %d entities, want at least 2", len(g.Entities))
	case len(g.Relations) == 0:
		return errors.New("kge: the graph has no relations")
	case len(g.Train) > math.MaxInt32:
		return fmt.Errorf("kge: the graph has %d triples to train, at most %d are possible", len(g.Train), math.MaxInt32)
	}
	for _, split := range []struct {
		name string
		ts   []triples.Triple
	}{{"train", g.Train}, {"valid", g.Valid}, {"test", g.Test}} {
		for i, t := range split.ts {
			if int(t.S) >= len(g.Entities) || int(t.O) >= len(g.Entities) || int(t.R) >= len(g.Relations) {
				return fmt.Errorf("kge: triple %d of %s is (%d, %d, %d), but there are %d entities and %d relations", i, split.name, t.S, t.R, t.O, len(g.Entities), len(g.Relations))
			}
		}
	}
	return nil
}

// Tables describes the tables that the task trains, for [godwit.NewModel]. The
// model may have other tables beside.
func (t *Task) Tables() []godwit.Table {
	list := []godwit.Table{
		{
			Name: EntityTable, Rows: uint64(len(t.graph.Entities)), Dim: t.cfg.Dim + t.extra,
			Rule: t.rule, Init: godwit.Normal{Std: t.cfg.InitStd},
		},
		{
			Name: RelationTable, Rows: uint64(t.relationRows()), Dim: t.relDim + t.extra,
			Rule: t.rule, Init: t.model.relationInit(t.cfg.InitStd),
		},
	}
	if t.extra > 0 {
		for i := range list {
			list[i].Init = optim.Unrated{Of: list[i].Init}
		}
	}
	return list
}

func (t *Task) relationRows() int {
	if t.cfg.Reciprocal {
		return 2 * len(t.graph.Relations)
	}
	return len(t.graph.Relations)
}

// relationRow is the row of relation r for object or subject queries.
func (t *Task) relationRow(r uint32, subjects bool) uint32 {
	if subjects && t.cfg.Reciprocal {
		return r + uint32(len(t.graph.Relations))
	}
	return r
}

// inverse reports whether the model has to apply the inverse of a relation's embedding:
// for subject queries, unless the relation has a reciprocal embedding of its own.
func (t *Task) inverse(subjects bool) bool { return subjects && !t.cfg.Reciprocal }

// Warnings returns what may keep the task from learning, a sentence each: dot products that are trained by plain steps.
func (t *Task) Warnings() []string {
	if t.model.distance() || !plain(t.cfg.Rule) {
		return nil
	}
	n3 := ""
	if t.cfg.N3 > 0 {
		n3 = fmt.Sprintf(", and perhaps nothing with N3, here %v, which outweighs these (--n3 0: without)", t.cfg.N3)
	}
	return []string{fmt.Sprintf("%s learns slowly by the rule %s, whose steps are as small as the gradients of its small values%s: adagrad suits it better",
		t.model.name(), t.cfg.Rule, n3)}
}

// Fingerprint names settings and data.
func (t *Task) Fingerprint() string {
	return fmt.Sprintf("kge %+v on %d entities, %d relations, %d/%d/%d triples (%s)", t.cfg,
		len(t.graph.Entities), len(t.graph.Relations), len(t.graph.Train), len(t.graph.Valid), len(t.graph.Test), t.graph.Fingerprint())
}

// Chunks implements [train.Task].
func (t *Task) Chunks() int { return t.items().Chunks() }

func (t *Task) items() *schedule.Items {
	return schedule.NewItems(len(t.graph.Train), t.cfg.Batch, t.cfg.Seed)
}

// Trainer returns a worker's trainer.
func (t *Task) Trainer(w godwit.Worker, part train.Partition) (train.Trainer[Batch], error) {
	k, err := t.keys(w.Model())
	if err != nil {
		return nil, err
	}
	tr := newTrainer(t, w, k)
	tr.epochs = part.Epochs
	return tr, nil
}

// sample is how many triples are ranked where none is held out.
const sample = 1000

// Sample returns some of the triples to train, which are ranked where none is held out.
func (t *Task) Sample() []triples.Triple { return train.EvenlySpaced(t.graph.Train, sample) }

// Evaluate ranks the validation triples, the test triples where there are none, or else
// some of those to train; of each at most Judged ones. Known answers are those of the whole
// graph.
func (t *Task) Evaluate(ctx context.Context, env *train.Env, epoch int) (train.Evaluation, error) {
	split, name := t.graph.Valid, "valid"
	if len(split) == 0 {
		split, name = t.graph.Test, "test"
	}
	if len(split) == 0 {
		split, name = t.Sample(), "train"
	}
	split = train.EvenlySpaced(split, t.cfg.Judged)
	q, err := t.Rank(ctx, env, fmt.Sprintf("%s after epoch %d", name, epoch), split)
	if err != nil {
		return train.Evaluation{}, err
	}
	return q.evaluation(name), nil
}

// keys are the tables' first keys.
type keys struct{ entity, relation godwit.Key }

// keys finds the task's tables in a model.
func (t *Task) keys(m *godwit.Model) (keys, error) {
	first, err := tables.Find(m, t.Tables())
	if err != nil {
		return keys{}, fmt.Errorf("kge: %w", err)
	}
	return keys{first[0], first[1]}, nil
}
