package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/godwit-ps/godwit"
)

// NamesFile is where the names of a table's rows are, in a run's folder: the table's position in the model says which.
// The file has a line a row.
func NamesFile(table int) string { return fmt.Sprintf("names-%d.txt", table) }

// WriteNames writes the names of a table's rows to a run's folder, for those who look at the trace. Ends of lines within a
// name become spaces.
func WriteNames(dir string, table int, names iter.Seq[string]) (err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	f, err := os.Create(filepath.Join(dir, NamesFile(table)))
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("trace: %w", cerr)
		}
	}()
	w := bufio.NewWriter(f)
	for name := range names {
		_, _ = w.WriteString(ends.Replace(name)) // the error is that of Flush
		_ = w.WriteByte('\n')
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}

var ends = strings.NewReplacer("\n", " ", "\r", " ")

// ReadNames calls yield with the rows of a table that have a name, in their order, until it returns false. Of a
// run that wrote none, it is not called, nor with a line at the end that is not whole: the disk was full, or it is still written.
func ReadNames(dir string, table int, yield func(row uint64, name string) bool) error {
	f, err := os.Open(filepath.Join(dir, NamesFile(table)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	r, row := bufio.NewReader(f), uint64(0)
	for {
		line, err := r.ReadString('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("trace: %w", err)
		}
		if name := strings.TrimSuffix(line, "\n"); name != "" && !yield(row, name) {
			return nil
		}
		row++
	}
}

// NamesOf returns the names of keys, as far as they have one.
func (t *Trace) NamesOf(keys []godwit.Key) (map[godwit.Key]string, error) {
	names, rows := map[godwit.Key]string{}, make([]map[uint64]godwit.Key, len(t.Header.Tables))
	for _, k := range keys {
		if i := tableOf(k, t.Header.Tables); i >= 0 {
			if rows[i] == nil {
				rows[i] = map[uint64]godwit.Key{}
			}
			rows[i][uint64(k-t.Header.Tables[i].First)] = k
		}
	}
	for i, of := range rows {
		left := len(of)
		if left == 0 {
			continue
		}
		err := ReadNames(t.dir, i, func(row uint64, name string) bool {
			if k, ok := of[row]; ok {
				names[k] = name
				left--
			}
			return left > 0
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// Find is [FindKey] in the folder of the trace.
func (t *Trace) Find(text string) (godwit.Key, error) { return FindKey(t.dir, t.Header.Tables, text) }

// FindKey reads a key: its number, table:row, or its name in the folder of a run, where only one key has that. An error says
// which there are.
func FindKey(dir string, tables []Table, text string) (godwit.Key, error) {
	k, err := ParseKey(text, tables)
	if err == nil {
		return k, nil
	}
	var found []godwit.Key
	for i, table := range tables {
		nerr := ReadNames(dir, i, func(row uint64, name string) bool {
			if name == text && row < table.Rows {
				found = append(found, table.First+godwit.Key(row))
			}
			return len(found) < 10
		})
		if nerr != nil {
			return 0, nerr
		}
	}
	switch len(found) {
	case 0:
		return 0, fmt.Errorf("%w; and no key has that name", err)
	case 1:
		return found[0], nil
	}
	var all []string
	for _, k := range found {
		all = append(all, NameOf(k, tables))
	}
	return 0, fmt.Errorf("trace: several keys are called %q: give one of %s", text, strings.Join(all, ", "))
}
