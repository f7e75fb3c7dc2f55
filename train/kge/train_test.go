package kge

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/train"
)

func TestASingleWorkerRepeatsARunBitForBit(t *testing.T) {
	g := randomGraph(100, 5, 700, 4)
	run := func(seed uint64) []float32 {
		c := DefaultConfig()
		c.Dim, c.Batch, c.Negatives, c.Seed, c.EntityDropout = 16, 64, 20, seed, 0.3
		task, s := setup(t, c, g, 1, 1)
		if _, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 3}); err != nil {
			t.Fatal(err)
		}
		return traintest.Values(t, s.Workers(0)[0])
	}
	a, b, other := run(7), run(7), run(8)
	same := true
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			t.Fatalf("value %d is %v in one run, %v in the other", i, a[i], b[i])
		}
		same = same && a[i] == other[i]
	}
	if same {
		t.Error("another seed gives the same run")
	}
}

func TestAStepPullsOnceSamplesOnceAndPushesOnce(t *testing.T) {
	g := randomGraph(100, 5, 640, 4)
	c := DefaultConfig()
	c.Dim, c.Batch, c.Negatives = 8, 64, 20
	task, s := setup(t, c, g, 1, 2)
	g.Valid = g.Valid[:1]
	w := s.Workers(0)[1].(*traintest.Worker) // whose share the only triple is
	if _, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 2}); err != nil {
		t.Fatal(err)
	}
	other := s.Workers(0)[0].(*traintest.Worker)
	steps := w.Counts.Pushes // workers get chunks as they come
	if all := steps + other.Counts.Pushes; all != 2*10 {
		t.Errorf("%d steps were made, want those of 640 triples twice, 20", all)
	}
	// The evaluation adds a pull of the queries' rows and one of the entities.
	if n := w.Counts; n.Pulls != steps+2 || n.PullSamples != steps || n.Pushes != steps || n.Intents != steps {
		t.Errorf("%d steps made %+v", steps, n)
	}
}

func TestABatchNamesEachOfItsRowsOnce(t *testing.T) {
	g := randomGraph(60, 4, 500, 5)
	for _, reciprocal := range []bool{false, true} {
		c := DefaultConfig()
		c.Dim, c.Batch, c.Reciprocal = 4, 70, reciprocal
		task, s := setup(t, c, g, 1, 1)
		k, err := task.keys(s.Workers(0)[0].Model())
		if err != nil {
			t.Fatal(err)
		}
		seen := map[triples.Triple]int{}
		for part := range 3 {
			tr := newTrainer(task, s.Workers(0)[0], k)
			var b train.Batch[Batch]
			for at := range traintest.Steps(tr, task.Chunks(), 1) {
				if at.Chunk%3 != part {
					continue
				}
				tr.Load(&b, at)
				distinct := map[godwit.Key]bool{}
				for _, key := range b.Keys {
					if distinct[key] {
						t.Fatalf("key %d stands twice", key)
					}
					distinct[key] = true
				}
				rels, ents := b.Keys[:b.Data.relations], b.Keys[b.Data.relations:]
				for _, x := range b.Data.triples {
					y := triples.Triple{S: uint32(ents[x.s] - k.entity), R: uint32(rels[x.object] - k.relation), O: uint32(ents[x.o] - k.entity)}
					seen[y]++
					want := rels[x.object]
					if reciprocal {
						want += 4
					}
					if rels[x.subject] != want {
						t.Fatalf("relation %d has key %d for subjects, want %d", rels[x.object], rels[x.subject], want)
					}
				}
			}
		}
		for _, x := range g.Train {
			seen[x]--
		}
		for x, n := range seen {
			if n != 0 {
				t.Errorf("triple %v was loaded %d times too often", x, n)
			}
		}
	}
}

func TestTriplesThatAskTheSameShareAQueryUnlessTheyHaveMasks(t *testing.T) {
	g := randomGraph(30, 3, 500, 5)
	type question struct {
		e, r     int32
		subjects bool
	}
	for _, drop := range []float32{0, 0.2} {
		c := DefaultConfig()
		c.Dim, c.Batch, c.RelationDropout = 4, 70, drop
		task, s := setup(t, c, g, 1, 1)
		k, err := task.keys(s.Workers(0)[0].Model())
		if err != nil {
			t.Fatal(err)
		}
		tr := newTrainer(task, s.Workers(0)[0], k)
		var b train.Batch[Batch]
		for at := range traintest.Steps(tr, task.Chunks(), 1) {
			tr.Load(&b, at)
			want := map[question][]int32{}
			for _, x := range b.Data.triples {
				o, s := question{x.s, x.object, false}, question{x.o, x.subject, true}
				want[o], want[s] = append(want[o], x.o), append(want[s], x.s)
			}
			got := map[question][]int32{}
			st := step{Batch: &b.Data}
			st.eachQuery(func(_ int, x *batchQuery, from, to int) {
				q := question{x.entity, x.relation, x.subjects}
				if got[q] != nil && drop == 0 {
					t.Errorf("query %v is there twice", q)
				}
				if drop > 0 && to != from+1 {
					t.Errorf("query %v has %d answers, with dropout", q, to-from)
				}
				got[q] = append(got[q], b.Data.answers[from:to]...)
			})
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("the queries and their answers are %v, want %v", got, want)
			}
		}
	}
}

// idle is a worker that moves nothing, to count what a step itself allocates.
type idle struct {
	godwit.Worker
	m *godwit.Model
}

func (w idle) Model() *godwit.Model { return w.m }

func TestASamplerOfTheWrongTableIsNamed(t *testing.T) {
	g := randomGraph(100, 5, 640, 4)
	c := DefaultConfig()
	c.Dim = 8
	task, s := setup(t, c, g, 1, 1)
	m := s.Workers(0)[0].Model()
	s.Range[0] = traintest.KeyRange{First: m.Key(2, 0), N: 5}
	_, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 1})
	if err == nil || !strings.Contains(err.Error(), "sampler 0") || !strings.Contains(err.Error(), fmt.Sprintf("of table %q: ", m.Table(2).Name)) || !strings.Contains(err.Error(), EntityTable) {
		t.Errorf("Run returned %v, want an error that names sampler and tables", err)
	}
}

func TestRateAndFirstValuesSuitModelAndRule(t *testing.T) {
	for _, x := range []struct {
		model, rule string
		lr, init    float32
	}{
		{"complex", "adagrad", 0.1, 1e-3}, {"rescal", "rowadagrad", 0.3, 1e-3}, {"complex", "adam", 0.01, 1e-3},
		{"complex", "ftrl", 0.3, 0.3}, {"distmult", "sgd", 0.01, 0.3}, {"complex", "proxsgd", 0.01, 0.3}, {"rescal", "momentum", 0.001, 0.3},
		{"transe", "sgd", 0.2, 1e-3}, {"rotate", "momentum", 0.01, 1e-3}, {"rotate", "ftrl", 0.6, 1e-3},
	} {
		c := DefaultConfig()
		c.Model, c.Rule = x.model, x.rule
		c.Settle()
		if c.LR != x.lr || c.InitStd != x.init {
			t.Errorf("%s by %s has the rate %v and first values of %v, want %v and %v", x.model, x.rule, c.LR, c.InitStd, x.lr, x.init)
		}
		c.LR, c.InitStd = 0.7, 0.8
		if c.Settle(); c.LR != 0.7 || c.InitStd != 0.8 {
			t.Errorf("%s by %s has %v and %v where 0.7 and 0.8 were given", x.model, x.rule, c.LR, c.InitStd)
		}
	}
}

func TestDotProductsThatLearnSlowlyAreTold(t *testing.T) {
	g := randomGraph(20, 2, 50, 1)
	for _, x := range []struct {
		model, rule string
		n3          float32
		want        string // "" is no warning
		not         string
	}{
		{"complex", "adagrad", 0.05, "", ""}, {"complex", "ftrl", 0.05, "", ""}, {"rotate", "sgd", 0.05, "", ""},
		{"complex", "sgd", 0.05, "--n3 0", "none"}, {"distmult", "momentum", 0, "learns slowly", "N3"},
	} {
		c := DefaultConfig()
		c.Model, c.Rule, c.N3 = x.model, x.rule, x.n3
		task, err := New(c, g)
		if err != nil {
			t.Fatal(err)
		}
		ws := strings.Join(task.Warnings(), "; ")
		if (ws == "") != (x.want == "") || !strings.Contains(ws, x.want) || ws != "" && strings.Contains(ws, x.not) {
			t.Errorf("%s by %s with N3 of %v warns of %q, want %q and not %q", x.model, x.rule, x.n3, ws, x.want, x.not)
		}
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	g := randomGraph(20, 2, 50, 1)
	nan := float32(math.NaN())
	for _, c := range []struct {
		set  func(*Config)
		want string
	}{
		{func(c *Config) { *c = Config{} }, "Dim"},
		{func(c *Config) { c.Model = "transh" }, "complex, distmult"},
		{func(c *Config) { c.Loss = "hinge" }, "softmax"},
		{func(c *Config) { c.Dim = 7 }, "even"},
		{func(c *Config) { c.Model, c.Dim = "rescal", 2000 }, "relations of rescal"},
		{func(c *Config) { c.Batch = 0 }, "Batch"},
		{func(c *Config) { c.Negatives = 0 }, "Negatives"},
		{func(c *Config) { c.Sampler = -1 }, "Sampler"},
		{func(c *Config) { c.LR = -1 }, "LR"},
		{func(c *Config) { c.LR = nan }, "LR"},
		{func(c *Config) { c.LRSchedule = "step" }, "constant, linear, cosine"},
		{func(c *Config) { c.N3 = -1 }, "N3"},
		{func(c *Config) { c.L2 = nan }, "L2"},
		{func(c *Config) { c.InitStd = -1 }, "InitStd"},
		{func(c *Config) { c.EntityDropout = 1 }, "EntityDropout"},
		{func(c *Config) { c.RelationDropout = nan }, "RelationDropout"},
		{func(c *Config) { c.Margin = nan }, "Margin"},
		{func(c *Config) { c.Loss, c.Adversarial = Logistic, -1 }, "Adversarial"},
		{func(c *Config) { c.Loss, c.Adversarial = Logistic, nan }, "Adversarial"},
		{func(c *Config) { c.Loss, c.Adversarial = Logistic, float32(math.Inf(1)) }, "Adversarial"},
		{func(c *Config) { c.Judged = -1 }, "Judged"},
		{func(c *Config) { c.Adversarial = 1 }, "only the loss logistic"},
	} {
		cfg := DefaultConfig()
		c.set(&cfg)
		if _, err := New(cfg, g); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one that mentions %q", cfg, err, c.want)
		}
	}
}

func TestBadGraphsAreNamed(t *testing.T) {
	one := []triples.Triple{{S: 0, R: 0, O: 1}}
	ents, rels := []string{"a", "b"}, []string{"r"}
	for _, c := range []struct {
		g    triples.Graph
		want string
	}{
		{triples.Graph{}, "entities"},
		{triples.Graph{Entities: ents}, "relations"},
		{triples.Graph{Entities: ents, Relations: rels}, "train"},
		{triples.Graph{Entities: ents, Relations: rels, Train: one, Test: []triples.Triple{{S: 0, R: 1, O: 0}}}, "triple 0 of test"},
	} {
		if _, err := New(DefaultConfig(), &c.g); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one that mentions %q", c.g, err, c.want)
		}
	}
}

func TestAModelWithoutTheTasksTablesIsRefused(t *testing.T) {
	task, err := New(DefaultConfig(), randomGraph(20, 2, 50, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func([]godwit.Table) []godwit.Table
		want   string
	}{
		{func(ts []godwit.Table) []godwit.Table { return ts[:1] }, "no table"},
		{func(ts []godwit.Table) []godwit.Table { ts[0].Rows++; return ts }, "21 rows"},
		{func(ts []godwit.Table) []godwit.Table { ts[1].Dim = 3; return ts }, "3 floats"},
	} {
		m, err := godwit.NewModel(c.change(task.Tables())...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = task.Trainer(idle{m: m}, train.Partition{Count: 1})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one that mentions %q", err, c.want)
		}
	}
}

func TestNodesTrainOneModelTogether(t *testing.T) {
	for _, schedule := range []string{Constant, Cosine} {
		t.Run(schedule, func(t *testing.T) { trainTogether(t, schedule) })
	}
}

func trainTogether(t *testing.T, schedule string) {
	g := randomGraph(100, 5, 700, 4)
	c := DefaultConfig()
	c.Dim, c.Batch, c.Negatives, c.LRSchedule = 16, 32, 20, schedule
	const nodes = 3
	task, s := setup(t, c, g, nodes, 2)
	x := traintest.NewExchange(nodes)
	reports := make([]*train.Report, nodes)
	var wg sync.WaitGroup
	for node := range nodes {
		wg.Go(func() {
			env := train.Env{Workers: s.Workers(node), Node: node, Nodes: nodes, Exchange: x.Of(node), Ask: x.Ask(node), Serve: x.Serve}
			r, err := train.Run(t.Context(), env, task, train.Options{Epochs: 4, EvalEvery: 2})
			if err != nil {
				t.Errorf("node %d: %v", node, err)
			}
			reports[node] = r
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	first, last := reports[0].Losses[0], reports[0].Losses[3]
	if first.Examples != int64(2*len(g.Train)) || last.Mean() >= first.Mean() {
		t.Errorf("losses go from %+v to %+v, want %d examples and less loss", first, last, 2*len(g.Train))
	}
	for node, r := range reports {
		if fmt.Sprint(r) != fmt.Sprint(reports[0]) {
			t.Errorf("node %d reports %+v, node 0 %+v", node, r, reports[0])
		}
	}
}

func TestEachModelHasItsLearningRateUnlessOneIsGiven(t *testing.T) {
	g := &triples.Graph{Entities: []string{"a", "b"}, Relations: []string{"r"}, Train: []triples.Triple{{S: 0, R: 0, O: 1}}}
	for _, x := range []struct {
		model, rule string
		lr, want    float32
	}{
		{"complex", "adagrad", 0, 0.1}, {"transe", "adagrad", 0, 0.2}, {"rotate", "adagrad", 0, 0.6}, {"rotate", "adagrad", 0.02, 0.02},
		{"complex", "adam", 0, 0.01}, {"transe", "adam", 0, 0.01}, {"rotate", "adam", 0, 0.03}, {"rotate", "adam", 0.02, 0.02},
		{"complex", "rowadagrad", 0, 0.3}, {"transe", "rowadagrad", 0, 0.2}, {"rotate", "sgd", 0, 0.1}, {"transe", "momentum", 0, 0.02},
	} {
		c := DefaultConfig()
		c.Model, c.Rule, c.LR = x.model, x.rule, x.lr
		task, err := New(c, g)
		if err != nil {
			t.Fatal(err)
		}
		want, err := optim.Parse(fmt.Sprintf("%s(lr=%v)", x.rule, x.want))
		if err != nil {
			t.Fatal(err)
		}
		if task.rule != want {
			t.Errorf("%s by %s with LR %v has the rule %+v, want %+v", x.model, x.rule, x.lr, task.rule, want)
		}
	}
}
