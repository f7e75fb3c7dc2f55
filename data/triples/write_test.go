package triples

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestAWrittenGraphIsReadBackAlike(t *testing.T) {
	want, err := Generate(smallSpec())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "made", "as needed")
	for range 2 { // the second time replaces
		if err := want.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("the graph that was read differs from the one that was written")
	}
	if files, _ := os.ReadDir(dir); len(files) != 3 {
		t.Errorf("%d files are there, want 3: %v", len(files), files)
	}
}

func TestAGraphThatCouldNotBeReadBackIsNotWritten(t *testing.T) {
	good := func() *Graph {
		return &Graph{Entities: []string{"a", "b"}, Relations: []string{"r"}, Train: []Triple{{0, 0, 1}}}
	}
	for want, change := range map[string]func(*Graph){
		"entity 1, \"\"":         func(g *Graph) { g.Entities[1] = "" },
		"tab, line break":        func(g *Graph) { g.Entities[0] = "x\ty" },
		"relation 0, \"r\\n\"":   func(g *Graph) { g.Relations[0] = "r\n" },
		"UTF-8":                  func(g *Graph) { g.Entities[0] = "\xff" },
		"byte order mark":        func(g *Graph) { g.Entities[0] = "\ufeffa" },
		"the same name":          func(g *Graph) { g.Entities[1] = "a" },
		"exceed":                 func(g *Graph) { g.Entities[1] = strings.Repeat("x", maxLine) },
		"triple 0 of test":       func(g *Graph) { g.Test = []Triple{{0, 0, 2}} },
		"0 of train is {0 7 1},": func(g *Graph) { g.Train[0].R = 7 },
	} {
		g, dir := good(), filepath.Join(t.TempDir(), "new")
		change(g)
		if err := g.Write(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: something was written", want)
		}
	}
	dir := folder(t, map[string]string{"train.txt.gz": ""})
	if err := good().Write(dir); err == nil || !strings.Contains(err.Error(), "train.txt.gz exists") {
		t.Errorf("beside a gzipped file: %v", err)
	}
}
