package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/godwit-ps/godwit/data/atomicfile"
)

// A Set is an export that is being written. It belongs to one goroutine and must be
// committed or aborted.
type Set struct {
	// Model is the description. The files are added by Add, and what begins with
	// Format by Commit; the rest is the writer's.
	Model Model
	files *atomicfile.Folder
}

// Create begins an export of a task to a folder, which does not exist, is empty, or
// holds an earlier export of the same task and nothing else.
func Create(dir, task string) (*Set, error) {
	if err := isFolder(dir); err != nil {
		return nil, err
	}
	files, err := atomicfile.CreateFolder(dir, replaceable(task))
	if err != nil {
		return nil, fmt.Errorf("export to %s: %w", dir, err)
	}
	return &Set{Model: Model{Task: task}, files: files}, nil
}

// Probe finds out whether an export of a task can be written to a folder, by writing
// there, and returns how many bytes are free; -1 if that is not known.
func Probe(dir, task string) (free int64, err error) {
	if err := isFolder(dir); err != nil {
		return 0, err
	}
	if free, err = atomicfile.Probe(dir, replaceable(task)); err != nil {
		return 0, fmt.Errorf("export to %s: %w", dir, err)
	}
	return free, nil
}

// isFolder refuses the URL of a bucket, of which a folder of that name would be made here.
func isFolder(dir string) error {
	if scheme, _, is := strings.Cut(dir, "://"); is {
		return fmt.Errorf("export to %s: want a folder of this machine, and %s:// is none (checkpoints may be in buckets)", dir, scheme)
	}
	return nil
}

// replaceable returns a function that says why a folder is not to be replaced by an
// export of a task.
func replaceable(task string) func(dir string) error {
	return func(dir string) error {
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) == 0 {
			return err
		}
		const what = "choose another folder, or move it away"
		m, err := Read(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("it holds %s, and no earlier export: %s", entries[0].Name(), what)
		case err != nil:
			return fmt.Errorf("%w: %s", err, what)
		case m.Task != task:
			return fmt.Errorf("it holds a model of the task %s, which one of %s does not replace: %s", m.Task, task, what)
		}
		for _, e := range entries {
			if e.Name() != ModelFile && m.File(e.Name()) == nil || e.IsDir() {
				return fmt.Errorf("beside an earlier export it holds %s, which is none of its files: %s", e.Name(), what)
			}
		}
		return nil
	}
}

// Path is where the file with a name is to be written, by package atomicfile.
func (s *Set) Path(name string) string { return s.files.Path(name) }

// Dir is the folder that the export will be, as an absolute path.
func (s *Set) Dir() string { return s.files.Dir() }

// Add describes a file that is written. Its size and sum are found by Commit.
func (s *Set) Add(f File) { s.Model.Files = append(s.Model.Files, f) }

// Commit writes the description and gives the export its path. After an error, the
// earlier export is there again.
func (s *Set) Commit() error {
	if err := s.keep(); err != nil {
		return fmt.Errorf("export to %s: %w", s.files.Dir(), err)
	}
	return nil
}

func (s *Set) keep() error {
	m := &s.Model
	m.Format, m.Written = Format, time.Now().Round(time.Second)
	for i := range m.Files {
		f := &m.Files[i]
		var err error
		if f.Bytes, f.SHA256, err = digest(filepath.Join(s.files.Path(f.Name))); err != nil {
			return err
		}
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if len(b) >= maxModel {
		return fmt.Errorf("its description has %d bytes, at most %d can be read", len(b), maxModel)
	}
	if _, err := decode(b); err != nil {
		return fmt.Errorf("nobody could read it: %w", err)
	}
	err = atomicfile.Write(s.files.Path(ModelFile), func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
	if err != nil {
		return err
	}
	return s.files.Commit()
}

// Abort removes what was written. It does nothing to an export that was committed.
func (s *Set) Abort() { s.files.Abort() }

// Write writes an export of a task to a folder, with what fill adds to it. If it fails or
// is killed, the folder stays as it was.
func Write(dir, task string, fill func(*Set) error) error {
	s, err := Create(dir, task)
	if err != nil {
		return err
	}
	defer s.Abort()
	if err := fill(s); err != nil {
		return fmt.Errorf("export to %s: %w", dir, err)
	}
	return s.Commit()
}
