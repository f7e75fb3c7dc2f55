package wordvec

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/godwit-ps/godwit/data/npy"
	"github.com/godwit-ps/godwit/internal/plural"
)

const (
	maxName = 1 << 12
	maxDim  = 1 << 20
)

// byteOrderMark is what some programs write before the first line of text.
const byteOrderMark = "\ufeff"

// Read reads a file of vectors, all of it. The ending of its name says what it
// is.
func Read(path string) (*Vectors, error) {
	var v *Vectors
	var err error
	switch ext := filepath.Ext(path); ext {
	case ".txt", ".vec":
		v, err = readFile(path, readText)
	case ".bin":
		v, err = readFile(path, readBinary)
	case ".npy":
		v, err = readArray(path)
	default:
		return nil, fmt.Errorf("wordvec: read %s: the ending %q is not known, there are %s, .vec", path, ext, strings.Join(Endings(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("wordvec: read %s: %w", path, err)
	}
	if len(v.Names) == 0 {
		return nil, fmt.Errorf("wordvec: read %s: there are no vectors", path)
	}
	return v, nil
}

func readFile(path string, read func(*bufio.Reader) (*Vectors, error)) (*Vectors, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it is only read
	return read(bufio.NewReaderSize(f, 1<<16))
}

var errName = errors.New("a name that is empty, too long, or not valid UTF-8; is this another format?")

func checkRead(name string) error {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) {
		return errName
	}
	return nil
}

// header reads the two numbers of a first line; ok is false if it is another
// line.
func header(line string) (rows, dim int, ok bool) {
	f := strings.Fields(line)
	if len(f) != 2 {
		return 0, 0, false
	}
	rows, err1 := strconv.Atoi(f[0])
	dim, err2 := strconv.Atoi(f[1])
	return rows, dim, err1 == nil && err2 == nil && rows >= 0 && dim >= 1 && dim <= maxDim
}

// readLine reads a line of bounded length, without its end.
func readLine(r *bufio.Reader, most int) (string, error) {
	var long []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(long)+len(part) > most {
			return "", fmt.Errorf("a line longer than %d bytes", most)
		}
		long = append(long, part...)
		switch {
		case err == nil || err == io.EOF && len(long) > 0:
			return strings.TrimSuffix(strings.TrimSuffix(string(long), "\n"), "\r"), nil
		case err != bufio.ErrBufferFull:
			return "", err
		}
	}
}

func readText(r *bufio.Reader) (*Vectors, error) {
	const most = maxName + 32*maxDim
	var names []string
	var vals []float32
	dim, rows := 0, -1
	for n := 1; ; n++ {
		line, err := readLine(r, most)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if n == 1 {
			line = strings.TrimPrefix(line, byteOrderMark)
			if x, d, ok := header(line); ok {
				rows, dim = x, d
				continue
			}
		}
		f := strings.Fields(line)
		if dim == 0 {
			dim = len(f) - 1
		}
		if len(f) != dim+1 || dim < 1 {
			return nil, fmt.Errorf("line %d: %s, want a name and %s", n, plural.Of(len(f), "field"), plural.Of(max(dim, 1), "number"))
		}
		if err := checkRead(f[0]); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		names = append(names, f[0])
		for _, s := range f[1:] {
			x, err := strconv.ParseFloat(s, 32)
			if err != nil {
				return nil, fmt.Errorf("line %d: %.40q is no number", n, s)
			}
			vals = append(vals, float32(x))
		}
	}
	if rows >= 0 && rows != len(names) {
		return nil, fmt.Errorf("%d vectors, the first line says %d; the file is damaged or truncated", len(names), rows)
	}
	return New(names, max(dim, 1), vals)
}

func readBinary(r *bufio.Reader) (*Vectors, error) {
	line, err := readLine(r, 100)
	if err != nil {
		return nil, fmt.Errorf("the first line: %w", err)
	}
	rows, dim, ok := header(line)
	if !ok {
		return nil, fmt.Errorf("the first line is %.40q, want the numbers of vectors and of floats of each", line)
	}
	var names []string
	var vals []float32 // grows as vectors come: the first line may say anything
	buf := make([]byte, 4*dim)
	for i := range rows {
		name, err := binaryName(r)
		if err == nil {
			_, err = io.ReadFull(r, buf)
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = fmt.Errorf("the file ends here, its first line says %d vectors; it is damaged or truncated", rows)
		}
		if err != nil {
			return nil, fmt.Errorf("vector %d: %w", i, err)
		}
		names = append(names, name)
		for j := 0; j < len(buf); j += 4 {
			vals = append(vals, math.Float32frombits(binary.LittleEndian.Uint32(buf[j:])))
		}
	}
	if rest, _ := r.Peek(2); len(strings.TrimPrefix(string(rest), "\n")) > 0 { // a line feed may be behind each vector
		return nil, fmt.Errorf("the file has more than the %d vectors that its first line says; it is damaged", rows)
	}
	return New(names, dim, vals)
}

// binaryName reads a name up to its space. The line feed after the vector
// before, which some programs leave out, is passed over.
func binaryName(r *bufio.Reader) (string, error) {
	var name []byte
	for {
		c, err := r.ReadByte()
		switch {
		case err != nil:
			return "", err
		case c == '\n' && len(name) == 0:
		case c == ' ':
			return string(name), checkRead(string(name))
		case len(name) > maxName:
			return "", errName
		default:
			name = append(name, c)
		}
	}
}

func readArray(path string) (*Vectors, error) {
	a, err := npy.Open(path)
	if err != nil {
		return nil, err
	}
	defer a.Close() // it is only read
	rows, dim := a.Shape()
	names, err := readNames(namesOf(path), rows)
	if err != nil {
		return nil, err
	}
	vals := make([]float32, rows*dim) // Open compared the shape with the size of the file
	for n := 0; n < rows; {
		got, err := a.ReadRows(vals[n*dim:])
		if err != nil {
			return nil, err
		}
		n += got
	}
	return New(names, dim, vals)
}

func readNames(path string, rows int) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the names of the rows: %w", err)
	}
	defer f.Close() // it is only read
	var names []string
	lines := bufio.NewReader(f)
	for {
		name, err := readLine(lines, maxName+2)
		if err == io.EOF {
			break
		}
		if err == nil {
			if len(names) == 0 {
				name = strings.TrimPrefix(name, byteOrderMark)
			}
			err = checkRead(name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, len(names)+1, err)
		}
		names = append(names, name)
	}
	if len(names) != rows {
		return nil, fmt.Errorf("%s has %d names for %d rows", path, len(names), rows)
	}
	return names, nil
}
