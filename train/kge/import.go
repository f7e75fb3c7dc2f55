package kge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// Import implements [train.Importer]: embeddings are found by the names of entities and
// relations. The models must be of one kind and length, and both have reciprocal
// relations or none.
func (t *Task) Import(src export.Source) ([]train.Rows, error) {
	rows, err := t.imported(src)
	if err != nil {
		return nil, fmt.Errorf("kge: the trained model does not fit: %w", err)
	}
	return rows, nil
}

func (t *Task) imported(src export.Source) ([]train.Rows, error) {
	if err := tables.Same(src, "kge", t.model.name(), t.cfg.Dim); err != nil {
		return nil, err
	}
	entities, err := tables.NamedOf(src, EntityFile, EntityNamesFile, t.cfg.Dim)
	if err != nil {
		return nil, err
	}
	relations, err := tables.ArrayOf(src, RelationFile, t.relDim)
	if err != nil {
		return nil, err
	}
	names, reciprocal, err := relationNames(src)
	if err != nil {
		return nil, err
	}
	rows := len(names)
	if reciprocal {
		rows *= 2
	}
	if rows != relations.Rows {
		return nil, fmt.Errorf("%s has %d rows, and %s names %d", RelationFile, relations.Rows, RelationNamesFile, rows)
	}
	if reciprocal != t.cfg.Reciprocal {
		return nil, fmt.Errorf("reciprocal is %v of its relations, and %v is wanted", reciprocal, t.cfg.Reciprocal)
	}
	at := make(map[string]int, len(names))
	for i, name := range names {
		at[name] = i
	}
	n := uint64(len(t.graph.Relations))
	return []train.Rows{
		t.padded(entities.By(func(i int) string { return t.graph.Entities[i] }, nil)),
		t.padded(func(row uint64, dst []float32) bool {
			i, ok := at[t.graph.Relations[row%n]]
			if !ok {
				return false
			}
			copy(dst, relations.Row(i+int(row/n)*len(names)))
			return true
		}),
	}, nil
}

// padded gives rows the float by which rates come, if the tables have it.
func (t *Task) padded(rows train.Rows) train.Rows {
	return func(row uint64, dst []float32) bool {
		n := len(dst) - t.extra
		clear(dst[n:])
		return rows(row, dst[:n])
	}
}

// relationNames returns the names of an export's relations, without those of their second
// embeddings, and whether they have such. Exports of before Reciprocal tell it by the score.
func relationNames(src export.Source) (names []string, reciprocal bool, err error) {
	if names, err = src.Lines(RelationNamesFile); err != nil {
		return nil, false, err
	}
	d := src.Describe()
	if !d.Reciprocal && !strings.Contains(d.Score, byInverse) {
		return names, false, nil
	}
	h := len(names) / 2
	if !slices.EqualFunc(names[:h], names[h:], func(a, b string) bool { return inverse+a == b }) {
		return nil, false, fmt.Errorf("%s does not name each relation and then, in the same order, its inverse, as that of a model with reciprocal relations does", RelationNamesFile)
	}
	return names[:h], true, nil
}

// Names returns the entities and relations of a trained model.
func Names(src export.Source) (entities, relations []string, err error) {
	if entities, err = src.Lines(EntityNamesFile); err != nil {
		return nil, nil, err
	}
	if relations, _, err = relationNames(src); err != nil {
		return nil, nil, err
	}
	return entities, relations, nil
}
