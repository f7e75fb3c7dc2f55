package npy

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/godwit-ps/godwit/data/atomicfile"
)

// A Writer writes one array to a file, row by row. The file appears under its
// name when Close succeeds; until then, and after any error, a file that was
// there stays as it was. A Writer belongs to one goroutine and must be closed.
type Writer struct {
	path       string
	file       *atomicfile.File
	rows, cols int
	left       int // rows not yet written
	err        error
}

// Create begins a file for rows × cols values, rows ≥ 0 and cols ≥ 1. The
// folder must exist.
func Create(path string, rows, cols int) (*Writer, error) {
	if _, ok := size(rows, cols); !ok {
		return nil, fmt.Errorf("npy: create %s: shape (%d, %d), want rows >= 0, cols >= 1 and a size that can be counted", path, rows, cols)
	}
	f, err := atomicfile.Create(path)
	if err != nil {
		return nil, fmt.Errorf("npy: create %s: %w", path, err)
	}
	w := &Writer{path: path, file: f, rows: rows, cols: cols, left: rows}
	if _, err := w.file.Write(appendHeader(nil, rows, cols)); err != nil {
		w.err = err
		return nil, w.Close()
	}
	return w, nil
}

// appendHeader appends all that stands before the values.
func appendHeader(b []byte, rows, cols int) []byte {
	h := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, cols)
	n := preamble + len(h) + 1
	h += strings.Repeat(" ", (alignment-n%alignment)%alignment) + "\n"
	b = append(b, magic...)
	b = append(b, 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(h)))
	return append(b, h...)
}

// WriteRows writes the next rows: vals holds one or more whole rows, one after
// the other. After an error only Close is of use.
func (w *Writer) WriteRows(vals []float32) error {
	switch n := len(vals) / w.cols; {
	case !w.file.Open():
		return fmt.Errorf("npy: write %s: %w", w.path, os.ErrClosed)
	case w.err != nil:
		return fmt.Errorf("npy: write %s: %w", w.path, w.err)
	case len(vals)%w.cols != 0:
		return fmt.Errorf("npy: write %s: %d values are not whole rows of %d", w.path, len(vals), w.cols)
	case n > w.left:
		return fmt.Errorf("npy: write %s: %d rows after the first %d, the shape has %d", w.path, n, w.rows-w.left, w.rows)
	default:
		w.left -= n
	}
	for _, v := range vals {
		b := binary.LittleEndian.AppendUint32(w.file.AvailableBuffer(), math.Float32bits(v))
		if _, w.err = w.file.Write(b); w.err != nil {
			return fmt.Errorf("npy: write %s: %w", w.path, w.err)
		}
	}
	return nil
}

// Close makes the file durable and gives it its name. If rows are missing or
// anything failed, it removes what was written and returns the error. Closing
// again does nothing.
func (w *Writer) Close() error {
	if !w.file.Open() {
		return nil
	}
	err := w.finish()
	if err != nil {
		w.file.Abort()
		err = fmt.Errorf("npy: write %s: %w", w.path, err)
	}
	return err
}

// Abort removes what was written. It does nothing after Close.
func (w *Writer) Abort() { w.file.Abort() }

func (w *Writer) finish() error {
	if w.err != nil {
		return w.err
	}
	if w.left > 0 {
		return fmt.Errorf("closed after %d of %d rows", w.rows-w.left, w.rows)
	}
	return w.file.Commit()
}
