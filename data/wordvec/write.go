package wordvec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/godwit-ps/godwit/data/atomicfile"
	"github.com/godwit-ps/godwit/data/npy"
)

// Endings are the endings of the names of files that [Create] can make.
func Endings() []string { return []string{".txt", ".bin", ".npy"} }

// A Writer writes vectors to a file, one after the other. The file appears under
// its name when Close succeeds; until then, and after any error, a file that was
// there stays as it was. A Writer belongs to one goroutine and must be closed.
type Writer struct {
	path      string
	binary    bool
	rows, dim int
	n         int              // written
	text      *atomicfile.File // the vectors, or the names of an array
	array     *npy.Writer      // of .npy
	err       error
}

// Create begins a file of rows vectors of dim floats, in the format that the
// ending of its name says. The folder must exist.
func Create(path string, rows, dim int) (*Writer, error) {
	w := &Writer{path: path, rows: rows, dim: dim}
	text := path
	switch ext := filepath.Ext(path); ext {
	case ".txt":
	case ".bin":
		w.binary = true
	case ".npy":
		text = namesOf(path)
	default:
		return nil, fmt.Errorf("wordvec: create %s: the ending %q is not known, there are %s", path, ext, strings.Join(Endings(), ", "))
	}
	f, err := atomicfile.Create(text)
	if err != nil {
		return nil, fmt.Errorf("wordvec: create %s: %w", text, err)
	}
	w.text = f
	if text == path {
		fmt.Fprintf(w.text, "%d %d\n", rows, dim) // an error comes again
		return w, nil
	}
	if w.array, err = npy.Create(path, rows, dim); err != nil {
		w.text.Abort()
		return nil, fmt.Errorf("wordvec: create %s: %w", path, err)
	}
	return w, nil
}

// namesOf returns the file of the names beside an array.
func namesOf(array string) string { return strings.TrimSuffix(array, ".npy") + ".txt" }

// Write writes the next vector. After an error only Close is of use.
func (w *Writer) Write(name string, vals []float32) error {
	if w.err != nil {
		return w.err
	}
	if w.err = w.write(name, vals); w.err != nil {
		w.err = fmt.Errorf("wordvec: write %s: %w", w.path, w.err)
	}
	return w.err
}

func (w *Writer) write(name string, vals []float32) error {
	if err := w.checkName(name); err != nil {
		return fmt.Errorf("vector %d: the name %.100q %w", w.n, name, err)
	}
	switch {
	case !w.text.Open():
		return os.ErrClosed
	case len(vals) != w.dim:
		return fmt.Errorf("vector %d has %d floats, want %d", w.n, len(vals), w.dim)
	case w.n == w.rows:
		return fmt.Errorf("more vectors than the %d that were said", w.rows)
	}
	w.n++
	b := append(w.text.AvailableBuffer(), name...)
	switch {
	case w.array != nil:
		if err := w.array.WriteRows(vals); err != nil {
			return err
		}
	case w.binary:
		b = append(b, ' ')
		for _, v := range vals {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	default:
		for _, v := range vals {
			b = strconv.AppendFloat(append(b, ' '), float64(v), 'g', -1, 32)
		}
	}
	_, err := w.text.Write(append(b, '\n'))
	return err
}

func (w *Writer) checkName(name string) error {
	switch {
	case name == "":
		return errors.New("is empty")
	case len(name) > maxName:
		return fmt.Errorf("is longer than %d bytes", maxName)
	case strings.ContainsAny(name, "\n\r\x00"):
		return errors.New("has a line break or NUL")
	case w.array == nil && strings.ContainsFunc(name, unicode.IsSpace):
		return errors.New("has a space, which this format cannot hold; .npy can")
	}
	return nil
}

// Close makes the file durable and gives it its name. If vectors are missing or
// anything failed, it removes what was written and returns the error. Closing
// again does nothing.
func (w *Writer) Close() error {
	if !w.text.Open() {
		return nil
	}
	err := w.err
	if err == nil {
		if err = w.finish(); err != nil {
			err = fmt.Errorf("wordvec: write %s: %w", w.path, err)
		}
	}
	if err != nil {
		w.text.Abort()
		if w.array != nil {
			w.array.Abort()
		}
	}
	return err
}

// finish gives what was written its names, the array before the names of its
// rows.
func (w *Writer) finish() error {
	if w.n < w.rows {
		return fmt.Errorf("closed after %d of %d vectors", w.n, w.rows)
	}
	if w.array != nil {
		if err := w.array.Close(); err != nil {
			return err
		}
	}
	return w.text.Commit()
}
