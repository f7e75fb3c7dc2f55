package w2v

import (
	"fmt"

	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// Import implements [train.Importer]: vectors are found by their words. The models must
// be of one method, with vectors of one length.
func (t *Task) Import(src export.Source) ([]train.Rows, error) {
	rows, err := t.imported(src)
	if err != nil {
		return nil, fmt.Errorf("w2v: the trained model does not fit: %w", err)
	}
	return rows, nil
}

func (t *Task) imported(src export.Source) (rows []train.Rows, err error) {
	if err := tables.Same(src, "w2v", t.cfg.Method, t.cfg.Dim); err != nil {
		return nil, err
	}
	words := t.corpus.Vocabulary.Words
	for _, name := range []string{ArrayFile, ContextFile} {
		v, err := tables.NamedOf(src, name, WordFile, t.cfg.Dim)
		if err != nil {
			return nil, err
		}
		rows = append(rows, v.By(func(i int) string { return words[i] }, nil))
	}
	return rows, nil
}
