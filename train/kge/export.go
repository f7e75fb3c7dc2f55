package kge

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/godwit-ps/godwit"
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

// Export writes the embeddings into dir, which it makes where needed: the
// values of entities and relations as NumPy arrays of float32, a row each, and
// beside each array a text file with the name of each row on its line. Complex
// vectors hold the real parts, then the imaginary parts; a RESCAL relation is
// its matrix by rows; a RotatE relation holds phases in radians. With
// reciprocal relations the second embeddings follow the first ones, and their
// names begin with "inverse of ".
//
// Each file appears complete or not at all. One node of the run calls it, with
// a worker that nothing else uses meanwhile, after [train.Run].
func (t *Task) Export(ctx context.Context, w godwit.Worker, dir string) error {
	k, err := t.keys(w.Model())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("kge: export: %w", err)
	}
	rels := t.graph.Relations
	if t.cfg.Reciprocal {
		rels = append([]string(nil), rels...)
		for _, r := range t.graph.Relations {
			rels = append(rels, inverse+r)
		}
	}
	for _, x := range []struct {
		array, text string
		first       godwit.Key
		names       []string
		dim         int
	}{
		{EntityFile, EntityNamesFile, k.entity, t.graph.Entities, t.cfg.Dim},
		{RelationFile, RelationNamesFile, k.relation, rels, t.relDim},
	} {
		if err := tables.WriteNames(filepath.Join(dir, x.text), slices.Values(x.names)); err != nil {
			return fmt.Errorf("kge: export: %w", err)
		}
		a := tables.Array{Path: filepath.Join(dir, x.array), First: x.first, Rows: len(x.names), Dim: x.dim, Cols: x.dim}
		if err := a.Write(ctx, w); err != nil {
			return fmt.Errorf("kge: export: %w", err)
		}
	}
	return nil
}
