package task

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/kge"
)

func init() { Register(func() Settings { return DefaultKGE() }) }

// KGE are the settings of the task "kge", knowledge-graph embeddings. The seed,
// the sampler and Judged of its Config are set by Load.
type KGE struct {
	kge.Config
	// Graph is what is generated where there are no data.
	Graph triples.Spec
	// Files say how data are read. Load sets their seed.
	Files triples.Options
	// Sampling is the name of a scheme of package sampling, for the negatives.
	Sampling string
}

// DefaultKGE returns settings that train in seconds on a generated graph.
func DefaultKGE() *KGE {
	return &KGE{
		Config: kge.DefaultConfig(), Graph: triples.DefaultSpec(), Sampling: sampling.Prepared{}.Name(),
		Files: triples.Options{Header: triples.HeaderAuto, Split: []float64{0.8, 0.1, 0.1}},
	}
}

// UntrainedTriples bounds the triples that Test uses if it is asked for a part of the
// data. The metrics of an untrained model serve only for comparison.
const UntrainedTriples = 1000

func (s *KGE) Name() string { return "kge" }
func (s *KGE) Epochs() int  { return 15 }

// Generate implements [Generated].
func (s *KGE) Generate(exponent float64, seed uint64) {
	s.Graph.Exponent, s.Graph.Seed = exponent, seed
}

// Check tries the settings with the smallest graph.
func (s *KGE) Check() error {
	if _, err := sampling.SchemeNamed(s.Sampling); err != nil {
		return err
	}
	if err := s.Graph.Check(); err != nil {
		return err
	}
	if err := s.Files.Check(); err != nil {
		return err
	}
	ts := []triples.Triple{{S: 0, R: 0, O: 1}}
	_, err := kge.New(s.Config, &triples.Graph{Entities: []string{"a", "b"}, Relations: []string{"r"}, Train: ts, Test: ts})
	return err
}

// Settled implements [Settled]: of a rate that was left open and does not change from epoch to epoch.
func (s *KGE) Settled(table, rule string) {
	if table == kge.EntityTable {
		settle(&s.LR, rule)
	}
}

// Open implements [Settled].
func (s *KGE) Open() []string {
	return slices.Concat(open("LR", s.LR), open("InitStd", s.InitStd))
}

// Unused implements [Partial].
func (s *KGE) Unused(data string) []Unused {
	u := unusedData(data, []any{&s.Graph}, []any{&s.Files})
	if divided, err := triples.Divided(data); err == nil && divided {
		u = append(u, Unused{fmt.Sprintf("%s has files of its own to validate or to test on", data), []any{&s.Files.Split}})
	}
	if s.Loss != kge.Logistic {
		u = append(u, Unused{fmt.Sprintf("only the loss %s adds it", kge.Logistic), []any{&s.Margin}})
	}
	return u
}

// Load reads a graph (see [triples.Load]), or generates one.
func (s *KGE) Load(setup Setup) (Task, error) {
	scheme, err := sampling.SchemeNamed(s.Sampling)
	if err != nil {
		return nil, err
	}
	var g *triples.Graph
	if setup.Data == "" {
		g, err = triples.Generate(s.Graph)
	} else {
		g, err = triples.Load(setup.Data, s.files(setup.Seed))
	}
	if err != nil {
		return nil, err
	}
	cfg := s.Config
	cfg.Seed, cfg.Sampler, cfg.Judged = setup.Seed, 0, setup.MaxEvalItems
	t, err := kge.New(cfg, g)
	if err != nil {
		return nil, err
	}
	return &graphTask{Trained[kge.Batch]{t, setup.evalWorkers()}, t, g, scheme, slices.Concat(g.Warnings(), t.Warnings())}, nil
}

// files are how data are read. The run's seed decides which facts are held out.
func (s *KGE) files(seed uint64) triples.Options {
	o := s.Files
	o.Seed = seed
	return o
}

// A graphTask is the task "kge" with its graph.
type graphTask struct {
	Trained[kge.Batch]
	kge      *kge.Task
	graph    *triples.Graph
	scheme   sampling.Scheme
	warnings []string
}

func (t *graphTask) Warnings() []string { return t.warnings }
func (t *graphTask) Unvalidated() bool  { return len(t.graph.Valid) == 0 && len(t.graph.Test) > 0 }

// Unit is two queries a triple.
func (t *graphTask) Unit() (string, int64) { return "triples", 2 }

func (t *graphTask) Data() string { return t.graph.Fingerprint() }

func (t *graphTask) Summary() string {
	return fmt.Sprintf("%d entities, %d relations, %d triples to train, %d to validate, %d to test",
		len(t.graph.Entities), len(t.graph.Relations), len(t.graph.Train), len(t.graph.Valid), len(t.graph.Test))
}

// Tables sets Hot: how often training reads a row in an epoch, apart from the uniform
// negatives, which is as often as it occurs in a triple.
func (t *graphTask) Tables() []godwit.Table {
	entities := make([]float64, len(t.graph.Entities))
	relations := make([]float64, len(t.graph.Relations))
	for _, x := range t.graph.Train {
		entities[x.S]++
		entities[x.O]++
		relations[x.R]++
	}
	tables := t.kge.Tables()
	for i := range tables {
		switch tables[i].Name {
		case kge.EntityTable:
			tables[i].Hot = func(row uint64) float64 { return entities[row] }
		case kge.RelationTable:
			// With reciprocal relations each has two rows.
			tables[i].Hot = func(row uint64) float64 { return relations[row%uint64(len(relations))] }
		}
	}
	return tables
}

func (t *graphTask) Samplers() []sampling.Spec {
	return []sampling.Spec{{
		Name: "negatives", Table: 0, Dist: sampling.Uniform(uint64(len(t.graph.Entities))), Scheme: t.scheme,
	}}
}

func (t *graphTask) Test(ctx context.Context, env *train.Env, name string, part bool) ([]train.Metric, error) {
	ts, of := t.tested()
	if part && len(ts) > UntrainedTriples {
		ts = ts[:UntrainedTriples]
	}
	q, err := t.kge.Rank(ctx, env, name, ts)
	if err != nil {
		return nil, err
	}
	return linkMetrics(&q, of), nil
}

// tested are the triples that Test is about, and how the names of its metrics begin.
func (t *graphTask) tested() (ts []triples.Triple, of string) {
	switch {
	case len(t.graph.Test) > 0:
		return t.graph.Test, ""
	case len(t.graph.Valid) > 0:
		return t.graph.Valid, ""
	}
	return t.kge.Sample(), "train "
}

func linkMetrics(q *kge.Quality, of string) []train.Metric {
	return []train.Metric{
		{Name: of + "MRR", Value: q.MRR}, {Name: of + "Hits@1", Value: q.Hits1},
		{Name: of + "Hits@3", Value: q.Hits3}, {Name: of + "Hits@10", Value: q.Hits10},
	}
}

// testLinks implements [linked].
func (t *graphTask) testLinks(ctx context.Context, env *train.Env, name string) ([]train.Metric, *Links, error) {
	ts, of := t.tested()
	all, relations, err := t.kge.RankRelations(ctx, env, name, ts)
	if err != nil {
		return nil, nil, err
	}
	directions := func(d *kge.Directions) Directions {
		return Directions{Head: linkMetrics(&d.Head, of), Tail: linkMetrics(&d.Tail, of)}
	}
	l := &Links{Directions: directions(&all)}
	for r := range relations {
		if d := &relations[r]; d.Both.Queries > 0 {
			l.Relations = append(l.Relations, Relation{t.graph.Relations[r], d.Head.Queries, directions(d)})
		}
	}
	slices.SortFunc(l.Relations, func(a, b Relation) int {
		return cmp.Or(cmp.Compare(b.Facts, a.Facts), cmp.Compare(a.Name, b.Name))
	})
	return linkMetrics(&all.Both, of), l, nil
}

func (t *graphTask) Export(ctx context.Context, w godwit.Worker, s *export.Set) error {
	return t.kge.Export(ctx, w, s)
}
