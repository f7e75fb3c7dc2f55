package npy

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
)

// A Reader reads one array, row by row. It belongs to one goroutine.
type Reader struct {
	name       string // for errors
	src        *bufio.Reader
	file       io.Closer
	rows, cols int
	left       int // rows not yet read
}

// Open opens a file and checks its header, and that its size fits the shape.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	r, err := newReader(path, f)
	if err == nil {
		err = r.checkSize(f)
	}
	if err != nil {
		_ = f.Close() // only read from
		return nil, err
	}
	r.file = f
	return r, nil
}

// NewReader reads an array from a stream. Its end is checked only by reading.
func NewReader(src io.Reader) (*Reader, error) { return newReader("stream", src) }

func newReader(name string, src io.Reader) (*Reader, error) {
	r := &Reader{name: name, src: bufio.NewReaderSize(src, bufSize)}
	header, err := r.header()
	if err == nil {
		r.rows, r.cols, err = parseHeader(header)
	}
	if err != nil {
		return nil, fmt.Errorf("npy: %s: %w", name, err)
	}
	r.left = r.rows
	return r, nil
}

// header reads all that stands before the values and returns the text in it.
func (r *Reader) header() (string, error) {
	var p [preamble]byte
	if _, err := io.ReadFull(r.src, p[:]); err != nil {
		return "", fmt.Errorf("not an .npy file: it ends within the first %d bytes: %w", preamble, err)
	}
	if string(p[:len(magic)]) != magic {
		return "", fmt.Errorf("not an .npy file: it starts with %q", p[:len(magic)])
	}
	if p[6] != 1 || p[7] != 0 {
		return "", fmt.Errorf("version %d.%d of the format, only 1.0 is supported", p[6], p[7])
	}
	h := make([]byte, binary.LittleEndian.Uint16(p[8:]))
	if _, err := io.ReadFull(r.src, h); err != nil {
		return "", fmt.Errorf("the file ends within its header of %d bytes: %w", len(h), err)
	}
	return string(h), nil
}

// A header is a Python dictionary of three entries. NumPy writes them in the
// order of the alphabet and tells readers not to rely on it.
var (
	dict  = regexp.MustCompile(`^\s*\{((?:` + entry + `,)*` + entry + `,?\s*)\}\s*$`)
	field = regexp.MustCompile(entry)
)

const entry = `\s*['"](\w+)['"]\s*:\s*('[^']*'|"[^"]*"|True|False|\([^()]*\))\s*`

var shape2 = regexp.MustCompile(`^\(\s*(\d+)\s*,\s*(\d+)\s*,?\s*\)$`)

func parseHeader(h string) (rows, cols int, err error) {
	m := dict.FindStringSubmatch(h)
	if m == nil {
		return 0, 0, fmt.Errorf("header %.200q, want {'descr': '<f4', 'fortran_order': False, 'shape': (rows, cols), }", h)
	}
	got := map[string]string{}
	for _, f := range field.FindAllStringSubmatch(m[1], -1) {
		if _, twice := got[f[1]]; twice {
			return 0, 0, fmt.Errorf("header has %s twice", f[1])
		}
		got[f[1]] = f[2]
	}
	switch d := got["descr"]; {
	case len(got) != 3:
		return 0, 0, fmt.Errorf("header %.200q has %d entries, want descr, fortran_order and shape", h, len(got))
	case d != "'<f4'" && d != `"<f4"`:
		return 0, 0, fmt.Errorf("descr is %.80q, want '<f4': little-endian float32; convert with astype", d)
	case got["fortran_order"] != "False":
		return 0, 0, fmt.Errorf("fortran_order is %.80q, want False; convert with ascontiguousarray", got["fortran_order"])
	}
	s := shape2.FindStringSubmatch(got["shape"])
	if s == nil {
		return 0, 0, fmt.Errorf("shape is %.80q, want (rows, cols)", got["shape"])
	}
	rows, err1 := strconv.Atoi(s[1])
	cols, err2 := strconv.Atoi(s[2])
	if _, ok := size(rows, cols); err1 != nil || err2 != nil || !ok {
		return 0, 0, fmt.Errorf("shape is %.80q, want cols >= 1 and a size that can be counted", got["shape"])
	}
	return rows, cols, nil
}

// checkSize compares the length of a regular file with the shape.
func (r *Reader) checkSize(f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("npy: %w", err)
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return fmt.Errorf("npy: %w", err)
	}
	want, _ := size(r.rows, r.cols)
	if got := st.Size() - at + int64(r.src.Buffered()); got != want {
		return fmt.Errorf("npy: %s: %d bytes of values, shape (%d, %d) has %d; the file is damaged or truncated", r.name, got, r.rows, r.cols, want)
	}
	return nil
}

// Shape returns the numbers of rows and columns.
func (r *Reader) Shape() (rows, cols int) { return r.rows, r.cols }

// ReadRows reads the next rows into dst, whose length is a multiple of the
// columns, and returns how many: as many as fit or are left. It returns io.EOF
// when none is left. After any other error of the source, reading is over.
func (r *Reader) ReadRows(dst []float32) (rows int, err error) {
	if len(dst) == 0 || len(dst)%r.cols != 0 {
		return 0, fmt.Errorf("npy: %s: a buffer of %d values, want one or more whole rows of %d", r.name, len(dst), r.cols)
	}
	if r.left == 0 {
		return 0, io.EOF
	}
	rows = min(len(dst)/r.cols, r.left)
	var b [4]byte
	for i := range dst[:rows*r.cols] {
		if _, err := io.ReadFull(r.src, b[:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, fmt.Errorf("npy: %s: row %d of %d: %w", r.name, r.rows-r.left+i/r.cols, r.rows, err)
		}
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[:]))
	}
	r.left -= rows
	return rows, nil
}

// Close closes the file that Open opened.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
