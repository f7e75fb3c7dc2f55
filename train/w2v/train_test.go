package w2v

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/corpus"
	"github.com/godwit-ps/godwit/data/wordvec"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/train"
)

func TestASingleWorkerRepeatsARunBitForBit(t *testing.T) {
	c, q, _ := generated(t, 5, 2, 5000, 50)
	for _, method := range []string{SkipGram, CBOW} {
		run := func(seed uint64) []float32 {
			cfg := small(method)
			cfg.Seed = seed
			task, s := setup(t, cfg, c, q, 1, 1)
			if _, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 2}); err != nil {
				t.Fatal(err)
			}
			return traintest.Values(t, s.Workers(0)[0])
		}
		a, b := run(7), run(7)
		for i := range a {
			if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
				t.Fatalf("%s: value %d is %v in one run, %v in the other", method, i, a[i], b[i])
			}
		}
		if slices.Equal(a, run(8)) {
			t.Errorf("%s: another seed gives the same run", method)
		}
	}
}

func TestAStepPullsOnceSamplesOnceAndPushesOnce(t *testing.T) {
	c, q, _ := generated(t, 5, 2, 5000, 50)
	cfg := small(SkipGram)
	cfg.HoldOut = 0
	task, s := setup(t, cfg, c, q, 1, 1)
	w := s.Workers(0)[0].(*traintest.Worker)
	if _, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 2}); err != nil {
		t.Fatal(err)
	}
	steps := 2 * c.Blocks()
	// The evaluation adds a pull of the vectors, without an intent.
	if n := w.Counts; n.Pulls != steps+1 || n.PullSamples != steps || n.Pushes != steps || n.Intents != steps || n.Uncovered != len(c.Vocabulary.Words) {
		t.Errorf("%d steps made %+v", steps, n)
	}
}

func TestNodesTrainOneModelTogether(t *testing.T) {
	c, q, _ := generated(t, 10, 3, 20_000, 100)
	const nodes = 3
	cfg := DefaultConfig()
	cfg.Dim, cfg.Pool, cfg.HoldOut = 16, 20, 10
	task, s := setup(t, cfg, c, q, nodes, 2)
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
	if words := c.Stats.Words; first.Examples > words || first.Examples < words*8/10 || last.Mean() >= first.Mean() {
		t.Errorf("losses go from %+v to %+v, want nearly %d words and less loss", first, last, words)
	}
	for node, r := range reports {
		if fmt.Sprint(r) != fmt.Sprint(reports[0]) {
			t.Errorf("node %d reports %+v, node 0 %+v", node, r, reports[0])
		}
	}
}

func TestAnEvaluationGivesEveryNumberOfNodesTheSame(t *testing.T) {
	c, q, _ := generated(t, 10, 3, 10_000, 50)
	cfg := small(SkipGram)
	var want Quality
	for _, nodes := range []int{1, 3} {
		task, s := setup(t, cfg, c, q, nodes, 2)
		x := traintest.NewExchange(nodes)
		got := make([]Quality, nodes)
		var wg sync.WaitGroup
		for node := range nodes {
			wg.Go(func() {
				env := train.Env{Workers: s.Workers(node), Node: node, Nodes: nodes, Exchange: x.Of(node), Ask: x.Ask(node), Serve: x.Serve}
				var err error
				if got[node], err = task.EvaluateOn(t.Context(), &env, "x", 0); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if nodes == 1 {
			want = got[0]
			// The outputs are zeros: a pair and its negatives have a loss of log 2
			// each, but for the negatives that are the word itself.
			if most := 5 * math.Ln2; want.Pairs == 0 || want.Loss > most || want.Loss < 0.9*most {
				t.Errorf("an untrained model has a loss of %v over %d pairs, want about %v", want.Loss, want.Pairs, most)
			}
		}
		for _, g := range got {
			if g.Pairs != want.Pairs || math.Abs(g.Loss-want.Loss) > 1e-9 || fmt.Sprint(g.Score) != fmt.Sprint(want.Score) {
				t.Errorf("%d nodes: %+v, one has %+v", nodes, g, want)
			}
		}
	}
}

func TestAnEvaluationOnFewItemsAsksFewQuestions(t *testing.T) {
	c, q, _ := generated(t, 10, 3, 10_000, 50)
	task, s := setup(t, small(SkipGram), c, q, 1, 1)
	env := train.Env{Workers: s.Workers(0)}
	all, err := task.EvaluateOn(t.Context(), &env, "all", 0)
	if err != nil {
		t.Fatal(err)
	}
	some, err := task.EvaluateOn(t.Context(), &env, "few", 10)
	if err != nil {
		t.Fatal(err)
	}
	if n := some.Score.Sum("", wordvec.All).Known; n != 10 || some.Pairs >= all.Pairs || some.Pairs == 0 {
		t.Errorf("%d questions and %d of %d pairs, want 10 and less", n, some.Pairs, all.Pairs)
	}
}

func TestVectorsThatAreSumsAnswerAllAnalogies(t *testing.T) {
	c, q, g := generated(t, 12, 3, 10_000, 50)
	cfg := small(SkipGram)
	cfg.Dim = 40
	task, s := setup(t, cfg, c, q, 1, 2)
	w := s.Workers(0)[0]
	first := w.Model().Key(1, 0)
	part := func(name string) []float32 {
		x := make([]float32, cfg.Dim)
		godwit.Normal{Std: 1}.Init(x, 1, godwit.Key(len(name))<<32+godwit.Key(name[0])<<16+godwit.Key(name[len(name)-1])<<8+godwit.Key(name[len(name)/2]))
		return x
	}
	set := func(word string, x []float32) {
		id, ok := c.Vocabulary.ID(word)
		if !ok {
			t.Fatalf("no word %q", word)
		}
		for i := range x {
			x[i] *= float32(1 + id%7) // directions count, not lengths
		}
		if err := w.Set(t.Context(), []godwit.Key{first + godwit.Key(id)}, x); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range g.Analogies {
		for i, word := range a {
			stem := a[i&2] // the words 0, 1 and 2, 3 are of one stem each
			if other := a[i|1]; len(other) < len(stem) {
				stem = other
			}
			n := 0
			for n < len(stem) && n < len(word) && stem[n] == word[n] {
				n++
			}
			stem = stem[:min(n, 4)] // two syllables
			x := part(stem)
			for j, v := range part("form-" + word[len(stem):] + "-form") {
				x[j] += v
			}
			set(word, x)
		}
	}
	env := train.Env{Workers: s.Workers(0)}
	got, err := task.EvaluateOn(t.Context(), &env, "x", 0)
	if err != nil {
		t.Fatal(err)
	}
	if sum := got.Score.Sum("", wordvec.All); sum.Accuracy() < 0.99 {
		t.Errorf("%d of %d analogies are answered right", sum.Right, sum.Known)
	}
}

// written returns a corpus in a file of many blocks, where that is, and its text.
func written(t *testing.T) (c *corpus.Corpus, path string, text []byte) {
	t.Helper()
	g, err := corpus.Generate(corpus.Spec{Stems: 5, Forms: 2, Words: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(path, g.Text, 0o666); err != nil {
		t.Fatal(err)
	}
	if c, err = corpus.Open(path, corpus.Options{MinCount: 1, Block: 50}); err != nil {
		t.Fatal(err)
	}
	return c, path, g.Text
}

func TestAFileThatChangesEndsTheRun(t *testing.T) {
	c, path, text := written(t)
	task, s := setup(t, small(SkipGram), c, nil, 1, 1)
	if err := os.WriteFile(path, text[:1000], 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 1})
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "changed") {
		t.Errorf("Run returned %v, want an error that says that %s changed", err, path)
	}
}

// A run that ends in the middle of the text does not leave it open.
func TestATrainerThatIsClosedClosesItsFile(t *testing.T) {
	const fds = "/proc/self/fd"
	if _, err := os.Stat(fds); err != nil {
		t.Skip("this system does not list open files there")
	}
	c, path, _ := written(t)
	open := func() (n int) {
		files, err := os.ReadDir(fds)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if at, err := os.Readlink(filepath.Join(fds, f.Name())); err == nil && at == path {
				n++
			}
		}
		return n
	}
	task, s := setup(t, small(SkipGram), c, nil, 1, 1)
	tr, err := task.Trainer(s.Workers(0)[0], train.Partition{Count: 1, Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	tr.Load(&train.Batch[Batch]{}, train.At{Epoch: 1})
	if open() != 1 {
		t.Fatalf("%s is open %d times while it is read: the test is vacuous", path, open())
	}
	for range 2 {
		if err := tr.(io.Closer).Close(); err != nil {
			t.Error(err)
		}
	}
	if open() != 0 {
		t.Errorf("%s is open %d times", path, open())
	}
}

func TestASamplerOfTheWrongTableIsNamed(t *testing.T) {
	c, q, _ := generated(t, 5, 2, 5000, 50)
	task, s := setup(t, small(SkipGram), c, q, 1, 1)
	s.Range[0] = traintest.KeyRange{First: s.Workers(0)[0].Model().Key(1, 0), N: 5}
	_, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 1})
	if err == nil || !strings.Contains(err.Error(), "sampler 0") || !strings.Contains(err.Error(), OutputTable) {
		t.Errorf("Run returned %v, want an error that names sampler and table", err)
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	c, q, _ := generated(t, 5, 2, 5000, 50)
	nan := float32(math.NaN())
	for _, x := range []struct {
		set  func(*Config)
		want string
	}{
		{func(c *Config) { *c = Config{} }, "Method"},
		{func(c *Config) { c.Method = "glove" }, "skipgram or cbow"},
		{func(c *Config) { c.Dim = 0 }, "Dim"},
		{func(c *Config) { c.Window = 300 }, "Window"},
		{func(c *Config) { c.Negatives = 0 }, "Negatives"},
		{func(c *Config) { c.Pool = 1 << 20 }, "Pool"},
		{func(c *Config) { c.Sampler = -1 }, "Sampler"},
		{func(c *Config) { c.Subsample = math.NaN() }, "Subsample"},
		{func(c *Config) { c.Rule = "magic" }, "Rule"},
		{func(c *Config) { c.LR = nan }, "LR"},
		{func(c *Config) { c.LastLR = nan }, "LastLR"},
		{func(c *Config) { c.Rule = "adam" }, "LastLR"},
		{func(c *Config) { c.HoldOut = 1 }, "HoldOut"},
		{func(c *Config) { c.Restrict = 0 }, "Restrict"},
		{func(c *Config) { c.Judged = -1 }, "Judged"},
	} {
		cfg := DefaultConfig()
		x.set(&cfg)
		if _, err := New(cfg, c, q); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: error %v, want one that mentions %q", cfg, err, x.want)
		}
	}
	cfg := DefaultConfig()
	cfg.HoldOut = 0
	if _, err := New(cfg, c, nil); err == nil || !strings.Contains(err.Error(), "nothing to evaluate") {
		t.Errorf("error %v, want one that says that nothing can be evaluated", err)
	}
	one, err := corpus.FromText("x", []byte("a a a a"), corpus.Options{MinCount: 1, Block: 2})
	if err != nil {
		t.Fatal(err)
	}
	cfg.HoldOut = 2
	if _, err := New(cfg, one, nil); err == nil || !strings.Contains(err.Error(), "1 word") {
		t.Errorf("error %v, want one that says that there is one word", err)
	}
}

func TestEachRuleHasALearningRateUnlessOneIsGiven(t *testing.T) {
	c, q, _ := generated(t, 5, 2, 5000, 50)
	for _, x := range []struct {
		method, rule string
		lr, want     float32
	}{
		{SkipGram, "rowadagrad", 0, 0.2}, {SkipGram, "adagrad", 0, 0.15}, {SkipGram, "proxadagrad", 0, 0.15},
		{SkipGram, "sgd", 0, 0.025}, {SkipGram, "proxsgd", 0, 0.025}, {SkipGram, "momentum", 0, 0.0025}, {SkipGram, "adam", 0, 0.01},
		{SkipGram, "sgd", 0.01, 0.01}, {CBOW, "sgd", 0, 0.2}, {CBOW, "momentum", 0, 0.02}, {CBOW, "rowadagrad", 0, 0.2},
	} {
		cfg := DefaultConfig()
		cfg.Method, cfg.Rule, cfg.LR, cfg.LastLR = x.method, x.rule, x.lr, 1
		task, err := New(cfg, c, q)
		if err != nil {
			t.Fatal(err)
		}
		want, err := optim.Parse(fmt.Sprintf("%s(lr=%v)", x.rule, x.want))
		if err != nil {
			t.Fatal(err)
		}
		if task.rule != want {
			t.Errorf("%s by %s with LR %v has the rule %+v, want %+v", x.method, x.rule, x.lr, task.rule, want)
		}
	}
}

// The rules of plain steps diverge at a rate that suits AdaGrad.
func TestPlainStepsAtTheirOwnRateLearnAText(t *testing.T) {
	c, q, _ := generated(t, 10, 3, 20_000, 250)
	for _, rule := range []string{"sgd", "momentum"} {
		cfg := DefaultConfig()
		cfg.Rule, cfg.Dim, cfg.Pool, cfg.HoldOut = rule, 16, 20, 10
		task, s := setup(t, cfg, c, q, 1, 1)
		r, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 3})
		if err != nil {
			t.Errorf("%s: %v", rule, err)
		} else if first, last := r.Losses[0].Mean(), r.Losses[2].Mean(); !(last < first) {
			t.Errorf("%s: the loss goes from %v to %v, want less", rule, first, last)
		}
	}
}

// idle is a worker that moves nothing.
type idle struct {
	godwit.Worker
	m *godwit.Model
}

func (w idle) Model() *godwit.Model { return w.m }

func TestAModelWithoutTheTasksTablesIsRefused(t *testing.T) {
	c, q, _ := generated(t, 5, 2, 5000, 50)
	task, err := New(DefaultConfig(), c, q)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		change func([]godwit.Table) []godwit.Table
		want   string
	}{
		{func(ts []godwit.Table) []godwit.Table { return ts[:1] }, "no table"},
		{func(ts []godwit.Table) []godwit.Table { ts[0].Rows++; return ts }, "rows of 100"},
		{func(ts []godwit.Table) []godwit.Table { ts[1].Dim = 3; return ts }, "3 floats"},
	} {
		m, err := godwit.NewModel(x.change(task.Tables())...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = task.Trainer(idle{m: m}, train.Partition{Count: 1})
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("error %v, want one that mentions %q", err, x.want)
		}
		if err := traintest.Export(context.Background(), task, idle{m: m}, t.TempDir()); err == nil {
			t.Error("a model without the task's tables was exported")
		}
	}
}

func TestHotSaysWhichRowsAreReadMost(t *testing.T) {
	c, q, _ := generated(t, 10, 3, 20_000, 100)
	cfg := small(SkipGram)
	task, s := setup(t, cfg, c, q, 1, 1)
	tr := aTrainer(t, task, s.Workers(0)[0])
	reads := make([]float64, len(c.Vocabulary.Words))
	var b train.Batch[Batch]
	for at := range traintest.Steps(tr, task.Chunks(), 1) {
		tr.Load(&b, at)
		for _, tok := range b.Data.tokens {
			reads[b.Keys[tok]-tr.keys.input]++
		}
	}
	sum, hot := 0.0, 0.0
	for i, n := range reads {
		sum += n
		hot += task.Tables()[0].Hot(uint64(i))
	}
	// Some of the text is held out.
	if want := sum * float64(cfg.HoldOut) / float64(cfg.HoldOut-1); math.Abs(hot-want) > 0.05*want {
		t.Errorf("hot adds up to %v words, %v are read", hot, want)
	}
}

func TestExportedFilesHoldTheVectors(t *testing.T) {
	c, q, _ := generated(t, 5, 2, 5000, 50)
	cfg := small(CBOW)
	task, s := setup(t, cfg, c, q, 1, 1)
	w := s.Workers(0)[0]
	dir := filepath.Join(t.TempDir(), "new", "folder")
	if err := traintest.Export(t.Context(), task, w, dir); err != nil {
		t.Fatal(err)
	}
	n := len(c.Vocabulary.Words)
	want := traintest.Values(t, w)[7*3:][:n*cfg.Dim]
	for _, name := range []string{TextFile, BinaryFile, ArrayFile} {
		v, err := wordvec.Read(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(v.Names, c.Vocabulary.Words) || !slices.Equal(v.Vals, want) {
			t.Errorf("%s holds other vectors", name)
		}
	}
	s.Workers(0)[0].(*traintest.Worker).Fail = func(op string) error {
		if op == "pull" {
			return godwit.ErrPeerLost
		}
		return nil
	}
	broken := t.TempDir()
	if err := traintest.Export(t.Context(), task, w, broken); err == nil {
		t.Error("an export whose pull failed has no error")
	}
	if left, err := os.ReadDir(broken); err != nil || len(left) > 0 {
		t.Errorf("a failed export leaves %v, %v", left, err)
	}
}

// Questions come first, in sum and then by their kinds where there are both; the loss follows where something was held out.
func TestMetricsAreOfWhatWasEvaluated(t *testing.T) {
	sections := []wordvec.SectionScore{{Name: "capital", Right: 1, Known: 4, Asked: 9}, {Name: "gram1", Syntactic: true, Right: 3, Known: 4, Asked: 4}}
	for _, c := range []struct {
		q    Quality
		want string
	}{
		{Quality{Score: wordvec.Score{Sections: sections}, Loss: 7}, "analogies=0.5 syntactic=0.75 semantic=0.25"},
		{Quality{Score: wordvec.Score{Sections: sections[:1]}, Loss: 7, Pairs: 1}, "analogies=0.25 held-out loss=7"},
		{Quality{Loss: 7, Pairs: 1}, "held-out loss=7"},
		{Quality{Score: wordvec.Score{Sections: []wordvec.SectionScore{{Asked: 3}}}}, "held-out loss=NaN"},
	} {
		var got []string
		for _, m := range c.q.Metrics() {
			got = append(got, fmt.Sprintf("%s=%v", m.Name, m.Value))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("the metrics are %s, want %s", text, c.want)
		}
	}
}
