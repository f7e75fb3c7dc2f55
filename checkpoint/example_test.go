package checkpoint_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/optim"
)

// One node writes a row of a model and a section; another program reads them.
func Example() {
	dir, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := write(dir); err != nil {
		panic(err)
	}
	if err := read(dir); err != nil {
		panic(err)
	}
	// Output:
	// table 0, row 41: [1 2], state [3 4]; epoch 5
}

func write(dir string) error {
	ctx := context.Background()
	model, err := godwit.NewModel(godwit.Table{Name: "vectors", Rows: 1000, Dim: 2, Rule: optim.AdaGrad{LR: 0.1}})
	if err != nil {
		return err
	}
	store, err := checkpoint.OpenFolder(dir)
	if err != nil {
		return err
	}
	lock, err := checkpoint.Acquire(ctx, store, checkpoint.Holder{Run: "example", PID: os.Getpid(), Since: time.Now()})
	if err != nil {
		return err
	}
	defer lock.Release()
	next, err := checkpoint.Next(ctx, store)
	if err != nil {
		return err
	}
	id, tables := checkpoint.NewID(next), checkpoint.Tables(model)
	piece, err := checkpoint.Write(ctx, store, id, 0, tables, func(w *checkpoint.Writer) error {
		if err := w.Section("epoch", []byte("5")); err != nil {
			return err
		}
		return w.Write(0, []uint64{41}, []float32{1, 2, 3, 4})
	})
	if err != nil {
		return err
	}
	m := checkpoint.Manifest{ID: id, Run: "example", Task: "none", Tables: tables, Written: time.Now()}
	_, err = checkpoint.Commit(ctx, store, m, []*checkpoint.Piece{piece})
	return err
}

func read(dir string) error {
	ctx := context.Background()
	store, err := checkpoint.OpenFolder(dir)
	if err != nil {
		return err
	}
	c, err := checkpoint.Open(ctx, store, 0) // the last one
	if err != nil {
		return err
	}
	epoch, err := c.Section(ctx, "epoch")
	if err != nil {
		return err
	}
	dim := c.Manifest().Tables[0].Dim
	return c.Rows(ctx, nil, func(table int, rows []uint64, vals []float32) error {
		_, err := fmt.Printf("table %d, row %d: %v, state %v; epoch %s\n", table, rows[0], vals[:dim], vals[dim:], epoch)
		return err
	})
}
