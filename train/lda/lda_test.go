package lda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/bagofwords"
	"github.com/godwit-ps/godwit/data/npy"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/train"
)

// generated returns documents with planted topics, a tenth of them held out.
func generated(t testing.TB) (docs, held *bagofwords.Set, topics [][]int32) {
	t.Helper()
	s := bagofwords.DefaultSpec()
	s.Documents, s.Words, s.Topics, s.Length = 500, 300, 8, 60
	set, topics, err := bagofwords.GenerateWithTruth(s)
	if err != nil {
		t.Fatal(err)
	}
	docs, held = set.Split(10)
	return docs, held, topics
}

func newTask(t testing.TB, change func(*Config)) *Task {
	t.Helper()
	docs, held, _ := generated(t)
	c := DefaultConfig()
	c.Topics, c.Batch, c.Beta = 8, 500, 0.01
	if change != nil {
		change(&c)
	}
	task, err := New(c, docs, held)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// served makes a server of the task's tables. A table in front moves the keys,
// so that keys and rows differ.
func served(t testing.TB, task *Task, nodes, perNode int) *traintest.Server {
	t.Helper()
	m, err := godwit.NewModel(append([]godwit.Table{{Name: "other", Rows: 7, Dim: 3}}, task.Tables()...)...)
	if err != nil {
		t.Fatal(err)
	}
	return traintest.NewServer(m, nodes, perNode, 1)
}

// onNodes runs do on all nodes at once.
func onNodes(t testing.TB, s *traintest.Server, nodes int, do func(env *train.Env) error) {
	t.Helper()
	x := traintest.NewExchange(nodes)
	var wg sync.WaitGroup
	for node := range nodes {
		wg.Go(func() {
			if err := do(&train.Env{Workers: s.Workers(node), Node: node, Nodes: nodes, Exchange: x.Of(node), Ask: x.Ask(node), Serve: x.Serve}); err != nil {
				t.Errorf("node %d: %v", node, err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// values are all values of the task's tables: counts of words, counts of topics.
func values(t testing.TB, w godwit.Worker, task *Task) (words, topics []float32) {
	t.Helper()
	k, err := task.keys(w.Model())
	if err != nil {
		t.Fatal(err)
	}
	read := func(first godwit.Key, rows int) []float32 {
		x := make([]float32, rows*task.cfg.Topics)
		for i := range rows {
			if err := w.Pull(t.Context(), []godwit.Key{first + godwit.Key(i)}, x[i*task.cfg.Topics:(i+1)*task.cfg.Topics]); err != nil {
				t.Fatal(err)
			}
		}
		return x
	}
	return read(k.word, task.words), read(k.topic, task.rows)
}

func TestNodesFindThePlantedTopicsTogether(t *testing.T) {
	// With as many topics as there are, samplers find two in one at times, and
	// stay there.
	task := newTask(t, func(c *Config) { c.Topics = 16 })
	_, _, topics := generated(t)
	const nodes = 3
	s := served(t, task, nodes, 2)
	reports := make([]*train.Report, nodes)
	onNodes(t, s, nodes, func(env *train.Env) (err error) {
		reports[env.Node], err = train.Run(t.Context(), *env, task, train.Options{Epochs: 60, EvalEvery: 20})
		return err
	})
	r := reports[0]
	for node := range reports {
		if fmt.Sprint(reports[node]) != fmt.Sprint(r) {
			t.Errorf("node %d reports %+v, node 0 %+v", node, reports[node], r)
		}
	}
	if n := r.Losses[0].Examples; n != int64(len(task.docs.Words)) {
		t.Errorf("an epoch draws %d words, want %d", n, len(task.docs.Words))
	}
	for i, ev := range r.Results {
		t.Logf("after epoch %d: %v", r.Evaluated[i], ev)
		if len(ev.Warnings) > 0 {
			t.Errorf("after epoch %d: %v", r.Evaluated[i], ev.Warnings)
		}
	}
	// Not to know anything of a document would be worse by half. In 11 runs on a
	// busy machine it was 77 to 85, and all topics were found.
	if last := r.Results[len(r.Results)-1].Metrics[0].Value; last > 100 {
		t.Errorf("the perplexity is %v", last)
	}
	// The first words of most planted topics belong to a topic of their own.
	counts, _ := values(t, s.Workers(0)[0], task)
	taken := map[int]bool{}
	for _, words := range topics {
		sum := make([]float32, task.cfg.Topics)
		for _, w := range words[:3] {
			for z := range sum {
				sum[z] += counts[int(w)*task.cfg.Topics+z]
			}
		}
		best := 0
		for z, n := range sum {
			if n > sum[best] {
				best = z
			}
		}
		taken[best] = true
	}
	t.Logf("%d topics of %d were found", len(taken), len(topics))
	if len(taken) < 6 {
		t.Errorf("%d topics of %d were found", len(taken), len(topics))
	}
}

// A slow twin: the collapsed Gibbs sampler of one process, as the formula has it.
func TestASingleWorkerDrawsAsTheFormulaSays(t *testing.T) {
	for _, topics := range []int{3, 8, 50, 200} {
		t.Run(fmt.Sprintf("topics=%d", topics), func(t *testing.T) {
			testDraws(t, newTask(t, func(c *Config) { c.Topics, c.Batch = topics, 1<<20 }))
		})
	}
}

func testDraws(t *testing.T, task *Task) {
	s := served(t, task, 1, 1)
	x, err := task.Trainer(s.Workers(0)[0], train.Partition{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	tr := x.(*trainer)
	twin := new(rand.PCG)
	k := task.cfg.Topics
	words, totals := make([]float64, task.words*k), make([]float64, k)
	z := make([]int, len(task.docs.Words))
	for i := range z {
		z[i] = -1
	}
	var b train.Batch[Batch]
	for epoch := 1; epoch <= 3; epoch++ {
		twin.Seed(train.At{Epoch: epoch}.Seed(task.cfg.Seed))
		tr.Load(&b, train.At{Epoch: epoch})
		got, err := tr.Step(t.Context(), &b)
		if err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for d := range task.docs.Len() {
			from, to := task.docs.Starts[d], task.docs.Starts[d+1]
			doc, n := make([]float64, k), 0.0
			for i := from; i < to; i++ {
				if z[i] >= 0 {
					doc[z[i]]++
					n++
				}
			}
			var random uint64
			for i := from; i < to; i++ {
				w := int(task.docs.Words[i])
				if z[i] >= 0 {
					words[w*k+z[i]]--
					totals[z[i]]--
					doc[z[i]]--
					n--
				}
				sum, ends := 0.0, make([]float64, k)
				begin := math.NaN()
				for _, t := range order(k, z[i]) {
					if t == int(tr.topics[i]) {
						begin = sum
					}
					sum += (doc[t] + 0.1) * (words[w*k+t] + 0.01) / (totals[t] + float64(task.words)*0.01)
					ends[t] = sum
				}
				want -= math.Log(sum / (n + float64(k)*0.1))
				// A number is good for two draws.
				if random >>= 32; (i-from)%2 == 0 {
					random = twin.Uint64()
				}
				u := float64(uint32(random)>>8) / (1 << 24) * sum
				// Rounding decides otherwise where u is at the border: follow the trainer.
				z[i] = int(tr.topics[i])
				if slack := 1e-4 * sum; u > ends[z[i]]+slack || u < begin-slack {
					t.Fatalf("epoch %d, word %d: topic %d is drawn by %v, its odds are from %v to %v", epoch, i, z[i], u, begin, ends[z[i]])
				}
				words[w*k+z[i]]++
				totals[z[i]]++
				doc[z[i]]++
				n++
			}
		}
		if math.Abs(got.Sum/want-1) > 1e-4 {
			t.Errorf("epoch %d: loss %v, want %v", epoch, got.Sum, want)
		}
	}
	counts, sums := values(t, s.Workers(0)[0], task)
	for i := range counts {
		if float64(counts[i]) != words[i] {
			t.Fatalf("count %d is %v, want %v", i, counts[i], words[i])
		}
	}
	for i := range sums {
		if float64(sums[i]) != totals[i] {
			t.Fatalf("topic %d has %v words, want %v", i, sums[i], totals[i])
		}
	}
}

// order is the order of k topics in a draw for a word that has topic was, or none below 0: that topic, then lanes one after the other.
func order(k, was int) (topics []int) {
	if was >= 0 {
		topics = append(topics, was)
	}
	for lane := range lanes {
		for z := lane; z < k; z += lanes {
			if z != was {
				topics = append(topics, z)
			}
		}
	}
	return topics
}

// Odds of which the former topic had nearly all but for the word itself are as exact as others.
func TestTheOnlyWordOfATopicIsDrawnByTheOddsOfTheRest(t *testing.T) {
	task := newTask(t, func(c *Config) { c.Topics, c.Alpha, c.Beta = 11, 1e-4, 1e-4 })
	s := newSampler(task)
	totals, counts := make([]float32, 11), make([]float32, padded(11)+lanes)
	for z := range totals {
		totals[z] = 1000
	}
	counts[9] = 1
	s.setTotals(totals)
	s.beginDocument([]uint16{9})
	r := rand.NewPCG(1, 1)
	const draws = 11_000
	drawn := make([]float64, 11)
	for range draws {
		z, p := s.resample(counts, 9, r)
		drawn[z]++
		if want := 1e-4 / 1000.0; math.Abs(float64(p)/want-1) > 1e-3 {
			t.Fatalf("the word has a probability of %v, want %v", p, want)
		}
	}
	for z, n := range drawn {
		if math.Abs(n-draws/11) > 200 { // six standard deviations
			t.Errorf("topic %d of 11 with equal odds is drawn %v times of %d", z, n, draws)
		}
	}
}

func TestStepsAreASixtyFourthOfTheWordsBetweenBounds(t *testing.T) {
	for words, want := range map[int]int{1: 2000, 128_000: 2000, 256_000: 4000, 1_000_000: 8000} {
		c := DefaultConfig()
		if got := c.batch(words); got != want {
			t.Errorf("a step of %d words has %d, want %d", words, got, want)
		}
		if c.Batch = 7; c.batch(words) != 7 {
			t.Errorf("a step has %d words, not those of the settings", c.batch(words))
		}
	}
}

func TestASingleWorkerRepeatsARunBitForBit(t *testing.T) {
	run := func(seed uint64) []float32 {
		task := newTask(t, func(c *Config) { c.Seed = seed })
		s := served(t, task, 1, 1)
		if _, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 3}); err != nil {
			t.Fatal(err)
		}
		words, _ := values(t, s.Workers(0)[0], task)
		return words
	}
	a, b, c := run(1), run(1), run(2)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Error("two runs of a seed differ")
	}
	if fmt.Sprint(a) == fmt.Sprint(c) {
		t.Error("another seed gives the same counts")
	}
}

func TestEveryAccessIsAnnouncedAndWorkersShareAllDocuments(t *testing.T) {
	task := newTask(t, nil)
	for _, workers := range []int{1, 2, 7, 600} {
		s := served(t, task, 1, workers)
		drawn := 0
		for i, w := range s.Workers(0) {
			tr, err := task.Trainer(w, train.Partition{})
			if err != nil {
				t.Fatal(err)
			}
			var b train.Batch[Batch]
			for at := range traintest.Steps(tr, task.Chunks(), 1) {
				if at.Chunk%workers != i {
					continue
				}
				tr.Load(&b, at)
				if err := w.Intent(b.Keys, w.Clock(), w.Clock()+1); err != nil {
					t.Fatal(err)
				}
				l, err := tr.Step(t.Context(), &b)
				if err != nil {
					t.Fatal(err)
				}
				drawn += int(l.Examples)
				w.Advance()
			}
			if c := w.(*traintest.Worker).Counts; c.Uncovered > 0 {
				t.Errorf("%d of %d keys were pulled without an intent", c.Uncovered, c.Covered+c.Uncovered)
			}
		}
		if drawn != len(task.docs.Words) {
			t.Errorf("%d workers draw %d words of %d", workers, drawn, len(task.docs.Words))
		}
		env := train.Env{Workers: s.Workers(0)}
		if err := task.Check(t.Context(), &env, "all"); err != nil {
			t.Error(err)
		}
	}
}

func TestTheWordsOfAStepAreThoseOfItsDocumentsInEachEpochAndOfEachWorker(t *testing.T) {
	task := newTask(t, nil)
	s := served(t, task, 1, 2)
	first := s.Workers(0)[0].Model().Key(1, 0) // of the words
	for epoch := 1; epoch <= 2; epoch++ {
		for i, w := range s.Workers(0) {
			tr, err := task.Trainer(w, train.Partition{Index: i, Count: 2})
			if err != nil {
				t.Fatal(err)
			}
			var b train.Batch[Batch]
			doc := 0
			for at := range traintest.Steps(tr, task.Chunks(), epoch) {
				tr.Load(&b, at)
				seen := map[godwit.Key]bool{}
				for _, k := range b.Keys[:b.Data.words] {
					if seen[k] {
						t.Fatalf("epoch %d, worker %d: a step has the key %d twice", epoch, i, k)
					}
					seen[k] = true
				}
				local := b.Data.local
				for ; doc < b.Data.to; doc++ {
					for _, word := range task.docs.Doc(doc) {
						if got, want := b.Keys[local[0]], first+godwit.Key(word); got != want {
							t.Fatalf("epoch %d, worker %d: a word of document %d has the key %d, want %d", epoch, i, doc, got, want)
						}
						local = local[1:]
					}
				}
				if len(local) > 0 {
					t.Fatalf("epoch %d, worker %d: a step has %d words more than its documents", epoch, i, len(local))
				}
			}
			if doc != task.docs.Len() {
				t.Fatalf("epoch %d, worker %d: steps have %d documents of %d", epoch, i, doc, task.docs.Len())
			}
		}
	}
}

func TestCountsThatDoNotAddUpAreTold(t *testing.T) {
	for want, spoil := range map[string]func(k keys) (godwit.Key, int, float32){
		"counts of its words": func(k keys) (godwit.Key, int, float32) { return k.topic, 2, 1 },
		"no whole numbers":    func(k keys) (godwit.Key, int, float32) { return k.word + 3, 2, 0.5 },
		"negative":            func(k keys) (godwit.Key, int, float32) { return k.word + 3, 2, -1000 },
	} {
		task := newTask(t, nil)
		s := served(t, task, 1, 2)
		env := train.Env{Workers: s.Workers(0)}
		if _, err := train.Run(t.Context(), env, task, train.Options{Epochs: 2}); err != nil {
			t.Fatal(err)
		}
		w := env.Workers[0]
		k, err := task.keys(w.Model())
		if err != nil {
			t.Fatal(err)
		}
		push := make([]float32, task.cfg.Topics)
		key, z, by := spoil(k)
		push[z] = by
		if err := w.Push(t.Context(), []godwit.Key{key}, push); err != nil {
			t.Fatal(err)
		}
		if err := task.Check(t.Context(), &env, "spoilt"); !errors.Is(err, ErrCounts) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
		ev, err := task.Evaluate(t.Context(), &env, 2)
		if err != nil || len(ev.Warnings) != 1 {
			t.Errorf("an evaluation of spoilt counts warns %q, %v", ev.Warnings, err)
		}
	}
}

func TestWhatCannotBeCountedExactlyIsRefused(t *testing.T) {
	docs := &bagofwords.Set{Names: []string{"often", "rare"}}
	docs.Append(make([]int32, perRow/2+1))
	docs.Append([]int32{1})
	if err := checkCounts(docs, perRow+perRow/4); err == nil || !strings.Contains(err.Error(), `word "often"`) && !strings.Contains(err.Error(), "document 0") {
		t.Errorf("error %v, want one that names the document", err)
	}
	if err := checkCounts(docs, perRow/2); err == nil || !strings.Contains(err.Error(), `word "often"`) {
		t.Errorf("error %v, want one that names the word", err)
	}
	if err := checkCounts(docs, exact); err != nil {
		t.Error(err)
	}
}

// As many words as need three rows of the topics.
func TestTopicsOfManyWordsAreCountedInSeveralRows(t *testing.T) {
	docs := &bagofwords.Set{Names: []string{"a", "b", "c", "d"}}
	doc := make([]int32, 1<<20)
	for i := range doc {
		doc[i] = int32(i % 4)
	}
	for range 17 {
		docs.Append(doc)
	}
	task, err := New(DefaultConfig(), docs, &bagofwords.Set{Names: docs.Names})
	if err != nil {
		t.Fatal(err)
	}
	if task.rows != 3 || task.row(0) != 0 || task.row(7) != 0 || task.row(8) != 1 || task.row(16) != 2 {
		t.Errorf("%d rows, documents 0, 7, 8, 16 in %d, %d, %d, %d", task.rows, task.row(0), task.row(7), task.row(8), task.row(16))
	}
}

func TestBadSettingsAndDocumentsAreRefused(t *testing.T) {
	docs, held, _ := generated(t)
	for field, change := range map[string]func(*Config){
		"Topics": func(c *Config) { c.Topics = 1 }, "Alpha": func(c *Config) { c.Alpha = 0 }, "Beta": func(c *Config) { c.Beta = float32(math.NaN()) },
		"Batch": func(c *Config) { c.Batch = -1 }, "Fold": func(c *Config) { c.Fold = 0 },
	} {
		c := DefaultConfig()
		change(&c)
		if _, err := New(c, docs, held); err == nil || !strings.Contains(err.Error(), "Config."+field+" ") {
			t.Errorf("%s: error %v", field, err)
		}
	}
	c := DefaultConfig()
	for want, sets := range map[string][2]*bagofwords.Set{
		"no words to train":  {{Names: []string{"a"}}, {Names: []string{"a"}}},
		"not of the same":    {docs, {Names: []string{"a"}}},
		"words without docu": {{Words: []int32{0}}, held},
	} {
		if _, err := New(c, sets[0], sets[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	task := newTask(t, nil)
	env := train.Env{Workers: served(t, task, 1, 1).Workers(0)}
	if _, err := task.EvaluateOn(t.Context(), &env, "other", &bagofwords.Set{Names: []string{"a"}}); err == nil {
		t.Error("documents of other words were evaluated")
	}
	tables := task.Tables()
	tables[0].Dim++
	m, err := godwit.NewModel(tables...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := task.Trainer(traintest.NewServer(m, 1, 1, 1).Workers(0)[0], train.Partition{Count: 1}); err == nil || !strings.Contains(err.Error(), "9 floats") {
		t.Errorf("a table of another length: %v", err)
	}
}

func TestExportedTopicsAreThoseOfTheServer(t *testing.T) {
	task := newTask(t, nil)
	s := served(t, task, 1, 1)
	if _, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0)}, task, train.Options{Epochs: 30}); err != nil {
		t.Fatal(err)
	}
	w, dir := s.Workers(0)[0], filepath.Join(t.TempDir(), "new")
	if err := traintest.Export(t.Context(), task, w, dir); err != nil {
		t.Fatal(err)
	}
	r, err := npy.Open(filepath.Join(dir, CountFile))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want, _ := values(t, w, task)
	got := make([]float32, len(want))
	if _, err := r.ReadRows(got); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the file does not hold the counts (%v)", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, TopicFile))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != task.cfg.Topics {
		t.Fatalf("%d topics are written", len(lines))
	}
	number := map[string]int{}
	for i, name := range task.docs.Names {
		number[name] = i
	}
	for z, line := range lines {
		last := float32(math.Inf(1))
		names := strings.Fields(line)
		for _, name := range names {
			n := want[number[name]*task.cfg.Topics+z]
			if n > last || n == 0 {
				t.Errorf("topic %d: %q has %v words after %v", z, name, n, last)
			}
			last = n
		}
		more := 0
		for w := range task.words {
			if want[w*task.cfg.Topics+z] > last {
				more++
			}
		}
		if len(names) != topWords || more > topWords {
			t.Errorf("topic %d has %d words, and %d are more frequent than its last", z, len(names), more)
		}
	}
	if err := traintest.Export(context.Background(), task, w, filepath.Join(dir, TopicFile)); err == nil {
		t.Error("topics were exported into a file")
	}
}

// Rounding may make the number that is drawn the sum of all odds: a topic is found all the same.
func TestTheSumOfAllOddsIsOfSomeTopic(t *testing.T) {
	for topics := 2; topics <= 40; topics++ {
		task := newTask(t, func(c *Config) { c.Topics = topics })
		s := newSampler(task)
		totals, counts := make([]float32, topics), make([]float32, padded(topics)+lanes)
		for z := range totals {
			totals[z], counts[z] = 10, float32(z%3)
		}
		s.setTotals(totals)
		s.beginDocument(nil)
		vec.TopicOdds(s.sums, s.weight, counts[:len(s.weight)], s.beta)
		if z := s.find(s.all(), len(s.sums), 0); z < 0 || z >= topics {
			t.Errorf("topic %d of %d is found", z, topics)
		}
	}
}

// Each sweep of an evaluation draws anew the topics of the words that it had drawn: it counts each word once.
func TestAnEvaluationCountsEachWordOnce(t *testing.T) {
	task := newTask(t, func(c *Config) { c.Topics, c.Fold = 7, 5 })
	s := newSampler(task)
	s.setTotals(make([]float32, 7))
	ev := &evaluator{task: task, s: s, local: []int32{0, 1, 0, 2, 1, 2, 0, 1, 2}, vals: make([]float32, 3*7+lanes)}
	ev.complete(rand.NewPCG(1, 1))
	sum := float32(0)
	for _, n := range ev.s.doc {
		if sum += n; n < 0 {
			t.Errorf("a topic has %v words", n)
		}
	}
	if sum != 5 || ev.s.length != 5 { // every second one
		t.Errorf("the document has %v words, and a length of %v, want the 5 that were swept over", sum, ev.s.length)
	}
}

// From a document of one word nothing is predicted: where all are such, there is no figure, and none that looks like the best.
func TestDocumentsOfOneWordHavePerplexityNone(t *testing.T) {
	held := &bagofwords.Set{Names: []string{"a", "b"}, Words: []int32{0, 1, 0}, Starts: []int{0, 1, 2, 3}}
	docs := &bagofwords.Set{Names: held.Names, Words: []int32{0, 1, 1, 0}, Starts: []int{0, 2, 4}}
	cfg := DefaultConfig()
	cfg.Topics = 2
	for _, c := range []struct {
		held *bagofwords.Set
		none bool
	}{{held, true}, {docs, false}} {
		task, err := New(cfg, docs, c.held)
		if err != nil {
			t.Fatal(err)
		}
		onNodes(t, served(t, task, 2, 1), 2, func(env *train.Env) error {
			ev, err := task.Evaluate(t.Context(), env, 1)
			if err != nil {
				return err
			}
			if got := ev.Metrics[0].Value; math.IsNaN(got) != c.none {
				t.Errorf("the perplexity is %v", got)
			}
			if told := len(ev.Warnings) == 1 && strings.Contains(ev.Warnings[0], "two words"); told != c.none {
				t.Errorf("the warnings are %q", ev.Warnings)
			}
			return nil
		})
	}
}
