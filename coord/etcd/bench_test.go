package etcd

import (
	"fmt"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/etcd/server"
)

// A barrier should cost little more than the puts that it is made of: compare
// with BenchmarkPut of the same run.
func BenchmarkBarrier(b *testing.B) {
	e, err := startServer(b.Context(), server.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	for _, n := range []int{1, 2, 8} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			var joined, wg sync.WaitGroup
			joined.Add(n)
			for i := range n {
				wg.Go(func() {
					s, err := e.Access().Join(b.Context(), coord.Config{Run: "bench", Nodes: n, Addr: fmt.Sprint(i)})
					joined.Done()
					if err != nil {
						b.Error(err)
						return
					}
					for range b.N {
						if err := s.Barrier(b.Context(), "b"); err != nil {
							b.Error(err)
							break
						}
					}
					if err := s.Close(b.Context()); err != nil {
						b.Error(err)
					}
				})
			}
			joined.Wait()
			b.ResetTimer()
			wg.Wait()
		})
	}
}

func BenchmarkPut(b *testing.B) {
	e, err := startServer(b.Context(), server.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	cl, err := e.Access().connect(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer cl.Close()
	for b.Loop() {
		if _, err := cl.Put(b.Context(), "k", "v"); err != nil {
			b.Fatal(err)
		}
	}
}
