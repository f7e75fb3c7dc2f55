package export

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/godwit-ps/godwit/data/npy"
)

// A Source is a trained model, wherever it is kept: its description, its arrays and the
// names of their rows. An export is one, see [Open].
type Source interface {
	// Describe returns the description, which must not be changed.
	Describe() *Model
	// Array reads an array whole. The error names the array.
	Array(name string) (*Values, error)
	// Lines reads the lines of a text.
	Lines(name string) ([]string, error)
}

// Values are those of an array, row by row.
type Values struct {
	Rows   int       // how many
	Cols   int       // of each row
	Floats []float32 // Rows·Cols of them
}

// Row returns a row, which belongs to the array.
func (v *Values) Row(i int) []float32 { return v.Floats[i*v.Cols : (i+1)*v.Cols : (i+1)*v.Cols] }

// A Folder is an export as a [Source]. What it reads may come from anywhere: it opens
// only regular files of the folder, takes memory in proportion to their bytes, and
// checks what it has read against the description. It is immutable and may be used by
// any number of goroutines.
type Folder struct {
	dir   string
	model *Model
}

// Open reads the description of the export in a folder. The error wraps fs.ErrNotExist
// if the folder has none.
func Open(dir string) (*Folder, error) {
	in, err := open(dir, ModelFile)
	if errors.Is(err, fs.ErrNotExist) {
		if _, serr := os.Stat(dir); serr == nil {
			return nil, fmt.Errorf("export: %s is no folder of an export: it has no %s: %w", dir, ModelFile, fs.ErrNotExist)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	defer in.Close() // it is only read
	path := filepath.Join(dir, ModelFile)
	if in.size > maxModel {
		return nil, fmt.Errorf("export: %s: %d bytes, a description has at most %d", path, in.size, maxModel)
	}
	b, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("export: %s: %w", path, err)
	}
	m, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("export: %s: %w", path, err)
	}
	return &Folder{dir, m}, nil
}

// Describe implements [Source].
func (d *Folder) Describe() *Model { return d.model }

// Array implements [Source].
func (d *Folder) Array(name string) (v *Values, err error) {
	err = d.read(name, Array, func(f *File, in io.Reader) error {
		r, err := npy.NewReader(in)
		if err != nil {
			return err
		}
		v = &Values{}
		v.Rows, v.Cols = r.Shape()
		if !slices.Equal(f.Shape, []int{v.Rows, v.Cols}) {
			return fmt.Errorf("the array has %d rows of %d, and %s says %v", v.Rows, v.Cols, ModelFile, f.Shape)
		}
		// A row has a byte at least; the file is as long as it is said to be.
		if int64(v.Rows) > f.Bytes/4/int64(v.Cols) {
			return fmt.Errorf("%d rows of %d floats in %d bytes", v.Rows, v.Cols, f.Bytes)
		}
		v.Floats = make([]float32, v.Rows*v.Cols)
		if v.Rows > 0 {
			_, err = r.ReadRows(v.Floats)
		}
		return err
	})
	return v, err
}

// Lines implements [Source].
func (d *Folder) Lines(name string) (lines []string, err error) {
	err = d.read(name, Text, func(f *File, in io.Reader) error {
		r := bufio.NewReader(in)
		for {
			line, err := r.ReadString('\n')
			switch {
			case err == io.EOF && line == "":
				if !slices.Equal(f.Shape, []int{len(lines)}) {
					return fmt.Errorf("%d lines, and %s says %v", len(lines), ModelFile, f.Shape)
				}
				return nil
			case err == io.EOF:
				return errors.New("the last line has no end")
			case err != nil:
				return err
			}
			lines = append(lines, line[:len(line)-1])
		}
	})
	return lines, err
}

// read has do read a file of a kind, and checks it.
func (d *Folder) read(name, kind string, do func(f *File, in io.Reader) error) error {
	f := d.model.File(name)
	if f == nil || f.Kind != kind {
		return fmt.Errorf("export: %s has no %s of the kind %s", d.dir, name, kind)
	}
	in, err := open(d.dir, name)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer in.Close() // it is only read
	if in.size == f.Bytes {
		err = do(f, io.LimitReader(in, in.size))
	}
	if err == nil {
		_, err = io.Copy(io.Discard, in) // the sum is of all of it
	}
	path := filepath.Join(d.dir, name)
	if sum := hex.EncodeToString(in.hash.Sum(nil)); err == nil && (in.size != f.Bytes || sum != f.SHA256) {
		return changed(path, in.size, sum, f)
	}
	if err != nil {
		return fmt.Errorf("export: %s: %w", path, err)
	}
	return nil
}

// An opened file is hashed as it is read.
type opened struct {
	file *os.File
	size int64
	hash hash.Hash
}

// open opens a regular file of a folder. A link is followed if it leads to one there.
func open(dir, name string) (*opened, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() // files that are open stay so
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait
		return nil, fmt.Errorf("%s is no regular file", filepath.Join(dir, name))
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	return &opened{f, info.Size(), sha256.New()}, nil
}

func (o *opened) Read(b []byte) (int, error) {
	n, err := o.file.Read(b)
	o.hash.Write(b[:n])
	return n, err
}

func (o *opened) Close() error { return o.file.Close() }

// changed is the error of a file that is not the one described.
func changed(path string, bytes int64, sum string, f *File) error {
	return fmt.Errorf("export: %s is not the file that %s describes: %d bytes with SHA-256 %.12s…, want %d with %.12s…; it was changed, or copied in part",
		path, ModelFile, bytes, sum, f.Bytes, f.SHA256)
}
