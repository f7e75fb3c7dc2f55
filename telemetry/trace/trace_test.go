package trace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/racing"
)

func model(t testing.TB) *godwit.Model {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "a", Rows: 1 << 20, Dim: 1, Rule: godwit.Add{}}, godwit.Table{Name: "b:c", Rows: 10, Dim: 1, Rule: godwit.Add{}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func header(t testing.TB, node godwit.NodeID) Header {
	return Header{Run: "r", Policy: "adaptive", Node: node, Nodes: 3, Start: 5, Tables: TablesOf(model(t))}
}

func create(t testing.TB, dir string, node godwit.NodeID, plain bool) *Writer {
	t.Helper()
	w, err := Create(Config{Dir: dir, Header: header(t, node), Plain: plain})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func closed(t testing.TB, w *Writer) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func all(t testing.TB, dir string, node godwit.NodeID) (events []Event) {
	t.Helper()
	tr, err := Open(dir)
	if err == nil {
		err = tr.Events(node, func(e Event) bool { events = append(events, e); return true })
	}
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 2, false)
	want := []Event{
		{Time: 1000, Key: 7, Clock: 3, Epoch: 1, Node: 2, Peer: 1, Kind: Arrived},
		{Time: 5_000_000_000, Key: 1<<48 - 1, Clock: 1 << 31, Epoch: 1<<32 - 1, Node: 2, Peer: 0, Kind: Refreshed},
		{Time: 6_000_000_000, Key: 7, Clock: 9, N: 1 << 20, Node: 2, Peer: 2, Kind: Accessed},
	}
	for _, e := range want {
		w.Add(e)
	}
	closed(t, w)
	if got := all(t, dir, 2); !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%+v, want\n%+v", got, want)
	}
	if _, err := Create(Config{Dir: dir, Header: header(t, 2)}); err == nil {
		t.Error("a trace was written over another one")
	}
}

// A process that is killed leaves a record that is not whole, or a header.
func TestWhatAKilledProcessLeftIsRead(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 0, true)
	for i := range 10 {
		w.Add(Event{Time: int64(i) * 1000, Key: godwit.Key(i), Kind: Created})
	}
	closed(t, w)
	path := filepath.Join(NodeDir(dir, 0), "000001.trace")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head := len(b) - 10*RecordLen
	for n := len(b); n > head; n-- {
		if err := os.Truncate(path, int64(n)); err != nil {
			t.Fatal(err)
		}
		if got := len(all(t, dir, 0)); got != (n-head)/RecordLen {
			t.Fatalf("%d events of %d bytes", got, n-head)
		}
	}
	if err := os.WriteFile(filepath.Join(NodeDir(dir, 0), "000002.trace"), b[:head/2], 0o666); err != nil {
		t.Fatal(err)
	}
	if got := len(all(t, dir, 0)); got != 0 {
		t.Errorf("%d events of a header", got)
	}
}

// Whatever the nodes' clocks say, a key has one owner at a time, and its life is in the order of
// its epochs.
func TestOrderIsThatOfEpochsNotOfClocks(t *testing.T) {
	dir := t.TempDir()
	clocks := []int64{0, -5e9, 5e9} // by which node's clocks are off
	var ws []*Writer
	for n := range clocks {
		ws = append(ws, create(t, dir, godwit.NodeID(n), true))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	owner, now := 0, int64(10e9)
	add := func(n int, kind Kind, peer int, epoch int) {
		ws[n].Add(Event{Time: now + clocks[n], Key: 9, Epoch: godwit.Epoch(epoch), Node: godwit.NodeID(n), Peer: godwit.NodeID(peer), Kind: kind})
		now += 1e6
	}
	add(0, Created, 0, 0)
	owners := []godwit.NodeID{0}
	for epoch := range 50 {
		to := (owner + 1 + rng.IntN(2)) % 3
		add(to, Wanted, to, 0)
		add(owner, Left, to, epoch)
		add(to, Arrived, owner, epoch+1)
		owner = to
		owners = append(owners, godwit.NodeID(to))
	}
	for _, w := range ws {
		closed(t, w)
	}
	tr, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tr.Life(9)
	if err != nil {
		t.Fatal(err)
	}
	var got []godwit.NodeID
	for i, r := range l.Reigns {
		got = append(got, r.Owner)
		if r.Epoch != godwit.Epoch(i) || (r.To < 0) != (i == len(owners)-1) || r.To >= 0 && r.To < r.From {
			t.Errorf("reign %d is %+v", i, r)
		}
	}
	if !slices.Equal(got, owners) {
		t.Errorf("owners were %v, want %v", got, owners)
	}
	if len(l.Events) != 151 {
		t.Errorf("the life has %d events, want 151", len(l.Events))
	}
}

// A folder that lacks the trace of some nodes tells less, and says so.
func TestNodesWithoutATraceAreTold(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 1, true)
	w.Add(Event{Key: 7, Epoch: 1, Peer: 0, Kind: Arrived})
	closed(t, w)
	tr, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range map[godwit.Key]int{7: 2, 8: 2} { // of one nothing is known at all
		l, err := tr.Life(k)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := l.Explain(&text, &tr.Header); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text.String(), "there is no trace of it"); n != want || strings.Contains(text.String(), "node 1: there is no") {
			t.Errorf("of key %d it is told of %d nodes that they have no trace, want nodes 0 and 2: %s", k, n, &text)
		}
	}
}

// Nodes that are killed do not write that a key left, or that it came.
func TestALifeOfWhichAnEventIsLackingIsTold(t *testing.T) {
	dir := t.TempDir()
	for n, events := range [][]Event{{{Key: 1, Kind: Created}, {Key: 2, Kind: Created}, {Time: 4e9, Key: 2, Kind: Left, Peer: 1}}, {{Time: 1e9, Key: 1, Epoch: 1, Kind: Arrived}, {Time: 3e9, Key: 1, Kind: Accessed, N: 1}}} {
		h := header(t, godwit.NodeID(n))
		h.Start += int64(n) * 2e9 // the second node begins two seconds later
		w, err := Create(Config{Dir: dir, Header: h, Plain: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			w.Add(e)
		}
		closed(t, w)
	}
	tr, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range map[godwit.Key]string{1: "node 0: owned it 60 % of the time", 2: "at 4.000 s it left node 0, and no node told of its arrival"} {
		l, err := tr.Life(k)
		if err != nil {
			t.Fatal(err)
		}
		if k == 1 && (len(l.Reigns) != 2 || l.Reigns[0].To != 3e9 || l.Reigns[1].To >= 0) {
			t.Errorf("the reigns are %+v", l.Reigns)
		}
		var text strings.Builder
		if err := l.Explain(&text, &tr.Header); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), want) {
			t.Errorf("of key %d it is told:\n%swant %q", k, &text, want)
		}
	}
}

// Times are those of the events, however long nothing happens: a record has room for 71 minutes since the segment's base.
func TestTimesAreRightAfterHoursWithoutEvents(t *testing.T) {
	const hour = int64(3600e9)
	want := []int64{1e9, 3 * hour, 3*hour + 1e9, 9 * hour}
	for _, flush := range []bool{false, true} {
		dir := t.TempDir()
		w := create(t, dir, 0, true)
		for i, at := range want {
			w.Add(Event{Time: at, Key: godwit.Key(i), Kind: Created})
			if flush {
				w.Flush()
			}
		}
		closed(t, w)
		var got []int64
		for _, e := range all(t, dir, 0) {
			if e.Kind == Created {
				got = append(got, e.Time)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("flushed %v: events at %d are read at %d", flush, want, got)
		}
		tr, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		for at, n := range map[int64]int{hour: 1, 4 * hour: 3, 9 * hour: 4} {
			if has, err := tr.At(0, at); err != nil || len(has) != n {
				t.Errorf("flushed %v: at %d the node has %d keys (%v), want %d", flush, at, len(has), err, n)
			}
		}
	}
}

func TestTwoOwnersOfAnEpochAreNoticed(t *testing.T) {
	dir := t.TempDir()
	for n := range godwit.NodeID(2) {
		w := create(t, dir, n, true)
		w.Add(Event{Key: 1, Node: n, Epoch: 4, Kind: Arrived})
		closed(t, w)
	}
	tr, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Life(1); err == nil {
		t.Error("a key with two owners has a life")
	}
}

// A trace of several segments is read from any time on as from the beginning.
func TestEverySegmentSaysWhatTheNodeHas(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 1, true)
	rng := rand.New(rand.NewPCG(3, 4))
	has := map[godwit.Key]Copy{}
	type state struct {
		at  int64
		has map[godwit.Key]Copy
	}
	var states []state
	for i := range 40_000 {
		k := godwit.Key(rng.IntN(50))
		kinds := []Kind{Arrived, Copied}
		if c, ok := has[k]; ok && c.Main {
			kinds = []Kind{Left}
		} else if ok {
			kinds = []Kind{Refreshed, Ended}
		}
		e := Event{Time: int64(i) * 1000, Key: k, Epoch: godwit.Epoch(i), Node: 1, Peer: 0, Kind: kinds[rng.IntN(len(kinds))]}
		w.Add(e)
		switch e.Kind {
		case Arrived:
			has[k] = Copy{true, e.Epoch}
		case Copied, Refreshed:
			has[k] = Copy{false, e.Epoch}
		default:
			delete(has, k)
		}
		if i%5000 == 4999 {
			w.Flush()
			w.size = segmentBytes // a new one
		}
		if i%999 == 0 || i%5000 == 1 { // also just behind what a segment begins with
			x := state{e.Time, map[godwit.Key]Copy{}}
			for k, c := range has {
				x.has[k] = c
			}
			states = append(states, x)
		}
	}
	closed(t, w)
	tr, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(tr.nodes[1]); n < 8 {
		t.Fatalf("the trace has %d segments", n)
	}
	for _, x := range states {
		got, err := tr.At(1, x.at)
		if err != nil || !reflect.DeepEqual(got, x.has) {
			t.Fatalf("at %d the node has %v, want %v (%v)", x.at, got, x.has, err)
		}
	}
}

// A census counts by key and table what was written, and says how few keys have most refreshes.
func TestACensusCountsKeysAndTables(t *testing.T) {
	w := create(t, t.TempDir(), 1, false)
	m := model(t)
	for i := range 100 {
		k := m.Key(0, uint64(i))
		n := 1
		if i < 2 {
			n = 200
		}
		for range n {
			w.Add(Event{Key: k, Kind: Refreshed})
		}
		w.Add(Event{Key: k, Kind: Accessed, N: uint32(i)})
	}
	w.Add(Event{Key: m.Key(1, 9), Kind: Missed, N: 5})
	w.Add(Event{Key: m.Key(1, 9), Kind: Arrived})
	closed(t, w)
	x := w.Census()
	if want := []Use{{Accesses: 4950, Refreshes: 498}, {Missed: 5, Moves: 1}}; !slices.Equal(x.Tables, want) {
		t.Errorf("tables: %+v, want %+v", x.Tables, want)
	}
	if x.Half != 2 || x.Most != 2 || x.Hot[0] != (KeyUse{m.Key(0, 99), Use{Accesses: 99, Refreshes: 1}}) || len(x.Hot) < 17 || len(x.Hot) > 48 {
		t.Errorf("%d and %d keys have most; %+v", x.Half, x.Most, x.Hot)
	}
	for _, k := range []godwit.Key{m.Key(0, 0), m.Key(1, 9)} {
		if !slices.ContainsFunc(x.Hot, func(h KeyUse) bool { return h.Key == k }) {
			t.Errorf("key %d is not hot: %+v", k, x.Hot)
		}
	}
	if half, most := few([]KeyUse{{1, Use{Refreshes: 3}}, {2, Use{Refreshes: 3}}, {3, Use{}}}); half != 1 || most != 2 {
		t.Errorf("of two keys with as many refreshes, %d have half and %d most", half, most)
	}
	if (*Writer)(nil).Census().Hot != nil {
		t.Error("the census of nothing has keys")
	}
}

// A spool that takes nothing costs events, which are counted, and no time.
func TestWhatADiskDoesNotTakeIsDroppedAndCounted(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 0, false)
	w.writing.Lock() // as a write that hangs
	for i := range maxPending + 1000 {
		w.Add(Event{Key: godwit.Key(i), Kind: Refreshed})
	}
	w.Add(Event{Key: 5, Kind: Ended})
	full := w.Dropped()
	if err := w.file.Close(); err != nil { // as a disk that is full
		t.Fatal(err)
	}
	w.writing.Unlock()
	w.Flush()
	if err := w.Lacks(); !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), fmt.Sprint(maxPending+1001)) {
		t.Errorf("while it goes on, it says: %v", err)
	}
	if full != 1000 || w.Dropped() != maxPending+1001 {
		t.Errorf("%d and %d events were dropped, want 1000 and %d", full, w.Dropped(), maxPending+1001)
	}
	w.Add(Event{Key: 1, Kind: Created, Time: 77_000})
	if err := w.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the error of writing is %v", err)
	}
	events := all(t, dir, 0)
	lost, has := uint32(0), map[godwit.Key]bool{}
	for _, e := range events {
		switch e.Kind {
		case Lost:
			lost += e.N
		case Replicates:
			has[e.Key] = true
		}
	}
	if len(has) != maxPending-1 || has[5] {
		t.Errorf("the segment after the loss begins with %d replicas (of a key that ended: %v), want %d", len(has), has[5], maxPending-1)
	}
	if last := slices.IndexFunc(events, func(e Event) bool { return e.Kind == Created }); last < 0 || lost < maxPending {
		t.Errorf("after %d events were lost, %d were written: %v", lost, len(events), events)
	}
	tr, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []godwit.Key{1, 9} { // key 9 has no event at all
		l, err := tr.Life(k)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := l.Explain(&text, &tr.Header); err != nil || !strings.Contains(text.String(), fmt.Sprintf("node 0: %d events of all keys are missing", lost)) {
			t.Errorf("of key %d it is not told that events are missing: %s, %v", k, &text, err)
		}
	}
}

// Where there are too many details of keys, those of fewer keys are written, which is told, until there are few again. What
// says where keys are, and how often they were refreshed, is written of all.
func TestDetailsOfFewerKeysAreWrittenWhereThereAreMany(t *testing.T) {
	dir := t.TempDir()
	ks, err := ParseKeys("random=2000000,a:77", model(t))
	if err != nil {
		t.Fatal(err)
	}
	w, err := Create(Config{Dir: dir, Header: header(t, 0), Keys: ks})
	if err != nil {
		t.Fatal(err)
	}
	const keys, rounds, named = 1000, 40, 77
	at, taken := int64(0), map[godwit.Key]int{}
	add := func(k godwit.Key, kind Kind, epoch int) {
		if at += 1000; w.Takes(k, kind) {
			w.Add(Event{Time: at, Key: k, Epoch: godwit.Epoch(epoch), Kind: kind})
			if kind == Wanted {
				taken[k]++
			}
		}
	}
	w.writing.Lock() // so that no flush comes between
	for r := range rounds {
		for k := range godwit.Key(keys) {
			add(k, Wanted, 0)
			add(k, Arrived, 2*r)
			add(k, Left, 2*r)
		}
	}
	w.writing.Unlock()
	fewest := w.thinned.Load()
	if fewest < 1 || fewest > 4 {
		t.Errorf("after %d details they are those of one key of %d", keys*rounds, 1<<fewest)
	}
	for range fewest + 1 { // quarters of a second without any
		w.Flush()
	}
	at += 1_000_000_000
	for k := range godwit.Key(keys) {
		add(k, Wanted, 2*rounds)
	}
	closed(t, w)
	if n := w.Dropped(); n != 0 {
		t.Errorf("%d events were dropped", n)
	}

	found, moves, now := map[godwit.Key]int{}, 0, uint32(1)
	for _, e := range all(t, dir, 0) {
		switch e.Kind {
		case Thinned:
			now = e.N
		case Arrived:
			moves++
		case Wanted:
			found[e.Key]++
		}
	}
	if now != 1 || moves != keys*rounds {
		t.Errorf("at last details are those of one key of %d, want 1; %d moves were written, want %d", now, moves, keys*rounds)
	}
	if !reflect.DeepEqual(found, taken) {
		t.Errorf("of %d keys details were written, of %d taken", len(found), len(taken))
	}
	all, few := 0, 0
	for k := range godwit.Key(keys) {
		switch n := taken[k]; {
		case n == rounds+1:
			all++
		case n < rounds/2:
			few++
		}
	}
	if all == 0 || all > keys/(1<<fewest)*2 || few < keys/3 {
		t.Errorf("%d keys have all their details, and %d less than half of them: one of %d is to have all", all, few, 1<<fewest)
	}
	if taken[named] != rounds+1 {
		t.Errorf("a key that was named has %d of %d details", taken[named], rounds+1)
	}

	tr, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for k := range godwit.Key(keys) {
		if racing.Enabled && k%16 != named%16 { // each reads all segments
			continue
		}
		l, err := tr.Life(k)
		if err != nil {
			t.Fatal(err)
		}
		if lacks := taken[k] < rounds+1; len(l.Thinned) > 0 != lacks {
			t.Errorf("key %d has %d of %d details, and gaps %v", k, taken[k], rounds+1, l.Thinned)
		}
		for _, g := range l.Thinned {
			if g.To < g.From {
				t.Errorf("key %d lacks details from %d to %d", k, g.From, g.To)
			}
		}
		var text strings.Builder
		if err := l.Explain(&text, &tr.Header); err != nil {
			t.Fatal(err)
		}
		if lacks := strings.Contains(text.String(), fmt.Sprintf("--trace-keys a:%d", k)); lacks != (taken[k] < rounds+1) {
			t.Errorf("key %d with %d of %d details: %s", k, taken[k], rounds+1, &text)
		}
	}
}

// Where there are too many refreshes to write each, those of some keys are counted, so that none is missing: as the census, the reader, and explain have it.
// Those of keys that were named are written one by one.
func TestRefreshesAreCountedWhereThereAreMany(t *testing.T) {
	for _, rows := range []uint64{1000, fewKeys + 1} { // an array by key, or a table
		t.Run(fmt.Sprint(rows), func(t *testing.T) { countRefreshes(t, rows) })
	}
}

func countRefreshes(t *testing.T, rows uint64) {
	m, err := godwit.NewModel(godwit.Table{Name: "a", Rows: rows, Dim: 1, Rule: godwit.Add{}})
	if err != nil {
		t.Fatal(err)
	}
	ks, err := ParseKeys("random=2000000,a:77", m)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w, err := Create(Config{Dir: dir, Header: Header{Run: "r", Nodes: 1, Tables: TablesOf(m)}, Keys: ks})
	if err != nil {
		t.Fatal(err)
	}
	const keys, rounds, named = 1000, 40, 77
	at, want := int64(0), map[godwit.Key]uint64{}
	refresh := func(k godwit.Key) {
		want[k]++
		if at += 1000; w.Takes(k, Refreshed) && !w.CountsRefresh(k) {
			w.Add(Event{Time: at, Key: k, Epoch: 3, Kind: Refreshed})
		}
	}
	for k := range godwit.Key(keys) {
		w.Add(Event{Time: at, Key: k, Epoch: 3, Kind: Copied})
	}
	w.writing.Lock() // so that no flush comes between
	for r := range rounds {
		for k := range godwit.Key(keys) {
			refresh(godwit.Key(uint64(k) * uint64(r%2+1) % rows)) // of some keys more often
		}
	}
	w.writing.Unlock()
	if level := w.refreshes.level.Load(); level < 3 || level > 6 {
		t.Errorf("after %d refreshes those are written of one key of %d", keys*rounds, 1<<level)
	}
	for range mostThinned { // quarters of a second without any
		w.Flush()
	}
	for k := range godwit.Key(keys) {
		if w.CountsRefresh(k) {
			t.Fatalf("a refresh of key %d is not written when there are few", k)
		}
		refresh(k)
	}
	closed(t, w)

	found, each, written := map[godwit.Key]uint64{}, map[godwit.Key]uint64{}, 0
	for _, e := range all(t, dir, 0) {
		switch e.Kind {
		case Refreshed:
			found[e.Key]++
			each[e.Key]++
			written++
		case RefreshCount:
			found[e.Key] += uint64(e.N)
		}
	}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("the trace has %d keys with refreshes, want %d with as many of each", len(found), len(want))
	}
	if written < maxRefreshes || written > 8*maxRefreshes {
		t.Errorf("%d refreshes of %d were written one by one", written, keys*rounds)
	}
	if each[named] != want[named] {
		t.Errorf("of a key that was named %d refreshes of %d were written", each[named], want[named])
	}
	sum := uint64(0)
	for _, n := range want {
		sum += n
	}
	if n := w.Census().Tables[0].Refreshes; n != sum {
		t.Errorf("the census has %d refreshes, want %d", n, sum)
	}
	tr, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for k := range godwit.Key(keys) {
		l, err := tr.Life(k)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := l.Explain(&text, &tr.Header); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), fmt.Sprintf("refreshed %d times", want[k])) || strings.Contains(text.String(), "by the second") != (each[k] < want[k]) {
			t.Errorf("key %d was refreshed %d times, of which %d are there: %s", k, want[k], each[k], &text)
		}
	}
	if has, err := tr.At(0, at); err != nil || has[1] != (Copy{false, 3}) {
		t.Errorf("node 0 has %v of key 1 (%v)", has[1], err)
	}
}

func TestKeysAreNamedAndDrawn(t *testing.T) {
	m := model(t)
	for text, want := range map[string]struct{ least, most int }{"": {95_000, 105_000}, "random=1000, a:5,b:c:9": {900, 1100}, "random=2000000": {m2, m2}, "a:5": {1, 1}} {
		ks, err := ParseKeys(text, m)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		n := 0
		for k := godwit.Key(0); m.Has(k); k++ {
			if ks.Has(k) {
				n++
			}
		}
		if n < want.least || n > want.most {
			t.Errorf("%q traces %d keys, want %d … %d", text, n, want.least, want.most)
		}
	}
	for _, text := range []string{"random=", "random=-1", "x:1", "a:1048576", "2000000", "a", ",", "a:1,,b:c:1"} {
		if _, err := ParseKeys(text, m); err == nil {
			t.Errorf("%q names keys", text)
		}
	}
	for text, good := range map[string]bool{
		"": true, "random=10, a:1": true, "x:1": true, "2000000": true,
		"random=": false, "random=-1": false, "a": false, ",": false, "a:1,,b:c:1": false,
	} {
		if err := CheckKeys(text); (err == nil) != good {
			t.Errorf("%q of any model: %v", text, err)
		}
	}
	if ks, err := ParseKeys("b:c:9", m); err != nil || !ks.Has(m.Key(1, 9)) || ks.Has(m.Key(1, 8)) {
		t.Errorf("b:c:9 is %+v (%v)", ks, err)
	}
}

const m2 = 1<<20 + 10

func FuzzSegment(f *testing.F) {
	h := header(f, 1)
	b, err := h.encode()
	if err != nil {
		f.Fatal(err)
	}
	e := Event{Time: 3000, Key: 7, Kind: Copied}
	f.Add(e.append(b, 0))
	f.Add(b[:20])
	f.Fuzz(func(t *testing.T, b []byte) {
		h, events, err := decodeSegment(b)
		if err != nil {
			return
		}
		head, err := h.encode()
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			head = events[i].append(head, h.Base)
		}
		h2, again, err := decodeSegment(head)
		if err != nil || !reflect.DeepEqual(h, h2) || len(events) != len(again) || len(events) > 0 && !reflect.DeepEqual(events, again) {
			t.Fatalf("read, written and read again: %v\n%+v %+v\n%+v %+v", err, h, events, h2, again)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	w := create(b, b.TempDir(), 0, true)
	for i := range b.N {
		w.Add(Event{Time: int64(i) * 1000, Key: godwit.Key(i & 0xffff), Kind: Refreshed})
	}
	closed(b, w)
}

// A disk that does not answer holds up the end of a writer for a bounded time.
func TestADiskThatDoesNotAnswerHoldsUpNobody(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, 1, true)
	r, disk, err := os.Pipe() // which takes 64 KiB
	if err != nil {
		t.Fatal(err)
	}
	w.writing.Lock()
	if err := w.file.Close(); err != nil {
		t.Error(err)
	}
	w.file = disk
	w.writing.Unlock()
	for range 10_000 {
		w.Add(Event{Node: 1, Kind: Created, Key: 1})
	}
	closed := make(chan error, 1)
	go func() { closed <- w.closeWithin(10 * time.Millisecond) }()
	select {
	case err := <-closed:
		if err == nil || !strings.Contains(err.Error(), "has not answered") {
			t.Errorf("a writer whose disk does not answer ends with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("a disk that does not answer keeps a writer from its end")
	}
	if err := errors.Join(os.RemoveAll(dir), r.Close()); err != nil { // who writes hears that, and finds no folder
		t.Error(err)
	}
}

// decodeSegment reads a segment. A record at its end that is not whole is left out: whoever wrote it
// was killed, or still writes.
func decodeSegment(b []byte) (h Header, events []Event, err error) {
	h, b, err = decodeHeader(b)
	if err != nil {
		return h, nil, err
	}
	events = make([]Event, 0, len(b)/RecordLen)
	var g gatherer
	for ; len(b) >= RecordLen; b = b[RecordLen:] {
		if e, ok := g.take(b, &h); ok {
			events = append(events, e)
		}
	}
	return h, events, nil
}

// Whoever adds to a plain trace waits for it to be written: nothing is lost, and nothing is told to be.
func TestAPlainTraceLosesNothing(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(Config{Dir: dir, Header: Header{Run: "r", Nodes: 1, Start: 1e18, Tables: []Table{{Name: "t", Rows: 10}}}, Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2*maxPending + 5 {
		w.Add(Event{Time: int64(i) * micro, Key: 1, Kind: Accessed, N: 1})
	}
	if err := w.Close(); err != nil || w.Dropped() != 0 {
		t.Errorf("%d events were dropped, %v", w.Dropped(), err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.Life(1)
	if err != nil || len(l.Lost) != 0 || len(l.Events) != 2*maxPending+5 {
		t.Errorf("%d events, lost %v, %v", len(l.Events), l.Lost, err)
	}
}
