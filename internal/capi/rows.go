package capi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/recording"
	"github.com/godwit-ps/godwit/node"
)

// Parts of rows, which are read and written by themselves. A row has its value first.
const (
	Values = 1 << iota // what a pull reads
	State              // what the rule keeps beside it
)

// rowsTime bounds how long rows are looked for that move from node to node.
const rowsTime = time.Minute

// A span is floats of a row as the node sees it.
type span struct{ at, n int }

// spans returns which floats of a row the parts are. The place of the rate is none of them.
func (t *table) spans(parts int) (list []span, floats int, err error) {
	if parts&^(Values|State) != 0 || parts == 0 {
		return nil, 0, wrong("parts %#x of rows, want some of %#x", parts, Values|State)
	}
	if parts&Values != 0 {
		list = append(list, span{0, t.dim})
	}
	if parts&State != 0 && t.state > 0 {
		list = append(list, span{t.width(), t.state})
	}
	for _, s := range list {
		floats += s.n
	}
	return list, floats, nil
}

// A need is rows that are to be read or written at whoever owns them.
type need struct {
	c      *Cluster
	table  int
	parts  int
	spans  []span
	floats int // of a row
	rows   []int64
	vals   []float32
	write  bool
	left   []int // positions of the rows that are still to be found
	buf    []float32
}

// Read reads parts of rows where their main copies are: after this node's updates have arrived there.
func (w *Worker) Read(i int, rows []int64, dst []float32, parts int, wait time.Duration) (uint64, error) {
	return w.rows(&reading, i, rows, dst, parts, false, wait)
}

// Write overwrites parts of rows where their main copies are, and leaves the other part alone.
func (w *Worker) Write(i int, rows []int64, vals []float32, parts int, wait time.Duration) (uint64, error) {
	return w.rows(&writing, i, rows, vals, parts, true, wait)
}

// StateLen returns how many floats the state of a row of a table has.
func (w *Worker) StateLen(i int) (int, error) {
	if i < 0 || i >= len(w.cluster.tables) {
		return 0, w.noTable("state", i)
	}
	return w.cluster.tables[i].state, nil
}

var reading, writing = "read", "write"

func (w *Worker) rows(what *string, i int, rows []int64, vals []float32, parts int, write bool, wait time.Duration) (uint64, error) {
	t, err := w.begin(what, i, rows, -1)
	if err != nil {
		return 0, err
	}
	spans, floats, err := t.spans(parts)
	if err == nil && len(vals) != len(rows)*floats {
		err = fmt.Errorf("%w: %s: %s: %d floats for %d rows of table %q, which has %d in these parts of a row", errLength, w.name, *what, len(vals), len(rows), t.name, floats)
	}
	if err != nil || floats == 0 || len(rows) == 0 {
		w.leave()
		return 0, err
	}
	x := &need{c: w.cluster, table: i, parts: parts, spans: spans, floats: floats, rows: rows, vals: vals, write: write}
	if w.alone {
		defer w.leave()
		return 0, x.everywhere(context.Background())
	}
	return w.beside(*what, wait, nil, func(ctx context.Context) error {
		if err := w.w.WaitSync(ctx); err != nil {
			return err
		}
		ctx, end := context.WithTimeout(ctx, rowsTime)
		defer end()
		return x.everywhere(ctx)
	})
}

// everywhere goes from node to node until all rows were found. Rows that move are looked for again.
func (x *need) everywhere(ctx context.Context) error {
	x.left = make([]int, len(x.rows))
	for i := range x.left {
		x.left[i] = i
	}
	for {
		for id := range x.c.nodes {
			if err := x.at(ctx, id); err != nil {
				return err
			}
			if len(x.left) == 0 {
				return nil
			}
		}
		if !pause(ctx, time.Millisecond) {
			return fmt.Errorf("%d of %d rows of table %q, such as row %d, moved for too long to be found: %w", len(x.left), len(x.rows), x.c.tables[x.table].name, x.rows[x.left[0]], context.Cause(ctx))
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// at reads or writes those of the rows that a node owns.
func (x *need) at(ctx context.Context, id int) error {
	if n := x.c.node(id); n != nil {
		return x.here(n)
	}
	most := (node.MaxQuestion - headLen) / (9 + 4*x.floats) // of an answer or a question
	if most == 0 {
		return wrong("rows of table %q have %d floats, too many to be read at another node", x.c.tables[x.table].name, x.floats)
	}
	var left []int
	for some := range slices.Chunk(x.left, most) {
		not, err := x.ask(ctx, godwit.NodeID(id), some)
		if err != nil {
			return err
		}
		left = append(left, not...)
	}
	x.left = left
	return nil
}

// here reads or writes those of the rows that a node of this process owns.
func (x *need) here(n *node.Node) error {
	left := x.left[:0]
	for _, i := range x.left {
		found, err := x.one(n, x.rows[i], x.vals[i*x.floats:(i+1)*x.floats])
		if err != nil {
			return err
		}
		if !found {
			left = append(left, i)
		}
	}
	x.left = left
	return nil
}

// one reads or writes a row.
func (x *need) one(n *node.Node, row int64, vals []float32) (here bool, err error) {
	k := x.c.tables[x.table].first + godwit.Key(row)
	if !x.write {
		if x.buf, here, err = n.ReadRow(k, x.buf[:0]); err != nil || !here {
			return here, err
		}
	}
	for _, s := range x.spans {
		part := vals[:s.n]
		vals = vals[s.n:]
		if !x.write {
			copy(part, x.buf[s.at:])
		} else if here, err = n.WriteRow(k, s.at, part); err != nil || !here {
			return here, err
		}
	}
	return here, nil
}

// node returns a node of the run if it is in this process; else nil.
func (c *Cluster) node(id int) *node.Node {
	if i := id - c.rank; i >= 0 && i < len(c.here) {
		return c.here[i]
	}
	return nil
}

// Questions of nodes to each other. A question about rows is a head, the rows as 8 bytes each and, to write
// them, their floats; the answer is a byte for each row, which says whether it is there, and
// the floats of those that are, to read them. All numbers are little endian.
const (
	askRead  = 2 // of rows; 1 begins a question of package recording
	askWrite = 3
	askNote  = 4  // a note of a checkpoint, as JSON
	askUsed  = 5  // which rows somebody has accessed, of those that have their home there
	askPart  = 6  // the process closes its cluster: a parting, as JSON
	headLen  = 16 // kind, parts, 2 bytes of 0, table, rows, and 4 bytes of 0
)

var errQuestion = errors.New("another node sent a question, or an answer, that cannot be")

// ask has a node read or write some rows. It returns those that it does not own.
func (x *need) ask(ctx context.Context, to godwit.NodeID, some []int) (left []int, err error) {
	var answer []byte // is only looked at when it is there for good: the caller's memory may be gone when it comes too late
	if err := x.c.here[0].Ask(to, x.question(some), func(b []byte) { answer = slices.Clone(b) })(ctx); err != nil {
		return nil, err
	}
	return x.answered(some, answer)
}

func (x *need) question(some []int) []byte {
	b := make([]byte, headLen, headLen+len(some)*(8+4*x.floats))
	if b[0], b[1] = askRead, byte(x.parts); x.write {
		b[0] = askWrite
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(x.table))
	binary.LittleEndian.PutUint32(b[8:], uint32(len(some)))
	for _, i := range some {
		b = binary.LittleEndian.AppendUint64(b, uint64(x.rows[i]))
	}
	if x.write {
		for _, i := range some {
			b = appendFloats(b, x.vals[i*x.floats:(i+1)*x.floats])
		}
	}
	return b
}

// answered takes what a node says about some rows.
func (x *need) answered(some []int, b []byte) (left []int, err error) {
	if len(b) < len(some) {
		return nil, errQuestion
	}
	there, floats := b[:len(some)], b[len(some):]
	for j, i := range some {
		switch {
		case there[j] == 0:
			left = append(left, i)
		case !x.write && len(floats) < 4*x.floats:
			return nil, errQuestion
		case !x.write:
			floats = takeFloats(x.vals[i*x.floats:(i+1)*x.floats], floats)
		}
	}
	return left, nil
}

func appendFloats(b []byte, vals []float32) []byte {
	for _, v := range vals {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// takeFloats decodes floats from the beginning of b, and returns the rest.
func takeFloats(vals []float32, b []byte) []byte {
	for i := range vals {
		vals[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return b[4*len(vals):]
}

// answer answers another node's question. What cannot be gets no answer at all, which the other takes as an error.
func (c *Cluster) answer(from int, b []byte) []byte {
	if recording.IsQuestion(b) {
		return c.collector.Answer(from, b)
	}
	if len(b) > 0 && b[0] == askNote {
		return c.told(b[1:])
	}
	if len(b) > 0 && b[0] == askPart {
		return c.parted(b[1:])
	}
	x, floats, err := c.asked(b)
	if err != nil {
		return nil
	}
	if b[0] == askUsed {
		return x.used(c.here[0])
	}
	n, vals := c.here[0], make([]float32, x.floats)
	there := make([]byte, len(x.rows), len(x.rows)*(1+4*x.floats))
	out := there
	for i, row := range x.rows {
		if x.write {
			floats = takeFloats(vals, floats)
		}
		if here, err := x.one(n, row, vals); err != nil || !here {
			continue
		}
		if there[i] = 1; !x.write {
			out = appendFloats(out, vals)
		}
	}
	return out
}

// asked decodes a question about rows. The floats to write, if any, are as many as they should be.
func (c *Cluster) asked(b []byte) (x *need, floats []byte, err error) {
	if len(b) < headLen || b[0] != askRead && b[0] != askWrite && b[0] != askUsed {
		return nil, nil, errQuestion
	}
	x = &need{c: c, table: int(binary.LittleEndian.Uint32(b[4:])), parts: int(b[1]), write: b[0] == askWrite}
	count := int(binary.LittleEndian.Uint32(b[8:]))
	if x.table >= len(c.tables) || count > len(b)/8 {
		return nil, nil, errQuestion
	}
	t := &c.tables[x.table]
	if x.spans, x.floats, err = t.spans(x.parts); err != nil {
		return nil, nil, err
	}
	each := 8
	if x.write {
		each += 4 * x.floats
	}
	if b = b[headLen:]; len(b) != count*each || count*(1+4*x.floats) > node.MaxQuestion {
		return nil, nil, errQuestion
	}
	for range count {
		row := binary.LittleEndian.Uint64(b)
		if row >= uint64(t.rows) {
			return nil, nil, errQuestion
		}
		x.rows = append(x.rows, int64(row))
		b = b[8:]
	}
	return x, b, nil
}
