package godwit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// errorsOf returns the names of the errors that a file exports: variables Err… and
// types with a method Error.
func errorsOf(file string) (pkg string, names []string, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return "", nil, err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			return false // what a function declares is its own
		case *ast.ValueSpec:
			for _, name := range n.Names {
				if strings.HasPrefix(name.Name, "Err") {
					names = append(names, name.Name)
				}
			}
		case *ast.FuncDecl:
			if n.Recv != nil && n.Name.Name == "Error" {
				typ := n.Recv.List[0].Type
				if p, ok := typ.(*ast.StarExpr); ok {
					typ = p.X
				}
				if id, ok := typ.(*ast.Ident); ok && id.IsExported() {
					names = append(names, id.Name)
				}
			}
		}
		return true
	})
	return f.Name.Name, names, nil
}

// The table of docs/guarantees.md has every error that a program can test for, and no
// other.
func TestTheTableOfErrorsIsComplete(t *testing.T) {
	text, err := os.ReadFile("docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Errors that a program can act on")
	table, _, _ = strings.Cut(table, "\n## ")
	listed := map[string]bool{}
	for _, line := range strings.Split(table, "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, m := range regexp.MustCompile("`([a-z]+\\.[A-Z]\\w+)`").FindAllStringSubmatch(cells[1], -1) {
				listed[m[1]] = true
			}
		}
	}
	found := map[string]bool{}
	err = filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != ".":
			if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "internal" || d.Name() == "cmd" || d.Name() == "testdata" {
				return filepath.SkipDir // what no program can name
			}
		case strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go"):
			pkg, names, err := errorsOf(file)
			if err != nil {
				return err
			}
			for _, name := range names {
				found[pkg+"."+name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range found {
		if !listed[name] {
			t.Errorf("docs/guarantees.md does not list %s", name)
		}
	}
	for name := range listed {
		if !found[name] {
			t.Errorf("docs/guarantees.md lists %s, which is not there", name)
		}
	}
	if len(found) < 20 {
		t.Errorf("%d errors were found", len(found))
	}
}
