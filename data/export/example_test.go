package export_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/npy"
)

// A task writes its tables as files of a folder, which appears as a whole. Whoever
// reads it finds out what the files hold and whether they are complete.
func ExampleWrite() {
	dir, err := os.MkdirTemp("", "export")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	dir = filepath.Join(dir, "model")

	err = export.Write(dir, "mf", func(s *export.Set) error {
		s.Model.Model, s.Model.Dim = "factorization", 2
		w, err := npy.Create(s.Path("rows.npy"), 3, 2)
		if err != nil {
			return err
		}
		if err := w.WriteRows([]float32{1, 2, 3, 4, 5, 6}); err != nil {
			return err
		}
		s.Add(export.File{Name: "rows.npy", Kind: export.Array, Shape: []int{3, 2}, Layout: "a factor a column"})
		return w.Close()
	})
	if err != nil {
		panic(err)
	}

	m, err := export.Read(dir)
	if err != nil {
		panic(err)
	}
	for _, f := range m.Files {
		fmt.Println(m.Task, f.Name, f.Kind, f.Shape, f.Bytes, "bytes, damage:", m.Verify(dir, f.Name))
	}
	// Output:
	// mf rows.npy npy [3 2] 152 bytes, damage: <nil>
}
