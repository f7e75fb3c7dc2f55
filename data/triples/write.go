package triples

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/godwit-ps/godwit/data/atomicfile"
)

// Write saves the graph as train.txt, valid.txt and test.txt in dir, which it
// makes if need be. Each file appears complete or not at all, and replaces one
// of its name; a crash in between can leave files of two graphs. Names that
// stand in no triple are not saved. Nothing is written if a name could not be
// read back, or if dir holds a .txt.gz file of a split.
func (g *Graph) Write(dir string) error {
	if err := g.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("triples: %w", err)
	}
	for _, name := range splitNames {
		path := filepath.Join(dir, name+".txt.gz")
		if _, err := os.Stat(path); err == nil {
			return fmt.Errorf("triples: %s exists and would be taken for a part of this graph; choose another folder", path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("triples: %w", err)
		}
	}
	for i, split := range g.splits() {
		path := filepath.Join(dir, splitNames[i]+".txt")
		if err := g.writeSplit(path, *split); err != nil {
			return fmt.Errorf("triples: write %s: %w", path, err)
		}
	}
	return nil
}

// check reports what would make a saved graph unreadable.
func (g *Graph) check() error {
	entity, err := longestName(g.Entities)
	if err != nil {
		return fmt.Errorf("triples: entity %w", err)
	}
	relation, err := longestName(g.Relations)
	if err != nil {
		return fmt.Errorf("triples: relation %w", err)
	}
	if 2*entity+relation+2 > maxLine {
		return fmt.Errorf("triples: names so long that a line could exceed %d bytes", maxLine)
	}
	for i, split := range g.splits() {
		for k, t := range *split {
			if int(max(t.S, t.O)) >= len(g.Entities) || int(t.R) >= len(g.Relations) {
				return fmt.Errorf("triples: triple %d of %s is %v, but there are %d entities and %d relations",
					k, splitNames[i], t, len(g.Entities), len(g.Relations))
			}
		}
	}
	return nil
}

// longestName checks names and returns the length of the longest.
func longestName(names []string) (int, error) {
	seen, longest := make(map[string]struct{}, len(names)), 0
	for i, name := range names {
		if err := checkName(name); err != nil {
			return 0, fmt.Errorf("%d, %.80q: %w", i, name, err)
		}
		if _, dup := seen[name]; dup {
			return 0, fmt.Errorf("%d, %.80q: an earlier one has the same name", i, name)
		}
		seen[name] = struct{}{}
		longest = max(longest, len(name))
	}
	return longest, nil
}

func checkName(name string) error {
	switch {
	case strings.Trim(name, " ") == "":
		return errors.New("empty")
	case !utf8.ValidString(name):
		return errUTF8
	case strings.ContainsAny(name, "\t\n\r\x00"):
		return errors.New("holds a tab, line break or NUL")
	case strings.HasPrefix(name, "\ufeff"):
		return errors.New("starts with a byte order mark")
	}
	return nil
}

func (g *Graph) writeSplit(path string, ts []Triple) error {
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	g.writeTriples(f, ts) // the first error stays, and Commit returns it
	return f.Commit()
}

// A textWriter keeps its first error, if it can have one.
type textWriter interface {
	io.StringWriter
	io.ByteWriter
}

func (g *Graph) writeTriples(w textWriter, ts []Triple) {
	for _, t := range ts {
		_, _ = w.WriteString(g.Entities[t.S])
		_ = w.WriteByte('\t')
		_, _ = w.WriteString(g.Relations[t.R])
		_ = w.WriteByte('\t')
		_, _ = w.WriteString(g.Entities[t.O])
		_ = w.WriteByte('\n')
	}
}
