package godwit_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A surface is a package that users import: its sources, and what its tests show of it.
type surface struct {
	folder   string // in the module, "." for the root
	fset     *token.FileSet
	files    []*ast.File
	examples []*doc.Example
	names    int // exported names that need a comment, counted by complaints
}

// surfaces parses the packages of the module in the folder root that others can
// import and are meant to: no commands and nothing internal.
func surfaces(t *testing.T, root string) (found []*surface) {
	t.Helper()
	err := filepath.WalkDir(root, func(folder string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if folder != root {
			_, err := os.Stat(filepath.Join(folder, "go.mod"))
			if err == nil || slices.Contains([]string{"testdata", "internal"}, d.Name()) || strings.ContainsAny(d.Name()[:1], "._") {
				return filepath.SkipDir
			}
		}
		rel, err := filepath.Rel(root, folder)
		if err != nil {
			return err
		}
		s := &surface{folder: filepath.ToSlash(rel), fset: token.NewFileSet()}
		if err := s.read(folder); err != nil {
			return err
		}
		if len(s.files) > 0 && s.files[0].Name.Name != "main" {
			found = append(found, s)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (s *surface) read(folder string) error {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	var tests []*ast.File
	for _, name := range names {
		if use, err := build.Default.MatchFile(folder, filepath.Base(name)); err != nil || !use {
			if err != nil {
				return err
			}
			continue
		}
		f, err := parser.ParseFile(s.fset, name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, "_test.go") {
			if strings.HasSuffix(f.Name.Name, "_test") {
				tests = append(tests, f)
			}
			continue
		}
		s.files = append(s.files, f)
	}
	s.examples = doc.Examples(tests...)
	return nil
}

// A promise is what a documented interface says of a method. A method that keeps
// it needs a comment only if it adds something.
type promise string

// promiseOf writes the name of a method and its types, without the packages in
// front of them: a rule's Apply is the same in the package that declares the
// interface and in one that implements it.
func promiseOf(name string, f *ast.FuncType) promise {
	var b strings.Builder
	b.WriteString(name)
	for _, list := range []*ast.FieldList{f.Params, f.Results} {
		b.WriteByte('(')
		if list != nil {
			for _, field := range list.List {
				var text bytes.Buffer
				if err := printer.Fprint(&text, token.NewFileSet(), field.Type); err != nil {
					return ""
				}
				b.WriteString(strings.Repeat(qualifier.ReplaceAllString(text.String(), "")+",", max(1, len(field.Names))))
			}
		}
		b.WriteByte(')')
	}
	return promise(b.String())
}

var qualifier = regexp.MustCompile(`\b[a-z]\w*\.`)

// known are methods of interfaces of the standard library.
var known = []promise{
	"Close()(error,)", "Error()(string,)", "Is(error,)(bool,)", "Len()(int,)", "Read([]byte,)(int,error,)",
	"String()(string,)", "Unwrap()(error,)", "Unwrap()([]error,)", "Write([]byte,)(int,error,)",
	"MarshalJSON()([]byte,error,)", "UnmarshalJSON([]byte,)(error,)",
	"MarshalText()([]byte,error,)", "UnmarshalText([]byte,)(error,)",
}

// promises returns the methods of all exported interfaces that have comments.
func promises(all []*surface) map[promise]bool {
	kept := map[promise]bool{}
	for _, p := range known {
		kept[p] = true
	}
	for _, s := range all {
		s.types(func(spec *ast.TypeSpec, _ *ast.CommentGroup) {
			list, ok := spec.Type.(*ast.InterfaceType)
			if !ok {
				return
			}
			for _, m := range list.Methods.List {
				if f, ok := m.Type.(*ast.FuncType); ok && said(m.Doc, m.Comment) {
					kept[promiseOf(m.Names[0].Name, f)] = true
				}
			}
		})
	}
	return kept
}

// types calls do with each exported type and the comment that go doc shows for it.
func (s *surface) types(do func(spec *ast.TypeSpec, comment *ast.CommentGroup)) {
	for _, f := range s.files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				spec := spec.(*ast.TypeSpec)
				comment := spec.Doc
				if comment == nil && !g.Lparen.IsValid() {
					comment = g.Doc
				}
				if spec.Name.IsExported() {
					do(spec, comment)
				}
			}
		}
	}
}

func said(comments ...*ast.CommentGroup) bool {
	return slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return strings.TrimSpace(c.Text()) != "" })
}

// begins reports whether a comment is a sentence about name: its first word,
// after an article at most.
func begins(comment *ast.CommentGroup, name string) bool {
	text := comment.Text()
	for _, article := range []string{"A ", "An ", "The "} {
		text = strings.TrimPrefix(text, article)
	}
	rest, ok := strings.CutPrefix(text, name)
	return ok && !regexp.MustCompile(`^\w`).MatchString(rest)
}

// complaints lists what is missing in the documentation of a package:
//   - a package comment "Package name …",
//   - a comment of each exported function, method and type that begins with its
//     name; not of a method that keeps the promise of a documented interface,
//   - a comment of each exported constant and variable, its own or its group's,
//   - a comment, before it or on its line, of each exported field of an exported
//     struct and each method of an exported interface; not of embedded types,
//   - an example in an external test package, with output that is compared.
func (s *surface) complaints(kept map[promise]bool) (found []string) {
	complain := func(at token.Pos, format string, args ...any) {
		where := s.fset.Position(at)
		found = append(found, fmt.Sprintf("%s:%d: %s", filepath.ToSlash(where.Filename), where.Line, fmt.Sprintf(format, args...)))
	}
	need := func(at token.Pos, ok bool, name string) {
		s.names++
		if !ok {
			complain(at, "%s has no comment", name)
		}
	}
	sentence := func(at token.Pos, comment *ast.CommentGroup, name, full string) {
		need(at, said(comment), full)
		if said(comment) && !begins(comment, name) {
			complain(at, "the comment of %s does not begin with its name", full)
		}
	}

	name := s.files[0].Name.Name
	if !slices.ContainsFunc(s.files, func(f *ast.File) bool { return strings.HasPrefix(f.Doc.Text(), "Package "+name+" ") }) {
		complain(s.files[0].Package, "no package comment that begins with \"Package %s\"", name)
	}
	if !slices.ContainsFunc(s.examples, func(e *doc.Example) bool { return e.Output != "" }) {
		complain(s.files[0].Package, "package %s has no example with output in %s_test", name, name)
	}
	s.types(func(spec *ast.TypeSpec, comment *ast.CommentGroup) {
		sentence(spec.Pos(), comment, spec.Name.Name, spec.Name.Name)
		var parts []*ast.Field
		switch t := spec.Type.(type) {
		case *ast.StructType:
			parts = t.Fields.List
		case *ast.InterfaceType:
			parts = t.Methods.List
		}
		for _, part := range parts {
			for _, id := range part.Names {
				if id.IsExported() {
					need(id.Pos(), said(part.Doc, part.Comment), spec.Name.Name+"."+id.Name)
				}
			}
		}
	})
	for _, f := range s.files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				full, of := d.Name.Name, receiver(d)
				if !d.Name.IsExported() || d.Recv != nil && !ast.IsExported(of) {
					continue
				}
				if d.Recv != nil {
					full = of + "." + full
					if !said(d.Doc) && kept[promiseOf(d.Name.Name, d.Type)] {
						continue
					}
				}
				sentence(d.Pos(), d.Doc, d.Name.Name, full)
			case *ast.GenDecl:
				if d.Tok != token.CONST && d.Tok != token.VAR {
					continue
				}
				for _, spec := range d.Specs {
					spec := spec.(*ast.ValueSpec)
					for _, id := range spec.Names {
						if id.IsExported() {
							need(id.Pos(), said(d.Doc, spec.Doc, spec.Comment), id.Name)
						}
					}
				}
			}
		}
	}
	return found
}

// complaints lists what is missing in all of the packages.
func complaints(all []*surface) (found []string) {
	kept := promises(all)
	for _, s := range all {
		found = append(found, s.complaints(kept)...)
	}
	return found
}

// receiver is the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func TestWhatUsersImportIsDocumented(t *testing.T) {
	all := surfaces(t, ".")
	if len(all) < 10 {
		t.Fatalf("found %d packages only", len(all))
	}
	names := 0
	for _, c := range complaints(all) {
		t.Error(c)
	}
	for _, s := range all {
		names += s.names
	}
	t.Logf("%d packages with %d exported names", len(all), names)
}

// The checker itself: a small module with one of each mistake.
func TestMissingDocumentationIsNoticed(t *testing.T) {
	root := t.TempDir()
	for file, text := range map[string]string{
		"ok/ok.go": `// Package ok is well.
package ok

// A Rule does something.
type Rule interface {
	// Apply applies x to y.
	Apply(x, y []float32) error
}

// Sum is documented, and its Apply by Rule.
type Sum struct {
	Left, Right int // one comment for both
	// Total stands before its field.
	Total  int
	hidden int
}

func (s *Sum) Apply(x, y []float32) error { return nil }
func (s *Sum) String() string             { return "" }

// The colours.
const (
	Red = iota
	Green
)
`,
		"ok/ok_test.go":          "package ok_test\n\nfunc Example() {\n\t// Output: 1\n}\n",
		"ok/internal/x/x.go":     "package x\n\nfunc Hidden() {}\n",
		"ok/cmd/main.go":         "package main\n\nfunc Command() {}\n",
		"ok/other/go.mod":        "module other\n",
		"ok/other/other.go":      "package other\n",
		"bad/bad_test.go":        "package bad_test\n\nfunc Example() {\n\t// It is not compared.\n}\n",
		"bad/inside_test.go":     "package bad\n\nfunc Example() {\n\t// Output: seen by nobody\n}\n",
		"bad/ignored_windows.go": "//go:build ignore\n\npackage other\n",
		"bad/bad.go": `// This is package bad.
package bad

const Alone = 1

// Says nothing of its name.
type Named struct {
	Field int
}

type Face interface{ Look() }

func (n Named) Apply(x []float32) error { return nil }

// Make makes.
func Make() {}

// Makes is a longer word than the name.
func Mak() {}

func (n *Named) Len() int { return 0 }

var List []int
`,
	} {
		file = filepath.Join(root, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, c := range complaints(surfaces(t, root)) {
		got = append(got, strings.TrimPrefix(c, filepath.ToSlash(root)+"/"))
	}
	want := []string{
		`bad/bad.go:2: no package comment that begins with "Package bad"`,
		"bad/bad.go:2: package bad has no example with output in bad_test",
		"bad/bad.go:7: the comment of Named does not begin with its name",
		"bad/bad.go:8: Named.Field has no comment",
		"bad/bad.go:11: Face has no comment",
		"bad/bad.go:11: Face.Look has no comment",
		"bad/bad.go:4: Alone has no comment",
		"bad/bad.go:13: Named.Apply has no comment",
		"bad/bad.go:19: the comment of Mak does not begin with its name",
		"bad/bad.go:23: List has no comment",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
