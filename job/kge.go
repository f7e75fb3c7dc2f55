package job

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/kge"
)

// graphTask is the task "kge".
type graphTask struct {
	*kge.Task
	graph  *triples.Graph
	scheme sampling.Scheme
}

// load reads or makes the data of the task and checks its settings. data
// replaces the folder of the spec where it is not empty.
func (s *Spec) load(data string) (task, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	scheme, err := sampling.SchemeNamed(s.Sampling)
	if err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	g, err := s.loadGraph(data)
	if err != nil {
		return nil, err
	}
	cfg := s.KGE
	cfg.Seed, cfg.Sampler = s.Seed, 0
	t, err := kge.New(cfg, g)
	if err != nil {
		return nil, err
	}
	return &graphTask{t, g, scheme}, nil
}

// checkKGE checks the settings of the task by the smallest graph, so that a
// mistake is told before data are read.
func (s *Spec) checkKGE() error {
	ts := []triples.Triple{{S: 0, R: 0, O: 1}}
	_, err := kge.New(s.KGE, &triples.Graph{Entities: []string{"a", "b"}, Relations: []string{"r"}, Train: ts, Test: ts})
	return err
}

func (s *Spec) loadGraph(data string) (*triples.Graph, error) {
	if data == "" {
		data = s.Data
	}
	if data == "" {
		return triples.Generate(s.Graph)
	}
	return triples.Load(data)
}

func (t *graphTask) fingerprint() string { return t.Fingerprint() }

// A triple is trained as two queries.
func (t *graphTask) unit() (string, int64) { return "triples", 2 }

func (t *graphTask) size() string {
	return fmt.Sprintf("%d entities, %d relations, %d triples to train, %d to validate, %d to test",
		len(t.graph.Entities), len(t.graph.Relations), len(t.graph.Train), len(t.graph.Valid), len(t.graph.Test))
}

// tables tells the policy that needs it how often training reads a row in an
// epoch, beside the uniform negatives: as often as it stands in a triple.
func (t *graphTask) tables() []godwit.Table {
	entities := make([]float64, len(t.graph.Entities))
	relations := make([]float64, len(t.graph.Relations))
	for _, x := range t.graph.Train {
		entities[x.S]++
		entities[x.O]++
		relations[x.R]++
	}
	tables := t.Tables()
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

func (t *graphTask) samplers() []sampling.Spec {
	return []sampling.Spec{{
		Name: "negatives", Table: 0, Dist: sampling.Uniform(uint64(len(t.graph.Entities))), Scheme: t.scheme,
	}}
}

func (t *graphTask) train(ctx context.Context, env train.Env, o train.Options, seen *atomic.Int64) (*train.Report, error) {
	return train.Run(ctx, env, metered[kge.Batch]{t.Task, seen}, o)
}

func (t *graphTask) test(ctx context.Context, env *train.Env, name string, part bool) ([]train.Metric, error) {
	ts := t.graph.Test
	if len(ts) == 0 {
		ts = t.graph.Valid
	}
	if part && len(ts) > UntrainedTriples {
		ts = ts[:UntrainedTriples]
	}
	q, err := t.Rank(ctx, env, name, ts)
	if err != nil {
		return nil, err
	}
	return []train.Metric{
		{Name: "MRR", Value: q.MRR}, {Name: "Hits@1", Value: q.Hits1}, {Name: "Hits@3", Value: q.Hits3}, {Name: "Hits@10", Value: q.Hits10},
	}, nil
}

func (t *graphTask) export(ctx context.Context, w godwit.Worker, dir string) error {
	return t.Export(ctx, w, dir)
}
