package checkpoint

import (
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// benchTables has rows of 200 floats of value and 200 of state.
var benchTables = []Table{{Name: "t", Rows: 1 << 30, Dim: 200, Width: 400, Rule: "adagrad(lr=0.1)", Init: "zero"}}

const benchBytes = 1 << 30

// BenchmarkWrite writes 1 GiB of rows, and copies as many bytes beside it: a plain copy that is made
// durable. "of copy" is the bandwidth of the one as a share of that of the other.
func BenchmarkWrite(b *testing.B) {
	var took, copied time.Duration
	for b.Loop() {
		s := benchFolder(b)
		began := time.Now()
		writeBench(b, s)
		took += time.Since(began)
		began = time.Now()
		copyDurably(b, filepath.Join(s.dir, ID{1, testAttempt}.part(0)), filepath.Join(s.dir, "copy"))
		copied += time.Since(began)
		if err := os.RemoveAll(s.dir); err != nil {
			b.Fatal(err)
		}
	}
	report(b, took, copied)
}

func report(b *testing.B, took, other time.Duration) {
	b.ReportMetric(float64(b.N)*benchBytes/took.Seconds()/1e6, "MB/s")
	b.ReportMetric(other.Seconds()/took.Seconds(), "of-copy")
}

func benchFolder(b *testing.B) *Folder {
	s, err := OpenFolder(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func writeBench(b *testing.B, s Store) {
	const rows = 1024
	keys, vals := make([]uint64, rows), make([]float32, rows*400)
	random := make([]byte, len(vals)*4)
	_, _ = rand.Read(random) // never fails
	readFloats(vals, random)
	id := ID{1, testAttempt}
	p, err := Write(b.Context(), s, id, 0, benchTables, func(w *Writer) error {
		for first := uint64(0); first < benchBytes/1608; first += rows {
			for i := range keys {
				keys[i] = first + uint64(i)
			}
			if err := w.Write(0, keys, vals); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	m := testManifest(id)
	m.Tables = benchTables
	if _, err := Commit(b.Context(), s, m, []*Piece{p}); err != nil {
		b.Fatal(err)
	}
}

func copyDurably(b *testing.B, from, to string) {
	in, err := os.Open(from)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close() // it is only read
	out, err := os.Create(to)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, 1<<20)); err != nil {
		b.Fatal(err)
	}
	if err := out.Sync(); err != nil {
		b.Fatal(err)
	}
	if err := out.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRead reads 1 GiB of rows that the system has in memory.
func BenchmarkRead(b *testing.B) {
	s := benchFolder(b)
	writeBench(b, s)
	for b.Loop() {
		c, err := Open(b.Context(), s, 0)
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Rows(b.Context(), nil, func(int, []uint64, []float32) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(benchBytes)
}
