package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/godwit-ps/godwit"
)

// fillCases are the start of a node and the first access to each of its rows,
// which makes it. The baseline takes as much memory from the system and writes
// it once, with as many goroutines.
func fillCases() []Case {
	return []Case{{Name: "fill/4 floats", setup: setupFill}}
}

func setupFill(ctx context.Context, o *Options) (*Duel, error) {
	const dim = 4
	rows := min(8*o.Rows, o.Memory/64)
	workers := min(runtime.GOMAXPROCS(0), 64)
	bytes := rows * (24 + 4*dim) // replaced by what the node took
	return &Duel{
		Units: int(rows), Unit: "row",
		Path: func() error {
			c, err := startLocal(ctx, rows, dim, workers, godwit.Add{})
			if err != nil {
				return err
			}
			s := c.Nodes[0].Stats()
			if s.Owned != int(rows) {
				err = fmt.Errorf("%d of %d rows were made", s.Owned, rows)
			}
			bytes = uint64(s.Bytes)
			return errors.Join(err, c.Close(ctx))
		},
		Baselines: []Baseline{{"write the memory once", func() error {
			b := newBare(bytes / 4)
			var wg sync.WaitGroup
			for i := range workers {
				wg.Go(func() {
					part := b.rows[len(b.rows)*i/workers : len(b.rows)*(i+1)/workers]
					for j := range part {
						part[j] = 1
					}
				})
			}
			wg.Wait()
			return b.mem.Free()
		}}},
		Close: func() error { return nil },
	}, nil
}
