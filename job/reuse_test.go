package job

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/data/bagofwords"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/data/lines"
	"github.com/godwit-ps/godwit/data/ratings"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/mf"
	"github.com/godwit-ps/godwit/train/task"
)

// reusable describes runs of all tasks, of a second at the most, on generated data.
func reusable() map[string]Spec {
	specs := map[string]Spec{}
	add := func(name string, t task.Settings, epochs int) {
		s := Default(t)
		s.Workers, s.Options.Epochs, s.Untrained, s.Seed = 2, epochs, false, 3
		specs[name] = s
	}
	for _, model := range []string{"complex", "rescal", "transe", "rotate", "reciprocal"} {
		k := tiny(1).Task.(*task.KGE)
		k.Model, k.Dim = model, 8
		if model == "reciprocal" {
			k.Model, k.Reciprocal = "distmult", true
		}
		if model == "transe" || model == "rotate" {
			k.N3 = 0
		}
		add(model, k, 3)
	}
	for _, biased := range []bool{true, false} {
		m := task.DefaultMF()
		m.Matrix.Rows, m.Matrix.Cols, m.Matrix.Cells, m.Biased, m.Dim = 100, 60, 3000, biased, 8
		add(fmt.Sprintf("mf, biased %v", biased), m, 5)
	}
	b := task.DefaultMF()
	b.Matrix.Rows, b.Matrix.Cols, b.Matrix.Cells, b.Order, b.Dim = 100, 60, 3000, mf.Blocks, 8
	add("mf, blocks", b, 3)
	for name, change := range map[string]func(l *task.Linear){
		"weights": func(*task.Linear) {},
		"factors": func(l *task.Linear) { l.Factors = 4 },
		"no bias": func(l *task.Linear) { l.Bias = false },
		"blocks":  func(l *task.Linear) { l.Solver = task.Blocks },
	} {
		l := task.DefaultLinear()
		l.Examples.Examples = 2000
		change(l)
		add(name, l, 3)
	}
	l := task.DefaultLDA()
	l.Documents.Documents, l.Documents.Words, l.Topics = 300, 500, 10
	add("lda", l, 5)
	k := task.DefaultSketch()
	k.Stream.Items, k.Stream.Distinct, k.Width = 20000, 3000, 2048
	add("sketch", k, 1)
	w := task.DefaultW2V()
	w.Corpus.Stems, w.Corpus.Forms, w.Corpus.Words, w.Dim, w.Batch = 12, 3, 40000, 20, 100
	add("w2v", w, 3)
	return specs
}

// trained trains a model and returns its export, opened, with the figures of training.
func trained(t *testing.T, spec Spec) (dir string, m *task.Model, ms Metrics) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "model")
	r, err := Local(timeout(t), "test", spec, NodeConfig{Export: dir})
	if err != nil {
		t.Fatal(err)
	}
	return dir, opened(t, dir), r.Test
}

func opened(t *testing.T, dir string) *task.Model {
	t.Helper()
	src, err := export.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := task.Open(src)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// agree compares figures; workers may have added them up in another order, and the
// biases of an exported factorization are rounded once more. A figure near 0 may be a difference of ones, as R² is.
func agree(t *testing.T, what string, got, want []train.Metric) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Errorf("%s: the figures are %v, want %v", what, got, want)
		return
	}
	for i := range got {
		if x, y := got[i].Value, want[i].Value; got[i].Name != want[i].Name || !(math.Abs(x-y) <= 1e-6*max(1, math.Abs(y))) {
			t.Errorf("%s: the figures are %v, want %v", what, got, want)
			return
		}
	}
}

func TestAnExportIsEvaluatedAsTrainingDid(t *testing.T) {
	for name, spec := range reusable() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, m, want := trained(t, spec)
			got, err := m.TestHeldOut(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			if agree(t, name, got.Metrics, want); len(got.Warnings) > 0 {
				t.Errorf("warnings: %q", got.Warnings)
			}
			if graph := spec.Task.Name() == "kge"; graph != (got.Links != nil) {
				t.Errorf("the metrics of link prediction are %+v", got.Links)
			}
		})
	}
}

// ask has a model answer questions, and returns the fields of the lines of the answers.
func ask(t *testing.T, m *task.Model, u task.Use, questions string) (fields [][]string) {
	t.Helper()
	if u.Top == 0 {
		u.Top = 10
	}
	err := m.Answer(t.Context(), u, lines.New("questions", strings.NewReader(questions), task.MaxQuestion), func(_ int, a task.Answer) error {
		for _, text := range a.Text() {
			fields = append(fields, strings.Split(text, "\t"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	var x float64
	if _, err := fmt.Sscan(text, &x); err != nil {
		t.Fatalf("%q is no number", text)
	}
	return x
}

// The facts of a test in a file of their own are ranked as in training, if those of
// training are known; and ranks follow from the scores that predict has.
func TestFactsOfAFileAreRankedAndScored(t *testing.T) {
	for _, model := range []string{"complex", "transe", "reciprocal"} {
		spec := reusable()[model]
		g, err := triples.Generate(spec.Task.(*task.KGE).Graph)
		if err != nil {
			t.Fatal(err)
		}
		spec.Data = t.TempDir()
		if err := g.Write(spec.Data); err != nil {
			t.Fatal(err)
		}
		_, m, want := trained(t, spec)
		test := filepath.Join(spec.Data, "test.txt")
		got, err := m.Test(t.Context(), task.Use{Test: test, Known: spec.Data})
		if err != nil {
			t.Fatal(err)
		}
		agree(t, model, got.Metrics, want)

		alone, err := m.Test(t.Context(), task.Use{Test: test})
		if err != nil || !(alone.Metrics[0].Value < want[0].Value) {
			t.Errorf("%s: without known facts the MRR is %v (%v), want less than %v", model, alone.Metrics, err, want)
		}
		checkCompletions(t, m, g, spec.Data)
	}
}

// checkCompletions compares the completions of a few facts with the scores of all
// facts that they could be.
func checkCompletions(t *testing.T, m *task.Model, g *triples.Graph, known string) {
	t.Helper()
	filter := triples.NewFilter(g)
	for _, x := range g.Test[:3] {
		s, r := g.Entities[x.S], g.Relations[x.R]
		var all strings.Builder
		var left []string
		for o, name := range g.Entities {
			if _, ok := slices.BinarySearch(filter.Objects(x.S, x.R), uint32(o)); !ok {
				fmt.Fprintf(&all, "%s\t%s\t%s\n", s, r, name)
				left = append(left, name)
			}
		}
		scores := ask(t, m, task.Use{}, all.String())
		if len(scores) != len(left) {
			t.Fatalf("%d scores of %d facts", len(scores), len(left))
		}
		slices.SortStableFunc(scores, func(a, b []string) int { return -int(1e6 * (number(t, a[3]) - number(t, b[3]))) })
		best := ask(t, m, task.Use{Top: 5, Known: known}, s+"\t"+r+"\t?\n")
		if len(best) != 5 {
			t.Fatalf("%d completions, want 5: %q", len(best), best)
		}
		for i, b := range best {
			if b[0] != s || b[1] != r || math.Abs(number(t, b[3])-number(t, scores[i][3])) > 1e-4*(1+math.Abs(number(t, b[3]))) {
				t.Errorf("completion %d is %q, the fact with that score is %q", i, b, scores[i])
			}
		}
	}
	heads := ask(t, m, task.Use{Top: len(g.Entities) + 1}, "?\t"+g.Relations[0]+"\t"+g.Entities[0]+"\n")
	if len(heads) != len(g.Entities) {
		t.Errorf("%d heads of %d entities", len(heads), len(g.Entities))
	}
	if got := ask(t, m, task.Use{}, "nobody\t"+g.Relations[0]+"\t?\n"); len(got) != 1 || got[0][0] != "?" || !strings.Contains(got[0][1], "nobody") {
		t.Errorf("an unknown entity is answered by %q", got)
	}
}

func TestCellsOfAFileAreEvaluatedAndPredicted(t *testing.T) {
	spec := reusable()["mf, biased true"]
	set, err := ratings.Generate(spec.Task.(*task.MF).Matrix)
	if err != nil {
		t.Fatal(err)
	}
	spec.Data = t.TempDir()
	write := func(name string, cells []ratings.Rating) string {
		var b bytes.Buffer
		for _, c := range cells {
			fmt.Fprintf(&b, "%s\t%s\t%v\n", "user "+set.RowName(int(c.Row)), set.ColName(int(c.Col)), c.Value)
		}
		path := filepath.Join(spec.Data, name)
		if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("train.tsv", set.Train)
	test := write("test.tsv", set.Test)
	_, m, want := trained(t, spec)
	got, err := m.Test(t.Context(), task.Use{Test: test})
	if err != nil {
		t.Fatal(err)
	}
	agree(t, "cells of a file", got.Metrics, want)

	text, err := os.ReadFile(test)
	if err != nil {
		t.Fatal(err)
	}
	answers, sum := ask(t, m, task.Use{}, string(text)), 0.0
	if len(answers) != len(set.Test) {
		t.Fatalf("%d answers to %d cells", len(answers), len(set.Test))
	}
	for i, a := range answers {
		e := number(t, a[2]) - float64(set.Test[i].Value)
		sum += e * e
	}
	if rmse := math.Sqrt(sum / float64(len(answers))); math.Abs(rmse-want.At("RMSE")) > 1e-4 {
		t.Errorf("the RMSE of the predictions is %v, want %v", rmse, want)
	}

	row := "user " + set.RowName(0)
	var all strings.Builder
	for c := range set.Cols {
		fmt.Fprintf(&all, "%s\t%s\n", row, set.ColName(c))
	}
	most := slices.MaxFunc(ask(t, m, task.Use{}, all.String()), func(a, b []string) int {
		return int(1e6 * (number(t, a[2]) - number(t, b[2])))
	})
	if best := ask(t, m, task.Use{Top: 3}, row+"\t?\n"); len(best) != 3 || best[0][1] != most[1] {
		t.Errorf("the best columns of a row are %q, want %q first", best, most)
	}
}

// heldOut trains on four fifths of a set, in a file, and returns the others, what the model answers of them, and
// its figures, which are those of an evaluation of their file.
func heldOut(t *testing.T, spec Spec, set *libsvm.Set) (held *libsvm.Set, answers [][]string, want Metrics) {
	t.Helper()
	spec.Data = filepath.Join(t.TempDir(), "examples")
	rest, held := set.Split(5)
	if err := errors.Join(rest.Write(spec.Data), held.Write(spec.Data+".t")); err != nil {
		t.Fatal(err)
	}
	_, m, want := trained(t, spec)
	got, err := m.Test(t.Context(), task.Use{Test: spec.Data + ".t"})
	if err != nil {
		t.Fatal(err)
	}
	agree(t, "examples of a file", got.Metrics, want[:3])
	text, err := os.ReadFile(spec.Data + ".t")
	if err != nil {
		t.Fatal(err)
	}
	return held, ask(t, m, task.Use{}, string(text)), want
}

func TestExamplesOfAFileAreEvaluatedAndClassified(t *testing.T) {
	for _, hashed := range []bool{false, true} {
		spec := reusable()["factors"]
		l := spec.Task.(*task.Linear)
		set, err := libsvm.Generate(l.Examples)
		if err != nil {
			t.Fatal(err)
		}
		positive := "1"
		if hashed {
			l.HashBits, set.Classes, positive = 14, []string{"1", "2"}, "2"
		}
		held, answers, want := heldOut(t, spec, set)
		right := 0
		for i, a := range answers {
			if y, _, _ := held.Row(i); (y > 0) == (a[0] == positive) {
				right++
			}
			if (a[0] == positive) != (number(t, a[1]) > 0.5) {
				t.Errorf("the label %s has the probability %s", a[0], a[1])
			}
		}
		if accuracy := float64(right) / float64(held.Len()); math.Abs(accuracy-want.At("accuracy")) > 1e-9 {
			t.Errorf("hashed %v: %v of the answers are right, want %v", hashed, accuracy, want)
		}
	}
}

func TestExamplesOfManyClassesAndOfValuesArePredicted(t *testing.T) {
	for _, classes := range []int{0, 5} {
		spec := reusable()["factors"]
		l := spec.Task.(*task.Linear)
		l.Examples.Classes, l.Target, l.L1 = classes, libsvm.ToClasses, 0.01
		if classes == 0 {
			l.Target = libsvm.ToValues
		}
		set, err := libsvm.Generate(l.Examples)
		if err != nil {
			t.Fatal(err)
		}
		held, answers, want := heldOut(t, spec, set)
		right, square := 0, 0.0
		for i, a := range answers {
			y, _, _ := held.Row(i)
			if classes == 0 {
				square += math.Pow(number(t, a[0])-float64(y), 2)
			} else if a[0] == held.Classes[int(y)] {
				right++
			}
		}
		n := float64(held.Len())
		if classes > 0 && math.Abs(float64(right)/n-want.At("accuracy")) > 1e-9 {
			t.Errorf("%v of the answers are right, want %v", float64(right)/n, want)
		}
		if rmse := math.Sqrt(square / n); classes == 0 && math.Abs(rmse-want.At("RMSE")) > 1e-4 {
			t.Errorf("the answers are %v off, want %v", rmse, want)
		}
	}
}

func TestDocumentsAreEvaluatedAndTheirTopicsInferred(t *testing.T) {
	spec := reusable()["lda"]
	l := spec.Task.(*task.LDA)
	l.Topics, l.Documents.Topics, spec.Options.Epochs = 6, 6, 20
	dir, m, _ := trained(t, spec)
	topics, err := os.ReadFile(filepath.Join(dir, "topics.txt"))
	if err != nil {
		t.Fatal(err)
	}
	// A document of the words of a topic is about it, or about one of the same words: sampling may find a topic twice, and another one not.
	lists, own := strings.Split(strings.TrimSpace(string(topics)), "\n"), 0
	for z, words := range lists {
		got := ask(t, m, task.Use{}, words+" "+words+"\n")
		if len(got) != 1 || number(t, got[0][1]) < 0.3 {
			t.Fatalf("a document of the words of topic %d is about %q", z, got)
		}
		about := int(number(t, got[0][0]))
		if about == z {
			own++
		} else if same := inBoth(words, lists[about]); 2*same < len(strings.Fields(words)) {
			t.Errorf("a document of the words of topic %d is about %q, which has %d of them:\n%s\n%s", z, got, same, words, lists[about])
		}
	}
	if own < len(lists)/2 {
		t.Errorf("of %d topics, the words of %d are about themselves", len(lists), own)
	}
	if got := ask(t, m, task.Use{}, "...\n"); len(got) != 1 || got[0][0] != "?" {
		t.Errorf("a document without known words is answered by %q", got)
	}
	set, err := bagofwords.Generate(l.Documents)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i := range 50 {
		for _, w := range set.Doc(i) {
			b.WriteString(set.Names[w] + " ")
		}
		b.WriteString("zebra\n\n")
	}
	path := filepath.Join(t.TempDir(), "new.txt")
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	got, err := m.Test(t.Context(), task.Use{Test: path})
	if err != nil {
		t.Fatal(err)
	}
	if p := got.Metrics[0].Value; !(p > 1 && p < 500) || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "50 words") {
		t.Errorf("new documents: perplexity %v, warnings %q", p, got.Warnings)
	}
}

func TestASketchAndWordsAreAsked(t *testing.T) {
	_, m, _ := trained(t, reusable()["sketch"])
	if got := ask(t, m, task.Use{}, "1\n2\n"); len(got) != 2 || number(t, got[0][1]) < number(t, got[1][1]) || number(t, got[1][1]) < 10 {
		t.Errorf("the most frequent items were counted %q times", got)
	}
	if _, err := m.Test(t.Context(), task.Use{Test: "file"}); err == nil || !strings.Contains(err.Error(), "--data") {
		t.Errorf("a sketch is evaluated on a file: %v", err)
	}

	dir, m, _ := trained(t, reusable()["w2v"])
	text, err := os.ReadFile(filepath.Join(dir, "words.txt"))
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(text))
	got := ask(t, m, task.Use{Top: 2}, words[0]+"\n"+strings.Join(words[:3], " ")+"\nzebra\n")
	if len(got) != 5 || got[0][0] != words[0] || got[2][0] != strings.Join(words[:3], " ") || got[4][0] != "?" {
		t.Errorf("words are answered by %q", got)
	}
}

// A question is answered when it was read, not when there are no more.
func TestQuestionsAreAnsweredOneByOne(t *testing.T) {
	_, m, _ := trained(t, reusable()["sketch"])
	in, questions := io.Pipe()
	answers := make(chan int, 8)
	done := make(chan error, 1)
	go func() {
		done <- m.Answer(t.Context(), task.Use{Top: 1}, lines.New("pipe", in, task.MaxQuestion), func(line int, _ task.Answer) error {
			answers <- line
			return nil
		})
	}()
	for i := 1; i <= 3; i++ {
		if _, err := io.WriteString(questions, "7\n"); err != nil {
			t.Fatal(err)
		}
		if line := <-answers; line != i {
			t.Errorf("the answer is to line %d, want %d", line, i)
		}
	}
	if _, err := io.WriteString(questions, "8\nseven\n9\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "pipe:5: \"seven\"") || <-answers != 4 {
		t.Errorf("a line that is no question: %v, want it named, and the ones before answered", err)
	}
}

// edited copies an export with a changed description.
func edited(t *testing.T, dir string, edit func(m map[string]any)) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(copied, export.ModelFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	edit(m)
	if text, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return copied
}

func TestModelsThatContradictThemselvesAreRefused(t *testing.T) {
	dir, _, _ := trained(t, reusable()["complex"])
	settings := func(m map[string]any) map[string]any {
		return m["run"].(map[string]any)["spec"].(map[string]any)["settings"].(map[string]any)
	}
	for want, edit := range map[string]func(m map[string]any){
		"how it was trained": func(m map[string]any) { delete(m, "run") },
		"settings of kge":    func(m map[string]any) { m["task"] = "mf" },
		"no task": func(m map[string]any) {
			m["task"] = "x"
			m["run"].(map[string]any)["spec"].(map[string]any)["task"] = "x"
		},
		"dim is 8":           func(m map[string]any) { settings(m)["Dim"] = 16 },
		"Dim is":             func(m map[string]any) { settings(m)["Dim"] = 1 << 40 },
		`model is "complex"`: func(m map[string]any) { settings(m)["Model"] = "distmult" },
		"reciprocal":         func(m map[string]any) { settings(m)["Reciprocal"] = true },
		"another version":    func(m map[string]any) { settings(m)["Rubbish"] = true },
	} {
		src, err := export.Open(edited(t, dir, edit))
		if err != nil {
			t.Fatal(err)
		}
		m, err := task.Open(src)
		if err == nil {
			err = m.Answer(t.Context(), task.Use{Top: 1}, lines.New("q", strings.NewReader("a b ?\n"), 100), func(int, task.Answer) error { return nil })
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want to hear of %q", err, want)
		}
	}
}

// Whatever the description of a model says, it is used or refused.
func FuzzDescribedModelsAreUsedOrRefused(f *testing.F) {
	sources := map[string]string{}
	for _, name := range []string{"complex", "mf, biased true", "weights", "lda", "sketch", "w2v"} {
		spec := reusable()[name]
		spec.Options.Epochs = 1
		dir := filepath.Join(f.TempDir(), "model")
		if _, err := Local(f.Context(), "fuzz", spec, NodeConfig{Export: dir}); err != nil {
			f.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, export.ModelFile))
		if err != nil {
			f.Fatal(err)
		}
		sources[spec.Task.Name()] = dir
		f.Add(spec.Task.Name(), text, "a b ?\n1 2\n1:1\nword\n")
	}
	f.Fuzz(func(t *testing.T, name string, text []byte, questions string) {
		dir, ok := sources[name]
		if !ok {
			return
		}
		copied := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied, export.ModelFile), text, 0o666); err != nil {
			t.Fatal(err)
		}
		src, err := export.Open(copied)
		if err != nil {
			return
		}
		m, err := task.Open(src)
		if err != nil {
			return
		}
		in := lines.New("q", bufio.NewReader(strings.NewReader(questions)), 1000)
		_ = m.Answer(t.Context(), task.Use{Top: 3}, in, func(int, task.Answer) error { return nil }) // or an error
	})
}

// inBoth returns how many words two lists have in common.
func inBoth(a, b string) (n int) {
	other := strings.Fields(b)
	for _, w := range strings.Fields(a) {
		if slices.Contains(other, w) {
			n++
		}
	}
	return n
}
