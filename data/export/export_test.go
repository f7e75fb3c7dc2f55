package export

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/data/atomicfile"
)

// write exports two files that hold text.
func write(dir, task, text string) error {
	return Write(dir, task, func(s *Set) error {
		s.Model.Model, s.Model.Dim = "kind", 3
		s.Add(File{Name: "a.npy", Kind: Array, Shape: []int{1, 3}, Names: "a.txt", Layout: "a vector"})
		s.Add(File{Name: "a.txt", Kind: Text, Shape: []int{1}, Layout: "names"})
		for _, name := range []string{"a.npy", "a.txt"} {
			if err := atomicfile.Write(s.Path(name), func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestAnExportDescribesItsFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	for _, text := range []string{"old", "newer"} {
		if err := write(dir, "kge", text); err != nil {
			t.Fatal(err)
		}
		m, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		f := m.File("a.npy")
		if m.Format != 1 || m.Task != "kge" || m.Model != "kind" || m.Dim != 3 || m.Written.IsZero() || m.File("b") != nil ||
			f.Bytes != int64(len(text)) || f.Layout != "a vector" || !reflect.DeepEqual(f.Shape, []int{1, 3}) {
			t.Errorf("the export is described as %+v", m)
		}
		if err := m.Verify(dir, "a.npy"); err != nil {
			t.Error(err)
		}
		if err := m.Verify(dir, "b"); err == nil {
			t.Error("a file that is not there was verified")
		}
	}
}

// What Read would refuse is not written: the earlier export stays.
func TestAnExportThatNobodyCouldReadIsNotWritten(t *testing.T) {
	for want, change := range map[string]func(m *Model){
		"no name of a file":  func(m *Model) { m.Files[0].Name = ".a.npy" },
		"the file a.npy tw":  func(m *Model) { m.Files[1] = m.Files[0] },
		"no text that it de": func(m *Model) { m.Files[0].Names = "b.txt" },
		"names no task or n": func(m *Model) { m.Task = "" },
		"bytes, at most 167": func(m *Model) { m.Score = strings.Repeat("x", maxModel) },
	} {
		dir := filepath.Join(t.TempDir(), "model")
		if err := write(dir, "kge", "old"); err != nil {
			t.Fatal(err)
		}
		err := Write(dir, "kge", func(s *Set) error {
			s.Add(File{Name: "a.npy", Kind: Array, Names: "a.txt"})
			s.Add(File{Name: "a.txt", Kind: Text})
			change(&s.Model)
			for _, f := range s.Model.Files {
				if err := atomicfile.Write(s.Path(f.Name), func(io.Writer) error { return nil }); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
		if m, err := Read(dir); err != nil || m.Verify(dir, "a.npy") != nil {
			t.Errorf("%s: the earlier export is %+v, %v", want, m, err)
		}
	}
}

func TestFilesOfAnotherExportAreNoticed(t *testing.T) {
	for _, name := range []string{"a.npy", "a.txt"} {
		dir := filepath.Join(t.TempDir(), "model")
		if err := write(dir, "kge", "text"); err != nil {
			t.Fatal(err)
		}
		m, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("tezt"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := m.Verify(dir, "a.npy"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s was changed: %v", name, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := m.Verify(dir, "a.npy"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was removed: %v", name, err)
		}
	}
}

func TestOnlyAnEarlierExportOfTheTaskIsReplaced(t *testing.T) {
	put := func(name string) func(dir string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), nil, 0o666) }
	}
	for _, c := range []struct {
		what   string
		before func(dir string) error
		want   string // empty: it is replaced
	}{
		{"nothing", func(dir string) error { return os.Remove(dir) }, ""},
		{"an empty folder", func(string) error { return nil }, ""},
		{"an export", func(dir string) error { return write(dir, "kge", "old") }, ""},
		{"a part of an export", func(dir string) error {
			return errors.Join(write(dir, "kge", "old"), os.Remove(filepath.Join(dir, "a.txt")))
		}, ""},
		{"a user's file", put("thesis.tex"), "thesis.tex"},
		{"vectors without a description", put("a.npy"), "a.npy"},
		{"an export and a user's file", func(dir string) error { return errors.Join(write(dir, "kge", "old"), put("notes.txt")(dir)) }, "notes.txt"},
		{"an export with a folder", func(dir string) error {
			return errors.Join(write(dir, "kge", "old"), os.Remove(filepath.Join(dir, "a.txt")), os.Mkdir(filepath.Join(dir, "a.txt"), 0o777))
		}, "a.txt"},
		{"an export of another task", func(dir string) error { return write(dir, "mf", "old") }, "task mf"},
		{"another program's model.json", put("model.json"), "model.json"},
	} {
		dir := filepath.Join(t.TempDir(), "model")
		if err := errors.Join(os.Mkdir(dir, 0o777), c.before(dir)); err != nil {
			t.Fatal(err)
		}
		_, perr := Probe(dir, "kge")
		err := write(dir, "kge", "new")
		if (perr == nil) != (c.want == "") || (err == nil) != (c.want == "") {
			t.Errorf("over %s: probed with %v, written with %v", c.what, perr, err)
		}
		for _, err := range []error{perr, err} {
			if err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir)) {
				t.Errorf("over %s: %v, want to hear of %s", c.what, err, c.want)
			}
		}
		b, _ := os.ReadFile(filepath.Join(dir, "a.npy")) // there may be none
		if (string(b) == "new") != (c.want == "") {
			t.Errorf("over %s: the file holds %s", c.what, b)
		}
	}
}

func FuzzDescriptionsAreReadOrRefused(f *testing.F) {
	f.Add([]byte(`{"format":1,"task":"kge","model":"complex","files":[{"name":"a","shape":[1,2]}]}`))
	f.Add([]byte(`{"format":2}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(b)
		if err != nil {
			return
		}
		if m.Format != Format || m.Task == "" {
			t.Errorf("%s was read as %+v", b, m)
		}
		for _, f := range m.Files {
			if strings.ContainsAny(f.Name, "/\x00") || f.Name == ".." {
				t.Errorf("%q is no name of a file in the folder", f.Name)
			}
		}
	})
}
