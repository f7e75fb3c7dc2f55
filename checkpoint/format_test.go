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

const golden = "testdata/format-1"

// goldenModel has a few rows, with values of all kinds.
func goldenModel() model {
	return model{
		{0: {1, -2, 0.5}, 7: {0, 3e38, 1e-45}, 4999: {-0.25, 8, 9}},
		{1 << 39: {42}, 3: {-1}},
		{},
	}
}

var goldenSections = map[string][]byte{"position/0": []byte(`{"epoch":3}`)}

// Files of the first format stay readable, and are written alike.
func TestTheFormatDoesNotChange(t *testing.T) {
	ctx := t.Context()
	write := func(s Store) {
		t.Helper()
		rng := rand.New(rand.NewPCG(1, 1))
		if _, err := save(ctx, rng, s, ID{3, testAttempt}, goldenModel(), 2, goldenSections); err != nil {
			t.Fatal(err)
		}
	}
	old, err := OpenFolder(golden)
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.RemoveAll(golden); err != nil {
			t.Fatal(err)
		}
		write(old)
	}
	c, err := Open(ctx, old, 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Verify(ctx); err != nil {
		t.Fatal(err)
	}
	if m, err := read(ctx, c, nil); err != nil || !m.equal(goldenModel()) {
		t.Errorf("the rows differ: %v", err)
	}
	if b, err := c.Section(ctx, "position/0"); err != nil || !bytes.Equal(b, goldenSections["position/0"]) {
		t.Errorf("the section is %q, %v", b, err)
	}
	s := folder(t)
	write(s)
	objects, err := s.List(ctx, prefix)
	if err != nil || len(objects) != 4 {
		t.Fatal(objects, err)
	}
	for _, o := range objects {
		a, err1 := os.ReadFile(filepath.Join(golden, o.Name))
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
    for row, values in sorted(rows(sys.argv[1], 3, table), key=lambda r: r[0]):
        print(table, row, *[float(v) for v in values])
`
	out, err := exec.Command(python, "-c", program, golden).CombinedOutput()
	want := "a 0 1.0 -2.0 0.5\na 7 0.0 3.0000000054977558e+38 1.401298464324817e-45\na 4999 -0.25 8.0 9.0\nb 3 -1.0\nb 549755813888 42.0\n"
	if err != nil || string(out) != want {
		t.Errorf("it printed %q, want %q: %v", out, want, err)
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

// goldenObjects reads the golden files.
func goldenObjects(t testing.TB) (o objects, part string) {
	o = objects{}
	entries, err := os.ReadDir(golden)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if o[e.Name()], err = os.ReadFile(filepath.Join(golden, e.Name())); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(e.Name(), ".0.rows") {
			part = e.Name()
		}
	}
	return o, part
}

func FuzzManifest(f *testing.F) {
	o, _ := goldenObjects(f)
	line, _, _ := bytes.Cut(o[manifestName(3)], []byte{'\n'})
	f.Add(line)
	f.Add([]byte(`{"format":1,"parts":[{"name":"../../etc/passwd"}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		b := slices.Concat(line, []byte("\n{\"sha256\":\""+sum(line)+"\"}\n"))
		m, err := decodeManifest(b)
		if err != nil {
			return
		}
		for _, p := range m.Parts {
			if strings.ContainsAny(p.Name, "/\\\x00") || !m.owns(p.Name) {
				t.Errorf("the part %q was accepted", p.Name)
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
	o, name := goldenObjects(f)
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
