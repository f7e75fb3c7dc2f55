package godwit_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Package node is rooms, and docs/architecture.md tells strangers where what is. These tests
// hold what makes the rooms rooms, and that the page is about the code as it is.

const (
	rooms        = "node/internal"
	testRoom     = "roomtest" // what tests of rooms share
	architecture = "docs/architecture.md"

	mostLines    = 1350 // of code in a room, without comments and empty lines
	mostExported = 20   // names of a room, methods not counted
	mostFields   = 20   // of a struct of a room, and of node.Node
	mostMethods  = 3    // of an interface of a room
)

// A source is a package as its files show it, without its tests and what is for other
// systems.
type source struct {
	files    []*ast.File
	lines    int             // with code in them
	doc      string          // the package comment, if it is in doc.go
	exported int             // top-level names
	fields   map[string]int  // of structs, by the name of the type
	methods  map[string]int  // of interfaces likewise
	names    map[string]bool // "Name" and "Type.Name", also of fields
}

// readSource parses a package.
func readSource(folder string) (*source, error) {
	s := &source{fields: map[string]int{}, methods: map[string]int{}, names: map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		if use, err := build.Default.MatchFile(folder, filepath.Base(file)); err != nil || !use {
			if err != nil {
				return nil, err
			}
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, b, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		s.files = append(s.files, f)
		s.lines += linesOfCode(b)
		if filepath.Base(file) == "doc.go" {
			s.doc = f.Doc.Text()
		}
		for _, d := range f.Decls {
			s.declared(d)
		}
	}
	return s, nil
}

// linesOfCode counts the lines on which there is more than a comment.
func linesOfCode(text []byte) (n int) {
	var s scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile("", fset.Base(), len(text))
	s.Init(file, text, nil, 0)
	last := 0
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return n
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue // the scanner's own
		}
		first := file.Line(pos)
		end := first + strings.Count(lit, "\n")
		n += end - max(first-1, last)
		last = end
	}
}

func (s *source) declared(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if t := receiver(d); t != "" {
			s.names[t+"."+d.Name.Name] = true
			return
		}
		s.name(d.Name)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					s.name(n)
				}
			case *ast.TypeSpec:
				s.name(spec.Name)
				s.members(spec)
			}
		}
	}
}

func (s *source) name(n *ast.Ident) {
	s.names[n.Name] = true
	if n.IsExported() {
		s.exported++
	}
}

// members takes note of the fields of a struct, or the methods of an interface.
func (s *source) members(spec *ast.TypeSpec) {
	var list *ast.FieldList
	count := s.fields
	switch t := spec.Type.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list, count = t.Methods, s.methods
	default:
		return
	}
	for _, f := range list.List {
		count[spec.Name.Name] += max(1, len(f.Names))
		for _, n := range f.Names {
			s.names[spec.Name.Name+"."+n.Name] = true
		}
	}
}

// complaints says what a room is too much of.
func (s *source) complaints() (found []string) {
	complain := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if !strings.HasPrefix(s.doc, "Package ") {
		complain("has no doc.go that says what it is")
	} else if !strings.Contains(s.doc, "own") || !strings.Contains(s.doc, "never") {
		complain("has a doc.go that does not say what it owns and what it never does")
	}
	if s.lines > mostLines {
		complain("has %d lines of code, %d at most: part of it may be a room of its own", s.lines, mostLines)
	}
	if s.exported > mostExported {
		complain("exports %d names, %d at most", s.exported, mostExported)
	}
	for t, n := range s.fields {
		if n > mostFields {
			complain("type %s has %d fields, %d at most: it may be two", t, n, mostFields)
		}
	}
	for t, n := range s.methods {
		if n > mostMethods {
			complain("interface %s has %d methods, %d at most", t, n, mostMethods)
		}
	}
	slices.Sort(found)
	return found
}

func TestRoomsOfANodeStaySmall(t *testing.T) {
	for _, name := range roomsOfANode(t) {
		if name == testRoom {
			continue
		}
		s, err := readSource(filepath.Join(rooms, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range s.complaints() {
			t.Errorf("room %s %s", name, c)
		}
	}
	s, err := readSource("node")
	if err != nil {
		t.Fatal(err)
	}
	if n := s.fields["Node"]; n == 0 || n > mostFields {
		t.Errorf("node.Node has %d fields, want 1 … %d", n, mostFields)
	}
}

// The test of the rooms itself: of a room that breaks each rule, all is noticed.
func TestRoomsThatGrewAreNoticed(t *testing.T) {
	folder := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	b.WriteString("package big\n\ntype Bag struct {\n")
	for i := range mostFields + 1 {
		fmt.Fprintf(&b, "\tF%d int // a field\n", i)
	}
	b.WriteString("}\n\ntype Wide interface{ A(); B(); C(); D() }\n")
	for i := range mostExported - 1 {
		fmt.Fprintf(&b, "\n// C%d is exported.\nconst C%d = `\n\n`\n", i, i)
	}
	write("big.go", b.String())
	write("big_test.go", "package big\n\nconst Test = 1\n")
	lines := 2 + mostFields + 3 + 3*(mostExported-1)
	b.Reset()
	b.WriteString("package big\n")
	for range mostLines - lines {
		b.WriteString("\nvar _ = 1\n/* a\nlong\ncomment */\n")
	}
	write("long.go", b.String())
	check := func(want ...string) {
		t.Helper()
		s, err := readSource(folder)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.complaints(); !slices.Equal(got, want) {
			t.Errorf("found\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
		}
	}
	all := []string{
		fmt.Sprintf("exports %d names, %d at most", mostExported+1, mostExported),
		fmt.Sprintf("has %d lines of code, %d at most: part of it may be a room of its own", mostLines+1, mostLines),
		"has no doc.go that says what it is",
		"interface Wide has 4 methods, 3 at most",
		fmt.Sprintf("type Bag has %d fields, %d at most: it may be two", mostFields+1, mostFields),
	}
	check(all...)
	write("doc.go", "// Package big owns all.\npackage big\n")
	all[1] = strings.ReplaceAll(all[1], fmt.Sprint(mostLines+1), fmt.Sprint(mostLines+2))
	all[2] = "has a doc.go that does not say what it owns and what it never does"
	check(all...)
	write("doc.go", "// Package big owns all and never says so.\npackage big\n")
	check(slices.Delete(all, 2, 3)...)
}

// roomsOfANode returns the folders of the rooms.
func roomsOfANode(t *testing.T) (names []string) {
	t.Helper()
	folders, err := os.ReadDir(rooms)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		names = append(names, f.Name())
	}
	return names
}

var roomRow = regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|")

// tableOfRooms returns the rooms as the page lists them, lowest first.
func tableOfRooms(page string) (names []string) {
	_, page, _ = strings.Cut(page, "\n## Rooms of a node\n")
	page, _, _ = strings.Cut(page, "\n**Calls upwards.**")
	for _, m := range roomRow.FindAllStringSubmatch(page, -1) {
		names = append(names, m[1])
	}
	return names
}

// disorder lists rooms that import others that are not before them in an order, and those that
// import package node or what is for tests.
func disorder(all map[string]*room, order []string) (found []string) {
	for i, name := range order {
		r := all[rooms+"/"+name]
		if r == nil {
			found = append(found, name+" is no room")
			continue
		}
		for _, other := range r.ours() {
			short, isRoom := strings.CutPrefix(other, rooms+"/")
			if other == "node" || isRoom && !slices.Contains(order[:i], short) {
				found = append(found, name+" imports "+other)
			}
		}
	}
	return found
}

func TestRoomsOfANodeImportThoseBelow(t *testing.T) {
	b, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	order := tableOfRooms(string(b))
	for _, name := range roomsOfANode(t) {
		if name != testRoom && !slices.Contains(order, name) {
			t.Errorf("%s does not say what the room %s owns", architecture, name)
		}
	}
	all := readRooms(t, ".")
	for _, v := range disorder(all, order) {
		t.Errorf("%s: %s lists the rooms lowest first, and none imports a higher one", v, architecture)
	}
	if name := rooms + "/" + testRoom; slices.Contains(all["node"].ours(), name) {
		t.Errorf("node imports %s, which is for tests", name)
	}
}

func TestRoomsInDisorderAreNoticed(t *testing.T) {
	order := tableOfRooms("| `no` |\n## Rooms of a node\n\n| room |\n| `low` | x |\n| `high` | `x` |\n| `gone` | y |\n\n**Calls upwards.**\n| `low` |")
	on := func(names ...string) *room {
		r := &room{imports: map[string]string{}}
		for _, n := range names {
			r.imports[module+"/"+n] = "x.go"
		}
		return r
	}
	all := map[string]*room{
		rooms + "/low":  on("internal/wire", rooms+"/high", rooms+"/"+testRoom),
		rooms + "/high": on(rooms+"/low", "node"),
	}
	want := []string{"low imports " + rooms + "/high", "low imports " + rooms + "/" + testRoom, "high imports node", "gone is no room"}
	if got := disorder(all, order); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

var (
	code      = regexp.MustCompile("`([^`\n]+)`")
	qualified = regexp.MustCompile(`^([a-z]+)\.([A-Za-z]+(?:\.[A-Za-z]+)?)$`)
)

// missing lists what a page names in code of known packages, by their names, that is not there.
func missing(page string, known map[string]*source) (found []string) {
	for _, m := range code.FindAllStringSubmatch(page, -1) {
		q := qualified.FindStringSubmatch(m[1])
		if q == nil {
			continue
		}
		if s := known[q[1]]; s != nil && !s.names[q[2]] {
			found = append(found, m[1])
		}
	}
	return found
}

// What docs/architecture.md and the decision about rooms name is there under that name.
func TestTheArchitectureNamesWhatIsThere(t *testing.T) {
	known := map[string]*source{}
	for _, root := range []string{"node", "internal", "placement", "transport", "coord"} {
		err := filepath.WalkDir(root, func(folder string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			s, err := readSource(folder)
			if err == nil && len(s.files) > 0 && s.files[0].Name.Name == filepath.Base(folder) {
				known[filepath.Base(folder)] = s
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(code.FindAll(b, -1)); n < 100 || known["worker"] == nil || known["protocol"] == nil {
		t.Fatalf("looked for %d names in %d packages", n, len(known))
	}
	for _, name := range missing(string(b), known) {
		t.Errorf("%s names `%s`, which is not there", architecture, name)
	}
}

func TestNamesThatAreGoneAreNoticed(t *testing.T) {
	s := &source{fields: map[string]int{}, methods: map[string]int{}, names: map[string]bool{}}
	f, err := parser.ParseFile(token.NewFileSet(), "", "package p\ntype T struct{ f int }\nfunc (t *T) M() {}\ntype L[K any] []K\nfunc (l L[K]) N() {}\ntype I interface{ O() }\nvar V, W int\nfunc F() {}", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		s.declared(d)
	}
	var page bytes.Buffer
	for _, n := range []string{"p.T", "p.T.f", "p.T.M", "p.L.N", "p.I.O", "p.V", "p.W", "p.F", "q.X", "T.gone", "p.gone", "p.T.gone", "gone"} {
		fmt.Fprintf(&page, "and `%s`, ", n)
	}
	if got, want := missing(page.String(), map[string]*source{"p": s}), []string{"p.gone", "p.T.gone"}; !slices.Equal(got, want) {
		t.Errorf("missing %q, want %q", got, want)
	}
}
