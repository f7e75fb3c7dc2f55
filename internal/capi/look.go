package capi

import (
	"context"
	"slices"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
)

// This file is pulls that make no rows, as of models that are evaluated: a row that nobody has accessed is what its
// initializer makes, so no value travels. Whether it is one its home knows, and is asked.

// A looked is the rows of a pull that makes none.
type looked struct {
	w    *Worker
	t    *table
	i    int // of the table
	rows []int64
	dst  []float32
	used []int // positions of rows that somebody has accessed: they are pulled
	away []int // … of which another node knows whether
	row  []float32
}

// look reads rows of table i and makes none. The caller is in the worker, which look leaves.
func (w *Worker) look(i int, rows []int64, dst []float32, once bool, wait time.Duration) (uint64, error) {
	t := &w.cluster.tables[i]
	g := &looked{w: w, t: t, i: i, rows: rows, dst: dst}
	var end func()
	if once {
		n := w.distinct(rows)
		where := slices.Clone(w.where)
		g.rows, g.dst = slices.Clone(w.unique[:n]), make([]float32, n*t.dim)
		end = func() { spread(dst, t.dim, g.dst, t.dim, where) }
	}
	g.here()
	if w.alone {
		defer w.leave()
		if err := g.pull(context.Background()); err != nil {
			return 0, err
		}
		if end != nil {
			end()
		}
		return 0, nil
	}
	return w.beside(pull, wait, end, func(ctx context.Context) error {
		if err := g.ask(ctx); err != nil {
			return err
		}
		return g.pull(ctx)
	})
}

func (g *looked) node() *node.Node {
	return g.w.cluster.node(int(g.w.w.ID().Node))
}

func (g *looked) key(i int) godwit.Key { return g.t.first + godwit.Key(g.rows[i]) }

// here reads the rows of which this node knows that nobody has accessed them, and sorts the others.
func (g *looked) here() {
	n := g.node()
	for i := range g.rows {
		switch used, known := n.Used(g.key(i)); {
		case used:
			g.used = append(g.used, i)
		case known:
			g.first(n, i)
		default:
			g.away = append(g.away, i)
		}
	}
}

// first reads a row that nobody has accessed.
func (g *looked) first(n *node.Node, i int) {
	if g.row == nil {
		g.row = make([]float32, g.t.width()+g.t.state)
	}
	n.First(g.key(i), g.row)
	copy(g.dst[i*g.t.dim:(i+1)*g.t.dim], g.row)
}

// ask asks the homes of the others, all at the same time.
func (g *looked) ask(ctx context.Context) error {
	c, n := g.w.cluster, g.node()
	homes := make([][]int, c.nodes)
	for _, i := range g.away {
		h := n.Home(g.key(i))
		homes[h] = append(homes[h], i)
	}
	x := &need{c: c, table: g.i, parts: Values, floats: g.t.dim, rows: g.rows}
	var waits []func(context.Context) error
	var asked [][]int
	var answers [][]byte
	for h, all := range homes {
		if to := c.node(h); to != nil {
			answers, asked = append(answers, usedAt(to, g, all)), append(asked, all)
			continue
		}
		most := (node.MaxQuestion - headLen) / (9 + 4*g.t.dim)
		if most == 0 { // no question may ask for so wide a row
			g.used = append(g.used, all...)
			continue
		}
		for some := range slices.Chunk(all, most) {
			at := len(answers)
			answers, asked = append(answers, nil), append(asked, some)
			q := x.question(some)
			q[0] = askUsed
			answer := make(chan []byte, 1) // is only looked at when it is there for good
			wait := n.Ask(godwit.NodeID(h), q, func(b []byte) { answer <- slices.Clone(b) })
			waits = append(waits, func(ctx context.Context) error {
				err := wait(ctx)
				if err == nil {
					answers[at] = <-answer
				}
				return err
			})
		}
	}
	for _, wait := range waits {
		if err := wait(ctx); err != nil {
			return err
		}
	}
	for j, some := range asked {
		if len(answers[j]) != len(some) {
			return errQuestion
		}
		for m, i := range some {
			if answers[j][m] != 0 {
				g.used = append(g.used, i)
			} else {
				g.first(n, i)
			}
		}
	}
	return nil
}

// usedAt is the answer of a node of this process.
func usedAt(n *node.Node, g *looked, some []int) []byte {
	b := make([]byte, len(some))
	for m, i := range some {
		b[m] = useOf(n, g.key(i))
	}
	return b
}

// useOf returns 0 for a key that nobody has accessed, else 1.
func useOf(n *node.Node, k godwit.Key) byte {
	if used, known := n.Used(k); known && !used {
		return 0
	}
	return 1
}

// used answers another node's question about rows that have their home here.
func (x *need) used(n *node.Node) []byte {
	b := make([]byte, len(x.rows))
	for i, row := range x.rows {
		b[i] = useOf(n, x.c.tables[x.table].first+godwit.Key(row))
	}
	return b
}

// pull reads the rows that somebody has accessed.
func (g *looked) pull(ctx context.Context) error {
	if len(g.used) == 0 {
		return nil
	}
	w, width := g.w, g.t.width()
	for some := range slices.Chunk(g.used, g.part()) {
		vals := w.room(g.t, len(some))
		w.keys = slices.Grow(w.keys[:0], len(some))[:len(some)]
		for m, i := range some {
			w.keys[m] = g.key(i)
		}
		if err := w.w.Pull(ctx, w.keys, vals); err != nil {
			return err
		}
		for m, i := range some {
			copy(g.dst[i*g.t.dim:(i+1)*g.t.dim], vals[m*width:])
		}
	}
	return nil
}

// part returns how many rows are pulled at a time: with other nodes each time may be a message.
func (g *looked) part() int {
	if g.w.alone {
		return part
	}
	return len(g.used)
}
