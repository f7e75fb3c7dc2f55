//go:build !race

package w2v

// Training to the end takes the race detector minutes, and shows it nothing
// that the short runs of the other tests do not.

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/corpus"
	"github.com/godwit-ps/godwit/data/wordvec"
	"github.com/godwit-ps/godwit/train"
)

func TestBothMethodsLearnAGeneratedText(t *testing.T) {
	c, q, g := generated(t, 40, 4, 200_000, 250)
	for method, least := range map[string]float64{SkipGram: 0.6, CBOW: 0.5} {
		t.Run(method, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Method, cfg.Dim = method, 50
			task, s := setup(t, cfg, c, q, 1, 2)
			env := train.Env{Workers: s.Workers(0), Progress: func(e train.Event) { t.Log(e) }}
			if _, err := train.Run(t.Context(), env, task, train.Options{Epochs: 5}); err != nil {
				t.Fatal(err)
			}
			quality, err := task.EvaluateOn(t.Context(), &env, "test", 0)
			if err != nil {
				t.Fatal(err)
			}
			if a := quality.Score.Sum("", wordvec.All).Accuracy(); a < least {
				t.Errorf("%.3f of the analogies are answered right, want at least %v", a, least)
			}
			near := companionsNearby(t, c, g, env.Workers[0], cfg.Dim)
			t.Logf("%.3f of the analogies, %.3f of the nearest words", quality.Score.Sum("", wordvec.All).Accuracy(), near)
			if near < 0.9 {
				t.Errorf("%.3f of the nearest words are companions of the same stem, want at least 0.9", near)
			}
		})
	}
}

// companionsNearby is the share of companions whose nearest word stands near the
// same words in the text.
func companionsNearby(t *testing.T, c *corpus.Corpus, g *corpus.Generated, w godwit.Worker, dim int) float64 {
	t.Helper()
	n := len(c.Vocabulary.Words)
	vals := make([]float32, n*dim)
	ks := make([]godwit.Key, n)
	for i := range ks {
		ks[i] = w.Model().Key(1, uint64(i))
	}
	if err := w.Pull(t.Context(), ks, vals); err != nil {
		t.Fatal(err)
	}
	wordvec.Normalize(vals, dim)
	v, err := wordvec.New(c.Vocabulary.Words, dim, vals)
	if err != nil {
		t.Fatal(err)
	}
	group := map[string]int{}
	for i, words := range g.Companions {
		for _, w := range words {
			group[w] = i + 1
		}
	}
	right, all := 0.0, 0.0
	for word, i := range group {
		id, _ := v.ID(word)
		if group[v.Nearest(v.Vector(id), 1, id)[0].Name] == i {
			right++
		}
		all++
	}
	return right / all
}

// One epoch of a seventh of the novels takes ten seconds of a processor; the
// whole takes minutes. What comes of it, even with the uniform negatives of the
// tests' server, shows already if something broke.
func TestDefaultsLearnFromNovels(t *testing.T) {
	dir := os.Getenv("GODWIT_DATA")
	if dir == "" {
		t.Skip("GODWIT_DATA is not set: it names a folder with text/novels")
	}
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	path := filepath.Join(t.TempDir(), "some.txt")
	firstOf(t, filepath.Join(dir, "text", "novels", "novels.txt.gz"), path, 11_000_000)
	c, err := corpus.Open(path, corpus.Options{MinCount: 5, Block: 250})
	if err != nil {
		t.Fatal(err)
	}
	q, err := wordvec.ReadQuestions(filepath.Join(dir, "text", "questions-words.txt"), true)
	if err != nil {
		t.Fatal(err)
	}
	task, s := setup(t, DefaultConfig(), c, q, 1, 2)
	env := train.Env{Workers: s.Workers(0), Progress: func(e train.Event) { t.Log(e) }}
	if _, err := train.Run(t.Context(), env, task, train.Options{Epochs: 1}); err != nil {
		t.Fatal(err)
	}
	quality, err := task.EvaluateOn(t.Context(), &env, "test", 0)
	if err != nil {
		t.Fatal(err)
	}
	semantic := quality.Score.Sum("semantic", wordvec.Semantic)
	t.Logf("%d of %d semantic questions, held-out loss %.3f", semantic.Right, semantic.Known, quality.Loss)
	// By chance it is one of some thousands.
	if semantic.Accuracy() < 0.02 {
		t.Errorf("%.3f of the semantic questions are answered right, want at least 0.02", semantic.Accuracy())
	}
}

// firstOf decompresses the first bytes of a text, up to an end of a line.
func firstOf(t *testing.T, from, to string, n int64) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(z, text); err != nil {
		t.Fatal(err)
	}
	for len(text) > 0 && text[len(text)-1] != '\n' {
		text = text[:len(text)-1]
	}
	if err := os.WriteFile(to, text, 0o666); err != nil {
		t.Fatal(err)
	}
}
