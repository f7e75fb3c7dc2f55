package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

func create(t testing.TB, dir string, node godwit.NodeID) *Writer {
	t.Helper()
	w, err := Create(Config{Dir: dir, Header: Header{Run: "r", Policy: "adaptive", Node: node, Nodes: 3, Workers: 2, Start: 1e18}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func sampleAt(second int) Sample {
	return Sample{Time: int64(second) * 1e9, Items: int64(second) * 100, Steps: int64(second) * 10,
		Waits: []Wait{{"answers", uint64(second), int64(second) * 5e8}}, Process: Process{Processor: int64(second) * 2e9, GC: int64(second) * 1e8},
		Accesses: Accesses{Local: uint64(second)}, Hot: []trace.KeyUse{{Key: 7, Use: trace.Use{Accesses: uint64(second)}}}, Tables: []Table{{"t", trace.Use{Moves: 1}}}}
}

func closed(t testing.TB, w *Writer) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// A reader sees what was written, and later what was added, of nodes that come later too.
func TestWhatIsWrittenIsReadWhileItGrows(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 2)
	w.Add(sampleAt(1))
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Nodes) != 3 || r.Nodes[0] != nil || r.Nodes[2].Header.Workers != 2 || !reflect.DeepEqual(r.Nodes[2].Samples, []Sample{sampleAt(1)}) {
		t.Fatalf("read %+v", r.Nodes)
	}
	if more, err := r.Poll(); more || err != nil {
		t.Errorf("nothing was added, and Poll says %v, %v", more, err)
	}
	w.Add(sampleAt(2))
	late := create(t, dir, 0)
	late.Add(sampleAt(9))
	if more, err := r.Poll(); !more || err != nil || len(r.Nodes[2].Samples) != 2 || len(r.Nodes[0].Samples) != 1 {
		t.Errorf("after two samples were added: %v, %v, %+v", more, err, r.Nodes)
	}
	if !r.Live() {
		t.Error("the run is not live")
	}
	closed(t, w)
	closed(t, late)
	if _, err := Create(Config{Dir: dir, Header: Header{Node: 2}}); err == nil {
		t.Error("samples were written over others")
	}
}

// Wherever a line was cut off, the lines before are read, and it is when the rest has come.
func TestALineThatIsNotWholeIsReadLater(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 0)
	for i := range 3 {
		w.Add(sampleAt(i))
	}
	closed(t, w)
	path := segmentPath(dir, 0, 1)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := len(b) - 1; n > 0; n -= 17 {
		if err := os.WriteFile(path, b[:n], 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(r.Nodes[0].Samples), max(0, strings.Count(string(b[:n]), "\n")-1); got != want || r.Bad > 0 {
			t.Fatalf("%d samples of %d bytes, want %d; %d bad lines", got, n, want, r.Bad)
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Poll(); err != nil || len(r.Nodes[0].Samples) != 3 {
			t.Fatalf("then %d samples, %v", len(r.Nodes[0].Samples), err)
		}
	}
}

// After a write that failed within a line, what follows is read.
func TestALineThatADiskCutOffIsPassedOver(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 0)
	w.Add(sampleAt(1))
	if _, err := w.file.WriteString(`{"t":2,"it`); err != nil {
		t.Fatal(err)
	}
	w.torn = true
	w.Add(sampleAt(3))
	closed(t, w)
	r, err := Open(dir)
	for range 2 {
		if err != nil || len(r.Nodes[0].Samples) != 2 || r.Bad != 1 {
			t.Fatalf("%d samples, %d bad lines, %v", len(r.Nodes[0].Samples), r.Bad, err)
		}
		_, err = r.Poll() // what was bad is counted once
	}
}

func TestADiskThatTakesNothingIsToldAndHoldsUpNobody(t *testing.T) {
	w := create(t, t.TempDir(), 0)
	if err := w.file.Close(); err != nil {
		t.Fatal(err)
	}
	w.Add(sampleAt(1))
	if err := w.Close(); !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), "1 samples") {
		t.Errorf("%v", err)
	}
}

// Files are bounded in number and size, and a reader follows from one to the next.
func TestFilesAreRotatedAndBounded(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 0)
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		w.Add(sampleAt(i))
		w.size = segmentBytes
		if i%3 == 0 {
			if _, err := r.Poll(); err != nil {
				t.Fatal(err)
			}
		}
	}
	closed(t, w)
	if _, err := r.Poll(); err != nil || len(r.Nodes[0].Samples) != 40 {
		t.Errorf("%d samples were read, want 40: %v", len(r.Nodes[0].Samples), err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "node-0", "*.samples"))
	if err != nil || len(files) != kept || filepath.Base(files[0]) != "000001.samples" || filepath.Base(files[1]) != "000026.samples" {
		t.Errorf("%d files, %v (%v)", len(files), files, err)
	}
	if r, err = Open(dir); err != nil || len(r.Nodes[0].Samples) != kept {
		t.Errorf("read again: %d samples, %v", len(r.Nodes[0].Samples), err)
	}
}

func TestSamplesOfALongRunAreThinned(t *testing.T) {
	n := &Node{}
	for i := range 10 * maxSamples {
		n.Samples = append(n.Samples, Sample{Time: int64(i)})
		n.thin()
	}
	s := n.Samples
	if len(s) > maxSamples || s[0].Time != 0 || s[len(s)-1].Time != 10*maxSamples-1 || s[len(s)-1].Time-s[len(s)-100].Time != 99 {
		t.Errorf("%d samples, from %d to %d", len(s), s[0].Time, s[len(s)-1].Time)
	}
}

// Who reads a run in pieces comes to the same as who reads it at once.
func TestPiecesOfARunAreTheWhole(t *testing.T) {
	dir := t.TempDir()
	for n := range 2 {
		w, err := Create(Config{Dir: dir, Header: Header{Run: "r", Node: godwit.NodeID(n), Nodes: 2}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(20) {
			if w.Add(Sample{Time: i, Whole: []Whole{{Name: strings.Repeat("w", 30_000)}}}); i == 10 {
				w.size = segmentBytes // the next one goes to another file
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Begin(dir)
	if err != nil || len(r.Nodes) > 0 {
		t.Fatalf("%d nodes are there before anything was read (%v)", len(r.Nodes), err)
	}
	pieces := 0
	for {
		more, err := r.PollSome(100_000)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		pieces++
	}
	if pieces < 5 || !reflect.DeepEqual(r.Nodes[0].Samples, all.Nodes[0].Samples) || !reflect.DeepEqual(r.Nodes[1].Samples, all.Nodes[1].Samples) {
		t.Errorf("in %d pieces, %d and %d samples are read, want %d of each", pieces, len(r.Nodes[0].Samples), len(r.Nodes[1].Samples), len(all.Nodes[0].Samples))
	}
}

// Each node of a large run tells of all others, so that fewer samples of each are held.
func TestSamplesOfManyNodesAreFewer(t *testing.T) {
	const nodes = 200
	dir := t.TempDir()
	w, err := Create(Config{Dir: dir, Header: Header{Run: "r", Nodes: nodes}})
	if err != nil {
		t.Fatal(err)
	}
	s := Sample{Whole: []Whole{{Name: strings.Repeat("w", 16<<10)}}} // in the place of what it tells of each other node
	write := func(n int) {
		for range n {
			s.Time++
			w.Add(s)
		}
	}
	write(leastSamples)
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	write(3 * leastSamples)
	if more, err := r.Poll(); err != nil || !more {
		t.Errorf("Poll says %v, %v of samples of which some are let go", more, err)
	}
	got := r.Nodes[0].Samples
	if n := len(got); n > leastSamples || got[0].Time != 1 || got[n-1].Time != s.Time || got[n-1].Time-got[n-60].Time != 59 {
		t.Errorf("%d samples are held, from %d to %d, want at most %d and each of the last minute", n, got[0].Time, got[n-1].Time, leastSamples)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestEventsAreWrittenAndRead(t *testing.T) {
	dir := t.TempDir()
	d, err := NewDiary(dir, "r", "adaptive")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	want := []Event{
		{Time: at, Start: &Start{Task: "kge", Unit: "triples", Nodes: []Member{{ID: 0, Host: "h", Workers: 2}}, Spec: json.RawMessage(`{"a":1}`)}},
		{Time: at, Seconds: 1, Epoch: &Epoch{Epoch: 1, Of: 2, Loss: 0.5, Items: 100, Seconds: 3}},
		{Time: at, Evaluation: &Evaluation{Epoch: 1, Metrics: []Metric{{"valid", "MRR", 0.25}}}},
		{Time: at, End: &End{Reason: "all epochs", Epochs: 2}},
	}
	for _, e := range want {
		d.Add(e)
	}
	d.Add(Event{Epoch: &Epoch{Loss: Figure(math.NaN())}})
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	d.Add(Event{}) // too late
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r.Bad != 0 || len(r.Events) != 5 || !math.IsNaN(float64(r.Events[4].Epoch.Loss)) || !reflect.DeepEqual(r.Events[:4], want) || r.Start().Task != "kge" || r.About.Policy != "adaptive" {
		t.Errorf("read %+v, and %d bad lines", r.Events, r.Bad)
	}
	if _, err := NewDiary(dir, "r", "adaptive"); err == nil {
		t.Error("events were written over others")
	}
	f, err := os.OpenFile(filepath.Join(dir, eventsName), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("{\"time\":torn\n"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what was bad is counted once
		if _, err := r.Poll(); err != nil || r.Bad != 1 || len(r.Events) != 5 {
			t.Errorf("%d events, %d bad lines, %v", len(r.Events), r.Bad, err)
		}
	}
	if r, err := Outline(dir); err != nil || r.Bad != 1 || len(r.Events) != 5 {
		t.Errorf("the outline has %d events, %d bad lines, %v", len(r.Events), r.Bad, err)
	}
}

// A diary whose disk hangs takes what it has room for, and counts the rest.
func TestADiaryNeverWaits(t *testing.T) {
	d := &Diary{queue: make(chan Event, waiting), done: make(chan struct{})}
	close(d.done) // nobody writes
	for range waiting + 7 {
		d.Add(Event{})
	}
	if err := d.Close(); err == nil || !strings.Contains(err.Error(), "7 events") {
		t.Errorf("%v", err)
	}
}

// A run whose leader lives is under way, though no event comes and no node tells anything.
func TestAnOpenDiaryKeepsARunUnderWay(t *testing.T) {
	dir := t.TempDir()
	d, err := NewDiary(dir, "r", "adaptive")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	d.Add(Event{Start: &Start{}})
	long := time.Now().Add(-time.Hour)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		r, err := Open(dir)
		if err == nil && r.Start() != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("there is no start: %v", err)
		}
	}
	path := filepath.Join(dir, eventsName)
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); !r.Live() || r.Failure() != ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the run is not under way: %q", r.Failure())
		}
	}
}

// A disk that takes no more is told of once, when it begins, and at the end.
func TestTheFirstSampleThatIsLostIsTold(t *testing.T) {
	var told []error
	w, err := Create(Config{Dir: t.TempDir(), Header: Header{Nodes: 1, Workers: 1}, Warn: func(err error) { told = append(told, err) }})
	if err != nil {
		t.Fatal(err)
	}
	w.Add(sampleAt(1))
	if len(told) > 0 {
		t.Errorf("of a sample that was written: %v", told)
	}
	if err := w.file.Close(); err != nil { // as a disk that is full
		t.Fatal(err)
	}
	w.Add(sampleAt(2))
	w.Add(sampleAt(3))
	if len(told) != 1 || !errors.Is(told[0], os.ErrClosed) {
		t.Errorf("%v, want one warning", told)
	}
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "2 samples were not written") {
		t.Errorf("at the end: %v", err)
	}
	if len(told) != 1 {
		t.Errorf("%v, want one warning", told)
	}
}

// The files of a run may have times of another clock: one that goes on is known by their changes, whatever they say, and one that was killed by that there are none.
func TestARunUnderAnotherClockIsKnownByItsChanges(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 0)
	w.Add(sampleAt(1))
	closed(t, w)
	d, err := NewDiary(dir, "r", "adaptive")
	if err != nil {
		t.Fatal(err)
	}
	d.Add(Event{Start: &Start{}})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	written := func(ago time.Duration) {
		for _, path := range []string{filepath.Join(dir, eventsName), segmentPath(dir, 0, 1)} {
			if err := os.Chtimes(path, time.Now().Add(-ago), time.Now().Add(-ago)); err != nil {
				t.Fatal(err)
			}
		}
	}
	written(time.Minute)
	open := func() *Run {
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := open(); r.Watch(t.Context()) != nil || r.Live() || r.Failure() == "" {
		t.Error("a run whose files stay as they are goes on")
	}
	r, end := open(), make(chan bool)
	go func() { // what the run would do
		defer close(end)
		time.Sleep(seeWithin / 10)
		written(time.Minute)
	}()
	if err := r.Watch(t.Context()); err != nil || !r.Live() || r.Failure() != "" {
		t.Errorf("a run that writes by a clock that is slow has failed: %v, %s", err, r.Failure())
	}
	<-end
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := open().Watch(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

func TestASampleIsTakenAtOnceEachSecondAndAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	var taken atomic.Int64
	w, err := Create(Config{Dir: dir, Header: Header{Node: 1, Nodes: 2, Workers: 1}, Take: func() Sample { return sampleAt(int(taken.Add(1))) }})
	if err != nil {
		t.Fatal(err)
	}
	closed(t, w)
	r, err := Open(dir)
	if err != nil || len(r.Nodes[1].Samples) != int(taken.Load()) || taken.Load() < 2 {
		t.Errorf("%d samples were taken, %v", taken.Load(), err)
	}
}

func TestAUsageIsTheDifferenceOfTwoSamples(t *testing.T) {
	a, b := sampleAt(2), sampleAt(4)
	u := b.Since(&a, 2)
	want := Usage{Seconds: 2, Items: 200, Steps: 20, Compute: 3, Waits: map[string]float64{"answers": 1}, Waited: 1, GC: 0.2, Server: 0.8}
	u.Server, u.GC = math.Round(u.Server*1e6)/1e6, math.Round(u.GC*1e6)/1e6
	if !reflect.DeepEqual(u, want) {
		t.Errorf("%+v, want %+v", u, want)
	}
}

// Go estimates the time of garbage collection by the clock: on processors that others have as well, it is more than the process had.
func TestGarbageCollectionTakesNoMoreThanThereWas(t *testing.T) {
	a := Sample{}
	b := Sample{Time: 1e9, Process: Process{Processor: 1e8, GC: 6e8}}
	if u := b.Since(&a, 1); u.GC != 0.1 {
		t.Errorf("of 0.1 s of processor time, garbage collection took %v s", u.GC)
	}
}

func TestFoldersWithoutARunAreRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); !errors.Is(err, errNone) {
		t.Errorf("an empty folder: %v", err)
	}
	for _, run := range []string{"a", "b"} {
		w := create(t, filepath.Join(dir, run), 0)
		w.Add(sampleAt(1))
		closed(t, w)
		_, err := Open(dir)
		if run == "a" && err != nil || run == "b" && (err == nil || !strings.Contains(err.Error(), "several runs")) {
			t.Errorf("with run %s: %v", run, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "no")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// Files of others, and damaged ones, are no reason to stop, nor to read for ever.
func FuzzLines(f *testing.F) {
	b, err := json.Marshal(sampleAt(3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("{\"format\":\"godwit-samples\",\"version\":1}\n" + string(b) + "\n" + string(b[:20])))
	f.Add([]byte("\n\n{}\n{\"t\":1e99}\nx"))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if err := os.MkdirAll(trace.NodeDir(dir, 0), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(segmentPath(dir, 0, 1), b, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, eventsName), b, 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := Open(dir)
		if err != nil && strings.Contains(err.Error(), "of the format, and this program reads version 1") {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		last := int64(math.MinInt64)
		for _, s := range r.Nodes[0].Samples {
			if s.Time < last {
				t.Fatalf("samples are not in order: %d after %d", s.Time, last)
			}
			last = s.Time
		}
	})
}

// BenchmarkAdd is the cost of a sample of sixteen nodes.
func BenchmarkAdd(b *testing.B) {
	w := create(b, b.TempDir(), 0)
	s, rng := sampleAt(1), rand.New(rand.NewPCG(1, 1))
	for i := range 15 {
		s.Peers = append(s.Peers, Peer{Node: godwit.NodeID(i), Bytes: rng.Uint64()})
		s.Sent = append(s.Sent, Sent{fmt.Sprint(i), rng.Uint64()})
	}
	for b.Loop() {
		w.Add(s)
	}
	closed(b, w)
}

// A disk that takes a part of an event, and later takes all again, loses that one.
func TestADiaryGoesOnAfterATornLine(t *testing.T) {
	out, disk, err := os.Pipe() // which takes 64 KiB
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	d := &Diary{queue: make(chan Event), done: make(chan struct{}), file: disk}
	go d.run(About{Format: eventsFormat, Version: Version, Run: "r"})
	if err := disk.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	d.queue <- Event{Warning: strings.Repeat("w", 1<<20)}
	d.queue <- Event{Warning: "taken when the line is torn"}
	if err := disk.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	read := make(chan []byte, 1)
	go func() { b, _ := io.ReadAll(out); read <- b }()
	d.queue <- Event{End: &End{Reason: "all epochs"}}
	close(d.queue)
	lines := strings.Split(strings.TrimSpace(string(<-read)), "\n")
	var last Event
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.End == nil {
		t.Errorf("the last of %d lines is %.100q (%v), want the end of the run", len(lines), lines[len(lines)-1], err)
	}
	if <-d.done; d.err == nil {
		t.Error("nothing is told of the event that was lost")
	}
}

// A sample of before the last one is none: what is between two samples would be less than nothing.
func TestASampleOfAnEarlierTimeIsRefused(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 0)
	for _, second := range []int{1, 3, 2, 4} {
		w.Add(sampleAt(second))
	}
	closed(t, w)
	r, err := Open(dir)
	if err != nil || len(r.Nodes[0].Samples) != 3 || r.Bad != 1 {
		t.Errorf("%d samples, %d bad lines, %v", len(r.Nodes[0].Samples), r.Bad, err)
	}
}

// Latencies are told in microseconds and written in nanoseconds.
func TestTimesOfASnapshotAreNanoseconds(t *testing.T) {
	var s Sample
	s.Fill(&telemetry.Snapshot{Leads: telemetry.Histogram{Of: []uint64{0, 3, 1}, Sum: 8}})
	if s.Leads != (Times{4, 8000}) || s.Leads.Mean() != 2*time.Microsecond {
		t.Errorf("four keys of 8 µs together took %+v", s.Leads)
	}
}

// change replaces the first of some text in a file.
func change(t *testing.T, path, old, by string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(b), old) {
		t.Fatalf("%s lacks %q (%v)", path, old, err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), old, by, 1)), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Nothing in a file of another version means what it says: who reads it is told which file it is, and what to do.
func TestFilesOfAnotherVersionAreRefused(t *testing.T) {
	for _, samples := range []bool{true, false} {
		dir := t.TempDir()
		w := create(t, dir, 1)
		w.Add(sampleAt(1))
		w.Add(sampleAt(2))
		closed(t, w)
		d, err := NewDiary(dir, "r", "adaptive")
		if err != nil {
			t.Fatal(err)
		}
		d.Add(Event{Warning: "w"})
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, eventsName)
		if samples {
			path = segmentPath(dir, 1, 1)
		}
		change(t, path, `"version":1`, `"version":2`)
		refused := func(how string, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), path+": the file has version 2 of the format, and this program reads version 1: look") {
				t.Errorf("%s of %s: %v", how, path, err)
			}
		}
		_, err = Open(dir)
		refused("Open", err)
		_, err = Recent(dir, time.Minute)
		refused("Recent", err)
		r, err := Outline(dir)
		if err == nil {
			_, err = r.Each(1, func(_, now *Front) { t.Errorf("%s: a sample was read", path) }, func(int) {})
		}
		refused("Outline", err)
		r, err = Begin(dir)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err = r.Poll()
			refused("Poll", err)
		}
		if len(r.Events) > 0 && !samples || samples && len(r.Nodes[1].Samples) > 0 {
			t.Errorf("%s was read: %+v", path, r)
		}
	}
}

// Figures are those of a number of workers, which the header says: samples without one are damaged.
func TestSamplesBehindADamagedHeaderAreDamaged(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 0)
	w.Add(sampleAt(1))
	w.Add(sampleAt(2))
	closed(t, w)
	change(t, segmentPath(dir, 0, 1), `"format"`, "\x00\x00rmat\x00")
	for how, open := range map[string]func() (*Run, error){
		"Open":   func() (*Run, error) { return Open(dir) },
		"Recent": func() (*Run, error) { return Recent(dir, time.Minute) },
		"Outline": func() (*Run, error) {
			r, err := Outline(dir)
			if err == nil {
				_, err = r.Each(0, func(_, now *Front) { t.Error("a sample was read") }, func(int) {})
			}
			return r, err
		},
	} {
		if r, err := open(); err != nil || len(r.Nodes[0].Samples) > 0 || r.Bad != 3 {
			t.Errorf("%s: %+v, %v", how, r, err)
		}
	}
}
