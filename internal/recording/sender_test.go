package recording

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

func header(n godwit.NodeID) record.Header {
	return record.Header{Run: "r", Policy: "adaptive", Node: n, Nodes: 3, Workers: 2, Host: "h", PID: 7, Start: 1e18}
}

// tracing begins the trace of a node of a model of ten keys.
func tracing(t *testing.T, dir string, n godwit.NodeID) *trace.Writer {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 10, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := trace.ParseKeys("", m)
	if err != nil {
		t.Fatal(err)
	}
	h := header(n)
	w, err := trace.Create(trace.Config{Dir: dir, Keys: keys, Header: trace.Header{Run: h.Run, Policy: h.Policy, Node: n, Nodes: h.Nodes, Start: h.Start, Tables: trace.TablesOf(m)}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// asks returns how a node asks a collector.
func asks(c *Collector, node int) Ask {
	return func(q []byte, deliver func([]byte)) func(context.Context) error {
		frame := slices.Clone(q)
		deliver(c.Answer(node, frame))
		clear(frame) // it is not the collector's
		return nil
	}
}

// files returns the contents of a node's folder, of files of a kind.
func files(t *testing.T, dir string, n godwit.NodeID, ext string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(trace.NodeDir(dir, n), "*"+ext))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(p)] = string(b)
	}
	return all
}

// What nodes write to folders of their own is in the leader's: the trace by the byte, and samples.
func TestTheLeaderGetsWhatNodesWrite(t *testing.T) {
	seed := rand.Uint64()
	all := t.TempDir()
	c := NewCollector(all, header(0))
	dirs := [3]string{}
	for n := godwit.NodeID(1); n < 3; n++ {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		dirs[n] = t.TempDir()
		w := tracing(t, dirs[n], n)
		s := newSender(dirs[n], header(n), false)
		for i := range 5 {
			s.sample(record.Sample{Time: int64(i) * 1e9, Items: int64(i)})
		}
		s.start(asks(c, int(n)), nil)
		clock, jumps := int64(0), 2
		for range 50_000 + rng.IntN(50_000) {
			if clock += rng.Int64N(1e6); jumps > 0 && rng.IntN(20_000) == 0 {
				jumps--
				w.Flush()
				clock += 1 << 32 * 1000 / 2 // the next goes to a new segment
			}
			w.Add(trace.Event{Kind: trace.Created, Key: godwit.Key(rng.IntN(10)), Time: clock, Node: n, Peer: n, Epoch: 1})
		}
		w.Flush()
		if err := s.end(true); err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	for n := godwit.NodeID(1); n < 3; n++ {
		if got, want := files(t, all, n, ".trace"), files(t, dirs[n], n, ".trace"); !maps.Equal(got, want) {
			t.Errorf("seed %d, node %d: the leader has segments %v, want %v, or others", seed, n, slices.Collect(maps.Keys(got)), slices.Collect(maps.Keys(want)))
		}
	}
	r, err := record.Open(all)
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Nodes[2].Header; len(r.Nodes) != 3 || len(r.Nodes[1].Samples) != 5 || h.PID != 7 || h.Workers != 2 {
		t.Errorf("the leader has %+v", r.Nodes)
	}
}

// A leader that takes nothing for a while holds up no node. What it is not sent is counted: the leader's trace tells how much it lacks. A node that
// has the folder for this only keeps little of it.
func TestWhatAStuckLeaderLacksIsCounted(t *testing.T) {
	for _, temporary := range []bool{false, true} {
		dir, all := t.TempDir(), t.TempDir()
		c := NewCollector(all, header(0))
		var stuck atomic.Bool
		s := newSender(dir, header(1), temporary)
		s.start(func(q []byte, deliver func([]byte)) func(context.Context) error {
			if stuck.Load() {
				deliver([]byte{wait})
				return nil
			}
			return asks(c, 1)(q, deliver)
		}, nil)
		w := tracing(t, dir, 1)
		added := uint64(0)
		segment := func(i int) {
			for range 1000 {
				w.Add(trace.Event{Kind: trace.Asked, Key: godwit.Key(added % 10), Time: int64(i) * (1 << 32 * 1000 / 2), Node: 1, Peer: 1})
				added++
			}
			w.Flush()
		}
		segment(1)
		until(t, "the first segment came", func() bool { return len(files(t, all, 1, ".trace")) > 0 })
		stuck.Store(true)
		for i := range 10 {
			segment(2 + i)
			s.sample(record.Sample{Time: int64(i)})
		}
		until(t, "some was left out", func() bool { return s.skipped.Load() > 0 })
		if n := len(files(t, dir, 1, ".trace")); temporary && n > 4 {
			t.Errorf("%d segments are kept for a leader that takes none", n)
		}
		stuck.Store(false)
		if err := s.end(true); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("lacks %d events", s.skipped.Load())) {
			t.Errorf("the node says %v", err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		tr, err := trace.Open(all)
		if err != nil {
			t.Fatal(err)
		}
		came, lost := uint64(0), uint64(0)
		if err := tr.Events(1, 0, func(e trace.Event) bool {
			if e.Kind == trace.Lost {
				lost += uint64(e.N)
			} else {
				came++
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if lost == 0 || lost != s.skipped.Load() || came+lost != added {
			t.Errorf("%d events came, %d are said to be lost, %d were left out, of %d", came, lost, s.skipped.Load(), added)
		}
		for i, x := range tr.Files(1) {
			if x.Header.Segment != i+1 {
				t.Errorf("segment %d is called %d", i+1, x.Header.Segment)
			}
		}
	}
}

// A leader that answers nothing, or is told more than it takes, hears in the end how much it lacks, and ends.
func TestTheEndIsBounded(t *testing.T) {
	dir, all := t.TempDir(), t.TempDir()
	c := NewCollector(all, header(0))
	s := newSender(dir, header(1), false)
	s.start(func(q []byte, deliver func([]byte)) func(context.Context) error {
		m, err := parse(q)
		if err != nil {
			t.Error(err)
		}
		if m.kind != traced { // which is never answered
			asks(c, 1)(q, deliver)
		}
		return nil
	}, nil)
	w := tracing(t, dir, 1)
	for i := range 100 {
		w.Add(trace.Event{Kind: trace.Asked, Key: 1, Time: int64(i), Node: 1, Peer: 1})
	}
	w.Flush()
	until(t, "the record began", func() bool { return len(files(t, all, 1, ".samples")) > 0 })
	for i := range 50 {
		w.Add(trace.Event{Kind: trace.Asked, Key: 1, Time: int64(i), Node: 1, Peer: 1})
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := s.end(true); err == nil || !strings.Contains(err.Error(), "lacks 150 events") {
		t.Errorf("the node says %v", err)
	}
	if err := c.Close(); err == nil || !strings.Contains(err.Error(), "150 events of node 1 are missing") {
		t.Errorf("the leader says %v", err)
	}
}

// A folder that a node made, and the leader sees, is left to the node.
func TestAFolderThatBothSeeIsLeftToTheNode(t *testing.T) {
	all := t.TempDir()
	c := NewCollector(all, header(0))
	w := tracing(t, all, 1)
	w.Add(trace.Event{Kind: trace.Asked, Key: 1, Node: 1, Peer: 1})
	s := newSender(all, header(1), false)
	s.start(asks(c, 1), nil)
	until(t, "the node was told", func() bool { return stopped(s.done) })
	if err := s.end(true); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if got := files(t, all, 1, ""); len(got) != 1 {
		t.Errorf("the folder has %d files", len(got))
	}
}

// Nodes that send what is no record, or that of another, are refused, and the others' are written.
func TestHostileQuestionsAreRefused(t *testing.T) {
	dir := t.TempDir()
	w := tracing(t, dir, 1)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	segment := []byte(files(t, dir, 1, ".trace")["000001.trace"])
	hello := func(h record.Header) message {
		b, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		return message{kind: comes, text: b}
	}
	other := header(1)
	other.Run = "../x"
	piece := func(segment int, at int64, data []byte) message {
		return message{kind: traced, piece: trace.Piece{Segment: segment, At: at, Data: data}}
	}
	event := make([]byte, trace.RecordLen)
	for name, ms := range map[string][]message{
		"another run":     {hello(other)},
		"another node":    {hello(header(2))},
		"no JSON":         {{kind: comes, text: []byte("{")}},
		"no beginning":    {piece(1, 0, segment)},
		"no sample":       {hello(header(1)), {kind: sampled, text: []byte("[]")}},
		"no header":       {hello(header(1)), piece(1, 0, event)},
		"a gap":           {hello(header(1)), piece(2, 0, segment)},
		"a hole":          {hello(header(1)), piece(1, 0, segment), piece(1, int64(len(segment))+20, event)},
		"again":           {hello(header(1)), piece(1, 0, segment), piece(1, 0, segment)},
		"part of a event": {hello(header(1)), piece(1, 0, segment), piece(1, int64(len(segment)), event[1:])},
	} {
		all := t.TempDir()
		c := NewCollector(all, header(0))
		refused := ""
		for _, m := range append(ms, message{kind: sampled, text: []byte("{}")}) {
			until(t, name+": an answer", func() bool {
				a := c.Answer(1, m.encode())
				if a[0] == bad {
					refused = string(a[1:])
				}
				return a[0] != wait
			})
		}
		until(t, name+": it is refused", func() bool {
			a := c.Answer(1, (&message{kind: sampled, text: []byte("{}")}).encode())
			return a[0] == bad
		})
		_ = c.Close() // it says why
		if refused == "" {
			a := c.nodes[1]
			refused = a.err.Error()
		}
		if refused == "" {
			t.Errorf("%s: no reason is told", name)
		}
		if in, err := os.ReadDir(filepath.Dir(all)); err != nil || slices.ContainsFunc(in, func(d os.DirEntry) bool { return d.Name() == "x" }) {
			t.Errorf("%s: written elsewhere", name)
		}
	}
}

// until waits until something holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("after 30 s not: %s", what)
		}
	}
}

// Whatever a node asks, the collector does not fail, and a question that is one is read as it was written.
func FuzzQuestions(f *testing.F) {
	b, err := json.Marshal(header(1))
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range []message{{kind: comes, text: b}, {kind: sampled, text: []byte(`{"t":1}`)}, {kind: leaves, total: 3},
		{kind: traced, piece: trace.Piece{Segment: 1, Data: []byte("GODWITRC")}}} {
		f.Add(m.encode())
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, q []byte) {
		m, err := parse(q)
		if err == nil && !reflect.DeepEqual(m.encode(), q) {
			t.Fatalf("%v is read as %+v", q, m)
		}
		all, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		c := NewCollector(all, header(0))
		for range 3 {
			c.Answer(1, (&message{kind: comes, text: b}).encode())
			if a := c.Answer(1, q); len(a) == 0 {
				t.Error("no answer")
			}
			time.Sleep(time.Microsecond) // it is written meanwhile, or not
		}
		_ = c.Close() // what it says depends on the question
		if err := os.RemoveAll(all); err != nil {
			t.Fatal(err)
		}
	})
}
