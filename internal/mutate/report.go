package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// results are those of this run and of runs before, by name.
type results struct {
	all  map[string]result
	file *os.File
}

func openResults(name string, fresh bool) (*results, error) {
	if fresh {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	rs := &results{all: map[string]result{}, file: f}
	for d := json.NewDecoder(bufio.NewReader(f)); ; {
		var r result
		if err := d.Decode(&r); err != nil {
			break // the end, or where a run was ended
		}
		rs.all[r.Name] = r
	}
	return rs, nil
}

func (rs *results) add(r result) error {
	rs.all[r.Name] = r
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = rs.file.Write(append(b, '\n'))
	return err
}

func (rs *results) close() { rs.file.Close() }

// readArgued reads the names of mutants that may survive: the code in the first
// column of a table.
func readArgued(name string) (map[string]bool, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	argued := map[string]bool{}
	for l := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(l, "| `"); ok {
			if name, _, ok := strings.Cut(rest, "`"); ok {
				argued[name] = true
			}
		}
	}
	return argued, err
}

// diff shows what the mutant changes.
func (s *site) diff(root string) string {
	file, err := filepath.Rel(root, s.File)
	if err != nil {
		file = s.File
	}
	if s.To == "" {
		return fmt.Sprintf("%s:%d: without: %s", filepath.ToSlash(file), s.Line, s.From)
	}
	return fmt.Sprintf("%s:%d: %s  →  %s", filepath.ToSlash(file), s.Line, s.From, s.To)
}

// report prints what became of the mutants, and reports whether nineteen of twenty
// were killed and a reason is known for each other.
func report(w io.Writer, root string, drawn []*site, rs map[string]result, argued map[string]bool) bool {
	type line struct{ drawn, killed, survived, unreached, untried int }
	lines, order := map[string]*line{}, []string(nil)
	var all line
	good := true
	for _, s := range drawn {
		l := lines[s.Pkg]
		if l == nil {
			l = &line{}
			lines[s.Pkg], order = l, append(order, s.Pkg)
		}
		r, ok := rs[s.Name()]
		for _, l := range []*line{l, &all} {
			l.drawn++
			switch {
			case !ok:
				l.untried++
			case r.Killed:
				l.killed++
			case r.Reached == 0:
				l.unreached++
			default:
				l.survived++
			}
		}
		if !ok || r.Killed {
			continue
		}
		why := "no test notices it"
		if r.Reached == 0 {
			why = "no test reaches it"
		}
		if argued[s.Name()] {
			why += "; argued"
		} else {
			good = false
		}
		fmt.Fprintf(w, "%s: %s\n    %s\n", s.Name(), why, s.diff(root))
	}
	const format = "%-24s %6v %7v %9v %10v %8v\n"
	fmt.Fprintf(w, "\n"+format, "package", "drawn", "killed", "survived", "unreached", "untried")
	for _, p := range append(order, "all") {
		l := lines[p]
		if l == nil {
			l = &all
		}
		fmt.Fprintf(w, format, p, l.drawn, l.killed, l.survived, l.unreached, l.untried)
	}
	tried := all.drawn - all.untried
	fmt.Fprintf(w, "%d of %d were killed\n", all.killed, tried)
	return good && 20*all.killed >= 19*tried
}
