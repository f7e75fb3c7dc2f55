package kge

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/npy"
	"github.com/godwit-ps/godwit/internal/traintest"
)

func TestExportWritesEveryRowBesideItsName(t *testing.T) {
	for _, reciprocal := range []bool{false, true} {
		c := DefaultConfig()
		c.Model, c.Dim, c.Reciprocal = "rescal", 5, reciprocal
		task, s := setup(t, c, randomGraph(30, 3, 50, 1), 1, 1)
		w := s.Workers(0)[0]
		dir := filepath.Join(t.TempDir(), "new", "folder")
		for range 2 { // the second time it replaces the files
			if err := traintest.Export(t.Context(), task, w, dir); err != nil {
				t.Fatal(err)
			}
		}
		k, err := task.keys(w.Model())
		if err != nil {
			t.Fatal(err)
		}
		relations := []string{"r0", "r1", "r2"}
		if reciprocal {
			relations = append(relations, "inverse of r0", "inverse of r1", "inverse of r2")
		}
		checkExport(t, w, filepath.Join(dir, EntityFile), filepath.Join(dir, EntityNamesFile), k.entity, task.graph.Entities, 5)
		checkExport(t, w, filepath.Join(dir, RelationFile), filepath.Join(dir, RelationNamesFile), k.relation, relations, 25)
		if files, err := os.ReadDir(dir); err != nil || len(files) != 5 {
			t.Errorf("the folder has %v (%v), want four files and model.json", files, err)
		}
	}
}

// A relation may have a name like that of another one's inverse, with reciprocal relations
// and without; exports of before Reciprocal are read, too.
func TestRelationsCalledInverseAreReadBack(t *testing.T) {
	for _, reciprocal := range []bool{false, true} {
		c := DefaultConfig()
		c.Dim, c.Reciprocal = 6, reciprocal
		g := randomGraph(30, 2, 50, 1)
		g.Relations = []string{"x", "inverse of x"}
		task, s := setup(t, c, g, 1, 1)
		w := s.Workers(0)[0]
		dir := filepath.Join(t.TempDir(), "model")
		if err := export.Write(dir, "kge", func(s *export.Set) error { return task.Export(t.Context(), w, s) }); err != nil {
			t.Fatal(err)
		}
		f, err := export.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		old := before{f, *f.Describe()}
		old.model.Reciprocal = false
		for _, src := range []export.Source{f, &old} {
			if _, names, err := Names(src); err != nil || !slices.Equal(names, g.Relations) {
				t.Errorf("reciprocal %v: relations %q, %v", reciprocal, names, err)
			}
			rows, err := task.Import(src)
			if err != nil {
				t.Errorf("reciprocal %v: %v", reciprocal, err)
				continue
			}
			k, err := task.keys(w.Model())
			if err != nil {
				t.Fatal(err)
			}
			for row := range task.relationRows() {
				got, want := make([]float32, 6), make([]float32, 6)
				if err := w.Pull(t.Context(), []godwit.Key{k.relation + godwit.Key(row)}, want); err != nil {
					t.Fatal(err)
				}
				if ok := rows[1](uint64(row), got); !ok || !slices.Equal(got, want) {
					t.Errorf("reciprocal %v: row %d is %v, want %v", reciprocal, row, got, want)
				}
			}
		}
	}
}

// before is an export with another description.
type before struct {
	export.Source
	model export.Model
}

func (b *before) Describe() *export.Model { return &b.model }

func checkExport(t *testing.T, w godwit.Worker, array, text string, first godwit.Key, names []string, dim int) {
	t.Helper()
	lines, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(names, "\n") + "\n"; string(lines) != want {
		t.Errorf("%s holds %q, want %q", text, lines, want)
	}
	r, err := npy.Open(array)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if rows, cols := r.Shape(); rows != len(names) || cols != dim {
		t.Fatalf("%s has shape (%d, %d), want (%d, %d)", array, rows, cols, len(names), dim)
	}
	got, want := make([]float32, dim), make([]float32, dim)
	for i := range names {
		if _, err := r.ReadRows(got); err != nil {
			t.Fatal(err)
		}
		if err := w.Pull(t.Context(), []godwit.Key{first + godwit.Key(i)}, want); err != nil {
			t.Fatal(err)
		}
		for j := range want {
			if math.Float32bits(got[j]) != math.Float32bits(want[j]) {
				t.Fatalf("%s: row %d is %v, want %v", array, i, got, want)
			}
		}
	}
}

func TestAFailedExportLeavesTheOldFiles(t *testing.T) {
	c := DefaultConfig()
	c.Dim = 4
	task, s := setup(t, c, randomGraph(30, 3, 50, 1), 1, 1)
	w := s.Workers(0)[0].(*traintest.Worker)
	dir := t.TempDir()
	if err := traintest.Export(t.Context(), task, w, dir); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, EntityFile))
	if err != nil {
		t.Fatal(err)
	}
	w.Fail = func(string) error { return godwit.ErrClosed }
	if err := traintest.Export(t.Context(), task, w, dir); err == nil {
		t.Fatal("the export of a failing worker returned no error")
	}
	after, err := os.ReadFile(filepath.Join(dir, EntityFile))
	if err != nil || string(after) != string(before) {
		t.Errorf("the old file changed (%v)", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 5 {
		t.Errorf("the folder has %v (%v), want the five old files", files, err)
	}
}
