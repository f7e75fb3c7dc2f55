package kge

import (
	"fmt"
	"slices"

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
	names, err := src.Lines(RelationNamesFile)
	if err != nil {
		return nil, err
	}
	if len(names) != relations.Rows {
		return nil, fmt.Errorf("%s has %d rows, and %s names %d", RelationFile, relations.Rows, RelationNamesFile, len(names))
	}
	names, reciprocal := withoutInverses(names)
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

// withoutInverses tells an export's relations from their second embeddings.
func withoutInverses(names []string) (relations []string, reciprocal bool) {
	h := len(names) / 2
	if h == 0 || 2*h != len(names) {
		return names, false
	}
	reciprocal = slices.EqualFunc(names[:h], names[h:], func(a, b string) bool { return inverse+a == b })
	if reciprocal {
		names = names[:h]
	}
	return names, reciprocal
}

// Names returns the entities and relations of a trained model.
func Names(src export.Source) (entities, relations []string, err error) {
	if entities, err = src.Lines(EntityNamesFile); err != nil {
		return nil, nil, err
	}
	if relations, err = src.Lines(RelationNamesFile); err != nil {
		return nil, nil, err
	}
	relations, _ = withoutInverses(relations)
	return entities, relations, nil
}
