package node

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/godwit-ps/godwit"
)

// Some workers push vectors of equal elements to a few rows, others read them:
// whatever a read shows, its elements must be equal. Rows are long, so that
// reads meet pushes, and new ones come, so that the index grows under the
// readers.
func TestAReadNeverShowsHalfAPush(t *testing.T) {
	const dim, hot = 16_384, 3
	c := local(t, 1, Config{Model: model(t, 4000, dim), Workers: 4})
	ctx := background(t)
	var wg sync.WaitGroup
	var stop atomic.Bool
	for _, w := range c.Nodes[0].Workers()[:2] {
		wg.Go(func() {
			defer stop.Store(true)
			push := make([]float32, hot*dim)
			for i := range push {
				push[i] = float32(i/dim + 1)
			}
			fresh := godwit.Key(hot + w.ID().Local)
			keys := make([]godwit.Key, hot)
			for n := range 1500 {
				for i := range keys {
					keys[i] = godwit.Key(i)
				}
				keys[hot-1] = fresh // a row that nobody reads
				if n%20 == 0 {
					fresh += 2
				}
				if err := w.Push(ctx, keys, push); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for _, w := range c.Nodes[0].Workers()[2:] {
		wg.Go(func() {
			got := make([]float32, (hot-1)*dim)
			one := make([]float32, dim)
			keys := make([]godwit.Key, hot-1)
			for i := range keys {
				keys[i] = godwit.Key(i)
			}
			last := make([]float32, hot)
			for !stop.Load() {
				if err := w.Pull(ctx, keys, got); err != nil {
					t.Error(err)
					return
				}
				if !w.PullIfLocal(0, one) {
					t.Error("a key of the only node is not local")
					return
				}
				for i := range keys {
					row := got[i*dim:][:dim]
					for j := range row {
						if row[j] != row[0] || one[j] != one[0] {
							t.Errorf("key %d has %v at 0 and %v at %d; key 0 %v and %v", i, row[0], row[j], j, one[0], one[j])
							return
						}
					}
					if row[0] < last[i] {
						t.Errorf("key %d went back from %v to %v", i, last[i], row[0])
						return
					}
					last[i] = row[0]
				}
				if one[0] < last[0] {
					t.Errorf("key 0 went back from %v to %v", last[0], one[0])
					return
				}
			}
		})
	}
	wg.Wait()
}

// Workers may be in the middle of a call when the node is closed: they get an
// error or values, but the process goes on.
func TestCallsMayGoOnWhileANodeIsClosed(t *testing.T) {
	for range 20 {
		c := local(t, 1, Config{Model: model(t, 20_000, 16), Workers: 3})
		ctx := background(t)
		var wg sync.WaitGroup
		var ready sync.WaitGroup
		for _, w := range c.Nodes[0].Workers() {
			ready.Add(1)
			wg.Go(func() {
				keys := make([]godwit.Key, 100)
				buf := make([]float32, 16*len(keys))
				for i := 0; ; i++ {
					for j := range keys {
						keys[j] = godwit.Key((i*61 + j*199) % 20_000)
					}
					call := w.Pull
					if w.ID().Local == 0 && i%2 == 0 {
						call = w.Push
					}
					if call(context.Background(), keys, buf) != nil {
						return
					}
					if i == 50 {
						ready.Done()
					}
				}
			})
		}
		ready.Wait()
		if err := c.Nodes[0].Close(ctx); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
	}
}
