package export

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/data/atomicfile"
	"github.com/godwit-ps/godwit/data/npy"
)

// small writes an export of an array of two rows with names.
func small(t testing.TB) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "model")
	err := Write(dir, "kge", func(s *Set) error {
		s.Add(File{Name: "a.npy", Kind: Array, Shape: []int{2, 3}, Names: "a.txt"})
		s.Add(File{Name: "a.txt", Kind: Text, Shape: []int{2}})
		w, err := npy.Create(s.Path("a.npy"), 2, 3)
		if err != nil {
			return err
		}
		if err := w.WriteRows([]float32{1, 2, 3, 4, 5, 6}); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		return atomicfile.Write(s.Path("a.txt"), func(w io.Writer) error { _, err := io.WriteString(w, "one\ntwo words\n"); return err })
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAnExportIsReadAsASource(t *testing.T) {
	src, err := Open(small(t))
	if err != nil {
		t.Fatal(err)
	}
	v, err := src.Array("a.npy")
	if err != nil || v.Rows != 2 || v.Cols != 3 || !reflect.DeepEqual(v.Row(1), []float32{4, 5, 6}) {
		t.Errorf("the array is %+v, %v", v, err)
	}
	names, err := src.Lines("a.txt")
	if err != nil || !reflect.DeepEqual(names, []string{"one", "two words"}) {
		t.Errorf("the names are %q, %v", names, err)
	}
	for _, name := range []string{"b.npy", "a.txt", ModelFile, "../model/a.npy"} {
		if _, err := src.Array(name); err == nil {
			t.Errorf("%s was read as an array", name)
		}
	}
}

// describe changes the description of an export.
func describe(t testing.TB, dir string, change func(m *Model)) {
	t.Helper()
	m, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	change(m)
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ModelFile), b, 0o666); err != nil {
		t.Fatal(err)
	}
}

func replace(t testing.TB, dir, name string, by func(path string) error) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := by(path); err != nil {
		t.Fatal(err)
	}
}

func TestHostileExportsAreRefused(t *testing.T) {
	for want, spoil := range map[string]func(dir string){
		"../a.txt": func(dir string) { describe(t, dir, func(m *Model) { m.Files[0].Name = "../a.txt" }) },
		"twice":    func(dir string) { describe(t, dir, func(m *Model) { m.Files[1].Name = "a.npy" }) },
		"no text that it describes": func(dir string) {
			describe(t, dir, func(m *Model) { m.Files[1].Names = "a.npy" }) // names of names
		},
		"names of the rows of a.npy": func(dir string) { describe(t, dir, func(m *Model) { m.Files[0].Names = "/etc/passwd" }) },
		"says [1000000 3]":           func(dir string) { describe(t, dir, func(m *Model) { m.Files[0].Shape = []int{1e6, 3} }) },
		"says [3]":                   func(dir string) { describe(t, dir, func(m *Model) { m.Files[1].Shape = []int{3} }) },
		"copied in part":             func(dir string) { describe(t, dir, func(m *Model) { m.Files[0].SHA256 = "" }) },
		"escapes": func(dir string) {
			replace(t, dir, "a.txt", func(path string) error { return os.Symlink("/etc/passwd", path) })
		},
		"floats in": func(dir string) {
			// A header that promises more than there is.
			replace(t, dir, "a.npy", func(path string) error {
				h := "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000, 1000), }"
				h += strings.Repeat(" ", 117-len(h)) + "\n"
				return os.WriteFile(path, []byte("\x93NUMPY\x01\x00v\x00"+h+"\x00\x00\x00\x00"), 0o666)
			})
			info, err := os.Stat(filepath.Join(dir, "a.npy"))
			if err != nil {
				t.Fatal(err)
			}
			describe(t, dir, func(m *Model) { m.Files[0].Shape, m.Files[0].Bytes = []int{1e9, 1000}, info.Size() })
		},
	} {
		dir := small(t)
		spoil(dir)
		src, err := Open(dir)
		if err == nil {
			_, err = src.Array("a.npy")
		}
		if err == nil {
			_, err = src.Lines("a.txt")
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want to hear of %q", err, want)
		}
	}
}

// Whatever is in the files, they are read or refused, and memory follows their sizes.
func FuzzFilesAreReadOrRefused(f *testing.F) {
	dir := small(f)
	for _, name := range []string{"a.npy", "a.txt"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, 2, 3)
	}
	f.Fuzz(func(t *testing.T, text []byte, rows, cols int) {
		for _, name := range []string{"a.npy", "a.txt"} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		describe(t, dir, func(m *Model) {
			for i, shape := range [][]int{{rows, cols}, {rows}} {
				x := &m.Files[i]
				x.Shape = shape
				var err error
				if x.Bytes, x.SHA256, err = digest(filepath.Join(dir, x.Name)); err != nil {
					t.Fatal(err)
				}
			}
		})
		src, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := src.Array("a.npy"); err == nil && (len(v.Floats) != rows*cols || 4*len(v.Floats) > len(text)) {
			t.Errorf("%d floats of %d bytes", len(v.Floats), len(text))
		}
		if lines, err := src.Lines("a.txt"); err == nil && len(strings.Join(lines, "\n"))+1 != len(text) && len(text) > 0 {
			t.Errorf("%q of %q", lines, text)
		}
	})
}
