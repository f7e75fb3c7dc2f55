package w2v

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/wordvec"
	"github.com/godwit-ps/godwit/train/internal/buffer"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// The files that [Task.Export] writes, all with the same vectors.
const (
	TextFile   = "vectors.txt" // word2vec's text format
	BinaryFile = "vectors.bin" // its binary one
	ArrayFile  = "words.npy"   // a NumPy array, with its words in words.txt
)

// Export writes the words' input vectors into dir, which it makes where needed,
// most frequent words first, in the formats of package wordvec.
//
// Each file appears complete or not at all. One node of the run calls it, with
// a worker that nothing else uses meanwhile, after [train.Run].
func (t *Task) Export(ctx context.Context, w godwit.Worker, dir string) (err error) {
	k, err := t.keys(w.Model())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("w2v: export: %w", err)
	}
	words, d := t.corpus.Vocabulary.Words, t.cfg.Dim
	var files []*wordvec.Writer
	defer func() {
		for _, f := range files {
			if cerr := f.Close(); err == nil {
				err = cerr
			}
		}
	}()
	for _, name := range []string{TextFile, BinaryFile, ArrayFile} {
		f, err := wordvec.Create(filepath.Join(dir, name), len(words), d)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	return tables.Read(ctx, w, k.input, len(words), d, func(at int, vals []float32) error {
		for i := 0; i < len(vals)/d; i++ {
			for _, f := range files {
				if err := f.Write(words[at+i], buffer.Row(vals, int32(i), d)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
