package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/internal/seedtest"
)

var testTables = []Table{
	{Name: "a", Rows: 5000, Dim: 2, Width: 3, Rule: "adagrad(lr=0.1)", Init: "zero"},
	{Name: "b", Rows: 1 << 40, Dim: 1, Width: 1, Rule: "add", Init: "normal(std=0.1)"},
	{Name: "empty", Rows: 1, Dim: 1, Width: 1, Rule: "add", Init: "zero"},
}

// A model is the rows of some tables: table → row → floats.
type model []map[uint64][]float32

// newModel draws rows.
func newModel(rng *rand.Rand, rows int) model {
	m := make(model, len(testTables))
	for i := range m {
		m[i] = map[uint64][]float32{}
	}
	for range rows {
		t := rng.IntN(2)
		v := make([]float32, testTables[t].Width)
		for i := range v {
			v[i] = math.Float32frombits(rng.Uint32())
		}
		m[t][rng.Uint64N(testTables[t].Rows)] = v
	}
	return m
}

// write hands the rows of a node, of so many, to a writer, in random order.
func (m model) write(rng *rand.Rand, w *Writer, node, nodes int) error {
	for t, rows := range m {
		var keys []uint64
		for r := range rows {
			if int(r%uint64(nodes)) == node {
				keys = append(keys, r)
			}
		}
		slices.Sort(keys)
		if rng.IntN(2) == 0 {
			rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		}
		for len(keys) > 0 {
			n := 1 + rng.IntN(len(keys))
			var vals []float32
			for _, r := range keys[:n] {
				vals = append(vals, rows[r]...)
			}
			if err := w.Write(t, keys[:n], vals); err != nil {
				return err
			}
			keys = keys[n:]
		}
	}
	return nil
}

// read reads the rows of a checkpoint.
func read(ctx context.Context, c *Checkpoint, want func(table int, first, last uint64) bool) (model, error) {
	m := make(model, len(testTables))
	for i := range m {
		m[i] = map[uint64][]float32{}
	}
	err := c.Rows(ctx, want, func(t int, rows []uint64, vals []float32) error {
		w := testTables[t].Width
		for i, r := range rows {
			if _, twice := m[t][r]; twice {
				return errors.New("a row was read twice")
			}
			m[t][r] = slices.Clone(vals[i*w : (i+1)*w])
		}
		return nil
	})
	return m, err
}

func (m model) equal(o model) bool {
	for t := range m {
		if len(m[t]) != len(o[t]) {
			return false
		}
		for r, v := range m[t] {
			if !slices.EqualFunc(v, o[t][r], func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }) {
				return false
			}
		}
	}
	return true
}

const testAttempt = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

func testManifest(id ID) Manifest {
	return Manifest{ID: id, Run: "run", Task: "test", Seed: 7, Tables: testTables, Written: time.Unix(1700000000, 0).UTC()}
}

// alone is the lock of a store that nobody else can write to.
var alone = &Lock{check: func() error { return nil }}

// save writes a checkpoint of a model by some nodes.
func save(ctx context.Context, rng *rand.Rand, s Store, id ID, m model, nodes int, sections map[string][]byte) (*Manifest, error) {
	return saveOn(ctx, rng, s, nil, id, m, nodes, sections)
}

// saveOn writes the rows of a model that changed since a checkpoint, as one that builds on it; nil: all rows.
func saveOn(ctx context.Context, rng *rand.Rand, s Store, last *Manifest, id ID, m model, nodes int, sections map[string][]byte) (*Manifest, error) {
	var pieces []*Piece
	for node := range nodes {
		p, err := Write(ctx, s, id, node, testTables, func(w *Writer) error {
			if node == 0 {
				for name, b := range sections {
					if err := w.Section(name, b); err != nil {
						return err
					}
				}
			}
			return m.write(rng, w, node, nodes)
		})
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, p)
	}
	manifest := testManifest(id)
	if last != nil {
		manifest.BuildsOn = last.Layers()
	}
	return Commit(ctx, s, manifest, pieces)
}

// with returns the model with the rows of changes as they are there.
func (m model) with(changes model) model {
	o := make(model, len(m))
	for t := range m {
		o[t] = maps.Clone(m[t])
		maps.Copy(o[t], changes[t])
	}
	return o
}

func folder(t *testing.T) *Folder {
	f, err := OpenFolder(filepath.Join(t.TempDir(), "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestWhatWasWrittenIsReadOnAnyNumberOfNodes(t *testing.T) {
	rng, ctx, s := seedtest.Rand(t), t.Context(), folder(t)
	m := newModel(rng, 20000)
	sections := map[string][]byte{"position/0": []byte("{}"), "empty": {}}
	var digest Digest
	for i, nodes := range []int{1, 4, 3} {
		id := ID{uint64(i + 1), testAttempt}
		if _, err := save(ctx, rng, s, id, m, nodes, sections); err != nil {
			t.Fatal(err)
		}
		c, err := Open(ctx, s, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := read(ctx, c, nil); err != nil || !got.equal(m) || c.Manifest().Nodes != nodes {
			t.Fatalf("%d nodes: the rows differ: %v", nodes, err)
		}
		sum, err := c.Verify(ctx)
		if err != nil || i > 0 && sum.Digest != digest || sum.Rows != c.Manifest().Rows {
			t.Fatalf("%d nodes: %+v, want digest %v: %v", nodes, sum, digest, err)
		}
		digest = sum.Digest
		for name, want := range sections {
			if b, err := c.Section(ctx, name); err != nil || string(b) != string(want) {
				t.Errorf("section %q: %q, want %q: %v", name, b, want, err)
			}
		}
		if _, err := c.Section(ctx, "nothing"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a section that there is not: %v", err)
		}
	}
	// A digest notices what a sum may miss: exchanged rows, values, tables, a sign of zero.
	for what, change := range map[string]func(o model){
		"a bit":   func(o model) { o[1][3] = []float32{1}; o[1][3][0] = math.Float32frombits(1) },
		"rows":    func(o model) { o[1][3], o[1][4] = []float32{1}, []float32{2} },
		"and":     func(o model) { o[1][3], o[1][4] = []float32{2}, []float32{1} },
		"tables":  func(o model) { o[2][0] = []float32{1} },
		"and too": func(o model) { o[1][0] = []float32{1} },
		"zero":    func(o model) { o[1][3] = []float32{float32(math.Copysign(0, -1))} },
	} {
		o := newModel(rand.New(rand.NewPCG(1, 1)), 10)
		change(o)
		s := folder(t)
		w, err := save(ctx, rng, s, ID{1, testAttempt}, o, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		if w.Digest == digest {
			t.Errorf("%s: the digest is the same", what)
		}
		digest = w.Digest
	}
}

// What was written as changes is read, verified and restored like what was written whole.
func TestChangesAreReadLikeAllRows(t *testing.T) {
	rng, ctx, s := seedtest.Rand(t), t.Context(), folder(t)
	m := newModel(rng, 3000)
	last, err := save(ctx, rng, s, ID{1, testAttempt}, m, 3, map[string][]byte{"old": nil})
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(4) {
		changes := newModel(rng, rng.IntN(1500))
		m = m.with(changes)
		id := ID{n + 2, testAttempt}
		if last, err = saveOn(ctx, rng, s, last, id, changes, 1+rng.IntN(3), map[string][]byte{"new": nil}); err != nil {
			t.Fatal(err)
		}
		if last.Format != FormatIncremental || len(last.BuildsOn) != int(n)+1 {
			t.Fatalf("format %d, built on %d", last.Format, len(last.BuildsOn))
		}
	}
	whole, err := save(ctx, rng, s, ID{6, testAttempt}, m, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(ctx, s, 5)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(ctx, c, nil); err != nil || !got.equal(m) {
		t.Errorf("the rows differ: %v", err)
	}
	if sum, err := c.Verify(ctx); err != nil || sum != (Sum{whole.Rows, whole.Digest}) {
		t.Errorf("%+v, and written whole there are %d rows with digest %v: %v", sum, whole.Rows, whole.Digest, err)
	}
	// Three nodes restore what is theirs.
	restored := model{{}, {}, {}}
	for node := range uint64(3) {
		got, err := read(ctx, c, func(_ int, first, last uint64) bool { return first < last || first%3 == node })
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			for r := range got[i] {
				if r%3 != node {
					t.Fatalf("node %d got row %d", node, r)
				}
			}
		}
		restored = restored.with(got)
	}
	if !restored.equal(m) {
		t.Error("three nodes restored something else")
	}
}

// What a later checkpoint builds on stays.
func TestPruneKeepsWhatOthersBuildOn(t *testing.T) {
	rng, ctx, s := seedtest.Rand(t), t.Context(), folder(t)
	m := newModel(rng, 100)
	models := []model{m}
	var all []*Manifest
	for n := range uint64(5) {
		var on *Manifest
		changes := m
		if n > 0 && n != 3 { // 1 ← 2 ← 3, 4 ← 5
			on, changes = all[n-1], newModel(rng, 20)
			m = m.with(changes)
		}
		manifest, err := saveOn(ctx, rng, s, on, ID{n + 1, testAttempt}, changes, 2, map[string][]byte{"x": {1}})
		if err != nil {
			t.Fatal(err)
		}
		all, models = append(all, manifest), append(models, m)
	}
	for _, step := range []struct{ keep, manifests, objects int }{
		{3, 2, 4}, // the manifests and sections of 1 and 2
		{2, 1, 8}, // and those of 3, and the parts of all three
		{1, 1, 2}, // and of 4
	} {
		done, err := alone.Prune(ctx, s, step.keep)
		if err != nil || len(done.Checkpoints) != step.manifests || done.Objects != step.objects {
			t.Errorf("keep %d: %+v, want %+v: %v", step.keep, done, step, err)
		}
		for n := 6 - step.keep; n <= 5; n++ {
			c, err := Open(ctx, s, uint64(n))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := read(ctx, c, nil); err != nil || !got.equal(models[n]) {
				t.Errorf("keep %d: checkpoint %d: %v", step.keep, n, err)
			}
		}
	}
}

func TestIncrementalCheckpointsDoNotGrowForEver(t *testing.T) {
	with := func(bytes ...int64) *Manifest {
		m := &Manifest{}
		for _, n := range bytes[:len(bytes)-1] {
			m.BuildsOn = append(m.BuildsOn, Layer{Parts: []Part{{Bytes: n / 2}, {Bytes: n - n/2}}})
		}
		m.Parts = []Part{{Bytes: bytes[len(bytes)-1]}}
		m.Sections = []Section{{Bytes: 1 << 40}}
		return m
	}
	for _, c := range []struct {
		last *Manifest
		want bool
	}{
		{nil, false},
		{with(100), true},
		{with(100, 50), true},
		{with(100, 51), false},
		{with(100, 25, 25), true},
		{with(100, 25, 26), false},
		{with(append([]int64{1 << 20}, slices.Repeat([]int64{1}, mostLayers-1)...)...), true},
		{with(append([]int64{1 << 20}, slices.Repeat([]int64{1}, mostLayers)...)...), false},
	} {
		if got := Incremental(c.last); got != c.want {
			t.Errorf("%+v: %v, want %v", c.last, got, c.want)
		}
	}
}

func TestRestoringAPartOfTheRowsReadsLittleElse(t *testing.T) {
	ctx, s := t.Context(), folder(t)
	const n = 100_000
	rows, vals := make([]uint64, n), make([]float32, n)
	for i := range rows {
		rows[i] = uint64(i)
	}
	p, err := Write(ctx, s, ID{1, testAttempt}, 0, testTables, func(w *Writer) error { return w.Write(1, rows, vals) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Commit(ctx, s, testManifest(ID{1, testAttempt}), []*Piece{p}); err != nil {
		t.Fatal(err)
	}
	c, err := Open(ctx, s, 1)
	if err != nil {
		t.Fatal(err)
	}
	want, blocks := func(_ int, first, last uint64) bool { return first <= 50_000 && 50_000 <= last }, 0
	got, err := read(ctx, c, want)
	if _, ok := got[1][50_000]; err != nil || !ok || len(got[1]) != 1 {
		t.Errorf("%d rows for one, %v", len(got[1]), err)
	}
	err = c.each(ctx, want, func(int, *block) error { blocks++; return nil })
	if err != nil || blocks != 1 {
		t.Errorf("%d blocks were read for a row, %v", blocks, err)
	}
}

// damage changes each object of a checkpoint in many ways; each must be found, and named.
func TestDamageIsFoundAndNamed(t *testing.T) {
	rng, ctx, s, foreign := seedtest.Rand(t), t.Context(), folder(t), folder(t)
	for f, section := range map[*Folder]string{s: "0123456789", foreign: "9876543210"} {
		last, err := save(ctx, rng, f, ID{1, testAttempt}, newModel(rng, 3000), 1, nil)
		if err == nil {
			_, err = saveOn(ctx, rng, f, last, ID{2, testAttempt}, newModel(rng, 1000), 2, map[string][]byte{"x": []byte(section)})
		}
		if err == nil {
			_, err = alone.Prune(ctx, f, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	verify := func() error {
		c, err := Open(ctx, s, 0)
		if err == nil {
			_, err = c.Verify(ctx)
		}
		return err
	}
	if err := verify(); err != nil {
		t.Fatal(err)
	}
	objects, err := s.List(ctx, Prefix)
	if err != nil || len(objects) != 5 { // the part of checkpoint 1, two parts, a section and the manifest of 2
		t.Fatalf("%v, %v", objects, err)
	}
	for _, o := range objects {
		path := filepath.Join(s.dir, o.Name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		other, err := os.ReadFile(filepath.Join(foreign.dir, o.Name))
		if err != nil {
			t.Fatal(err)
		}
		try := func(what string, b []byte) {
			t.Helper()
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := verify(); err == nil || !strings.Contains(err.Error(), o.Name) {
				t.Errorf("%s, %s: %v", o.Name, what, err)
			}
		}
		for range 40 {
			b := slices.Clone(whole)
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			try("a bit was changed", b)
		}
		try("cut short", whole[:rng.IntN(len(whole))])
		try("longer", append(slices.Clone(whole), 0))
		if !strings.HasSuffix(o.Name, manifestSuffix) {
			try("from another checkpoint", other)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := verify(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), o.Name) {
				t.Errorf("%s is missing: %v", o.Name, err)
			}
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := verify(); err != nil {
		t.Fatal(err)
	}
}

// Who reads a damaged checkpoint hears which one is before it, whatever is damaged and however the checkpoint is opened.
func TestTheCheckpointBeforeADamagedOneIsNamed(t *testing.T) {
	rng, ctx, s := seedtest.Rand(t), t.Context(), folder(t)
	for n := range uint64(2) {
		if _, err := save(ctx, rng, s, ID{n + 1, testAttempt}, newModel(rng, 100), 1, map[string][]byte{"x": []byte("0123456789")}); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := s.List(ctx, numbered(2))
	if err != nil || len(objects) != 3 { // a part, a section and the manifest
		t.Fatalf("%v, %v", objects, err)
	}
	before := "may be whole: take #1 of the same place)"
	for _, o := range objects {
		path := filepath.Join(s.dir, o.Name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b := slices.Clone(whole)
		b[rng.IntN(len(b))] ^= 1
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, number := range []uint64{0, 2} {
			c, err := Open(ctx, s, number)
			if err == nil {
				_, err = c.Verify(ctx)
			}
			if err == nil || strings.Count(err.Error(), before) != 1 {
				t.Errorf("%s, opened as %d: %v", o.Name, number, err)
			}
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Of checkpoints that build on the same damaged or missing object, none is named, but one before them.
func TestNoCheckpointIsNamedThatBuildsOnTheDamagedObject(t *testing.T) {
	rng, ctx, s := seedtest.Rand(t), t.Context(), folder(t)
	var last *Manifest
	var base string
	for n := range uint64(4) {
		if n == 1 {
			last = nil // with all rows
		}
		var err error
		if last, err = saveOn(ctx, rng, s, last, ID{n + 1, testAttempt}, newModel(rng, 100), 1, nil); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			base = last.Parts[0].Name
		}
	}
	reading := func() error {
		c, err := Open(ctx, s, 4)
		if err == nil {
			_, err = c.Verify(ctx)
		}
		return err
	}
	path := filepath.Join(s.dir, base)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[rng.IntN(len(b))] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := reading(); err == nil || !strings.HasSuffix(err.Error(), "(one before it may be whole: take #1 of the same place)") {
		t.Errorf("the base is damaged: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := reading(); err == nil || !strings.HasSuffix(err.Error(), "(one before it may be whole: take #1 of the same place)") {
		t.Errorf("the base is missing: %v", err)
	}
	if err := os.Remove(filepath.Join(s.dir, manifestName(1))); err != nil {
		t.Fatal(err)
	}
	if err := reading(); err == nil || !strings.HasSuffix(err.Error(), "(none before it can be taken: they build on the same object, or lack some)") {
		t.Errorf("all build on what is missing: %v", err)
	}
}

func TestWritersRefuseWhatIsNotTheModels(t *testing.T) {
	for what, fill := range map[string]func(w *Writer) error{
		"no row 5000":    func(w *Writer) error { return w.Write(0, []uint64{5000}, make([]float32, 3)) },
		"there are 3":    func(w *Writer) error { return w.Write(3, []uint64{0}, make([]float32, 1)) },
		"want 3 a row":   func(w *Writer) error { return w.Write(0, []uint64{1}, make([]float32, 2)) },
		"written twice":  func(w *Writer) error { return w.Write(0, []uint64{1, 1}, make([]float32, 6)) },
		"name of a sect": func(w *Writer) error { return w.Section("", nil) },
		"bytes of UTF-8": func(w *Writer) error { return w.Section("\xff", nil) },
		// The last row of a block is also the first of the next one.
		fmt.Sprintf("twice: row %d ", blockSize/12-1): func(w *Writer) error {
			rows := make([]uint64, blockSize/12+1)
			for i := range rows[:blockSize/12] {
				rows[i] = uint64(i)
			}
			rows[blockSize/12] = blockSize/12 - 1
			return w.Write(1, rows, make([]float32, len(rows)))
		},
		"canceled by who": func(*Writer) error { return errors.New("canceled by who fills it") },
	} {
		s := folder(t)
		_, err := Write(t.Context(), s, ID{1, testAttempt}, 0, testTables, fill)
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want an error with %q, got %v", what, err)
		}
		if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	}
}

func TestANumberIsWrittenOnce(t *testing.T) {
	rng, ctx, s := seedtest.Rand(t), t.Context(), folder(t)
	m := newModel(rng, 10)
	if _, err := save(ctx, rng, s, ID{1, testAttempt}, m, 1, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := save(ctx, rng, s, ID{1, strings.Repeat("A", 26)}, m, 1, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("two runs wrote checkpoint 1: %v", err)
	}
	if n, err := Next(ctx, s); err != nil || n != 2 {
		t.Errorf("the next one is %d, %v", n, err)
	}
	if _, err := Open(ctx, s, 7); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "checkpoint 7 is not at "+s.String()+", which has [1]") {
		t.Errorf("a checkpoint that is not there: %v", err)
	}
	if _, err := Open(ctx, folder(t), 0); !errors.Is(err, ErrNone) {
		t.Errorf("in an empty folder: %v", err)
	}
}

// shared returns a folder as two processes see it.
func shared(t *testing.T) (a, b *Folder) {
	a = folder(t)
	b, err := OpenFolder(a.dir)
	if err != nil {
		t.Fatal(err)
	}
	b.temp.Store(1 << 20) // another process has other names
	return a, b
}

// text returns what writes a text.
func text(s string) func(w io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

// Two runs that both believe to hold the lock begin to write the manifest of one number before the other's is there.
func TestOfTwoThatCreateAnObjectAtOnceOneSucceeds(t *testing.T) {
	ctx, name := t.Context(), manifestName(12)
	a, b := shared(t)
	err := a.Create(ctx, name, func(w io.Writer) error {
		if err := b.Create(ctx, name, text("theirs")); err != nil {
			t.Error(err)
		}
		return text("mine")(w)
	})
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("the second one got %v", err)
	}
	got, err := readAll(ctx, a, name, 100)
	if left, lerr := a.List(ctx, ""); string(got) != "theirs" || errors.Join(err, lerr) != nil || len(left) != 1 {
		t.Errorf("there is %q, of %v: %v, %v", got, left, err, lerr)
	}
}

// late is a disk on which something else happens just before a file gets its name.
type late struct {
	disk
	before func()
}

func (d late) Link(from, to string) error {
	d.before()
	return d.disk.Link(from, to)
}

func (d late) Rename(from, to string) error {
	d.before()
	return d.disk.Rename(from, to)
}

func TestOfTwoThatCreateAnObjectAtTheLastMomentOneSucceeds(t *testing.T) {
	ctx, name := t.Context(), manifestName(12)
	a, b := shared(t)
	a.disk = late{a.disk, func() {
		if err := b.Create(ctx, name, text("theirs")); err != nil {
			t.Error(err)
		}
	}}
	if err := a.Create(ctx, name, text("mine")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the second one got %v", err)
	}
	if got, err := readAll(ctx, a, name, 100); string(got) != "theirs" || err != nil {
		t.Errorf("there is %q: %v", got, err)
	}
}

// linkless is a disk of a file system whose files have one name each.
type linkless struct{ late }

func (linkless) Link(_, _ string) error { return errors.ErrUnsupported }

func (d linkless) RenameNew(from, to string) error {
	d.before()
	return d.disk.RenameNew(from, to)
}

func TestOfTwoThatCreateAnObjectWithoutHardLinksOneSucceeds(t *testing.T) {
	ctx, name := t.Context(), manifestName(12)
	a, b := shared(t)
	if err := a.Create(ctx, name, text("old")); err != nil {
		t.Fatal(err)
	}
	if err := a.disk.RenameNew(name, "checked"); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this system replaces what it renames to")
	} else if err != nil {
		t.Fatal(err)
	}
	a.disk = linkless{late{a.disk, func() {
		if err := b.Create(ctx, name, text("theirs")); err != nil {
			t.Error(err)
		}
	}}}
	if err := a.Create(ctx, name, text("mine")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the second one got %v", err)
	}
	if got, err := readAll(ctx, a, name, 100); string(got) != "theirs" || err != nil {
		t.Errorf("there is %q: %v", got, err)
	}
}

// What a manifest says is read as it was written: texts that JSON cannot hold are refused before.
func TestAManifestHasNoTextThatIsReadAsAnother(t *testing.T) {
	for what, change := range map[string]func(m *Manifest){
		"run, task or program": func(m *Manifest) { m.Run = "r\xff" },
		"of a table":           func(m *Manifest) { m.Tables = []Table{testTables[0]}; m.Tables[0].Name = "\xff" },
		"of its rule":          func(m *Manifest) { m.Tables = []Table{testTables[0]}; m.Tables[0].Rule = "\xff" },
	} {
		s, m := folder(t), Manifest{ID: ID{1, testAttempt}, Tables: testTables}
		change(&m)
		piece, err := Write(t.Context(), s, m.ID, 0, m.Tables, func(*Writer) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Commit(t.Context(), s, m, []*Piece{piece}); err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "is not UTF-8") {
			t.Errorf("want an error about the name %s, got %v", what, err)
		}
	}
}

func TestPartsThatTheLeaderDoesNotSeeAreNoCheckpoint(t *testing.T) {
	rng, ctx, here, there := seedtest.Rand(t), t.Context(), folder(t), folder(t)
	id := ID{1, testAttempt}
	m := newModel(rng, 100)
	var pieces []*Piece
	for node, s := range []Store{here, there} {
		p, err := Write(ctx, s, id, node, testTables, func(w *Writer) error { return m.write(rng, w, node, 2) })
		if err != nil {
			t.Fatal(err)
		}
		pieces = append(pieces, p)
	}
	if _, err := Commit(ctx, here, testManifest(id), pieces); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), id.part(1)) {
		t.Errorf("the part of node 1 is elsewhere: %v", err)
	}
}

func TestNodesThatEachMadeAnIDAreTold(t *testing.T) {
	rng, ctx, s := seedtest.Rand(t), t.Context(), folder(t)
	m, ids := newModel(rng, 100), []ID{NewID(1), NewID(1)}
	var pieces []*Piece
	for node, id := range ids {
		p, err := Write(ctx, s, id, node, testTables, func(w *Writer) error { return m.write(rng, w, node, 2) })
		if err != nil {
			t.Fatal(err)
		}
		pieces = append(pieces, p)
	}
	if _, err := Commit(ctx, s, testManifest(ids[0]), pieces); err == nil || !strings.Contains(err.Error(), ids[1].part(1)) || !strings.Contains(err.Error(), "NewID") {
		t.Errorf("two IDs: %v", err)
	}
}

func TestADigestIsReadAsItIsWritten(t *testing.T) {
	want := Digest{1 << 60, 0xab}
	text, err := want.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	var got Digest
	if err := got.UnmarshalText(text); err != nil || got != want {
		t.Errorf("%s is read as %v, %v", text, got, err)
	}
	for _, text := range []string{"", "1", string(text[:31]), string(text) + "0", strings.ToUpper(string(text)), " " + string(text[1:])} {
		if err := new(Digest).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a digest", text)
		}
	}
}

func TestACheckpointHasABoundedNumberOfTables(t *testing.T) {
	for n, ok := range map[int]bool{0: false, 1: true, maxTables: true, maxTables + 1: false} {
		if err := CheckTables(n); (err == nil) != ok {
			t.Errorf("a model of %d tables: %v", n, err)
		}
	}
}

func TestATableSaysWhatItIs(t *testing.T) {
	table := Table{Name: "users", Rows: 1000, Dim: 2, Width: 4, Rule: "adagrad(lr=0.1)", Init: "zero"}
	if got, want := table.String(), `"users": 1000 rows of 2 floats and 2 of state, rule adagrad(lr=0.1), first values zero`; got != want {
		t.Errorf("it says %s, want %s", got, want)
	}
}

// lagging is a store whose lists lack the last objects.
type lagging struct {
	Store
	lacks int
}

func (l lagging) List(ctx context.Context, prefix string) ([]Object, error) {
	all, err := l.Store.List(ctx, prefix)
	slices.SortFunc(all, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
	return all[:max(0, len(all)-l.lacks)], err
}

func TestListsNeedNotBeComplete(t *testing.T) {
	rng, ctx, s := seedtest.Rand(t), t.Context(), folder(t)
	for n := range uint64(4) {
		if _, err := save(ctx, rng, s, NewID(n+1), newModel(rng, 5), 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, lacks := range []int{0, 1, 5, 100} {
		n, err := Numbers(ctx, lagging{s, lacks})
		if err != nil || !slices.Equal(n, []uint64{1, 2, 3, 4}) {
			t.Errorf("a list that lacks %d objects: checkpoints %v, %v", lacks, n, err)
		}
	}
}

// A proxy that answers in the place of a store says of each object that it is there.
type agreeing struct{ Store }

func (agreeing) List(context.Context, string) ([]Object, error) { return nil, nil }
func (agreeing) Size(context.Context, string) (int64, error)    { return 100, nil }
func (agreeing) Read(context.Context, string, int64, int64) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("<!DOCTYPE html>")), nil
}

func TestAStoreThatHasEverythingIsNone(t *testing.T) {
	s := agreeing{folder(t)}
	_, err := Open(t.Context(), s, 0)
	if err == nil || !strings.Contains(err.Error(), "no list has them: see whether a proxy") {
		t.Errorf("got %v", err)
	}
	if n, err := Next(t.Context(), s); err == nil {
		t.Errorf("the next checkpoint is %d", n)
	}
	if _, err := Acquire(t.Context(), s, Holder{Run: "r"}); err == nil || !strings.Contains(err.Error(), "no list has them: see whether a proxy") {
		t.Errorf("its lock: %v", err)
	}
}

// A forgetful store lists manifests that it does not have.
type forgetful struct{ Store }

func (forgetful) Read(_ context.Context, name string, _, _ int64) (io.ReadCloser, error) {
	return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

func TestACheckpointThatIsListedAndGoneIsSaidToBe(t *testing.T) {
	s := folder(t)
	if err := s.Put(t.Context(), manifestName(1), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), forgetful{s}, 0); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "checkpoint 1 is listed at") {
		t.Errorf("got %v", err)
	}
	if _, err := Open(t.Context(), s, 7); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "which has [1]") {
		t.Errorf("of one that is not listed: %v", err)
	}
}

// An attacker's checksums are right. What they cover must be sound all the same.
func TestIndexesThatAreNotSoundAreRefused(t *testing.T) {
	one := func(change func(e []entry)) error {
		data := make([]byte, 3*blockBytes(1, 1))
		var es []entry
		for i := range uint64(3) {
			es = append(es, entry{offset: headerBytes + i*uint64(blockBytes(1, 1)), first: i, last: i, table: 1, rows: 1, width: 1})
		}
		change(es)
		var index []byte
		for _, e := range es {
			index = e.append(index)
		}
		at := headerBytes + len(data)
		p := &Part{Bytes: int64(at + len(index) + footerBytes), Blocks: len(es), Rows: 3, Index: sum(index)}
		_, err := decodeIndex(p, testTables, bytes.NewReader(append(index, footer(uint64(at), index)...)))
		return err
	}
	if err := one(func([]entry) {}); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(e []entry){
		"begins at byte 16":   func(e []entry) { e[1].offset = headerBytes },
		"table 3 of 3":        func(e []entry) { e[1].table = 3 },
		"have 3 floats":       func(e []entry) { e[1].width = 3 },
		"0 rows":              func(e []entry) { e[1].rows = 0 },
		"2 rows, 1 … 1":       func(e []entry) { e[1].rows = 2 },
		"1 rows, 5 … 4":       func(e []entry) { e[1].first, e[1].last = 5, 4 },
		"1 rows, 0 … 1099511": func(e []entry) { e[1].first, e[1].last = 0, testTables[1].Rows },
		"at most 1048576":     func(e []entry) { e[1].rows, e[1].last = 1<<20, 1<<30 },
	} {
		if err := one(change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// Of a part of another version it is said which one it has, and not that it is none.
func TestAPartOfAnotherVersionIsNamedSo(t *testing.T) {
	for want, change := range map[string]func(head []byte){
		"":                         func([]byte) {},
		"version 2 of the format":  func(head []byte) { head[8] = 2 },
		"does not begin as a part": func(head []byte) { head[8], head[0] = 2, 'X' },
		"not begin as a part does": func(head []byte) { head[12] = 1 },
	} {
		head := header()
		change(head)
		if err := checkHeader(head); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%x: %v, want an error with %q", head, err, want)
		}
	}
}

// A sparse part has a header, and then zeros: as many as a manifest claims, at no cost.
type sparsePart struct{ objects }

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func (sparsePart) Read(_ context.Context, _ string, off, n int64) (io.ReadCloser, error) {
	if off == 0 {
		return io.NopCloser(bytes.NewReader(header())), nil
	}
	return io.NopCloser(io.LimitReader(zeros{}, n)), nil
}

func TestAnIndexThatIsNotSoundTakesNoMemory(t *testing.T) {
	const index = 16 << 20 / entryBytes * entryBytes
	p := &Part{Bytes: headerBytes + index + footerBytes, Blocks: index / entryBytes, Index: sum(make([]byte, index))}
	c := &Checkpoint{&Manifest{Tables: testTables}, sparsePart{}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := c.index(t.Context(), p)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; err == nil || n > 1<<20 {
		t.Errorf("%d bytes were taken for an index of %d, %v", n, index, err)
	}
}

// So are manifests, whose checksums are right too.
// JSON that differs may mean the same to its reader: the case of a name, for one.
func TestNoBitOfAManifestMayChange(t *testing.T) {
	rng, ctx, s := seedtest.Rand(t), t.Context(), folder(t)
	if _, err := save(ctx, rng, s, ID{1, testAttempt}, newModel(rng, 20), 1, nil); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(s.dir, manifestName(1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeManifest(b); err != nil {
		t.Fatal(err)
	}
	for i := range 8 * len(b) {
		b[i/8] ^= 1 << (i % 8)
		if _, err := decodeManifest(b); err == nil {
			t.Errorf("bit %d of byte %d was changed: %q", i%8, i/8, b)
		}
		b[i/8] ^= 1 << (i % 8)
	}
}

func TestManifestsThatAreNotSoundAreRefused(t *testing.T) {
	rng, ctx := seedtest.Rand(t), t.Context()
	one := func(change func(m *Manifest)) error {
		s := folder(t)
		first, err := save(ctx, rng, s, ID{1, testAttempt}, newModel(rng, 20), 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := saveOn(ctx, rng, s, first, ID{2, testAttempt}, newModel(rng, 20), 1, map[string][]byte{"s": nil})
		if err != nil {
			t.Fatal(err)
		}
		change(m)
		line, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		b := fmt.Appendf(nil, "%s\n{\"sha256\":%q}\n", line, sum(line))
		if err := os.WriteFile(filepath.Join(s.dir, manifestName(2)), b, 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := Open(ctx, s, 2)
		if err == nil {
			_, err = c.Verify(ctx)
		}
		return err
	}
	if err := one(func(*Manifest) {}); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(m *Manifest){
		"format 1, want 2":       func(m *Manifest) { m.Format = Format },
		"format 2, want 1":       func(m *Manifest) { m.BuildsOn = nil },
		"format 3 of":            func(m *Manifest) { m.Format = 3 },
		"it, \"v9\"":             func(m *Manifest) { m.Format, m.Program = 3, "v9" },
		"1 builds on 1":          func(m *Manifest) { m.BuildsOn = slices.Repeat(m.BuildsOn, 2) },
		"2 builds on 3":          func(m *Manifest) { m.BuildsOn[0].Number, m.BuildsOn[0].Parts, m.BuildsOn[0].Rows = 3, nil, 0 },
		"no part of checkpoint":  func(m *Manifest) { m.BuildsOn[0].Parts[0].Name = m.Parts[0].Name },
		"builds on 1025":         func(m *Manifest) { m.BuildsOn = slices.Repeat(m.BuildsOn, maxLayers+1) },
		"rows, and the parts of": func(m *Manifest) { m.BuildsOn[0].Rows++ },
		"checkpoint 1 wrote is":  func(m *Manifest) { m.BuildsOn[0].Digest[0]++ },
		"checkpoint 2 wrote is":  func(m *Manifest) { m.Digest[0]++ },
		"resumed 2 and":          func(m *Manifest) { m.Resumed = &Resumed{2, 3} },
		"resumed 1 and":          func(m *Manifest) { m.Resumed = &Resumed{1, 3} },
		"resumed 0 and":          func(m *Manifest) { m.Resumed = &Resumed{0, 1} },
		"section \"\"":           func(m *Manifest) { m.Sections[0].Name = "" },
		"section \"a":            func(m *Manifest) { m.Sections[0].Name = strings.Repeat("a", maxSectionName+1) },
		"-1 blocks":              func(m *Manifest) { m.Parts[0].Blocks = -1 },
		// Their products with the size of an entry are small.
		"2305843009213693952 blocks": func(m *Manifest) { m.Parts[0].Blocks = 1 << 61 },
		"9223372036854775807 blocks": func(m *Manifest) { m.Parts[0].Blocks = math.MaxInt64 },
		"bytes, 1 blocks":            func(m *Manifest) { m.Parts[0].Bytes = math.MinInt64; m.Parts[0].Blocks = 1 },
	} {
		if err := one(change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func TestPruneKeepsTheLastAndTheBest(t *testing.T) {
	rng, ctx, s := seedtest.Rand(t), t.Context(), folder(t)
	m := newModel(rng, 100)
	scores := map[uint64]float64{2: 0.9, 5: 0.3, 7: 0.8}
	for n := range uint64(8) {
		id := ID{n + 1, testAttempt}
		p, err := Write(ctx, s, id, 0, testTables, func(w *Writer) error { return m.write(rng, w, 0, 1) })
		if err != nil {
			t.Fatal(err)
		}
		manifest := testManifest(id)
		if v, ok := scores[id.Number]; ok {
			manifest.Score = &Score{Name: "valid MRR", Value: v}
		}
		if _, err := Commit(ctx, s, manifest, []*Piece{p}); err != nil {
			t.Fatal(err)
		}
	}
	// What a killed run left, and what belongs to others.
	if _, err := Write(ctx, s, ID{9, strings.Repeat("B", 26)}, 0, testTables, func(w *Writer) error { return w.Section("x", []byte("y")) }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{underway + "checkpoint-0000000009.rows-x-1", "notes.txt", "checkpoint-of-mine"} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	done, err := alone.Prune(ctx, s, 3)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(done.Checkpoints, []uint64{1, 3, 4, 5}) || done.Objects != 10 || done.Unfinished != 1 {
		t.Errorf("pruned %+v", done)
	}
	if n, err := Numbers(ctx, s); err != nil || !slices.Equal(n, []uint64{2, 6, 7, 8}) {
		t.Errorf("there are %v, %v", n, err)
	}
	if n, err := Best(ctx, s); err != nil || n != 2 {
		t.Errorf("the best is %d, %v", n, err)
	}
	for _, n := range []uint64{2, 6, 7, 8} {
		c, err := Open(ctx, s, n)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := read(ctx, c, nil); err != nil || !got.equal(m) {
			t.Errorf("checkpoint %d: %v", n, err)
		}
	}
	left, err := os.ReadDir(s.dir)
	if err != nil || len(left) != 10 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}

// A run that resumes an earlier checkpoint gives up the later ones: the best model of its own course is kept.
func TestWhatWasGivenUpIsNotTheBest(t *testing.T) {
	scored := func(n uint64, value float64, resumed *Resumed) *Manifest {
		return &Manifest{ID: ID{Number: n}, Score: &Score{Value: value}, Resumed: resumed}
	}
	on3, on6, on8 := &Resumed{3, 7}, &Resumed{6, 9}, &Resumed{8, 9}
	first := []*Manifest{scored(1, 0.1, nil), scored(3, 0.3, nil), scored(5, 0.9, nil), scored(6, 0.6, nil)}
	second := append(slices.Clip(first), scored(7, 0.4, on3), scored(8, 0.2, on3))
	for _, c := range []struct {
		all  []*Manifest
		want uint64
	}{
		{nil, 0},
		{first, 5},
		{second, 7}, // 5 and 6 were given up
		{append(slices.Clip(second), scored(9, 0.1, on8)), 7},
		{append(slices.Clip(second), scored(9, 0.1, on6)), 5}, // they were gone on with after all
		{append(slices.Clip(first), scored(7, 0.1, on3)), 3},
		{append(slices.Clip(first), scored(7, 0.9, nil)), 5}, // the first of equal ones
	} {
		var got uint64
		if best := bestOf(c.all); best != nil {
			got = best.Number
		}
		if got != c.want {
			t.Errorf("of %d checkpoints, the best is %d, want %d", len(c.all), got, c.want)
		}
	}
}

// What a manifest names that cannot be read is not known: it may be anything up to its number.
func TestPruneKeepsWhatADamagedManifestMayName(t *testing.T) {
	rng, ctx, s := seedtest.Rand(t), t.Context(), folder(t)
	m := newModel(rng, 10)
	write := func(n uint64) {
		t.Helper()
		if _, err := save(ctx, rng, s, ID{n, testAttempt}, m, 1, map[string][]byte{"x": {1}}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range uint64(3) {
		write(n + 1)
	}
	path := filepath.Join(s.dir, manifestName(2))
	whole, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, whole[:20], 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for n := uint64(4); n <= 8; n++ {
		write(n)
		done, err := alone.Prune(ctx, s, 2)
		if err != nil || len(done.Checkpoints) != min(1, int(n-4)) || !slices.Equal(done.Unreadable, []uint64{2}) {
			t.Errorf("beside checkpoint %d: %+v, %v", n, done, err)
		}
	}
	if err := os.WriteFile(path, whole, 0o644); err != nil {
		t.Fatal(err)
	}
	if n, err := Numbers(ctx, s); err != nil || !slices.Equal(n, []uint64{1, 2, 7, 8}) {
		t.Errorf("there are %v, %v", n, err)
	}
	for _, n := range []uint64{1, 2, 7, 8} {
		c, err := Open(ctx, s, n)
		if err == nil {
			_, err = c.Verify(ctx)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// A takenOver store has another run take over before its objects are listed so many times.
type takenOver struct {
	Store
	lists int
	by    func()
}

func (s *takenOver) List(ctx context.Context, prefix string) ([]Object, error) {
	if s.lists--; s.lists == 0 {
		s.by()
	}
	return s.Store.List(ctx, prefix)
}

// A run that stood still in the midst of pruning knows nothing of its successor's checkpoints.
func TestPruneRemovesNothingOfASuccessor(t *testing.T) {
	rng, ctx := seedtest.Rand(t), t.Context()
	m := newModel(rng, 10)
	for lists := 1; lists <= 3; lists++ {
		s := folder(t)
		for n := range uint64(3) {
			if _, err := save(ctx, rng, s, ID{n + 1, testAttempt}, m, 1, nil); err != nil {
				t.Fatal(err)
			}
		}
		stands := &takenOver{s, lists, func() {
			if _, err := save(ctx, rng, s, NewID(4), m, 1, nil); err != nil {
				t.Error(err)
			}
		}}
		last := func() error { // the lock is held, and then it is not
			if stands.lists--; stands.lists == 0 {
				stands.by()
			}
			return nil
		}
		if _, err := (&Lock{check: last}).Prune(ctx, stands, 2); err != nil {
			t.Error(err)
		}
		c, err := Open(ctx, s, 4)
		if err == nil {
			_, err = c.Verify(ctx)
		}
		if err != nil {
			t.Errorf("it came at step %d: %v", lists, err)
		}
	}
}

// What is there, and no manifest names it, may be what a successor is writing.
func TestPruneWithoutTheLockRemovesNothing(t *testing.T) {
	rng, ctx, s := seedtest.Rand(t), t.Context(), folder(t)
	for n := range uint64(3) {
		if _, err := save(ctx, rng, s, ID{n + 1, testAttempt}, newModel(rng, 10), 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Write(ctx, s, NewID(4), 0, testTables, func(*Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	before, err := s.List(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	lost := &Lock{check: func() error { return ErrLocked }}
	if _, err := lost.Prune(ctx, s, 1); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	if after, err := s.List(ctx, ""); err != nil || !slices.Equal(before, after) {
		t.Errorf("there is %v, and was %v: %v", after, before, err)
	}
}

func TestMemoryIsBoundedWhateverTheOrder(t *testing.T) {
	tables := []Table{{Name: "t", Rows: 1 << 40, Dim: 64, Width: 64, Rule: "add", Init: "zero"}}
	rng, s := rand.New(rand.NewPCG(1, 2)), folder(t)
	_, err := Write(t.Context(), s, ID{1, testAttempt}, 0, tables, func(w *Writer) error {
		vals := make([]float32, 64*1000)
		rows := make([]uint64, 1000)
		for i := range uint64(60) {
			for j := range rows {
				rows[j] = rng.Uint64N(1<<20)<<10 | i // no row twice
			}
			slices.Sort(rows)
			rows = slices.Compact(rows)
			if err := w.Write(0, rows, vals[:64*len(rows)]); err != nil {
				return err
			}
			rows = rows[:1000]
			if n := cap(w.pending[0].vals)*4 + cap(w.pending[0].rows)*8; n > 2*tableBytes {
				t.Fatalf("%d bytes are held", n)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A syncedFile counts bytes and syncs. A sync ends when it gets its result.
type syncedFile struct {
	written int
	syncs   atomic.Int32
	results chan error
	closed  bool
}

func (f *syncedFile) Write(b []byte) (int, error) { f.written += len(b); return len(b), nil }
func (f *syncedFile) Sync() error                 { f.syncs.Add(1); return <-f.results }
func (f *syncedFile) Close() error                { f.closed = true; return nil }

func TestALargeFileIsMadeDurableWhileItIsWritten(t *testing.T) {
	f := &syncedFile{results: make(chan error)}
	d := &durable{file: f}
	b := make([]byte, syncEvery/2)
	for range 6 { // the sync that began with the second does not hold up the others
		if _, err := d.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error)
	go func() { ended <- d.Sync() }()
	f.results <- nil
	f.results <- nil
	if err := <-ended; err != nil || f.syncs.Load() != 2 {
		t.Errorf("%d syncs, %v; want one while it was written, and one at the end", f.syncs.Load(), err)
	}
	if err := d.Close(); err != nil || !f.closed || f.written != 6*len(b) {
		t.Errorf("%d bytes were written, closed: %v, %v", f.written, f.closed, err)
	}
}

// What a sync could not write may be lost without another error.
func TestAFileOfWhichASyncFailedStaysFailed(t *testing.T) {
	f := &syncedFile{results: make(chan error, 10)}
	for range cap(f.results) {
		f.results <- io.ErrShortWrite
	}
	d := &durable{file: f}
	b := make([]byte, syncEvery)
	if _, err := d.Write(b); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"Sync": d.Sync(), "Sync again": d.Sync(), "Close": d.Close()} {
		if !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := d.Write(b); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Write: %v", err)
	}
	if f.syncs.Load() != 1 || !f.closed {
		t.Errorf("%d syncs, closed: %v", f.syncs.Load(), f.closed)
	}
}

// A fullWriter takes so many bytes.
type fullWriter int

func (w *fullWriter) Write(b []byte) (int, error) {
	if *w -= fullWriter(len(b)); *w < 0 {
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}

// A fullStore takes so many bytes of a part.
type fullStore struct {
	Store
	room fullWriter
}

func (s *fullStore) Create(_ context.Context, _ string, write func(io.Writer) error) error {
	return write(&s.room)
}

func TestAPartThatFindsNoRoomEndsItsWriter(t *testing.T) {
	tables := []Table{{Name: "t", Rows: 1 << 40, Dim: 64, Width: 64, Rule: "add", Init: "zero"}}
	const rows = 1000
	after := 0
	_, err := Write(t.Context(), &fullStore{folder(t), 3 * tableBytes}, ID{1, testAttempt}, 0, tables, func(w *Writer) error {
		nums, vals := make([]uint64, rows), make([]float32, 64*rows)
		for i := range uint64(1000) { // 256 MB
			for j := range nums {
				nums[j] = rows*i + uint64(j)
			}
			if err := w.Write(0, nums, vals); err != nil {
				return err
			}
			after++
		}
		return nil
	})
	if !errors.Is(err, syscall.ENOSPC) || after > 200 {
		t.Errorf("%d writes of 256 kB before %v", after, err)
	}
}
