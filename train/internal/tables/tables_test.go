package tables

import (
	"errors"
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

// zeroSum is a rule of another name.
type zeroSum struct{ godwit.Add }

func (zeroSum) Name() string { return "zero-sum" }

func TestTablesAreFoundByNameWhereverTheyAre(t *testing.T) {
	want := []godwit.Table{{Name: "b", Rows: 5, Dim: 2}, {Name: "a", Rows: 3, Dim: 4}}
	m, err := godwit.NewModel(godwit.Table{Name: "x", Rows: 7, Dim: 1}, want[1], godwit.Table{Name: "y", Rows: 2, Dim: 1}, want[0])
	if err != nil {
		t.Fatal(err)
	}
	first, err := Find(m, want)
	if err != nil || len(first) != 2 || first[0] != 12 || first[1] != 7 {
		t.Errorf("the first keys are %v, %v, want 12 and 7", first, err)
	}
	for text, spoil := range map[string]func(*godwit.Table){
		`no table "c"`:           func(t *godwit.Table) { t.Name = "c" },
		"needs 6 of 2":           func(t *godwit.Table) { t.Rows = 6 },
		"has 5 rows of 2 floats": func(t *godwit.Table) { t.Dim = 3 },
		"5 of 2 under zero-sum":  func(t *godwit.Table) { t.Rule = zeroSum{} },
	} {
		other := append([]godwit.Table(nil), want...)
		spoil(&other[0])
		if _, err := Find(m, other); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want %q", err, text)
		}
	}
}

// server has a table of so many rows behind another, with random values.
func server(t *testing.T, rows, dim int) (godwit.Worker, godwit.Key) {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "x", Rows: 7, Dim: 1},
		godwit.Table{Name: "t", Rows: uint64(rows), Dim: dim, Init: godwit.Normal{Std: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return traintest.NewServer(m, 1, 1, 1).Workers(0)[0], m.Key(1, 0)
}

func TestAnArrayHasEveryRowOfTheTable(t *testing.T) {
	for _, c := range []struct{ rows, dim, cols int }{
		{1, 1, 1}, {300, 3, 3}, {300, 3, 2}, {300, 3, 5},
		{blockFloats/256 + 1, 256, 256}, // more than a block
	} {
		w, first := server(t, c.rows, c.dim)
		dir := filepath.Join(t.TempDir(), "set")
		a := Array{File: "a.npy", Layout: "values", First: first, Rows: c.rows, Dim: c.dim, Cols: c.cols}
		if c.cols > c.dim {
			a.Turn = func(dst, row []float32) {
				clear(dst)
				copy(dst[1:], row)
			}
		}
		if err := export.Write(dir, "test", func(s *export.Set) error { return a.Write(t.Context(), w, s) }); err != nil {
			t.Fatal(err)
		}
		r, err := npy.Open(filepath.Join(dir, "a.npy"))
		if err != nil {
			t.Fatal(err)
		}
		got, row, want := make([]float32, c.cols), make([]float32, c.dim), make([]float32, c.cols)
		for i := range c.rows {
			if _, err := r.ReadRows(got); err != nil {
				t.Fatal(err)
			}
			if err := w.Pull(t.Context(), []godwit.Key{first + godwit.Key(i)}, row); err != nil {
				t.Fatal(err)
			}
			a.turn(want, row)
			for j := range want {
				if math.Float32bits(got[j]) != math.Float32bits(want[j]) {
					t.Fatalf("%+v: row %d is %v, want %v", c, i, got, want)
				}
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOfATableOfZerosOnlyRowsInUseArePulled(t *testing.T) {
	const rows, dim = 10_000, 2
	m, err := godwit.NewModel(godwit.Table{Name: "x", Rows: 7, Dim: 1}, godwit.Table{Name: "t", Rows: rows, Dim: dim})
	if err != nil {
		t.Fatal(err)
	}
	w := traintest.NewServer(m, 1, 1, 1).Workers(0)[0]
	want := make([]float32, rows*dim)
	for _, row := range []int{0, 3, 4096, rows - 1} {
		want[dim*row], want[dim*row+1] = float32(row+1), -1
		if err := w.Push(t.Context(), []godwit.Key{m.Key(1, uint64(row))}, want[dim*row:][:dim]); err != nil {
			t.Fatal(err)
		}
	}
	var got []float32
	if err := Read(t.Context(), w, m.Key(1, 0), rows, dim, func(at int, vals []float32) error {
		if dim*at != len(got) {
			t.Errorf("row %d comes after %d floats", at, len(got))
		}
		got = append(got, vals...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Error("what is read is not what was pushed")
	}
	n := 0
	for range w.Scan(t.Context(), 0, godwit.Key(m.Keys()), godwit.NoNode) {
		n++
	}
	if n != 4 {
		t.Errorf("%d rows are in use after 4 of them were pushed to, and all read", n)
	}
}

func TestAnExportThatFailsLeavesTheEarlierOne(t *testing.T) {
	w, first := server(t, 300, 3)
	dir := filepath.Join(t.TempDir(), "set")
	write := func(rows int) error {
		return export.Write(dir, "test", func(s *export.Set) error {
			return Array{File: "a.npy", First: first, Rows: rows, Dim: 3, Cols: 3}.Write(t.Context(), w, s)
		})
	}
	if err := write(200); err != nil {
		t.Fatal(err)
	}
	w.(*traintest.Worker).Fail = func(string) error { return errors.New("no") }
	if err := write(300); err == nil {
		t.Error("no error")
	}
	m, err := export.Read(dir)
	if err != nil || m.Verify(dir, "a.npy") != nil || m.File("a.npy").Shape[0] != 200 {
		t.Errorf("the earlier export is %+v, %v", m, err)
	}
	if files, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(files) != 1 {
		t.Errorf("beside it there are %v, %v", files, err)
	}
}

func TestTextsAreWrittenALineEach(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	lines := []string{"one", "zwei", "drei und"}
	if err := export.Write(dir, "test", func(s *export.Set) error { return WriteLines(s, "a.txt", "names", slices.Values(lines)) }); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(b) != "one\nzwei\ndrei und\n" {
		t.Errorf("%q, %v", b, err)
	}
	if m, err := export.Read(dir); err != nil || m.File("a.txt").Shape[0] != 3 {
		t.Errorf("it is described as %+v, %v", m, err)
	}
}

// Of a table that begins with zeros, rows that are not in use are zeros in each block, and not rows of the block before.
func TestRowsThatAreNotInUseAreZeros(t *testing.T) {
	const dim, rows = blockFloats / 2, 5 // two rows are a block
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: dim})
	if err != nil {
		t.Fatal(err)
	}
	w, x := traintest.NewServer(m, 1, 1, 1).Workers(0)[0], make([]float32, dim)
	for i := range x {
		x[i] = 1
	}
	for _, k := range []godwit.Key{0, 1, 4} {
		if err := w.Push(t.Context(), []godwit.Key{k}, x); err != nil {
			t.Fatal(err)
		}
	}
	var got []float32
	if err := Read(t.Context(), w, 0, rows, dim, func(at int, vals []float32) error {
		if at != len(got) {
			t.Errorf("row %d follows %d", at, len(got))
		}
		for ; len(vals) > 0; vals = vals[dim:] {
			got = append(got, vals[0]+vals[dim-1])
		}
		return nil
	}); err != nil || !slices.Equal(got, []float32{2, 2, 0, 0, 2}) {
		t.Errorf("the rows are %v, %v", got, err)
	}
	full, calls := errors.New("disk full"), 0
	if err := Read(t.Context(), w, 0, rows, dim, func(int, []float32) error { calls++; return full }); err != full || calls != 1 {
		t.Errorf("after %d blocks: %v", calls, err)
	}
	if err := Read(t.Context(), w, 0, 0, dim, func(int, []float32) error { return full }); err != nil {
		t.Errorf("no rows: %v", err)
	}
}
