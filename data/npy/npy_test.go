package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func write(t testing.TB, path string, rows, cols int, vals []float32, parts ...int) {
	t.Helper()
	w, err := Create(path, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range parts {
		if err := w.WriteRows(vals[:n*cols]); err != nil {
			t.Fatal(err)
		}
		vals = vals[n*cols:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func count(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i) - 2.5
	}
	return x
}

func TestRowsComeBackBitForBit(t *testing.T) {
	vals := count(7 * 3)
	vals[0], vals[1], vals[2] = float32(math.NaN()), float32(math.Inf(-1)), float32(math.Copysign(0, -1))
	path := filepath.Join(t.TempDir(), "x.npy")
	write(t, path, 7, 3, vals, 1, 0, 4, 2)
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if rows, cols := r.Shape(); rows != 7 || cols != 3 {
		t.Fatalf("shape (%d, %d)", rows, cols)
	}
	var got []float32
	for dst := make([]float32, 3*3); ; {
		n, err := r.ReadRows(dst)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, dst[:n*3]...)
	}
	if len(got) != len(vals) {
		t.Fatalf("%d values, want %d", len(got), len(vals))
	}
	for i := range vals {
		if math.Float32bits(got[i]) != math.Float32bits(vals[i]) {
			t.Errorf("value %d is %v, want %v", i, got[i], vals[i])
		}
	}
}

func TestAnArrayWithoutRowsIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	write(t, path, 0, 5, nil)
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := r.ReadRows(make([]float32, 5)); n != 0 || err != io.EOF {
		t.Errorf("got %d, %v", n, err)
	}
}

// The header is read as its documentation says, by a program that shares
// nothing with this package.
func TestPythonReadsWhatWasWritten(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	if err := exec.Command(python, "-c", "").Run(); err != nil {
		t.Skip("python3 does not run: ", err)
	}
	path := filepath.Join(t.TempDir(), "x.npy")
	write(t, path, 5, 4, count(20), 5)
	out, err := exec.Command(python, "-c", `
import ast, struct, sys
b = open(sys.argv[1], "rb").read()
assert b[:8] == b"\x93NUMPY\x01\x00", b[:8]
n = struct.unpack("<H", b[8:10])[0]
assert (10 + n) % 64 == 0, n
h = b[10:10+n].decode("latin1")
assert h.endswith("\n")
d = ast.literal_eval(h.strip())
assert d == {"descr": "<f4", "fortran_order": False, "shape": (5, 4)}, d
assert struct.unpack("<20f", b[10+n:]) == tuple(i - 2.5 for i in range(20))
`, path).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTheHeaderIsAlignedForAllShapes(t *testing.T) {
	for _, rows := range []int{0, 9, 1e3, 1e6, 1e9, 1e12} {
		for _, cols := range []int{1, 99, 1e5, 1e6} {
			if n := len(appendHeader(nil, rows, cols)); n%64 != 0 {
				t.Errorf("shape (%d, %d): the values start at %d", rows, cols, n)
			}
		}
	}
}

func TestAnUnfinishedFileDoesNotReplaceTheOldOne(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.npy")
	write(t, path, 1, 2, count(2), 1)
	old, _ := os.ReadFile(path)
	for name, use := range map[string]func(*Writer) error{
		"rows missing": func(w *Writer) error { return errors.Join(w.WriteRows(count(4)), w.Close()) },
		"disk failed":  func(w *Writer) error { w.err = errors.New("no space"); return w.Close() },
		"file was taken": func(w *Writer) error {
			temps, _ := filepath.Glob(filepath.Join(dir, ".x.npy-*"))
			for _, temp := range temps {
				_ = os.Remove(temp)
			}
			return errors.Join(w.WriteRows(count(6)), w.Close())
		},
	} {
		w, err := Create(path, 3, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := use(w); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want one that names the file", name, err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("%s: closed again: %v", name, err)
		}
		if now, _ := os.ReadFile(path); !bytes.Equal(now, old) {
			t.Errorf("%s: the old file changed", name)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
}

func TestWrongUseOfAWriterIsRefused(t *testing.T) {
	dir := t.TempDir()
	for _, s := range [][2]int{{-1, 2}, {1, 0}, {1, -1}, {math.MaxInt, 2}} {
		if _, err := Create(filepath.Join(dir, "x"), s[0], s[1]); err == nil || !strings.Contains(err.Error(), "shape") {
			t.Errorf("shape %v: %v", s, err)
		}
	}
	if _, err := Create(filepath.Join(dir, "none", "x"), 1, 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	w, err := Create(filepath.Join(dir, "x"), 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteRows(count(3)); err == nil || !strings.Contains(err.Error(), "whole rows") {
		t.Errorf("half a row: %v", err)
	}
	if err := w.WriteRows(count(6)); err == nil || !strings.Contains(err.Error(), "the shape has 2") {
		t.Errorf("too many rows: %v", err)
	}
	if err := errors.Join(w.WriteRows(count(4)), w.Close()); err != nil {
		t.Error(err)
	}
	if err := w.WriteRows(count(2)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// file makes a file with any header.
func file(header string, values int) []byte {
	b := append([]byte(magic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	return append(append(b, header...), make([]byte, values)...)
}

func TestBadFilesAreRefusedWithAReason(t *testing.T) {
	const good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n"
	for i, c := range []struct {
		text []byte
		want string
	}{
		{nil, "ends within the first 10"},
		{[]byte("PK\x03\x04 and more than ten"), "not an .npy file"},
		{append([]byte(magic), 2, 0, 0, 0), "version 2.0"},
		{file(good, 0)[:30], "within its header"},
		{file(good, 23), "23 bytes of values"},
		{file(good, 25), "25 bytes of values"},
		{file(strings.Replace(good, "<f4", "<f8", 1), 24), "descr"},
		{file(strings.Replace(good, "False", "True", 1), 24), "fortran_order"},
		{file(strings.Replace(good, "(2, 3)", "(6,)", 1), 24), "shape"},
		{file(strings.Replace(good, "(2, 3)", "(2, 0)", 1), 0), "shape"},
		{file(strings.Replace(good, "(2, 3)", "(-2, -3)", 1), 24), "shape"},
		{file(strings.Replace(good, "(2, 3)", "(9223372036854775807, 3)", 1), 24), "size that can be counted"},
		{file(strings.Replace(good, "(2, 3)", "(99999999999999999999, 3)", 1), 24), "size that can be counted"},
		{file(strings.Replace(good, "'shape'", "'descr'", 1), 24), "descr twice"},
		{file(strings.Replace(good, ", }", ", 'more': True}", 1), 24), "4 entries"},
		{file("{}", 24), "header"},
		{file(good+"x", 24), "header"},
	} {
		path := filepath.Join(t.TempDir(), "x.npy")
		if err := os.WriteFile(path, c.text, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("case %d: error %v, want one that names the file and says %q", i, err, c.want)
		}
	}
}

func TestHeadersOfOtherWritersAreRead(t *testing.T) {
	for _, h := range []string{
		"{'shape': (2, 3), 'descr': '<f4', 'fortran_order': False}",
		"{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(2,3,)}   \n",
	} {
		r, err := NewReader(bytes.NewReader(file(h, 24)))
		if err != nil {
			t.Errorf("%q: %v", h, err)
		} else if rows, cols := r.Shape(); rows != 2 || cols != 3 {
			t.Errorf("%q: shape (%d, %d)", h, rows, cols)
		}
	}
}

func TestAStreamThatEndsEarlyNamesTheRow(t *testing.T) {
	r, err := NewReader(bytes.NewReader(file("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }", 20)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.ReadRows(make([]float32, 8))
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "row 2 of 4") {
		t.Errorf("got %v", err)
	}
	if _, err := r.ReadRows(make([]float32, 3)); err == nil || !strings.Contains(err.Error(), "whole rows") {
		t.Errorf("half a row: %v", err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(append(appendHeader(nil, 2, 1), 1, 2, 3, 4, 5, 6, 7, 8))
	f.Add(file("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 3), }", 3))
	f.Add(file("{'descr': '<f4',", 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		rows, cols := r.Shape()
		if n, ok := size(rows, cols); !ok {
			t.Fatalf("shape (%d, %d) was accepted", rows, cols)
		} else if n > 1<<16 {
			return // nothing is allocated by the shape; a reader of rows would be
		}
		dst := make([]float32, cols)
		got := 0
		for {
			n, err := r.ReadRows(dst)
			got += n
			if err == io.EOF {
				break
			}
			if err != nil {
				if errors.Is(err, io.ErrUnexpectedEOF) {
					return
				}
				t.Fatal(err)
			}
		}
		if got != rows || 4*got*cols > len(b) {
			t.Fatalf("%d rows of %d were read from %d bytes, shape has %d rows", got, cols, len(b), rows)
		}
	})
}

func BenchmarkWriteRows(b *testing.B) {
	for _, cols := range []int{64, 1024} {
		b.Run(fmt.Sprint(cols), func(b *testing.B) {
			path, row := filepath.Join(b.TempDir(), "x.npy"), count(cols)
			w, err := Create(path, b.N, cols)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(4 * cols))
			for range b.N {
				if err := w.WriteRows(row); err != nil {
					b.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
