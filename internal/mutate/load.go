package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A pkg is a package whose sources can be changed.
type pkg struct {
	rel   string // path below the module
	files []*file
	fset  *token.FileSet
	types *types.Package
	info  *types.Info
}

type file struct {
	name string // absolute
	src  []byte
	ast  *ast.File
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles       []string
	DepOnly                 bool
	Module                  *struct{ Path, Dir string }
}

// load reads and checks packages of the module in dir.
func load(dir string, patterns []string) ([]*pkg, error) {
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles,DepOnly,Module", "--"}, patterns...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	var want []*listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		l := &listed{}
		if err := d.Decode(l); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly && len(l.GoFiles) > 0 {
			want = append(want, l)
		}
	}
	fset := token.NewFileSet()
	imp := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	var ps []*pkg
	for _, l := range want {
		p, err := check(fset, imp, l)
		if err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
	return ps, nil
}

func check(fset *token.FileSet, imp types.Importer, l *listed) (*pkg, error) {
	p := &pkg{fset: fset, info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Scopes: map[ast.Node]*types.Scope{},
	}}
	if p.rel = strings.TrimPrefix(strings.TrimPrefix(l.ImportPath, l.Module.Path), "/"); p.rel == "" {
		p.rel = "."
	}
	var fs []*ast.File
	for _, name := range l.GoFiles {
		f := &file{name: filepath.Join(l.Dir, name)}
		var err error
		if f.src, err = os.ReadFile(f.name); err != nil {
			return nil, err
		}
		if f.ast, err = parser.ParseFile(fset, f.name, f.src, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return nil, err
		}
		p.files, fs = append(p.files, f), append(fs, f.ast)
	}
	var err error
	if p.types, err = (&types.Config{Importer: imp}).Check(l.ImportPath, fset, fs, p.info); err != nil {
		return nil, fmt.Errorf("%s: %w", l.ImportPath, err)
	}
	return p, nil
}
