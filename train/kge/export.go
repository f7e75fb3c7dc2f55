package kge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/npy"
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

// exportFloats bounds what an export pulls at once.
const exportFloats = 1 << 20

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
		if err := writeNames(filepath.Join(dir, x.text), x.names); err != nil {
			return fmt.Errorf("kge: export: %w", err)
		}
		if err := writeRows(ctx, w, filepath.Join(dir, x.array), x.first, len(x.names), x.dim); err != nil {
			return fmt.Errorf("kge: export: %w", err)
		}
	}
	return nil
}

// writeRows pulls rows in blocks and writes them.
func writeRows(ctx context.Context, w godwit.Worker, path string, first godwit.Key, rows, dim int) (err error) {
	out, err := npy.Create(path, rows, dim)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	block := max(1, exportFloats/dim)
	var keys []godwit.Key
	var vals []float32
	for from := 0; from < rows; from += block {
		n := min(block, rows-from)
		keys = keys[:0]
		for i := range n {
			keys = append(keys, first+godwit.Key(from+i))
		}
		vals = sized(vals, n*dim)
		if err := w.Pull(ctx, keys, vals); err != nil {
			return err
		}
		if err := out.WriteRows(vals); err != nil {
			return err
		}
	}
	return nil
}

// writeNames writes a name on each line. As the arrays do, the file appears
// complete or not at all: what is written is a temporary file beside it.
func writeNames(path string, names []string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	for _, n := range names {
		if _, err = out.WriteString(n + "\n"); err != nil {
			break
		}
	}
	err = errors.Join(err, out.Flush(), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it is of no use, and may be gone
	}
	return err
}
