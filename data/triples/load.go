package triples

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/godwit-ps/godwit/data/lines"
)

// Load reads the graph in a folder; the package comment describes the layout.
// Files are streamed and each name is held once. Duplicate triples are kept;
// [Graph.Stats] counts them.
func Load(dir string) (*Graph, error) { return LoadColumns(dir, "sro") }

// LoadColumns is Load for files with another order of columns: columns is a
// permutation of the letters s (head), r (relation) and o (tail). Some sets put
// the relation first, "rso".
func LoadColumns(dir, columns string) (*Graph, error) {
	at := [3]int{strings.IndexByte(columns, 's'), strings.IndexByte(columns, 'r'), strings.IndexByte(columns, 'o')}
	if len(columns) != 3 || min(at[0], at[1], at[2]) < 0 {
		return nil, fmt.Errorf("triples: columns %q, want a permutation of \"sro\"", columns)
	}
	g := &Graph{}
	l := newLoader(g, at)
	var paths [3]string
	for i, split := range g.splits() {
		var err error
		if paths[i], err = splitPath(dir, splitNames[i]); err != nil {
			return nil, err
		}
		if *split, err = l.file(paths[i]); err != nil {
			return nil, err
		}
	}
	if len(g.Train) == 0 {
		return nil, fmt.Errorf("triples: the train file in %s holds no triples", dir)
	}
	if err := g.checkHeaders(paths); err != nil {
		return nil, err
	}
	return g, nil
}

// splitPath finds the one file of a split.
func splitPath(dir, split string) (string, error) {
	var found []string
	for _, ext := range []string{".txt", ".txt.gz"} {
		path := filepath.Join(dir, split+ext)
		_, err := os.Stat(path)
		switch {
		case err == nil:
			found = append(found, path)
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("triples: %w", err)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("triples: no %[2]s.txt or %[2]s.txt.gz in %[1]s; want the files train, valid and test, each as .txt or .txt.gz, "+
			"with lines of head, relation and tail: %[3]w", dir, split, fs.ErrNotExist)
	case 1:
		return found[0], nil
	default:
		return "", fmt.Errorf("triples: both %s and %s exist; remove the one that is not meant", found[0], found[1])
	}
}

// An interner numbers names in the order of their first appearance.
type interner struct {
	names *[]string
	ids   map[string]uint32
}

func (n *interner) id(name []byte) (uint32, error) {
	if id, ok := n.ids[string(name)]; ok {
		return id, nil
	}
	if uint64(len(*n.names)) > math.MaxUint32 {
		return 0, fmt.Errorf("more than %d different names", uint64(math.MaxUint32)+1)
	}
	id, s := uint32(len(*n.names)), string(name)
	n.ids[s] = id
	*n.names = append(*n.names, s)
	return id, nil
}

type loader struct {
	column              [3]int // where head, relation and tail stand
	entities, relations interner
}

func newLoader(g *Graph, column [3]int) loader {
	return loader{
		column:    column,
		entities:  interner{names: &g.Entities, ids: map[string]uint32{}},
		relations: interner{names: &g.Relations, ids: map[string]uint32{}},
	}
}

func (l *loader) file(path string) ([]Triple, error) {
	in, err := lines.Open(path, maxLine)
	if err != nil {
		return nil, fmt.Errorf("triples: %w", err)
	}
	defer in.Close() // it is only read
	ts, err := l.read(in)
	if err != nil {
		return nil, fmt.Errorf("triples: %w", err)
	}
	return ts, nil
}

// read takes the triples of one file.
func (l *loader) read(in *lines.Scanner) (ts []Triple, err error) {
	tabs, first := false, true
	for in.Scan() {
		text := in.Text()
		if len(text) == 0 {
			continue
		}
		if first {
			tabs, first = bytes.IndexByte(text, '\t') >= 0, false
		}
		t, err := l.triple(text, tabs)
		if err != nil {
			return nil, in.Fail(err)
		}
		ts = append(ts, t)
	}
	return ts, in.Err()
}

func (l *loader) triple(line []byte, tabs bool) (t Triple, err error) {
	f, err := fields(line, tabs)
	if err != nil {
		return t, err
	}
	if t.S, err = l.entities.id(f[l.column[0]]); err != nil {
		return t, err
	}
	if t.R, err = l.relations.id(f[l.column[1]]); err != nil {
		return t, err
	}
	t.O, err = l.entities.id(f[l.column[2]])
	return t, err
}
