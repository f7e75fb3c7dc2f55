package libsvm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// Write saves the examples at path, as text. The file appears complete or not
// at all, and replaces one of its name.
func (s *Set) Write(path string) (err error) {
	if err := s.Check(); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("libsvm: %w", err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()           // a second close after success below is harmless
			_ = os.Remove(f.Name()) // it is of no use
			err = fmt.Errorf("libsvm: write %s: %w", path, err)
		}
	}()
	b := bufio.NewWriter(f)
	err = s.Encode(b)
	if err := errors.Join(err, b.Flush(), f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Encode writes the examples as text, labels as 1 and -1.
func (s *Set) Encode(w io.Writer) error {
	var line []byte
	for i := range s.Len() {
		positive, features, values := s.Row(i)
		line = append(line[:0], "-1"...)
		if positive {
			line = append(line[:0], '1')
		}
		for k, f := range features {
			line = append(line, ' ')
			line = strconv.AppendUint(line, uint64(f), 10)
			line = append(line, ':')
			line = strconv.AppendFloat(line, float64(values[k]), 'g', -1, 32)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}
