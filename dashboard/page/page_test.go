package page_test

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"testing"

	"github.com/godwit-ps/godwit/dashboard/page"
)

func Example() {
	index, err := fs.ReadFile(page.Files(), "index.html")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.15s\n", index)
	// Output: <!doctype html>
}

var (
	imported = regexp.MustCompile(`(?m)^(?:import|export) [^;]*?from "([^"]+)"`)
	inline   = regexp.MustCompile(`<style|\sstyle=|\son[a-z]+=|<script(?: [^>]*)?>[^<]`)
	markup   = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function`)
)

// Nothing that a policy against foreign scripts forbids is in the page, no text becomes markup, and
// what modules import is there.
func TestThePageIsClosed(t *testing.T) {
	files := page.Files()
	index, err := fs.ReadFile(files, "index.html")
	if err != nil {
		t.Fatal(err)
	}
	if m := inline.Find(index); m != nil {
		t.Errorf("index.html has %q inline", m)
	}
	modules, err := fs.Glob(files, "*.js")
	if err != nil {
		t.Fatal(err)
	}
	views, err := fs.Glob(files, "views/*.js")
	if err != nil {
		t.Fatal(err)
	}
	if len(modules) < 5 || len(views) < 5 {
		t.Fatalf("the page has the modules %v and the views %v", modules, views)
	}
	for _, name := range append(modules, views...) {
		closed(t, files, name)
	}
}

func closed(t *testing.T, files fs.FS, name string) {
	t.Helper()
	source, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	if m := markup.Find(source); m != nil {
		t.Errorf("%s uses %q", name, m)
	}
	for _, m := range imported.FindAllSubmatch(source, -1) {
		to := path.Join(path.Dir(name), string(m[1]))
		if _, err := fs.Stat(files, to); err != nil {
			t.Errorf("%s imports %s, which the page does not have", name, m[1])
		}
	}
}
