package libsvm

import (
	"fmt"
	"io"
	"strconv"

	"github.com/godwit-ps/godwit/data/atomicfile"
)

// Write saves the examples at path, as text. The file appears complete or not
// at all, and replaces one of its name.
func (s *Set) Write(path string) error {
	if err := s.Check(); err != nil {
		return err
	}
	if err := atomicfile.Write(path, s.Encode); err != nil {
		return fmt.Errorf("libsvm: write %s: %w", path, err)
	}
	return nil
}

// Encode writes the examples as text, labels as the classes say.
func (s *Set) Encode(w io.Writer) error {
	var line []byte
	for i := range s.Len() {
		label, features, values := s.Row(i)
		line = append(line[:0], s.label(label)...)
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
