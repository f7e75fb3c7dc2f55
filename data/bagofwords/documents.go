package bagofwords

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-ps/godwit/data/corpus"
	"github.com/godwit-ps/godwit/data/lines"
	"github.com/godwit-ps/godwit/internal/plural"
)

// What Options.Documents can be.
const (
	// Cut makes documents of Options.Length words of a text.
	Cut = "cut"
	// Line makes a document of each line.
	Line = "line"
)

// maxLine bounds a line that is a document, in bytes.
const maxLine = 1 << 24

// A counting is documents whose words are numbered as they come.
type counting struct {
	set    Set
	ids    map[string]int32
	counts []int64
}

// word returns the number of a word, and counts it n times.
func (c *counting) word(name string, n int64) (int32, error) {
	id, ok := c.ids[name]
	if !ok {
		if len(c.set.Names) == math.MaxInt32 {
			return 0, fmt.Errorf("more than %d different words", math.MaxInt32)
		}
		id = int32(len(c.set.Names))
		c.ids[name] = id
		c.set.Names, c.counts = append(c.set.Names, name), append(c.counts, 0)
	}
	c.counts[id] += n
	return id, nil
}

// chosen returns the documents by the words that the options leave, numbered by falling
// frequency, without documents that have none of them.
func (c *counting) chosen(path string, o Options) (*Set, error) {
	var order []int
	for id, n := range c.counts {
		if n >= o.MinCount {
			order = append(order, id)
		}
	}
	enough := len(order)
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(c.counts[b], c.counts[a]), cmp.Compare(c.set.Names[a], c.set.Names[b]))
	})
	order = order[min(o.Skip, len(order)):]
	if o.Most > 0 {
		order = order[:min(o.Most, len(order))]
	}
	if len(order) == 0 {
		return nil, fmt.Errorf("bagofwords: no words of %s are left: of %d different ones, %d occur %d times or more, and the %d most frequent of these are skipped (--min-count, --skip): demand less of them",
			path, len(c.counts), enough, o.MinCount, o.Skip)
	}
	names, to := make([]string, len(order)), make(map[string]int, len(order))
	for i, id := range order {
		names[i] = c.set.Names[id]
		to[names[i]] = i
	}
	all, _ := c.set.Onto(names, func(name string) (int, bool) { i, ok := to[name]; return i, ok })
	set := &Set{Names: names, Replaced: c.set.Replaced}
	for i := range all.Len() {
		if doc := all.Doc(i); len(doc) > 0 {
			set.Append(doc)
		}
	}
	return set, nil
}

// loadLines reads a file or the files of a folder, a document a line.
func loadLines(path string, o Options) (*Set, error) {
	files, err := corpus.Files(path)
	if err != nil {
		return nil, err
	}
	c := &counting{ids: map[string]int32{}}
	split := corpus.NewSplitter(o.Format)
	for _, file := range files {
		if err := c.lines(file, split); err != nil {
			return nil, fmt.Errorf("bagofwords: %w", err)
		}
	}
	c.set.Replaced = split.Replaced()
	return c.chosen(path, o)
}

func (c *counting) lines(file string, split *corpus.Splitter) error {
	in, err := lines.Open(file, maxLine)
	if err != nil {
		return err
	}
	defer in.Close() // it is only read
	var doc []int32
	for in.Scan() {
		words, err := split.Words(in.Text())
		if err != nil {
			return in.Fail(err)
		}
		doc = doc[:0]
		for _, word := range words {
			id, err := c.word(word, 1)
			if err != nil {
				return in.Fail(err)
			}
			doc = append(doc, id)
		}
		if len(doc) > 0 {
			c.set.Append(doc)
		}
	}
	return in.Err()
}

// A matrix is a file of counts: of which word occurs how often in which document, all
// numbers from 1 on.
type matrix struct {
	path, words string // the words are in another file, one a line
	market      bool   // in the coordinate format of Matrix Market; else that of UCI
}

// matrixOf recognizes a file of counts by its name; ok is false for others.
func matrixOf(path string) (m matrix, ok bool) {
	dir, name := filepath.Split(path)
	plain := strings.TrimSuffix(name, ".gz")
	switch rest, uci := strings.CutPrefix(plain, "docword."); {
	case uci:
		return matrix{path, filepath.Join(dir, "vocab."+rest), false}, true
	case filepath.Ext(plain) == ".mtx" || filepath.Ext(plain) == ".mmc":
		return matrix{path, filepath.Join(dir, strings.TrimSuffix(plain, filepath.Ext(plain))+".vocab.txt"), true}, true
	}
	return matrix{}, false
}

// load reads the counts. A word that occurs n times is there n times.
func (m matrix) load(o Options) (*Set, error) {
	names, replaced, err := m.names()
	if err != nil {
		return nil, fmt.Errorf("bagofwords: %w", err)
	}
	in, err := lines.Open(m.path, 1<<10)
	if err != nil {
		return nil, fmt.Errorf("bagofwords: %w", err)
	}
	defer in.Close() // it is only read
	c := &counting{ids: map[string]int32{}}
	c.set.Replaced = replaced
	r := matrixReader{matrix: m, in: in, names: names, to: c}
	if err := r.read(); err != nil {
		return nil, fmt.Errorf("bagofwords: %w", err)
	}
	return c.chosen(m.path, o)
}

// names reads the words; nil if there is no file of them, and they have numbers.
func (m matrix) names() (names []string, replaced int64, err error) {
	in, err := lines.Open(m.words, 1<<12)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer in.Close() // it is only read
	seen := map[string]bool{}
	for in.Scan() {
		text, bad := lines.Mend(in.Text())
		if bad {
			replaced++
		}
		name := string(bytes.TrimSpace(text))
		if name == "" || seen[name] {
			return nil, 0, in.Fail(fmt.Errorf("the word %q is empty or was there before", name))
		}
		seen[name] = true
		names = append(names, name)
	}
	return names, replaced, in.Err()
}

// A matrixReader reads the lines of a matrix.
type matrixReader struct {
	matrix
	in    *lines.Scanner
	names []string
	to    *counting

	docs, words, left int64             // how many there are, and cells to come
	of                map[int64][]int32 // the words of each document: its cells may be anywhere
	all               int64             // of all documents
}

// maxCell bounds how often a word occurs in a document, and maxWords how many words all
// documents have: 4 bytes each.
const (
	maxCell  = 1 << 24
	maxWords = 1 << 34
)

func (r *matrixReader) read() error {
	head, err := r.sizes()
	if err != nil {
		return err
	}
	r.docs, r.words, r.left = head[0], head[1], head[2]
	if r.names != nil && int64(len(r.names)) != r.words {
		return fmt.Errorf("%s has %d words, and %s counts %d", r.matrix.words, len(r.names), r.path, r.words)
	}
	r.of = map[int64][]int32{}
	for r.in.Scan() {
		text := bytes.TrimSpace(r.in.Text())
		if len(text) == 0 || r.market && text[0] == '%' {
			continue
		}
		if err := r.cell(text); err != nil {
			return r.in.Fail(err)
		}
	}
	if r.in.Err() != nil {
		return r.in.Err()
	}
	if r.left > 0 {
		return fmt.Errorf("%s: the file ends %d cells early, is it truncated?", r.path, r.left)
	}
	for _, doc := range r.order() {
		r.to.set.Append(r.of[doc])
	}
	return nil
}

func (r *matrixReader) order() (docs []int64) {
	for doc := range r.of {
		docs = append(docs, doc)
	}
	slices.Sort(docs)
	return docs
}

// sizes reads how many documents, words and cells there are.
func (r *matrixReader) sizes() (sizes []int64, err error) {
	first := true
	for len(sizes) < 3 && r.in.Scan() {
		text := string(r.in.Text())
		if r.market && first {
			f := strings.Fields(strings.ToLower(text))
			if len(f) != 5 || f[0] != "%%matrixmarket" || f[1] != "matrix" || f[2] != "coordinate" || f[3] != "integer" && f[3] != "real" || f[4] != "general" {
				return nil, r.in.Fail(fmt.Errorf("the first line is %.80q, want %q", text, "%%MatrixMarket matrix coordinate integer general"))
			}
			first = false
			continue
		}
		if r.market && strings.HasPrefix(text, "%") {
			continue
		}
		for _, f := range strings.Fields(text) {
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil || n < 0 || n > 1<<48 || len(sizes) < 2 && (n < 1 || n > math.MaxInt32) {
				return nil, r.in.Fail(fmt.Errorf("%.40q, want the numbers of documents and words (1 … %d) and of cells", f, math.MaxInt32))
			}
			sizes = append(sizes, n)
		}
	}
	if r.in.Err() != nil {
		return nil, r.in.Err()
	}
	if len(sizes) != 3 {
		return nil, fmt.Errorf("%s: it does not begin with the numbers of documents, words and cells", r.path)
	}
	return sizes, nil
}

// cell reads "document word count".
func (r *matrixReader) cell(text []byte) error {
	f := bytes.Fields(text)
	if len(f) != 3 {
		return fmt.Errorf("%s, want document, word and count", plural.Of(len(f), "field"))
	}
	if r.left == 0 {
		return errors.New("more cells than the beginning of the file says")
	}
	r.left--
	var n [3]int64
	for i, most := range [3]int64{r.docs, r.words, maxCell} {
		x, err := strconv.ParseFloat(string(f[i]), 64) // counts may be written 2.0
		if err != nil || x < 1 || x > float64(most) || x != math.Trunc(x) {
			return fmt.Errorf("the %s is %.40q, want a whole number of 1 … %d", [3]string{"document", "word", "count"}[i], f[i], most)
		}
		n[i] = int64(x)
	}
	name := strconv.FormatInt(n[1], 10)
	if r.names != nil {
		name = r.names[n[1]-1]
	}
	id, err := r.to.word(name, n[2])
	if err != nil {
		return err
	}
	if r.all += n[2]; r.all > maxWords {
		return fmt.Errorf("more than %d words", int64(maxWords))
	}
	for range n[2] {
		r.of[n[0]] = append(r.of[n[0]], id)
	}
	return nil
}

// findMatrix returns the file of counts that a path is, or the only one in a folder.
func findMatrix(path string) (m matrix, ok bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return m, false, fmt.Errorf("bagofwords: %w", err)
	}
	if !info.IsDir() {
		m, ok = matrixOf(path)
		return m, ok, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return m, false, fmt.Errorf("bagofwords: %w", err)
	}
	for _, e := range entries {
		x, is := matrixOf(filepath.Join(path, e.Name()))
		if is && ok {
			return m, false, fmt.Errorf("bagofwords: both %s and %s hold documents: name the one that is meant", m.path, x.path)
		}
		if is {
			m, ok = x, true
		}
	}
	return m, ok, nil
}
