//go:build !race

package lda

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/godwit-ps/godwit/data/bagofwords"
	"github.com/godwit-ps/godwit/train"
)

func TestNovelsHaveTopics(t *testing.T) {
	dir := os.Getenv("GODWIT_DATA")
	if dir == "" {
		t.Skip("GODWIT_DATA is not set: it names a folder with text/novels")
	}
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	all, err := bagofwords.Load(filepath.Join(dir, "text", "novels"), bagofwords.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	docs, held := all.Split(50)
	task, err := New(DefaultConfig(), docs, held)
	if err != nil {
		t.Fatal(err)
	}
	s := served(t, task, 1, 2)
	r, err := train.Run(t.Context(), train.Env{Workers: s.Workers(0), Progress: func(e train.Event) { t.Log(e) }}, task, train.Options{Epochs: 6, EvalEvery: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range r.Results {
		if len(ev.Warnings) > 0 {
			t.Error(ev.Warnings)
		}
	}
	// Of 20,000 words. Without topics it stays at what their frequencies tell.
	first, last := r.Results[0].Metrics[0].Value, r.Results[1].Metrics[0].Value
	if last > 8200 || last > 0.95*first {
		t.Errorf("the perplexity goes from %v to %v, want below 8200 and falling", first, last)
	}
}
