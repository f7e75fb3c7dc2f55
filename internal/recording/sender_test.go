package recording

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// tables are those of the model of ten keys whose trace is written.
var tables = []trace.Table{{Name: "t", Rows: 10}}

func header(n godwit.NodeID) record.Header {
	return record.Header{Run: "r", Policy: "adaptive", Node: n, Nodes: 3, Workers: 2, Host: "h", PID: 7, Start: 1e18}
}

// tracing begins the trace of a node of a model of ten keys.
func tracing(t testing.TB, dir string, n godwit.NodeID) *trace.Writer {
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
func files(t testing.TB, dir string, n godwit.NodeID, ext string) map[string]string {
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
	c := NewCollector(all, header(0), tables)
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
		c := NewCollector(all, header(0), tables)
		var stuck atomic.Bool
		s := newSender(dir, header(1), temporary)
		s.start(func(q []byte, deliver func([]byte)) func(context.Context) error {
			if stuck.Load() {
				deliver([]byte{retry})
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
		least := s.skipped.Load()
		s.sample(record.Sample{Time: 10})
		most := s.skipped.Load()
		if n := len(files(t, dir, 1, ".trace")); temporary && n > 4 {
			t.Errorf("%d segments are kept for a leader that takes none", n)
		}
		stuck.Store(false)
		if err := s.end(true); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("had %d more events", s.skipped.Load())) {
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
		if err := tr.Events(1, func(e trace.Event) bool {
			if e.Kind == trace.Lost {
				lost += uint64(e.N)
			} else {
				came++
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		r, err := record.Open(all)
		if err != nil {
			t.Fatal(err)
		}
		if samples := r.Nodes[1].Samples; len(samples) == 0 {
			t.Error("no sample came")
		} else if n := samples[len(samples)-1].Lost; n < least || n > most {
			t.Errorf("the last sample says that %d events were skipped, which was at least %d and at most %d then", n, least, most)
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
	c := NewCollector(all, header(0), tables)
	s := newSender(dir, header(1), false)
	s.start(func(q []byte, deliver func([]byte)) func(context.Context) error {
		m, err := parse(q)
		if err != nil {
			t.Error(err)
		}
		if m.kind != chunk { // which is never answered
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
	if err := s.end(true); err == nil || !strings.Contains(err.Error(), "had 150 more events") {
		t.Errorf("the node says %v", err)
	}
	if err := c.Close(); err == nil || !strings.Contains(err.Error(), "node 1 had 150 more events") {
		t.Errorf("the leader says %v", err)
	}
}

// A folder that a node made, and the leader sees, is left to the node.
func TestAFolderThatBothSeeIsLeftToTheNode(t *testing.T) {
	all := t.TempDir()
	c := NewCollector(all, header(0), tables)
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
	greet := func(h record.Header) message {
		b, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		return message{kind: hello, text: b}
	}
	other := header(1)
	other.Run = "../x"
	piece := func(segment int, at int64, data []byte) message {
		return message{kind: chunk, piece: trace.Piece{Segment: segment, At: at, Data: data}}
	}
	event := func(k godwit.Key, kind trace.Kind, peer byte) []byte {
		b := make([]byte, trace.RecordLen)
		b[0], b[5], b[6], b[7] = byte(k), byte(k>>40), byte(kind), peer
		return b
	}
	// changed returns the header of a segment with another text in it.
	changed := func(b []byte, old, text string) []byte {
		c := bytes.TrimRight(bytes.Replace(b, []byte(old), []byte(text), 1), " ")
		if len(c) > len(b) || bytes.Equal(c, bytes.TrimRight(b, " ")) {
			t.Fatalf("%s is not in %s, or there is no room for %s", old, b, text)
		}
		return append(c, bytes.Repeat([]byte(" "), len(b)-len(c))...)
	}
	second := changed(segment, `"segment":1`, `"segment":2`)
	for name, ms := range map[string][]message{
		"another run":       {greet(other)},
		"another node":      {greet(header(2))},
		"no JSON":           {{kind: hello, text: []byte("{")}},
		"no beginning":      {piece(1, 0, segment)},
		"no sample":         {greet(header(1)), {kind: sample, text: []byte("[]")}},
		"no header":         {greet(header(1)), piece(1, 0, event(0, trace.Created, 0))},
		"a gap":             {greet(header(1)), piece(2, 0, segment)},
		"a hole":            {greet(header(1)), piece(1, 0, segment), piece(1, int64(len(segment))+20, event(0, trace.Created, 0))},
		"again":             {greet(header(1)), piece(1, 0, segment), piece(1, 0, segment)},
		"part of an event":  {greet(header(1)), piece(1, 0, segment), piece(1, int64(len(segment)), event(0, trace.Created, 0)[1:])},
		"a key of no table": {greet(header(1)), piece(1, 0, append(slices.Clone(segment), event(10, trace.Created, 0)...))},
		"a large key":       {greet(header(1)), piece(1, 0, append(slices.Clone(segment), event(1<<40, trace.Decided, 0)...))},
		"no such peer":      {greet(header(1)), piece(1, 0, segment), piece(1, int64(len(segment)), event(0, trace.Left, 3))},
		"other tables":      {greet(header(1)), piece(1, 0, changed(segment, `"rows":10`, `"rows":11`))},
		"another start":     {greet(header(1)), piece(1, 0, segment), piece(2, 0, changed(second, "1000000000000000000", "1000000000000000001"))},
		"an earlier base":   {greet(header(1)), piece(1, 0, changed(segment, `"base":0`, `"base":9`)), piece(2, 0, second)},
		"of another node":   {greet(header(1)), piece(1, 0, changed(segment, `"node":1`, `"node":2`))},
		"of another run":    {greet(header(1)), piece(1, 0, changed(segment, `"run":"r"`, `"run":"s"`))},
		"of more nodes":     {greet(header(1)), piece(1, 0, changed(segment, `"nodes":3`, `"nodes":4`))},
		"no such keys":      {greet(header(1)), piece(1, 0, changed(segment, `random=`, `random:`))},
		"other keys later":  {greet(header(1)), piece(1, 0, segment), piece(2, 0, changed(second, `random=1`, `random=2`))},
		"the far future":    {greet(record.Header{Run: "r", Node: 1, Nodes: 3, Start: trace.MaxStart + 1})},
		"no such time":      {greet(record.Header{Run: "r", Node: 1, Nodes: 3, Start: -1})},
		"the leader":        {greet(header(0))},
		"too many nodes":    {greet(record.Header{Run: "r", Node: 1, Nodes: 4})},
		"another segment":   {greet(header(1)), piece(1, 0, segment), piece(2, 0, segment)},
		"two segments":      {greet(header(1)), piece(1, 0, segment), piece(3, 0, second)},
	} {
		all := t.TempDir()
		c := NewCollector(all, header(0), tables)
		why := ""
		for _, m := range append(ms, message{kind: sample, text: []byte("{}")}) {
			until(t, name+": an answer", func() bool {
				a := c.Answer(1, m.encode())
				if a[0] == refused {
					why = string(a[1:])
				}
				return a[0] != retry
			})
		}
		until(t, name+": it is refused", func() bool {
			a := c.Answer(1, (&message{kind: sample, text: []byte("{}")}).encode())
			return a[0] == refused && len(a) > 10 // with a reason
		})
		_ = c.Close() // it says why
		if why == "" {
			why = c.sources[1].err.Error()
		}
		if why == "" {
			t.Errorf("%s: no reason is told", name)
		}
		if in, err := os.ReadDir(filepath.Dir(all)); err != nil || slices.ContainsFunc(in, func(d os.DirEntry) bool { return d.Name() == "x" }) {
			t.Errorf("%s: written elsewhere", name)
		}
		if in := files(t, all, 1, ".trace"); len(in) > 1 {
			t.Errorf("%s: there are %d segments", name, len(in))
		}
	}
}

// A leader that has ended takes nothing. The node counts what it did not send, also what it had skipped before.
func TestANodeCountsWhatALeaderThatEndedDidNotTake(t *testing.T) {
	dir, all := t.TempDir(), t.TempDir()
	c := NewCollector(all, header(0), tables)
	var stuck atomic.Bool
	s := newSender(dir, header(1), false)
	s.start(func(q []byte, deliver func([]byte)) func(context.Context) error {
		if stuck.Load() {
			deliver([]byte{retry})
			return nil
		}
		return asks(c, 1)(q, deliver)
	}, nil)
	w := tracing(t, dir, 1)
	segment := func(i, events int) {
		for range events {
			w.Add(trace.Event{Kind: trace.Asked, Key: 1, Time: int64(i) * (1 << 32 * 1000 / 2), Node: 1, Peer: 1})
		}
		w.Flush()
	}
	segment(1, 100)
	until(t, "the first segment came", func() bool { return maps.Equal(files(t, all, 1, ".trace"), files(t, dir, 1, ".trace")) })
	stuck.Store(true)
	for i := range 9 {
		segment(2+i, 100)
	}
	until(t, "some was skipped", func() bool { return s.skipped.Load() > 0 })
	segment(10, 50) // which the sender has not read
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	stuck.Store(false)
	if err := s.end(true); err == nil || !strings.Contains(err.Error(), "had 950 more events") {
		t.Errorf("the node says %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// While the leader answers nothing at all, what is too old is skipped. A run that failed does not say what was not sent.
func TestALeaderThatAnswersNothing(t *testing.T) {
	dir := t.TempDir()
	s := newSender(dir, header(1), true)
	s.start(func(q []byte, deliver func([]byte)) func(context.Context) error {
		if q[1] == byte(hello) {
			deliver([]byte{accepted})
		}
		return nil
	}, nil)
	w := tracing(t, dir, 1)
	for i := range 10 {
		w.Add(trace.Event{Kind: trace.Asked, Key: 1, Time: int64(i) * (1 << 32 * 1000 / 2), Node: 1, Peer: 1})
		w.Flush()
	}
	until(t, "some was skipped", func() bool { return s.skipped.Load() > 0 })
	if err := s.end(false); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// While the queue is full, a node is told to send its message again. Nothing waits.
func TestAFullQueueTakesNothing(t *testing.T) {
	c := &Collector{queue: make(chan message, 2), sources: map[int]*source{1: {answer: accepted}}} // nobody writes
	q := (&message{kind: sample, text: []byte("{}")}).encode()
	for i, want := range []byte{accepted, accepted, retry, retry} {
		if a := c.Answer(1, q); a[0] != want {
			t.Errorf("message %d is answered by %d, want %d", i, a[0], want)
		}
	}
	if a := c.Answer(2, (&message{kind: hello}).encode()); a[0] != retry || c.sources[2] != nil {
		t.Errorf("another node's first message is answered by %d", a[0])
	}
}

// What the disk does not take is counted, and later segments are written again.
func TestADiskThatDoesNotTakeASegment(t *testing.T) {
	all, dir := t.TempDir(), t.TempDir()
	c := NewCollector(all, header(0), tables)
	s := newSender(dir, header(1), false)
	s.start(asks(c, 1), nil)
	until(t, "the record began", func() bool { return len(files(t, all, 1, ".samples")) > 0 })
	in := filepath.Join(trace.NodeDir(all, 1), trace.SegmentName(1))
	if err := os.WriteFile(in, nil, 0o666); err != nil { // in the way
		t.Fatal(err)
	}
	w := tracing(t, dir, 1)
	for i := range 2 {
		for range 100 {
			w.Add(trace.Event{Kind: trace.Asked, Key: 1, Time: int64(i) * (1<<32*1000/2 + 1000), Node: 1, Peer: 1})
		}
		w.Flush()
	}
	if err := s.end(true); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err == nil || !strings.Contains(err.Error(), "node 1 had 100 more events") || !strings.Contains(err.Error(), trace.SegmentName(1)) {
		t.Errorf("the leader says %v", err)
	}
	if c.sources[1].dropped != 100 {
		t.Errorf("%d events were dropped", c.sources[1].dropped)
	}
	if got, want := files(t, all, 1, ".trace"), files(t, dir, 1, ".trace"); got["000002.trace"] != want["000002.trace"] || len(got["000001.trace"]) > 0 {
		t.Errorf("the leader has %d and %d bytes", len(got["000001.trace"]), len(got["000002.trace"]))
	}
}

// What is no message is refused.
func TestWhatIsNoMessageIsNotRead(t *testing.T) {
	at := func(segment int, at int64) []byte {
		return (&message{kind: chunk, piece: trace.Piece{Segment: segment, At: at, Data: []byte("x")}}).encode()
	}
	for name, q := range map[string][]byte{
		"empty": {}, "no kind": {mark}, "another mark": {2, 0}, "kind 4": {mark, 4}, "no data": at(1, 0)[:chunkHeadLen], "segment 0": at(0, 0),
		"a large segment": at(maxSegment+1, 0), "a large position": at(1, maxPosition+1), "a long goodbye": append((&message{kind: goodbye}).encode(), 0), "a short goodbye": {mark, byte(goodbye), 0},
	} {
		if m, err := parse(q); err == nil {
			t.Errorf("%s is read as %+v", name, m)
		}
	}
	if _, err := parse(at(maxSegment, maxPosition)); err != nil {
		t.Error(err)
	}
}

// until waits until something holds.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("after 30 s not: %s", what)
		}
	}
}

// Whatever nodes ask, in any order, the collector does not fail, keeps the record of an honest node, and writes to the folders of the nodes that ask. What is
// written can be read.
func FuzzQuestions(f *testing.F) {
	dir := f.TempDir()
	text, err := json.Marshal(header(1))
	if err != nil {
		f.Fatal(err)
	}
	head := segmentHead(f, 1)
	event := make([]byte, trace.RecordLen)
	event[6] = byte(trace.Created)
	var valid [][]byte
	for _, m := range []message{{kind: hello, text: text}, {kind: sample, text: []byte(`{"t":1}`)}, {kind: goodbye, total: 3},
		{kind: chunk, piece: trace.Piece{Segment: 1, Data: head}}, {kind: chunk, piece: trace.Piece{Segment: 1, At: int64(len(head)), Data: event}}} {
		valid = append(valid, m.encode())
	}
	all := func(order ...int) (stream []byte) {
		for _, i := range order {
			stream = binary.LittleEndian.AppendUint16(stream, uint16(len(valid[i])))
			stream = append(stream, valid[i]...)
		}
		return stream
	}
	f.Add(all(0, 1, 3, 4, 2))
	f.Add(all(0, 3, 4, 4))
	f.Add(all(3, 0, 3, 3))
	f.Add(all(0, 4, 1, 2))
	f.Fuzz(func(t *testing.T, stream []byte) {
		folder, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(folder)
		run := filepath.Join(folder, "run")
		if err := os.Mkdir(run, 0o777); err != nil {
			t.Fatal(err)
		}
		c := NewCollector(run, header(0), tables)
		ask := func(node int, q []byte) (answer byte) {
			until(t, "an answer", func() bool {
				a := c.Answer(node, q)
				answer = a[0]
				return answer != retry
			})
			return answer
		}
		honest, err := json.Marshal(header(2))
		if err != nil {
			t.Fatal(err)
		}
		for len(stream) >= 2 {
			n := min(int(binary.LittleEndian.Uint16(stream)), len(stream)-2)
			q := stream[2 : 2+n]
			stream = stream[2+n:]
			if m, err := parse(q); err == nil && !bytes.Equal(m.encode(), q) {
				t.Fatalf("%v is read as %+v", q, m)
			}
			if a := ask(1, q); a > refused {
				t.Errorf("the answer to %v is %d", q, a)
			}
		}
		want := append(segmentHead(t, 2), event...)
		for _, m := range []message{{kind: hello, text: honest}, {kind: chunk, piece: trace.Piece{Segment: 1, Data: want}}, {kind: goodbye, total: 1}} {
			if a := ask(2, m.encode()); a != accepted {
				t.Errorf("the honest node's message of kind %d is answered by %d", m.kind, a)
			}
		}
		_ = c.Close() // what it says depends on the questions
		if got := files(t, run, 2, ".trace")["000001.trace"]; got != string(want) {
			t.Errorf("the honest node's trace is %q, want %q", got, want)
		}
		if in, err := os.ReadDir(folder); err != nil || len(in) != 1 {
			t.Errorf("there are %v beside the run's folder (%v)", in, err)
		}
		in, err := os.ReadDir(run)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range in {
			if d.Name() != "node-1" && d.Name() != "node-2" {
				t.Errorf("there is %s", d.Name())
			}
		}
		tr, err := trace.Open(run)
		if err != nil {
			t.Fatal(err)
		}
		for n := range godwit.NodeID(3) {
			if err := tr.Events(n, func(trace.Event) bool { return true }); err != nil {
				t.Error(err)
			}
		}
		if _, err := record.Open(run); err != nil {
			t.Error(err)
		}
	})
}

// segmentHead returns the header of the first segment of a node.
func segmentHead(t testing.TB, n godwit.NodeID) []byte {
	t.Helper()
	dir := t.TempDir()
	w := tracing(t, dir, n)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(trace.NodeDir(dir, n), trace.SegmentName(1)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
