package index

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// maxName is how much of a name is shown, in bytes.
const maxName = 200

// readNames reads the names of traced keys that are in a run's folder. Without a file there are none.
func readNames(dir string, h *trace.Header) (map[godwit.Key]string, error) {
	traced, err := h.Keys()
	if err != nil {
		return nil, err
	}
	names := map[godwit.Key]string{}
	for i, t := range h.Tables {
		if err := readTable(filepath.Join(dir, trace.NamesFile(i)), t, &traced, names); err != nil {
			return nil, fmt.Errorf("dashboard: %w", err)
		}
	}
	return names, nil
}

func readTable(path string, t trace.Table, traced *trace.Keys, names map[godwit.Key]string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 64<<10)
	for k := t.First; k < t.First+godwit.Key(t.Rows); k++ {
		line, err := readLine(r)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		if line != "" && traced.Has(k) {
			names[k] = line
		}
	}
	return nil
}

// readLine reads a line, and returns its begin.
func readLine(r *bufio.Reader) (string, error) {
	b, err := r.ReadSlice('\n')
	line := strings.ToValidUTF8(strings.TrimSuffix(string(b[:min(len(b), maxName)]), "\n"), "\uFFFD")
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	return line, err
}
