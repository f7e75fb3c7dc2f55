package godwit_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testsOf returns the names of the tests and fuzz targets of the package in a
// folder.
func testsOf(folder string) (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there are no tests in %q", folder)
	}
	names := map[string]bool{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				names[fn.Name.Name] = true
			}
		}
	}
	return names, nil
}

var namedTest = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)`")

// Every statement of docs/conformance.md that applies names tests, every test
// that it names is there, and every test that is named for a statement stands
// in it.
func TestTheConformanceListNamesTestsThatExist(t *testing.T) {
	b, err := os.ReadFile("docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	folders, named := map[string]map[string]bool{}, 0
	for _, m := range namedTest.FindAllStringSubmatch(text, -1) {
		folder, name := m[1], m[2]
		if folders[folder] == nil {
			if folders[folder], err = testsOf(folder); err != nil {
				t.Fatal(err)
			}
		}
		if named++; !folders[folder][name] {
			t.Errorf("docs/conformance.md names %s, which package %s does not have", name, folder)
		}
	}
	if named < 80 {
		t.Errorf("%d tests are named", named)
	}
	var rows []string
	for i := 1; i <= 31; i++ {
		if i <= 14 || i >= 25 {
			rows = append(rows, fmt.Sprintf("C%d", i))
		}
	}
	for _, row := range append(rows, "1", "1b", "2", "2b", "3a", "3b", "3c", "4", "5", "5b", "6", "7", "8", "9") {
		line := regexp.MustCompile(`(?m)^\| ` + row + ` \|.*$`).FindString(text)
		if line == "" {
			t.Errorf("docs/conformance.md has no row %s", row)
		} else if !namedTest.MatchString(line) && !strings.Contains(line, "does not apply yet:") {
			t.Errorf("row %s of docs/conformance.md names no test, nor why it does not apply yet", row)
		}
	}
	for folder, names := range folders {
		for name := range names {
			if strings.HasPrefix(name, "TestConformance") && !strings.Contains(text, "`"+folder+"."+name+"`") {
				t.Errorf("docs/conformance.md does not name %s of package %s", name, folder)
			}
		}
	}
}
