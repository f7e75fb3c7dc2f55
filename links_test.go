package godwit_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
	unnamed = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Links of the documents to files and headings of the repository lead somewhere.
func TestLinksLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := filepath.Glob("docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(append(pages, decisions...), "README.md", "examples/python/README.md")
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(prose(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			to := page
			if file != "" {
				to = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			} else if anchor != "" && !anchors(prose(t, to))[anchor] {
				t.Errorf("%s links to %s, and %s has no such heading", page, m[1], to)
			}
		}
	}
}

// prose is a page without its blocks of code.
func prose(t *testing.T, page string) string {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return fenced.ReplaceAllString(string(b), "")
}

// anchors are the names that a page's headings get.
func anchors(page string) map[string]bool {
	names := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		name := unnamed.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), "")
		names[strings.ReplaceAll(name, " ", "-")] = true
	}
	return names
}
