package checkpoint

import (
	"bytes"
	"context"
	"encoding/hex"
	"flag"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// The folders of golden files: checkpoint 3 is in the first format, and 5 in the second one: it builds on 3 and 4.
const (
	golden            = "testdata/format-1"
	goldenIncremental = "testdata/format-2"
)

// goldenModel has a few rows, with values of all kinds, and goldenChanges are later ones.
func goldenModel() model {
	return model{
		{0: {1, -2, 0.5}, 7: {0, 3e38, 1e-45}, 4999: {-0.25, 8, 9}},
		{1 << 39: {42}, 3: {-1}},
		{},
	}
}

var goldenChanges = []model{
	{{7: {1, 2, 3}, 8: {4, 5, 6}}, {}, {}},
	{{7: {3, 2, 1}, 4999: {0, 0, 0}}, {1 << 39: {43}}, {0: {7}}},
}

var goldenSections = map[string][]byte{"position/0": []byte(`{"epoch":3}`)}

// Files of both formats stay readable, and are written alike.
func TestTheFormatDoesNotChange(t *testing.T) {
	ctx := t.Context()
	whole := func(rng *rand.Rand, s Store) (*Manifest, error) {
		return save(ctx, rng, s, ID{3, testAttempt}, goldenModel(), 2, goldenSections)
	}
	for _, c := range []struct {
		dir    string
		write  func(rng *rand.Rand, s Store) (*Manifest, error)
		want   model
		number uint64
		files  int
	}{
		{golden, whole, goldenModel(), 3, 4},
		{goldenIncremental, func(rng *rand.Rand, s Store) (*Manifest, error) {
			last, err := whole(rng, s)
			for i, changes := range goldenChanges {
				if err == nil {
					last, err = saveOn(ctx, rng, s, last, ID{uint64(i + 4), testAttempt}, changes, 1+i, goldenSections)
				}
			}
			if err == nil {
				_, err = alone.Prune(ctx, s, 1)
			}
			return last, err
		}, goldenModel().with(goldenChanges[0]).with(goldenChanges[1]), 5, 7},
	} {
		write := func(s Store) {
			t.Helper()
			if _, err := c.write(rand.New(rand.NewPCG(1, 1)), s); err != nil {
				t.Fatal(err)
			}
		}
		if *rewrite {
			if err := os.RemoveAll(c.dir); err != nil {
				t.Fatal(err)
			}
			old, err := OpenFolder(c.dir)
			if err != nil {
				t.Fatal(err)
			}
			write(old)
		}
		isGolden(t, c.dir, c.number, c.want)
		s := folder(t)
		write(s)
		sameFiles(t, s, c.dir, c.files)
	}
}

// isGolden checks that a checkpoint of a folder is a model, and has the golden section.
func isGolden(t *testing.T, dir string, number uint64, want model) {
	t.Helper()
	old, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(t.Context(), old, number)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m, err := read(t.Context(), c, nil); err != nil || !m.equal(want) {
		t.Errorf("%s: the rows differ: %v", dir, err)
	}
	if b, err := c.Section(t.Context(), "position/0"); err != nil || !bytes.Equal(b, goldenSections["position/0"]) {
		t.Errorf("%s: the section is %q, %v", dir, b, err)
	}
}

// sameFiles checks that the objects of s, n of them, are those of a folder.
func sameFiles(t *testing.T, s *Folder, dir string, n int) {
	t.Helper()
	objects, err := s.List(t.Context(), Prefix)
	if err != nil || len(objects) != n {
		t.Fatal(objects, err)
	}
	for _, o := range objects {
		a, err1 := os.ReadFile(filepath.Join(dir, o.Name))
		b, err2 := os.ReadFile(filepath.Join(s.dir, o.Name))
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is written differently now: %v, %v\n%s", o.Name, err1, err2, hex.Dump(b))
		}
	}
}

// The program of docs/file-formats.md reads the golden files.
func TestNumPyReadsCheckpoints(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	if err := exec.Command(python, "-c", "import numpy").Run(); err != nil {
		t.Skip("python3 has no numpy: ", err)
	}
	doc, err := os.ReadFile("../docs/file-formats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(doc), "def rows(folder, number, table):")
	program, _, closed := strings.Cut("def rows(folder, number, table):"+rest, "```")
	if !found || !closed {
		t.Fatal("docs/file-formats.md has no program that reads checkpoints")
	}
	program = "import hashlib, json\nimport numpy as np\n" + program + `
import sys
for table in ("a", "b"):
    for row, values in sorted(rows(sys.argv[1], int(sys.argv[2]), table), key=lambda r: r[0]):
        print(table, row, *[float(v) for v in values])
`
	for _, c := range []struct{ dir, number, want string }{
		{golden, "3", "a 0 1.0 -2.0 0.5\na 7 0.0 3.0000000054977558e+38 1.401298464324817e-45\na 4999 -0.25 8.0 9.0\nb 3 -1.0\nb 549755813888 42.0\n"},
		{goldenIncremental, "5", "a 0 1.0 -2.0 0.5\na 7 3.0 2.0 1.0\na 8 4.0 5.0 6.0\na 4999 0.0 0.0 0.0\nb 3 -1.0\nb 549755813888 43.0\n"},
	} {
		out, err := exec.Command(python, "-c", program, c.dir, c.number).CombinedOutput()
		if err != nil || string(out) != c.want {
			t.Errorf("%s: it printed %q, want %q: %v", c.dir, out, c.want, err)
		}
	}
}

// objects are a store in memory, of what a fuzzer makes.
type objects map[string][]byte

func (o objects) Create(context.Context, string, func(io.Writer) error) error {
	return fs.ErrPermission
}
func (o objects) Put(context.Context, string, []byte) error { return fs.ErrPermission }
func (o objects) Remove(context.Context, string) error      { return fs.ErrPermission }
func (o objects) Clean(context.Context) (int, error)        { return 0, fs.ErrPermission }
func (o objects) String() string                            { return "memory" }

func (o objects) Read(_ context.Context, name string, off, n int64) (io.ReadCloser, error) {
	b, ok := o[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(io.NewSectionReader(bytes.NewReader(b), off, n)), nil
}

func (o objects) Size(_ context.Context, name string) (int64, error) {
	if _, ok := o[name]; !ok {
		return 0, fs.ErrNotExist
	}
	return int64(len(o[name])), nil
}

func (o objects) List(_ context.Context, prefix string) (all []Object, err error) {
	for name, b := range o {
		if strings.HasPrefix(name, prefix) {
			all = append(all, Object{name, int64(len(b))})
		}
	}
	return all, nil
}

// goldenObjects reads golden files.
func goldenObjects(t testing.TB, dir string) (o objects, part string) {
	o = objects{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if o[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(e.Name(), ".0.rows") {
			part = e.Name()
		}
	}
	return o, part
}

func FuzzManifest(f *testing.F) {
	for n, dir := range map[uint64]string{3: golden, 5: goldenIncremental} {
		o, _ := goldenObjects(f, dir)
		line, _, _ := bytes.Cut(o[manifestName(n)], []byte{'\n'})
		f.Add(line)
	}
	f.Add([]byte(`{"format":1,"parts":[{"name":"../../etc/passwd"}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		b := slices.Concat(line, []byte("\n{\"sha256\":\""+sum(line)+"\"}\n"))
		m, err := decodeManifest(b)
		if err != nil {
			return
		}
		for _, l := range m.Layers() {
			for _, p := range l.Parts {
				if strings.ContainsAny(p.Name, "/\\\x00") || !l.owns(p.Name) || l.Number > m.Number {
					t.Errorf("the part %q was accepted", p.Name)
				}
			}
		}
		again, err := m.encode()
		if err != nil {
			t.Fatalf("what was read is not written: %v", err)
		}
		if _, err := decodeManifest(again); err != nil {
			t.Errorf("what was written is not read: %v", err)
		}
		o := objects{manifestName(m.Number): b}
		if c, err := Open(t.Context(), o, m.Number); err == nil {
			_, _ = c.Verify(t.Context()) // must return
		}
	})
}

// A part whose checksums are right, as those of an attacker are, must not break the reader either.
func FuzzPart(f *testing.F) {
	o, name := goldenObjects(f, golden)
	f.Add(o[name])
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeManifest(o[manifestName(3)])
		if err != nil {
			t.Fatal(err)
		}
		if len(b) < headerBytes+footerBytes {
			return
		}
		p := Part{Name: name, Bytes: int64(len(b)), Blocks: int(b[len(b)-footerBytes+8])}
		tail := int64(p.Blocks)*entryBytes + footerBytes
		if p.Bytes < tail+headerBytes {
			return
		}
		b = slices.Clone(b)
		index := b[p.Bytes-tail : p.Bytes-footerBytes]
		for i := range p.Blocks {
			e := decodeEntry(index[i*entryBytes:])
			p.Rows += uint64(e.rows)
			if end := int64(e.offset) + e.bytes(); end > int64(e.offset) && end <= p.Bytes-tail && int64(e.offset) >= 0 {
				copy(index[i*entryBytes+40:], decoded(sum(b[e.offset:end])))
			}
		}
		p.Index = sum(index)
		copy(b[p.Bytes-footerBytes:], footer(uint64(p.Bytes-tail), index))
		m.Parts = []Part{p}
		c := &Checkpoint{m, objects{name: b}}
		_ = c.Rows(t.Context(), nil, func(table int, rows []uint64, vals []float32) error {
			if len(vals) != len(rows)*m.Tables[table].Width || slices.ContainsFunc(rows, func(r uint64) bool { return r >= m.Tables[table].Rows }) {
				t.Errorf("rows %v of table %d with %d floats", rows, table, len(vals))
			}
			return nil
		})
	})
}

func decoded(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func TestNamesOfObjects(t *testing.T) {
	id := ID{12, testAttempt}
	for name, want := range map[string]bool{
		id.part(0): true, id.section(3, 4): true, manifestName(12): true,
		"checkpoint-0000000012." + testAttempt + ".00.rows":                 false,
		"checkpoint-0000000012." + testAttempt + ".-1.rows":                 false,
		"checkpoint-0000000012." + testAttempt + ".0.0.rows":                false,
		"checkpoint-0000000012.../../../../../../../../../..0.rows":         false,
		"checkpoint-000000012.jsonl":                                        false,
		"checkpoint-0000000000.jsonl":                                       false,
		"checkpoint--000000012.jsonl":                                       false,
		"checkpoint-0000000012.jsonl.gz":                                    false,
		"x/" + id.part(0):                                                   false,
		"checkpoint-0000000012." + strings.ToLower(testAttempt) + ".0.rows": false,
	} {
		n, _, ok := parse(name)
		if ok != want || ok && n != 12 {
			t.Errorf("%s: checkpoint %d, %v, want %v", name, n, ok, want)
		}
	}
}
