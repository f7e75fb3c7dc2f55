package task

import (
	"iter"
	"slices"

	"github.com/godwit-ps/godwit/train/kge"
	"github.com/godwit-ps/godwit/train/lda"
	"github.com/godwit-ps/godwit/train/mf"
	"github.com/godwit-ps/godwit/train/w2v"
)

// Named are tasks that know what people call the rows of a table, for those who look at a run. A [Task] may
// implement it.
type Named interface {
	// Names returns the names of the rows of a table, in their order; nil if they have none.
	Names(table string) iter.Seq[string]
}

// Names implements [Named]. Second embeddings of relations follow the first ones.
func (t *graphTask) Names(table string) iter.Seq[string] {
	switch table {
	case kge.EntityTable:
		return slices.Values(t.graph.Entities)
	case kge.RelationTable:
		names := slices.Clone(t.graph.Relations)
		for _, r := range t.graph.Relations {
			names = append(names, "inverse of "+r)
		}
		return slices.Values(names)
	}
	return nil
}

// Names implements [Named].
func (t *matrixTask) Names(table string) iter.Seq[string] {
	switch {
	case table == mf.RowTable && t.matrix.RowNames != nil:
		return slices.Values(t.matrix.RowNames)
	case table == mf.ColumnTable && t.matrix.ColNames != nil:
		return slices.Values(t.matrix.ColNames)
	}
	return nil
}

// Names implements [Named].
func (t *textTask) Names(table string) iter.Seq[string] {
	if table == w2v.InputTable || table == w2v.OutputTable {
		return slices.Values(t.text.Vocabulary.Words)
	}
	return nil
}

// Names implements [Named].
func (t *topicsTask) Names(table string) iter.Seq[string] {
	if table == lda.WordTable {
		return slices.Values(t.docs.Names)
	}
	return nil
}
