package job

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/optim"
)

// BenchmarkSave writes the 1 GiB of rows that a node has, and copies as many bytes beside it: a plain copy
// that is made durable. "of-copy" is the bandwidth of the one as a share of that of the other.
func BenchmarkSave(b *testing.B) {
	const rows, dim = 1 << 19, 256 // and as many floats of state
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: dim, Rule: optim.AdaGrad{LR: 0.1}})
	if err != nil {
		b.Fatal(err)
	}
	c, err := node.Local(b.Context(), 1, node.Config{Model: m, Workers: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := c.Close(b.Context()); err != nil {
			b.Error(err)
		}
	}()
	n := c.Nodes[0]
	touchAll(b, n.Worker(0), rows, dim)
	store, err := checkpoint.OpenFolder(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	var took, copied time.Duration
	for i := uint64(1); b.Loop(); i++ {
		id := checkpoint.NewID(i)
		began := time.Now()
		piece, err := checkpoint.Write(b.Context(), store, id, 0, checkpoint.Tables(m), func(w *checkpoint.Writer) error {
			n.Worker(0).(godwit.Cutter).Rest() // as at the end of an epoch
			_, err := n.Cut(b.Context(), i, node.WholeCut, w.Write)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		took += time.Since(began)
		part := filepath.Join(store.String(), piece.Parts[0].Name)
		began = time.Now()
		copyDurably(b, part, part+".copy")
		copied += time.Since(began)
		for _, f := range []string{part, part + ".copy"} {
			if err := os.Remove(f); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*rows*dim*8/took.Seconds()/1e6, "MB/s")
	b.ReportMetric(copied.Seconds()/took.Seconds(), "of-copy")
}

// touchAll pushes to all rows of a model's only table.
func touchAll(b *testing.B, w godwit.Worker, rows, dim int) {
	const some = 1024
	keys, grads := make([]godwit.Key, some), make([]float32, some*dim)
	for i := range grads {
		grads[i] = float32(i%113) / 100
	}
	for first := 0; first < rows; first += some {
		for i := range keys {
			keys[i] = godwit.Key(first + i)
		}
		if err := w.Push(b.Context(), keys, grads); err != nil {
			b.Fatal(err)
		}
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
