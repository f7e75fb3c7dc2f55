package w2v

import (
	"context"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/wordvec"
	"github.com/godwit-ps/godwit/train/internal/buffer"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// The files that [Task.Export] writes. All but the last hold the same vectors.
const (
	TextFile    = "vectors.txt"  // word2vec's text format
	BinaryFile  = "vectors.bin"  // its binary one
	ArrayFile   = "words.npy"    // a NumPy array, and
	WordFile    = "words.txt"    // its words
	ContextFile = "contexts.npy" // the output vectors
)

// Export writes the words' input vectors, most frequent words first, in the formats
// of package wordvec, and their output vectors, with which training can go on.
//
// One node of the run calls it, with a worker that nothing else uses meanwhile, after
// [train.Run].
func (t *Task) Export(ctx context.Context, w godwit.Worker, s *export.Set) (err error) {
	k, err := t.keys(w.Model())
	if err != nil {
		return err
	}
	words, d := t.corpus.Vocabulary.Words, t.cfg.Dim
	t.describe(s)
	var files []*wordvec.Writer
	defer func() {
		for _, f := range files {
			if cerr := f.Close(); err == nil {
				err = cerr
			}
		}
	}()
	for _, name := range []string{TextFile, BinaryFile, ArrayFile} {
		f, err := wordvec.Create(s.Path(name), len(words), d)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	out := tables.Array{File: ContextFile, Names: WordFile, Layout: "the output vector of the word, which predicts", First: k.output, Rows: len(words), Dim: d, Cols: d}
	if err := out.Write(ctx, w, s); err != nil {
		return err
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

// describe describes the files.
func (t *Task) describe(s *export.Set) {
	words, d := len(t.corpus.Vocabulary.Words), t.cfg.Dim
	s.Model.Model, s.Model.Dim = t.cfg.Method, d
	const what = "the input vector of the word, the most frequent word first"
	for _, f := range []export.File{
		{Name: ArrayFile, Kind: export.Array, Names: WordFile, Layout: what},
		{Name: TextFile, Kind: export.Words, Layout: "a line each: the word and " + what},
		{Name: BinaryFile, Kind: export.Binary, Layout: "the word and " + what},
	} {
		f.Shape = []int{words, d}
		s.Add(f)
	}
	s.Add(export.File{Name: WordFile, Kind: export.Text, Shape: []int{words}, Layout: "words, the most frequent first"})
}
