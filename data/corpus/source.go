package corpus

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/godwit-ps/godwit/data/lines"
)

// A source is a file of a corpus, or text in memory.
type source struct {
	name string
	text []byte // in memory, where path is empty
	path string

	// What the file was when its words were counted: blocks of another one would
	// begin in the middle of words.
	size  int64
	mtime time.Time
}

// Files lists the files of a path: itself, or those of a folder that hold text.
func Files(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	return textFiles(path)
}

// sources lists the files of a path.
func sources(path string) ([]source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	paths := []string{path}
	if info.IsDir() {
		if paths, err = textFiles(path); err != nil {
			return nil, err
		}
	}
	var files []source
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("corpus: %w", err)
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("corpus: %s is not a regular file, which it must be to be read more than once", p)
		}
		files = append(files, source{name: p, path: p, size: info.Size(), mtime: info.ModTime()})
	}
	return files, nil
}

// textFiles lists the texts in a folder, by name.
func textFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	var paths []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || e.IsDir() {
			continue
		}
		if strings.HasSuffix(name, ".txt") || strings.HasSuffix(name, ".gz") {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("corpus: the folder %s has no files *.txt or *.gz", dir)
	}
	return paths, nil
}

// A stream is the text of an open source.
type stream struct {
	io.Reader
	file *os.File // nil for text in memory
	gz   *gzip.Reader
	at   int64 // how much of the text was read
}

// open returns the text from its beginning.
func (s *source) open() (*stream, error) {
	if s.path == "" {
		return (&stream{}).start(bytes.NewReader(s.text))
	}
	f, err := os.Open(s.path)
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	st := &stream{file: f}
	info, err := f.Stat()
	if err == nil && (info.Size() != s.size || !info.ModTime().Equal(s.mtime)) {
		err = errChanged
	}
	if err == nil {
		st, err = st.start(f)
	}
	if err != nil {
		_ = f.Close() // it was only read
		return nil, fmt.Errorf("corpus: %s: %w", s.name, err)
	}
	return st, nil
}

// start looks whether the text is compressed: no UTF-8 text begins like that.
func (st *stream) start(r io.ReadSeeker) (*stream, error) {
	var head [2]byte
	n, err := io.ReadFull(r, head[:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	st.Reader = r
	if n == 2 && head[0] == 0x1f && head[1] == 0x8b {
		if st.gz, err = gzip.NewReader(r); err != nil {
			return nil, lines.Compressed(err)
		}
		st.Reader = st.gz
	}
	return st, nil
}

func (st *stream) Read(p []byte) (int, error) {
	n, err := st.Reader.Read(p)
	st.at += int64(n)
	if st.gz != nil && err != nil && err != io.EOF {
		err = lines.Compressed(err)
	}
	return n, err
}

// skipTo goes on at a position of the text. It reports whether it could: a
// compressed text has no way back.
func (st *stream) skipTo(to int64) (bool, error) {
	if s, ok := st.Reader.(io.Seeker); ok {
		_, err := s.Seek(to, io.SeekStart)
		st.at = to
		return true, err
	}
	if to < st.at {
		return false, nil
	}
	n, err := io.CopyN(io.Discard, st.Reader, to-st.at)
	st.at += n
	if err == io.EOF {
		err = errChanged
	}
	return true, err
}

func (st *stream) Close() error {
	if st.file == nil {
		return nil
	}
	return st.file.Close()
}
