package kge

import (
	"context"
	"fmt"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/train/internal/tables"
)

// The files that [Task.Export] writes.
const (
	EntityFile        = "entities.npy"
	EntityNamesFile   = "entities.txt"
	RelationFile      = "relations.npy"
	RelationNamesFile = "relations.txt"
)

// inverse marks the name of a relation's second embedding.
const inverse = "inverse of "

// byInverse is in the description of the score where relations are reciprocal, and only
// there.
const byInverse = "heads are ranked by"

// Export writes the embeddings: the values of entities and relations as NumPy
// arrays of float32, a row each, and beside each array a text file with the name of
// each row on its line. Complex vectors hold the real parts, then the imaginary
// parts; a RESCAL relation is its matrix by rows; a RotatE relation holds phases in
// radians. With reciprocal relations the second embeddings follow the first ones,
// and their names begin with "inverse of ".
//
// One node of the run calls it, with a worker that nothing else uses meanwhile, after
// [train.Run].
func (t *Task) Export(ctx context.Context, w godwit.Worker, s *export.Set) error {
	k, err := t.keys(w.Model())
	if err != nil {
		return err
	}
	l := t.model.layout()
	s.Model.Model, s.Model.Dim, s.Model.Score = t.model.name(), t.cfg.Dim, l.score
	rels := t.graph.Relations
	if t.cfg.Reciprocal {
		rels = append([]string(nil), rels...)
		for _, r := range t.graph.Relations {
			rels = append(rels, inverse+r)
		}
		s.Model.Reciprocal = true
		s.Model.Score += "; " + byInverse + " the score of (o, \"" + inverse + "\" r, s)"
	}
	for _, x := range []struct {
		array, text, what, layout string
		first                     godwit.Key
		names                     []string
		dim                       int
	}{
		{EntityFile, EntityNamesFile, "entities", l.entity, k.entity, t.graph.Entities, t.cfg.Dim},
		{RelationFile, RelationNamesFile, "relations", l.relation, k.relation, rels, t.relDim},
	} {
		if err := tables.WriteLines(s, x.text, "names of "+x.what, slices.Values(x.names)); err != nil {
			return fmt.Errorf("kge: export: %w", err)
		}
		a := tables.Array{File: x.array, Names: x.text, Layout: x.layout, First: x.first, Rows: len(x.names), Dim: x.dim + t.extra, Cols: x.dim}
		if err := a.Write(ctx, w, s); err != nil {
			return fmt.Errorf("kge: export: %w", err)
		}
	}
	return nil
}
