package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/optim"
)

const (
	largeDim = 256 // floats of a row, and as many of state
	rowBytes = largeDim * 8
)

// large writes the checkpoint of a model, and restores it. Each is done by a process of its own, so that the most memory of each is known.
func (o *options) large(ctx context.Context, out io.Writer) error {
	switch o.phase {
	case "write":
		return o.write(ctx, out)
	case "restore":
		return o.restore(ctx, out)
	}
	dir, err := os.MkdirTemp(o.dir, "godwit-large-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, phase := range []string{"write", "restore"} {
		if err := evictAll(dir); err != nil {
			return err
		}
		c := exec.CommandContext(ctx, self, "-gib", fmt.Sprint(o.gib), "-phase", phase, "-dir", dir)
		c.Stdout, c.Stderr = out, os.Stderr
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: %w", phase, err)
		}
	}
	return o.plain(out, dir)
}

// cluster is a node of its own with a model of so many GiB.
func (o *options) cluster(ctx context.Context) (*node.Cluster, error) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: uint64(o.gib) << 30 / rowBytes, Dim: largeDim, Rule: optim.AdaGrad{LR: 0.1}})
	if err != nil {
		return nil, err
	}
	return node.Local(ctx, 1, node.Config{Model: m, Workers: 1})
}

func (o *options) write(ctx context.Context, out io.Writer) error {
	c, err := o.cluster(ctx)
	if err != nil {
		return err
	}
	n := c.Nodes[0]
	w := n.Worker(0)
	const some = 1024
	keys, grads := make([]godwit.Key, some), make([]float32, some*largeDim)
	for i := range grads {
		grads[i] = float32(i%113) / 100
	}
	for first := 0; first < o.gib<<30/rowBytes; first += some {
		for i := range keys {
			keys[i] = godwit.Key(first + i)
		}
		if err := w.Push(ctx, keys, grads); err != nil {
			return err
		}
	}
	before, err := memory("VmRSS")
	if err != nil {
		return err
	}
	s, err := checkpoint.OpenFolder(o.dir)
	if err != nil {
		return err
	}
	w.(godwit.Cutter).Rest()
	id, tables := checkpoint.NewID(1), checkpoint.Tables(w.Model())
	began := time.Now()
	p, err := checkpoint.Write(ctx, s, id, 0, tables, func(w *checkpoint.Writer) error {
		_, err := n.Cut(ctx, 1, node.WholeCut, w.Write)
		return err
	})
	if err != nil {
		return err
	}
	m := checkpoint.Manifest{ID: id, Run: "large", Task: "none", Tables: tables, Written: time.Now(), Nodes: 1}
	if _, err := checkpoint.Commit(ctx, s, m, []*checkpoint.Piece{p}); err != nil {
		return err
	}
	return errors.Join(o.report(out, "written", time.Since(began), before), c.Close(ctx))
}

func (o *options) restore(ctx context.Context, out io.Writer) error {
	c, err := o.cluster(ctx)
	if err != nil {
		return err
	}
	before, err := memory("VmRSS")
	if err != nil {
		return err
	}
	began := time.Now()
	saved, err := checkpoint.OpenPlace(ctx, o.dir)
	if err != nil {
		return err
	}
	restored := 0
	err = saved.Rows(ctx, nil, func(table int, rows []uint64, vals []float32) error {
		n, err := c.Nodes[0].Restore(table, rows, vals, true)
		restored += n
		return err
	})
	if err != nil {
		return err
	}
	if want := o.gib << 30 / rowBytes; restored != want {
		return fmt.Errorf("%d rows restored, want %d", restored, want)
	}
	return errors.Join(o.report(out, "restored", time.Since(began), before), c.Close(ctx))
}

func (o *options) report(out io.Writer, what string, took time.Duration, before float64) error {
	most, err := memory("VmHWM")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s %d GiB in %.1f s, %.2f GiB/s; resident %.2f GiB before, %.2f GiB at the most\n", what, o.gib, took.Seconds(), float64(o.gib)/took.Seconds(), before, most)
	return err
}

// plain reads the largest file of a folder, which is not in memory, and copies it durably.
func (o *options) plain(out io.Writer, dir string) error {
	parts, err := filepath.Glob(filepath.Join(dir, "*.rows"))
	if err != nil || len(parts) != 1 {
		return fmt.Errorf("%d parts, want 1: %w", len(parts), err)
	}
	pass := func(to io.Writer) (time.Duration, error) {
		if err := evictAll(dir); err != nil {
			return 0, err
		}
		f, err := os.Open(parts[0])
		if err != nil {
			return 0, err
		}
		defer f.Close() // it is only read
		began := time.Now()
		_, err = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{f}, make([]byte, 1<<20))
		if f, ok := to.(*os.File); ok && err == nil {
			err = f.Sync()
		}
		return time.Since(began), err
	}
	read, err := pass(io.Discard)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "copy"))
	if err != nil {
		return err
	}
	copied, err := pass(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "a plain read of the same file %.2f GiB/s, a plain copy with fsync %.2f GiB/s\n", float64(o.gib)/read.Seconds(), float64(o.gib)/copied.Seconds())
	return err
}

// memory returns a line of /proc/self/status, in GiB.
func memory(of string) (float64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		if rest, ok := strings.CutPrefix(string(line), of+":"); ok {
			var kb float64
			_, err := fmt.Sscan(rest, &kb)
			return kb / (1 << 20), err
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no %s", of)
}

// evictAll has the system drop what it has in memory of the files of a folder.
func evictAll(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		err = errors.Join(err, evict(file))
	}
	return err
}
