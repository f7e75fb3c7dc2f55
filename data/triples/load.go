package triples

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit/data/lines"
)

// Load reads the graph in a folder or in a file; the package comment describes
// them. Files are streamed and each name is held once. Duplicate triples of a folder
// are kept; [Graph.Stats] counts them.
func Load(path string, o Options) (*Graph, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	files, whole, err := find(path)
	if err != nil {
		return nil, err
	}
	g := &Graph{}
	l, err := newLoader(g, o)
	if err != nil {
		return nil, err
	}
	for i, split := range g.splits() {
		if files[i] == "" {
			continue
		}
		if *split, err = l.file(files[i]); err != nil {
			return nil, err
		}
	}
	if err := l.done(files); err != nil {
		return nil, err
	}
	if len(g.Train) == 0 {
		return nil, fmt.Errorf("triples: %s holds no facts to train", files[0])
	}
	if whole && len(o.Split) > 0 {
		g.holdOut(o)
	}
	return g, nil
}

// Divided reports whether the data at a path have files of their own to validate or to test on, so that [Load] holds out none.
func Divided(path string) (bool, error) {
	_, whole, err := find(path)
	return err == nil && !whole, err
}

// splitStems are what the files of each split may be called.
var splitStems = [3][]string{{"train"}, {"valid", "dev"}, {"test"}}

// endings are those of files, plain or compressed.
var endings = []string{".txt", ".tsv", ".csv"}

// find returns the files of train, valid and test, empty where there is none, and whether
// the first holds all facts.
func find(path string) (files [3]string, whole bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return files, false, fmt.Errorf("triples: %w", err)
	}
	if !info.IsDir() {
		files[0] = path
		return files, true, nil
	}
	for i, stems := range splitStems {
		if files[i], err = splitPath(path, stems); err != nil {
			return files, false, err
		}
	}
	if files[0] == "" {
		return files, false, fmt.Errorf("triples: no train.txt in %s, nor train.tsv or train.csv, plain or .gz, with lines of head, relation and tail: "+
			"name the folder of it, or one file with all facts: %w", path, fs.ErrNotExist)
	}
	return files, files[1] == "" && files[2] == "", nil
}

// splitPath finds the one file of a split; empty if there is none.
func splitPath(dir string, stems []string) (string, error) {
	var found []string
	for _, stem := range stems {
		for _, end := range endings {
			for _, gz := range []string{"", ".gz"} {
				path := filepath.Join(dir, stem+end+gz)
				_, err := os.Stat(path)
				switch {
				case err == nil:
					found = append(found, path)
				case !errors.Is(err, fs.ErrNotExist):
					return "", fmt.Errorf("triples: %w", err)
				}
			}
		}
	}
	if len(found) > 1 {
		return "", fmt.Errorf("triples: both %s and %s exist; remove the one that is not meant", found[0], found[1])
	}
	return strings.Join(found, ""), nil
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

func (n *interner) has(name string) bool { _, ok := n.ids[name]; return ok }

type loader struct {
	graph               *Graph
	header              string
	split               splitter
	entities, relations interner
	titled              []titled
}

// titled is a first line that may name the columns: whether it does shows when all names
// are known.
type titled struct {
	path  string
	names [3]string
}

func newLoader(g *Graph, o Options) (*loader, error) {
	layout, err := o.layout()
	if err != nil {
		return nil, err
	}
	return &loader{
		graph: g, header: o.Header, split: splitter{layout: layout},
		entities:  interner{names: &g.Entities, ids: map[string]uint32{}},
		relations: interner{names: &g.Relations, ids: map[string]uint32{}},
	}, nil
}

func (l *loader) file(path string) ([]Triple, error) {
	in, err := lines.Open(path, maxLine)
	if err != nil {
		return nil, fmt.Errorf("triples: %w", err)
	}
	defer in.Close() // it is only read
	ts, err := l.read(in, path)
	if err != nil {
		return nil, fmt.Errorf("triples: %w", err)
	}
	return ts, nil
}

// read takes the triples of one file.
func (l *loader) read(in *lines.Scanner, path string) (ts []Triple, err error) {
	for first := true; in.Scan(); {
		if len(in.Text()) == 0 {
			continue
		}
		text, bad := lines.Mend(in.Text())
		if bad {
			l.graph.mended++
		}
		if first {
			first = false
			l.split.by = separatorOf(path, text)
			if l.header == HeaderYes {
				continue
			}
			if l.title(text, path) {
				continue
			}
		}
		t, err := l.triple(text)
		if err != nil {
			return nil, in.Fail(err)
		}
		ts = append(ts, t)
	}
	return ts, in.Err()
}

// separatorOf finds out what separates the fields of a file, by the ending of its name or by
// its first fact.
func separatorOf(path string, first []byte) separator {
	switch filepath.Ext(strings.TrimSuffix(path, ".gz")) {
	case ".csv":
		return comma
	case ".tsv":
		return tab
	}
	if bytes.IndexByte(first, '\t') >= 0 {
		return tab
	}
	return blank
}

// title keeps a first line that looks like titles of columns.
func (l *loader) title(text []byte, path string) bool {
	f, err := l.split.split(text)
	if l.header == HeaderNo || err != nil {
		return false
	}
	names := [3]string{string(f[0]), string(f[1]), string(f[2])}
	if !isTitle(names[0]) || !isTitle(names[1]) || !isTitle(names[2]) {
		return false
	}
	l.titled = append(l.titled, titled{path: path, names: names})
	return true
}

// done decides what first lines were, once all files are read.
func (l *loader) done(paths [3]string) error {
	for i := range l.titled {
		t := &l.titled[i]
		if !l.entities.has(t.names[0]) && !l.entities.has(t.names[2]) && !l.relations.has(t.names[1]) {
			l.graph.headers = append(l.graph.headers, fmt.Sprintf("%s: %q %q %q", filepath.Base(t.path), t.names[0], t.names[1], t.names[2]))
			continue
		}
		fact, err := l.intern([3][]byte{[]byte(t.names[0]), []byte(t.names[1]), []byte(t.names[2])})
		if err != nil {
			return fmt.Errorf("triples: %s: %w", t.path, err)
		}
		split := l.graph.splits()[slices.Index(paths[:], t.path)]
		*split = slices.Insert(*split, 0, fact)
	}
	if l.header != HeaderNo && l.header != HeaderYes {
		if err := l.graph.checkHeaders(paths); err != nil {
			return err
		}
	}
	if l.graph.ordered = l.split.given; !l.split.given {
		return l.graph.checkOrder(paths[0])
	}
	return nil
}

func (l *loader) triple(line []byte) (t Triple, err error) {
	f, err := l.split.split(line)
	if err != nil {
		return t, err
	}
	return l.intern(f)
}

func (l *loader) intern(f [3][]byte) (t Triple, err error) {
	if t.S, err = l.entities.id(f[0]); err != nil {
		return t, err
	}
	if t.R, err = l.relations.id(f[1]); err != nil {
		return t, err
	}
	t.O, err = l.entities.id(f[2])
	return t, err
}
