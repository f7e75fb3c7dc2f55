package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
)

// What a Writer holds of each table before it writes blocks, about how large these are, and how many may wait
// to be written. Small blocks have few rows, so that who restores a part of the rows reads little else.
const (
	tableBytes = 4 << 20
	blockSize  = 256 << 10
	blocks     = 8
)

// A Writer writes what one node has of a checkpoint. Its methods may be called by any number of
// goroutines. It takes about [tableBytes] of memory for each table, however many rows there are.
type Writer struct {
	ctx    context.Context
	store  Store
	id     ID
	node   int
	tables []Table

	mu      sync.Mutex // guards what follows
	out     *blockWriter
	pending []pending // of each table
	written Contents
	err     error // the first one: nothing is written after it
}

// pending are rows of a table that are not written yet.
type pending struct {
	rows []uint64
	vals []float32
	hash *digester
}

// Write writes what one node has of a checkpoint: fill hands its rows and sections to the Writer. Nodes are
// numbered 0, 1, …; each writes once, with the ID that the leader made for all of them. The store must be one that the leader sees. After an error there may be
// objects left, which no manifest names.
func Write(ctx context.Context, s Store, id ID, node int, tables []Table, fill func(*Writer) error) (*Piece, error) {
	w := &Writer{ctx: ctx, store: s, id: id, node: node, tables: tables, pending: make([]pending, len(tables))}
	for i := range w.pending {
		w.pending[i].hash = newDigester(tables[i].Name)
	}
	name := id.part(node)
	err := s.Create(ctx, name, func(out io.Writer) error {
		if _, err := out.Write(header()); err != nil {
			return err
		}
		w.out = writeBlocks(out, headerBytes)
		err := fill(w)
		if err == nil {
			err = w.rest()
		}
		if end := w.out.end(); end != nil {
			err = end // a cause of the other
		}
		if err != nil {
			return err
		}
		return w.finish(out, name)
	})
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d: writing %s to %s: %w", id.Number, name, s, err)
	}
	return &Piece{w.written}, nil
}

// Write writes rows of a table: their numbers, and their floats, value and then state, one row after the
// other. It keeps nothing of its arguments. Rows are best written in ascending order, at least many in a
// row. Each row of a checkpoint is written once, by one node; of an incremental one, each row that changed.
func (w *Writer) Write(table int, rows []uint64, vals []float32) error {
	if uint(table) >= uint(len(w.tables)) {
		return fmt.Errorf("checkpoint: rows of table %d, there are %d", table, len(w.tables))
	}
	t := &w.tables[table]
	if len(vals) != len(rows)*t.Width {
		return fmt.Errorf("checkpoint: %d floats for %d rows of table %q, want %d a row", len(vals), len(rows), t.Name, t.Width)
	}
	if i := slices.IndexFunc(rows, func(r uint64) bool { return r >= t.Rows }); i >= 0 {
		return fmt.Errorf("checkpoint: table %q has no row %d, it has rows 0 … %d", t.Name, rows[i], t.Rows-1)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &w.pending[table]
	most := max(1, tableBytes/(8+4*t.Width)) // rows
	for len(rows) > 0 && w.err == nil {
		n := min(len(rows), most-len(p.rows))
		p.rows, p.vals = append(p.rows, rows[:n]...), append(p.vals, vals[:n*t.Width]...)
		rows, vals = rows[n:], vals[n*t.Width:]
		if len(p.rows) == most {
			w.err = w.flush(table)
		}
	}
	return w.err
}

// Section writes other state of the run, by a name that no other section of the checkpoint has: 1 … 1,024 bytes of UTF-8.
func (w *Writer) Section(name string, b []byte) error {
	if !isSectionName(name) {
		return fmt.Errorf("checkpoint: %.100q is no name of a section: want 1 … %d bytes of UTF-8", name, maxSectionName)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	s := Section{name, w.id.section(w.node, len(w.written.Sections)), int64(len(b)), sum(b)}
	w.err = w.store.Create(w.ctx, s.Object, func(out io.Writer) error {
		_, err := out.Write(b)
		return err
	})
	if w.err != nil {
		w.err = fmt.Errorf("section %q: %w", name, w.err)
		return w.err
	}
	w.written.Sections = append(w.written.Sections, s)
	return nil
}

// flush writes the pending rows of a table, as blocks.
func (w *Writer) flush(table int) error {
	if err := w.ctx.Err(); err != nil {
		return context.Cause(w.ctx)
	}
	p, width := &w.pending[table], w.tables[table].Width
	order := ascending(p.rows)
	for i := 1; i < len(order); i++ {
		if row := p.rows[order[i]]; row == p.rows[order[i-1]] {
			return fmt.Errorf("%w: row %d of table %q", errTwice, row, w.tables[table].Name)
		}
	}
	for len(order) > 0 {
		n := min(len(order), max(1, blockSize/(8+4*width)))
		if err := w.block(table, order[:n]); err != nil {
			return err
		}
		order = order[n:]
	}
	p.rows, p.vals = p.rows[:0], p.vals[:0]
	return nil
}

// ascending returns the positions of rows, in the order of the rows.
func ascending(rows []uint64) []int {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	if !slices.IsSorted(rows) {
		slices.SortFunc(order, func(a, b int) int {
			if rows[a] < rows[b] {
				return -1
			}
			return 1
		})
	}
	return order
}

var errTwice = errors.New("a row was written twice")

// block has a block written of the pending rows of a table at some positions.
func (w *Writer) block(table int, at []int) error {
	p, width := &w.pending[table], w.tables[table].Width
	b, err := w.out.buffer(int(blockBytes(int64(len(at)), int64(width))))
	if err != nil {
		return err
	}
	for _, x := range at {
		b = binary.LittleEndian.AppendUint64(b, p.rows[x])
	}
	for _, x := range at {
		from := len(b)
		b = appendFloats(b, p.vals[x*width:(x+1)*width])
		w.written.Digest.Add(p.hash.of(p.rows[x], b[from:]))
	}
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	w.written.Rows += uint64(len(at))
	w.out.write(entry{
		first: p.rows[at[0]], last: p.rows[at[len(at)-1]],
		table: uint32(table), rows: uint32(len(at)), width: uint32(width),
	}, b)
	return nil
}

// rest has what is pending written.
func (w *Writer) rest() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.pending {
		if w.err == nil {
			w.err = w.flush(i)
		}
	}
	return w.err
}

// finish writes the end of the part.
func (w *Writer) finish(out io.Writer, name string) error {
	index, offset := w.out.index, w.out.offset
	foot := footer(uint64(offset), index)
	if _, err := out.Write(append(index, foot...)); err != nil {
		return err
	}
	bytes := offset + int64(len(index)+len(foot))
	w.written.Parts = []Part{{name, bytes, len(index) / entryBytes, w.written.Rows, sum(index)}}
	return nil
}

// A blockWriter writes blocks, in the order in which it gets them, and makes their index: checksums and writing are
// a goroutine's of its own, so that the next block is made meanwhile. One goroutine at a time calls its methods.
type blockWriter struct {
	todo   chan encoded
	free   chan []byte // buffers that are not in use
	done   chan struct{}
	failed atomic.Bool

	// What follows is the goroutine's, until it has ended.
	out    io.Writer
	offset int64
	index  []byte
	err    error // the first one: nothing is written after it
}

// An encoded block, and its entry but for offset and checksum.
type encoded struct {
	entry
	b []byte
}

// writeBlocks begins to write blocks from an offset of a part on. end is to be called.
func writeBlocks(out io.Writer, offset int64) *blockWriter {
	w := &blockWriter{out: out, offset: offset, todo: make(chan encoded, blocks), free: make(chan []byte, blocks), done: make(chan struct{})}
	for range blocks {
		w.free <- nil
	}
	go w.run()
	return w
}

func (w *blockWriter) run() {
	defer close(w.done)
	for e := range w.todo {
		if w.err == nil {
			if w.err = w.put(e); w.err != nil {
				w.failed.Store(true)
			}
		}
		w.free <- e.b
	}
}

func (w *blockWriter) put(e encoded) error {
	e.offset, e.sum = uint64(w.offset), sha256.Sum256(e.b)
	w.index = e.append(w.index)
	n, err := w.out.Write(e.b)
	w.offset += int64(n)
	return err
}

// buffer waits for an empty buffer of so many bytes of capacity. If a block could not be written, it returns an error;
// end has the cause.
func (w *blockWriter) buffer(size int) ([]byte, error) {
	if w.failed.Load() {
		return nil, errFailed
	}
	b := <-w.free
	if cap(b) < size {
		b = make([]byte, 0, size)
	}
	return b[:0], nil
}

var errFailed = errors.New("a block could not be written")

// write has a block written, in a buffer of which nothing is kept.
func (w *blockWriter) write(e entry, b []byte) { w.todo <- encoded{e, b} }

// end waits until all blocks are written.
func (w *blockWriter) end() error {
	close(w.todo)
	<-w.done
	return w.err
}

// Commit makes a checkpoint of the pieces of all nodes, by its manifest m, which has all but the
// format and the contents. Of an incremental checkpoint, m.BuildsOn are the [Manifest.Layers] of the one before it. It first
// looks whether the objects are there, as the leader sees them. The error wraps fs.ErrExist if there is a checkpoint
// of the number: then another run writes here.
func Commit(ctx context.Context, s Store, m Manifest, pieces []*Piece) (*Manifest, error) {
	m.Format, m.Nodes, m.Contents = formatOf(m.BuildsOn), len(pieces), Contents{Parts: []Part{}, Sections: []Section{}}
	for _, p := range pieces {
		for _, part := range p.Parts {
			if !m.owns(part.Name) {
				return nil, fmt.Errorf("checkpoint %d: the part %s was written with another ID than the manifest's: the leader makes one by NewID, for all nodes", m.Number, part.Name)
			}
		}
		m.Parts = append(m.Parts, p.Parts...)
		m.Sections = append(m.Sections, p.Sections...)
		m.Rows += p.Rows
		m.Digest.Add(p.Digest)
	}
	b, err := m.encode()
	if err != nil {
		return nil, err
	}
	if err := m.present(ctx, s); err != nil {
		return nil, err
	}
	err = s.Create(ctx, manifestName(m.Number), func(out io.Writer) error {
		_, err := out.Write(b)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d: writing its manifest to %s: %w", m.Number, s, err)
	}
	return &m, nil
}

// present returns an error if an object that the manifest names is not in the store with its size.
func (m *Manifest) present(ctx context.Context, s Store) error {
	for _, l := range m.Layers() {
		for _, p := range l.Parts {
			if err := m.hasSize(ctx, s, p.Name, p.Bytes); err != nil {
				return err
			}
		}
	}
	for _, x := range m.Sections {
		if err := m.hasSize(ctx, s, x.Object, x.Bytes); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manifest) hasSize(ctx context.Context, s Store, name string, want int64) error {
	n, err := s.Size(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("it is missing: %w", fs.ErrNotExist)
	case err == nil && n != want:
		err = fmt.Errorf("it has %d bytes, want %d: it was cut short or changed", n, want)
	}
	if err != nil {
		return fmt.Errorf("checkpoint %d: %s at %s: %w", m.Number, name, s, err)
	}
	return nil
}
