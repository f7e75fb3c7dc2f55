package export

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ModelFile is the file that describes an export.
const ModelFile = "model.json"

// Format is the version of model.json that this package writes. It reads only this
// version. A change that old readers would misunderstand gets a new number; added fields
// that they can ignore do not.
const Format = 1

// A Model describes a trained model and the files that hold it: it is what
// model.json holds. docs/file-formats.md describes it for people.
type Model struct {
	// Format is the version of the description, [Format].
	Format int `json:"format"`
	// Task is the name of the task that was trained.
	Task string `json:"task"`
	// Model is what the task calls this kind of model, such as "complex".
	Model string `json:"model"`
	// Dim is the length of a vector, as it was set; 0 where there are none.
	Dim int `json:"dim,omitempty"`
	// Score says what the model computes from the arrays, as NumPy has it.
	Score string `json:"score,omitempty"`
	// Reciprocal is whether the second half of the relations are the inverses of the first.
	Reciprocal bool `json:"reciprocal,omitempty"`
	// Features says how names of features became rows; nil where nothing was hashed.
	Features *Features `json:"features,omitempty"`
	// Classes are the labels of the classes, in the order of the arrays' columns, that of negative
	// examples first if there are two; none if the model predicts values.
	Classes []string `json:"classes,omitempty"`
	// Files are all other files of the folder.
	Files []File `json:"files"`

	Run     *Run      `json:"run,omitempty"`     // nil where no job trained the model
	Version string    `json:"version,omitempty"` // of the program that wrote the export
	Written time.Time `json:"written"`           // when, to the second
}

// Features is how the names of features were hashed.
type Features struct {
	Bits int    `json:"bits"` // there are 2^Bits rows
	Hash string `json:"hash"` // in words
}

// A Run is how a model was trained.
type Run struct {
	Name string `json:"name"` // of the run
	// Spec is the specification of the run: the settings of the task, the nodes, the seed.
	Spec json.RawMessage `json:"spec"`
	Seed uint64          `json:"seed"` // that of Spec
	Data Data            `json:"data"` // what the model was trained and evaluated on
	// Epochs is how many were trained.
	Epochs int `json:"epochs"`
	// End is why training ended.
	End string `json:"end"`
	// Metrics are of the exported model, and of the untrained one, by the part of the
	// data: "test", "valid", "train", "untrained".
	Metrics json.RawMessage `json:"metrics,omitempty"`
}

// Data are what a model was trained on.
type Data struct {
	Path        string `json:"path,omitempty"` // empty: they were generated
	About       string `json:"about"`          // their counts, in a line for people
	Fingerprint string `json:"fingerprint"`    // equal for equal data
}

// A File is one file of an export.
type File struct {
	// Name is that of the file within the folder.
	Name string `json:"name"`
	// Kind is how it is written: one of the kinds below.
	Kind string `json:"kind"`
	// Shape is rows and columns; a text has only lines.
	Shape []int `json:"shape"`
	// Names is the file whose lines are the names of this one's rows.
	Names string `json:"names,omitempty"`
	// Layout says what the columns, or the lines, are.
	Layout string `json:"layout"`
	// Bytes is the length of the file.
	Bytes int64 `json:"bytes"`
	// SHA256 is the checksum of the file, in lower-case hexadecimal.
	SHA256 string `json:"sha256"`
}

// The kinds of files.
const (
	Array  = "npy"             // a NumPy array of float32
	Text   = "text"            // lines
	Words  = "word2vec text"   // word2vec's text format
	Binary = "word2vec binary" // its binary one
)

// Read reads the description of the export in a folder. The error wraps
// fs.ErrNotExist if the folder has none.
func Read(dir string) (*Model, error) {
	f, err := Open(dir)
	if err != nil {
		return nil, err
	}
	return f.model, nil
}

// Bounds of a description, which may come from anywhere.
const (
	maxModel = 16 << 20 // bytes
	maxFiles = 4096
)

func decode(b []byte) (*Model, error) {
	var m Model
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&m); err != nil {
		return nil, fmt.Errorf("not a description of a model: %w", err)
	}
	switch {
	case m.Format != Format:
		return nil, fmt.Errorf("format %d of exports, and this version of godwit reads %d", m.Format, Format)
	case m.Task == "" || len(m.Files) == 0:
		return nil, errors.New("not a description of a model: it names no task or no files")
	}
	if err := m.checkFiles(); err != nil {
		return nil, fmt.Errorf("not a description of a model: %w", err)
	}
	return &m, nil
}

func (m *Model) checkFiles() error {
	if len(m.Files) > maxFiles {
		return fmt.Errorf("it names %d files, at most %d are possible", len(m.Files), maxFiles)
	}
	byName := map[string]*File{}
	for i := range m.Files {
		f := &m.Files[i]
		if f.Name == "" || f.Name == ModelFile || f.Name != filepath.Base(f.Name) || strings.HasPrefix(f.Name, ".") || strings.ContainsAny(f.Name, "\\\x00") {
			return fmt.Errorf("%q is no name of a file in this folder", f.Name)
		}
		if byName[f.Name] != nil {
			return fmt.Errorf("it names the file %s twice", f.Name)
		}
		byName[f.Name] = f
	}
	for _, f := range m.Files {
		if names := byName[f.Names]; f.Names != "" && (names == nil || names.Names != "") {
			return fmt.Errorf("the names of the rows of %s are in %q, which is no text that it describes", f.Name, f.Names)
		}
	}
	return nil
}

// File returns the file of a name, nil if the export has none.
func (m *Model) File(name string) *File {
	for i := range m.Files {
		if m.Files[i].Name == name {
			return &m.Files[i]
		}
	}
	return nil
}

// Verify checks that a file in the folder of the export, and the file of the names
// of its rows, are the ones that were written with this description.
func (m *Model) Verify(dir, name string) error {
	f := m.File(name)
	if f == nil {
		return fmt.Errorf("export: %s has no %s", dir, name)
	}
	path := filepath.Join(dir, name)
	bytes, sum, err := digest(path)
	switch {
	case err != nil:
		return fmt.Errorf("export: %w", err)
	case bytes != f.Bytes || sum != f.SHA256:
		return changed(path, bytes, sum, f)
	case f.Names != "" && f.Names != name:
		return m.Verify(dir, f.Names)
	}
	return nil
}

// digest returns the size of a file and its SHA-256.
func digest(path string) (bytes int64, sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close() // it is only read
	h := sha256.New()
	bytes, err = io.Copy(h, f)
	return bytes, hex.EncodeToString(h.Sum(nil)), err
}
