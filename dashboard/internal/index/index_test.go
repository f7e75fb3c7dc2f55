package index

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/racing"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

var seedFlag = flag.Uint64("seed", 0, "of randomized tests; 0: another one each time")

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// A world makes up the trace of a run: keys move and are replicated at random.
type world struct {
	t         *testing.T
	rng       *rand.Rand
	dir       string
	nodes     int
	writers   []*trace.Writer
	skew      []int64 // ns by which the nodes' clocks are off
	now       int64
	owner     []int // by key; -1: not made
	epoch     []godwit.Epoch
	copies    []map[int]bool
	sent      map[trace.Kind]uint64
	refreshes uint64
}

const (
	worldKeys = 40
	late      = 70_000_000 // ns by which each node begins later than the one before
)

func newWorld(t *testing.T, rng *rand.Rand, nodes int) *world {
	t.Helper()
	w := &world{t: t, rng: rng, dir: t.TempDir(), nodes: nodes, now: 1e9, sent: map[trace.Kind]uint64{}, owner: make([]int, worldKeys), epoch: make([]godwit.Epoch, worldKeys), copies: make([]map[int]bool, worldKeys)}
	m, err := godwit.NewModel(godwit.Table{Name: "a", Rows: 30, Dim: 1, Rule: godwit.Add{}}, godwit.Table{Name: "b", Rows: 1000, Dim: 1, Rule: godwit.Add{}})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := trace.ParseKeys("", m)
	if err != nil {
		t.Fatal(err)
	}
	for n := range nodes {
		w.skew = append(w.skew, 0)
		x, err := trace.Create(trace.Config{Dir: w.dir, Keys: keys, Plain: true, Header: trace.Header{Run: "r", Policy: "adaptive", Node: godwit.NodeID(n), Nodes: nodes,
			Start: 1e15 + int64(n)*late, Tables: trace.TablesOf(m)}})
		if err != nil {
			t.Fatal(err)
		}
		w.writers = append(w.writers, x)
	}
	for k := range w.owner {
		w.owner[k], w.copies[k] = -1, map[int]bool{}
	}
	w.add(0, 12345, trace.Thinned, 0, 0, 4) // of no key, whatever it says
	return w
}

func (w *world) add(node, key int, kind trace.Kind, peer int, epoch godwit.Epoch, n uint32) {
	w.now += w.rng.Int64N(100_000_000/worldKeys) / 1000 * 1000
	w.writers[node].Add(trace.Event{Time: w.now + w.skew[node] - int64(node)*late, Key: godwit.Key(key), Epoch: epoch, N: n, Node: godwit.NodeID(node), Peer: godwit.NodeID(peer), Kind: kind})
	w.sent[kind]++
}

// act has something happen.
func (w *world) act() {
	k, n := w.rng.IntN(worldKeys), w.rng.IntN(w.nodes)
	switch o := w.owner[k]; {
	case o < 0:
		w.owner[k] = n
		w.add(n, k, trace.Created, n, 0, 0)
	case w.rng.IntN(3) == 0:
		w.add(n, k, trace.Accessed, n, 0, 1+uint32(w.rng.IntN(9)))
	case n == o:
	case w.copies[k][n] && w.rng.IntN(2) == 0:
		w.refreshes++
		w.add(n, k, trace.Refreshed, o, w.epoch[k], 0)
	case w.copies[k][n] && w.rng.IntN(2) == 0:
		many := 1 + w.rng.Uint32N(9)
		w.refreshes += uint64(many)
		w.add(n, k, trace.RefreshCount, n, 0, many)
	case w.copies[k][n]:
		delete(w.copies[k], n)
		w.add(n, k, trace.Ended, o, w.epoch[k], 0)
	case w.rng.IntN(2) == 0:
		w.copies[k][n] = true
		w.add(n, k, trace.Copied, o, w.epoch[k], 0)
	default:
		w.add(o, k, trace.Left, n, w.epoch[k], 0)
		w.epoch[k]++
		w.owner[k] = n
		w.add(n, k, trace.Arrived, o, w.epoch[k], 0)
	}
}

// fill has a node refresh one key so often that its next segment begins.
func (w *world) fill(n int) {
	for range 16<<20/trace.RecordLen + 300_000 {
		w.writers[n].Add(trace.Event{Time: w.now + w.skew[n] - int64(n)*late, Key: 999, Node: godwit.NodeID(n), Kind: trace.Accessed})
	}
}

func (w *world) close() {
	for _, x := range w.writers {
		if err := x.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

func open(t *testing.T, dir string) *Index {
	t.Helper()
	ix, err := Open(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ix.Close(); err != nil {
			t.Error(err)
		}
	})
	return ix
}

func catchUp(t *testing.T, ix *Index) {
	t.Helper()
	for {
		more, err := ix.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return
		}
	}
}

// where returns who owns a key and has replicas of it, as the trace itself says it, by the epochs.
func where(t *testing.T, tr *trace.Trace, ix *Index, time int64) (owner map[godwit.Key]int, replicas map[godwit.Key][]int) {
	t.Helper()
	owner, replicas = map[godwit.Key]int{}, map[godwit.Key][]int{}
	epoch := map[godwit.Key]godwit.Epoch{}
	for n := range tr.Header.Nodes {
		has, err := tr.At(godwit.NodeID(n), time-ix.late(n))
		if err != nil {
			t.Fatal(err)
		}
		for k, c := range has {
			if !c.Main {
				replicas[k] = append(replicas[k], n)
			} else if e, ok := epoch[k]; !ok || c.Epoch > e {
				owner[k], epoch[k] = n, c.Epoch
			}
		}
	}
	return owner, replicas
}

// compare compares an instant, and a tile's column that ends then, with the trace.
func compare(t *testing.T, tr *trace.Trace, ix *Index, time int64) {
	t.Helper()
	owner, replicas := where(t, tr, ix, time)
	x, err := ix.At(t.Context(), Selection{}, time, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range x.Keys {
		want, ok := owner[godwit.Key(k)]
		if !ok {
			want = None
		}
		if got := nodesOf(x.Replicas[i*x.Bitmap : (i+1)*x.Bitmap]); int(x.Owner[i]) != want || !slices.Equal(got, replicas[godwit.Key(k)]) {
			t.Errorf("at %d key %d is at %d with replicas at %v, want %d and %v", time, k, x.Owner[i], got, want, replicas[godwit.Key(k)])
		}
	}
}

func compareTile(t *testing.T, rng *rand.Rand, tr *trace.Trace, ix *Index, r Range) {
	t.Helper()
	tile, err := ix.Tile(t.Context(), Selection{Sort: ByKey}, r)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c := rng.IntN(tile.Cols)
		end := tile.From + int64(c+1)*(tile.To-tile.From)/int64(tile.Cols)
		owner, replicas := where(t, tr, ix, end-1)
		for row, k := range tile.First {
			want, ok := owner[godwit.Key(k)]
			if !ok {
				want = None
			}
			if at := row*tile.Cols + c; int(tile.Owner[at]) != want || int(tile.Replicas[at]) != 4*len(replicas[godwit.Key(k)]) {
				t.Fatalf("tile %d … %d of %d columns: at %d key %d is at %d with %d/4 replicas, want %d and %v", tile.From, tile.To, tile.Cols, end, k, tile.Owner[at], tile.Replicas[at], want, replicas[godwit.Key(k)])
			}
		}
	}
}

// What is shown of any time is what the trace says, also where a node's clock is off and segments end.
func TestTilesAndInstantsAgreeWithTheTrace(t *testing.T) {
	rng := seeded(t)
	w := newWorld(t, rng, 3)
	w.skew[1] = -50_000_000
	for range 3000 {
		w.act()
	}
	w.fill(2)
	filled := w.now
	for range 1000 {
		w.act()
	}
	w.close()
	ix := open(t, w.dir)
	catchUp(t, ix)
	tr, err := trace.Open(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	if found, _ := filepath.Glob(filepath.Join(w.dir, "node-2", "*")); len(found) < 2 {
		t.Fatalf("node 2 has the segments %v", found)
	}
	last := ix.State().To
	for range 4 {
		compare(t, tr, ix, rng.Int64N(last/1000)*1000)
	}
	compare(t, tr, ix, last)
	compareColumn(t, tr, ix, int(filled/firstWidth))
	compareTile(t, rng, tr, ix, Range{Cols: 7, Rows: 2000})
	from := rng.Int64N(last / 1000 * 1000)
	compareTile(t, rng, tr, ix, Range{From: from, To: from + 1 + rng.Int64N(1e8), Cols: 30, Rows: 2000})
	compareTile(t, rng, tr, ix, Range{From: last - 2000, Cols: 30, Rows: 2000}) // when most nodes have done their last
	ix.grid.halve()
	ix.grid.halve()
	compareTile(t, rng, tr, ix, Range{Cols: 4, Rows: 2000})
	if ix.grid.width != 4*firstWidth {
		t.Errorf("the windows are %d ns", ix.grid.width)
	}
}

// Views are read from the marks of windows' ends on, and are the same as if they were read from the segments' beginnings, also where
// a window ends with a segment, and where nodes seem to own a key at once, by their clocks.
func TestViewsFromMarksAreThoseFromTheSegmentsBeginnings(t *testing.T) {
	rng := seeded(t)
	w := newWorld(t, rng, 9)
	for n := range w.skew {
		w.skew[n] = -rng.Int64N(300_000) * 1000
	}
	for i := range 6 {
		for range 500 + rng.IntN(1000) {
			w.act()
		}
		if i%2 == 0 {
			w.fill(rng.IntN(w.nodes))
		}
	}
	w.close()
	ix := open(t, w.dir)
	catchUp(t, ix)
	tr, err := ix.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	former := 0
	for _, c := range ix.grid.columns {
		former += len(c.former)
	}
	if former == 0 {
		t.Error("at the end of no window did two nodes own a key")
	}
	last, more := ix.State().To, 20
	if racing.Enabled {
		more = 2
	}
	for range 2 {
		times := []int64{last, last - 1000, last - 3e8}
		for range more {
			times = append(times, rng.Int64N(last), ix.grid.end(rng.IntN(len(ix.grid.columns)))-rng.Int64N(2)*1000)
		}
		for n := range w.nodes {
			for _, f := range tr.Files(godwit.NodeID(n)) {
				times = append(times, f.Header.Base*1000+ix.late(n), f.Header.Base*1000+ix.late(n)-1000)
			}
		}
		type view struct {
			at   *Instant
			tile *Tile
		}
		views := func() (vs []view) {
			for _, from := range times {
				at, err := ix.At(t.Context(), Selection{Sort: ByKey}, from, 0, 0)
				if err != nil {
					t.Fatal(err)
				}
				tile, err := ix.Tile(t.Context(), Selection{Sort: ByKey}, Range{From: from, To: from + 1e8, Cols: 50, Rows: 2000, Offset: 5, Limit: 30})
				if err != nil {
					t.Fatal(err)
				}
				vs = append(vs, view{at, tile})
			}
			return vs
		}
		got := views()
		for _, from := range times {
			for n := range w.nodes {
				first := from
				all := &walker{node: n, has: make([]uint8, len(ix.keys.keys)), epoch: make([]uint32, len(ix.keys.keys))}
				if err := ix.records(tr, all, from, nil, func(_ trace.Record, t int64) bool {
					first = min(first, t)
					return t < from
				}); err != nil {
					t.Fatal(err)
				}
				if first < min(from, ix.grid.walkers[n].last)-2*ix.grid.width {
					t.Errorf("windows of %d ns: for %d, node %d is read from %d on", ix.grid.width, from, n, first)
				}
			}
		}
		kept := make([][]mark, len(ix.grid.columns))
		for i, c := range ix.grid.columns {
			kept[i], c.marks = c.marks, nil
		}
		for i, want := range views() {
			if !reflect.DeepEqual(got[i], want) {
				t.Errorf("windows of %d ns, at %d: from marks %+v %+v, from the beginnings %+v %+v", ix.grid.width, times[i], got[i].at, got[i].tile, want.at, want.tile)
			}
		}
		for i, c := range ix.grid.columns {
			c.marks = kept[i]
		}
		ix.grid.halve()
	}
}

// compareColumn compares a column of the index's own grid with the trace.
func compareColumn(t *testing.T, tr *trace.Trace, ix *Index, column int) {
	t.Helper()
	owner, replicas := where(t, tr, ix, ix.grid.end(column)-1)
	c := ix.grid.complete(column)
	for i, k := range ix.keys.keys {
		want, ok := owner[k]
		if !ok {
			want = -1
		}
		if got := nodesOf(c.replicasOf(i, ix.grid.bitmap)); c.ownerOf(i) != want || !slices.Equal(got, replicas[k]) {
			t.Fatalf("at the end of column %d of %d ns key %d is at %d with replicas at %v, want %d and %v", column, ix.grid.width, k, c.ownerOf(i), got, want, replicas[k])
		}
	}
}

// An index that follows a run ends as one that is made at the end.
func TestWhoFollowsARunEndsAsWhoReadsItLater(t *testing.T) {
	rng := seeded(t)
	w := newWorld(t, rng, 3)
	follows := open(t, w.dir)
	for i := range 20 {
		for range 100 {
			w.act()
		}
		w.flush()
		catchUp(t, follows)
		if i%5 == 4 {
			follows.grid.halve() // as if there were too many
		}
	}
	w.close()
	catchUp(t, follows)
	later := open(t, w.dir)
	catchUp(t, later)
	for later.grid.width < follows.grid.width {
		later.grid.halve()
	}
	tr, err := trace.Open(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range follows.grid.columns {
		compareColumn(t, tr, follows, i)
		if !reflect.DeepEqual(c.marks, later.grid.columns[i].marks) {
			t.Errorf("column %d: places in the trace are %v and %v", i, c.marks, later.grid.columns[i].marks)
		}
	}
	all := Range{Cols: 2000, Rows: 2000}
	a, err := follows.Tile(t.Context(), Selection{Sort: ByKey}, all)
	if err != nil {
		t.Fatal(err)
	}
	b, err := later.Tile(t.Context(), Selection{Sort: ByKey}, all)
	if err != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("the tiles differ (%v):\n%+v\n%+v", err, a, b)
	}
	if x, y := follows.Series(0, 1<<60, 5), later.Series(0, 1<<60, 5); !reflect.DeepEqual(x, y) {
		t.Errorf("the series differ:\n%+v\n%+v", x, y)
	}
	if x, y := follows.State(), later.State(); x.Events != y.Events || x.To != y.To || x.Keys != y.Keys || x.Thinned != 4 || y.Thinned != 4 || x.Keys > worldKeys {
		t.Errorf("the states are %+v and %+v", x, y)
	}
	if moves := sum(later, Moves); moves != w.sent[trace.Arrived] {
		t.Errorf("%d moves were counted, there were %d", moves, w.sent[trace.Arrived])
	}
	if n := sum(later, Refreshes); n != w.refreshes {
		t.Errorf("%d refreshes were counted, there were %d", n, w.refreshes)
	}
	for _, ix := range []*Index{follows, later} {
		n := uint64(0)
		for k := range ix.totals {
			n += uint64(ix.totals[k].Refreshes)
		}
		if n != w.refreshes {
			t.Errorf("keys had %d refreshes, there were %d", n, w.refreshes)
		}
	}
}

func sum(ix *Index, what Count) uint64 {
	n := 0.0
	for _, node := range ix.Series(0, 1<<60, 10).Nodes {
		for _, x := range node[what] {
			n += x
		}
	}
	return uint64(math.Round(n))
}

func (w *world) flush() {
	for _, x := range w.writers {
		x.Flush()
	}
}

func TestKeysAreFoundByNameNumberAndTable(t *testing.T) {
	w := newWorld(t, seeded(t), 2)
	for w.sent[trace.Created] < worldKeys || w.sent[trace.Accessed] < 200 {
		w.act()
	}
	w.close()
	names := make([]string, 30)
	names[7], names[8] = "Paris", "<b>paris</b>\n\x1b[31m"
	if err := trace.WriteNames(w.dir, 0, slices.Values(names)); err != nil {
		t.Fatal(err)
	}
	ix := open(t, w.dir)
	catchUp(t, ix)
	for query, want := range map[string][]godwit.Key{"PARIS": {7, 8}, "a:3": {3}, "4": {4}, "b:2": {32}, "nowhere": nil} {
		keys, total, err := ix.Keys(t.Context(), Selection{Query: query, Sort: ByKey}, 1<<60, 0, 100)
		var got []godwit.Key
		for _, k := range keys {
			got = append(got, k.Key)
		}
		if err != nil || !slices.Equal(got, want) || total != len(want) {
			t.Errorf("%q finds %v (%v), want %v", query, got, err, want)
		}
	}
	if keys, total, err := ix.Keys(t.Context(), Selection{Table: "b"}, 1<<60, 2, 3); err != nil || len(keys) != 3 || total != 10 || keys[0].Totals.Accesses < keys[1].Totals.Accesses {
		t.Errorf("of table b there are %+v of %d (%v)", keys, total, err)
	}
	if name := ix.Name(8); name != "<b>paris</b> \x1b[31m" {
		t.Errorf("the name is %q", name)
	}
	a, err := ix.Affinity(t.Context(), Selection{Table: "a"}, nil)
	if err != nil || a.Keys != 30 || len(a.Techniques) != 30 {
		t.Fatalf("%+v (%v)", a, err)
	}
	all, err := ix.Affinity(t.Context(), Selection{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := ix.Affinity(t.Context(), Selection{Table: "b"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range all.Nodes {
		for c := range Counted {
			if x, y := a.Nodes[n].Counts[c]+b.Nodes[n].Counts[c], all.Nodes[n].Counts[c]; x != y {
				t.Errorf("node %d, count %d: the tables have %d, all keys %d", n, c, x, y)
			}
		}
	}
}

func TestARunThatHasNotBegunIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, true); err != ErrWaiting {
		t.Errorf("an empty folder: %v", err)
	}
	w := newWorld(t, seeded(t), 2)
	w.act()
	w.close()
	if err := os.RemoveAll(filepath.Join(w.dir, "node-1")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(w.dir, false); err != ErrWaiting {
		t.Errorf("a run of which a node is missing: %v", err)
	}
	if ix, err := Open(w.dir, true); err != nil {
		t.Error(err)
	} else if err := ix.Close(); err != nil {
		t.Error(err)
	}
}

func TestTheDictNumbersKeys(t *testing.T) {
	rng := seeded(t)
	d := newDict(1000)
	numbers := map[godwit.Key]int{}
	for range 5000 {
		k := godwit.Key(rng.Uint64N(3000)) << (rng.UintN(3) * 16)
		n, ok := numbers[k]
		if !ok {
			n = -1
		}
		if got := d.number(k); got != n {
			t.Fatalf("key %d has number %d, want %d", k, got, n)
		}
		if got := d.add(k); ok && got != n || !ok && got != len(numbers) {
			t.Fatalf("key %d gets number %d", k, got)
		} else {
			numbers[k] = got
		}
	}
	d = newDict(1000)
	for k := range godwit.Key(5000) { // in order, around the last key that has a number at once
		d.add(k)
	}
	for k := range godwit.Key(5000) {
		if got := d.number(k); got != int(k) {
			t.Fatalf("key %d has number %d", k, got)
		}
	}
}

// Epochs are known modulo 256: of two, the one that is less than half of that ahead is the later.
func TestTheLaterOwnerIsFoundAcrossTheEndOfEpochs(t *testing.T) {
	for _, later := range []uint8{1, 100} {
		c := &column{}
		c.widen(1, 1)
		c.own(0, 1, 255)
		c.own(0, 2, later)
		if c.ownerOf(0) != 1 || len(c.former) != 1 || c.former[0].node != 1 {
			t.Errorf("after epochs 255 and %d the owner is %d, formerly %+v", later, c.ownerOf(0), c.former)
		}
	}
}

// The accesses of a key within a window, and the replicas of a row, end at what a cell holds.
func TestCellsHoldTheMostThatTheyCan(t *testing.T) {
	g := newGrid(80, 0, 1000, 4, 1<<20)
	g.room(0)
	w := g.walkers[0]
	for range 2 {
		g.apply(w, 0, &trace.Event{Kind: trace.Accessed, N: 40_000})
	}
	c := g.column(0)
	if c.heat[0] != math.MaxUint16 {
		t.Errorf("80,000 accesses are %d", c.heat[0])
	}
	for i := range c.replicasOf(0, g.bitmap) {
		c.replicas[i] = 0xff
	}
	x := &Tile{Rows: 1, Cols: 1, PerRow: 1, Owner: make([]uint8, 1), Agree: make([]uint8, 1), Replicas: make([]uint8, 1), Heat: make([]uint8, 1)}
	if x.column(0, g, c, []int32{0}); x.Replicas[0] != 255 {
		t.Errorf("80 replicas are %d", x.Replicas[0])
	}
}

// Where two windows become one, the last one of an odd number ends later than it did: what nodes have then is not known yet.
func TestAWindowThatEndsLaterForgetsWhatNodesHad(t *testing.T) {
	g := newGrid(1, 0, 1000, 40, 1<<20)
	g.room(0)
	w := g.walkers[0]
	g.apply(w, 0, &trace.Event{Kind: trace.Created})
	g.step(w, 3500) // in the fourth of three windows that have ended
	g.columns = g.columns[:3]
	if g.halve(); len(g.columns) != 2 || w.at != 1 {
		t.Fatalf("%d windows, the node is in window %d", len(g.columns), w.at)
	}
	for i, want := range []int{0, -1} {
		if got := g.columns[i].ownerOf(0); got != want {
			t.Errorf("at the end of window %d the owner is %d, want %d", i, got, want)
		}
	}
}

// Totals hold more than what is counted of a key in a segment.
func TestTotalsOutgrowTheCountsOfASegment(t *testing.T) {
	dir := t.TempDir()
	w := writer(t, dir, trace.Header{Nodes: 1, Start: 1e18})
	const moves = 1<<16 + 3
	for range 2 {
		w.Add(trace.Event{Key: 1, Kind: trace.Accessed, N: math.MaxUint32})
	}
	for range moves {
		w.Add(trace.Event{Key: 1, Kind: trace.Arrived})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ix := open(t, dir)
	catchUp(t, ix)
	if got := ix.totals[ix.keys.number(1)]; got.Accesses != 2*math.MaxUint32 || got.Moves != moves {
		t.Errorf("%+v, want %d accesses and %d moves", got, uint64(2*math.MaxUint32), moves)
	}
}

// However many selections are looked at, few orders are kept.
func TestFewOrdersAreKept(t *testing.T) {
	ix := open(t, accesses(t, 20, 0))
	catchUp(t, ix)
	for _, query := range []string{"", "1", "2", "3", "4", "5", "6"} {
		ix.selected(Selection{Query: query})
	}
	if len(ix.orders) > mostOrders {
		t.Errorf("%d orders are kept", len(ix.orders))
	}
}

// The reigns of a node that began later are told by the run's clock, from begin to end.
func TestReignsOfALateNodeAreOnTheRunsClock(t *testing.T) {
	dir := t.TempDir()
	for node := range godwit.NodeID(2) {
		w := writer(t, dir, trace.Header{Node: node, Nodes: 2, Start: 1e18 + int64(node)*5e9})
		if node == 1 {
			w.Add(trace.Event{Node: 1, Key: 3, Kind: trace.Arrived, Peer: 0, Epoch: 1, Time: 1e9})
			w.Add(trace.Event{Node: 1, Key: 3, Kind: trace.Left, Peer: 0, Epoch: 1, Time: 3e9})
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ix := open(t, dir)
	catchUp(t, ix)
	l, err := ix.Life(t.Context(), 3)
	if err != nil || len(l.Reigns) != 1 || l.Reigns[0].From != 6e9 || l.Reigns[0].To != 8e9 {
		t.Errorf("%+v, %v, want a reign from 6 s to 8 s", l, err)
	}
}

func TestNamesAreReadWhole(t *testing.T) {
	dir := t.TempDir()
	h := trace.Header{Tables: []trace.Table{{Name: "x", First: 5, Rows: 4}}, Traced: "x:0,x:1,x:2"}
	long := bytes.Repeat([]byte("é"), 100_000)
	if err := os.WriteFile(filepath.Join(dir, trace.NamesFile(0)), append(append([]byte("one\n"), long...), "\nthree\nfour\n"...), 0o666); err != nil {
		t.Fatal(err)
	}
	names, err := readNames(dir, &h)
	if err != nil || names[5] != "one" || len(names[6]) != maxName || names[7] != "three" || len(names) != 3 {
		t.Errorf("%v (%v)", names, err)
	}
}

// writer begins the trace of a node, of a table of ten rows.
func writer(t *testing.T, dir string, h trace.Header) *trace.Writer {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 10, Dim: 1, Rule: godwit.Add{}})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := trace.ParseKeys("", m)
	if err != nil {
		t.Fatal(err)
	}
	h.Run, h.Policy, h.Tables = "r", "p", trace.TablesOf(m)
	w, err := trace.Create(trace.Config{Dir: dir, Keys: keys, Plain: true, Header: h})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// accesses writes the trace of a run: each node accesses ten keys in turns, 100 times a second, by a clock that is off by so many ns.
func accesses(t *testing.T, n int, off ...int64) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for node := range off {
		w := writer(t, dir, trace.Header{Node: godwit.NodeID(node), Nodes: len(off), Start: 1e18 + off[node]})
		for i := range n {
			w.Add(trace.Event{Node: godwit.NodeID(node), Key: godwit.Key(i % 10), Kind: trace.Accessed, N: 1, Time: int64(i) * 1e7})
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A node whose clock is a month ahead has records far beyond the times that are looked at. They take no time.
func TestAZoomTakesNoLongerWhereClocksDiffer(t *testing.T) {
	ix := open(t, accesses(t, 200, 0, 30*86400e9))
	catchUp(t, ix)
	done := make(chan error, 1)
	go func() {
		x, err := ix.Tile(t.Context(), Selection{}, Range{From: 1e9, To: 1.001e9, Cols: 300, Rows: 10})
		if err == nil && !slices.ContainsFunc(x.Heat, func(h uint8) bool { return h > 0 }) {
			err = errors.New("no access is seen")
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a zoom of 1 ms takes longer than a minute")
	}
}

// A time that the disk has damaged is that of an hour later. The other records are shown as they are.
func TestADamagedTimeTakesNoMemory(t *testing.T) {
	dir := accesses(t, 2000, 0)
	path := filepath.Join(dir, "node-0", trace.SegmentName(1))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	record := b[len(b)-1000*trace.RecordLen:]
	copy(record[8:], "\xff\xff\xff\xff") // its time
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	ix := open(t, dir)
	catchUp(t, ix)
	if n := len(ix.grid.columns); n > 200 || ix.grid.width != firstWidth {
		t.Errorf("20 s have %d windows of %d ns", n, ix.grid.width)
	}
	if n := sum(ix, Accesses); n != 2000 {
		t.Errorf("%d accesses are counted, want 2000", n)
	}
}

// Who does not wait any more is worked for no more: what reads the segments ends with its context.
func TestReadingEndsWithItsContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	dir := accesses(t, 2000, 0, 0)
	if _, err := open(t, dir).Poll(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("loading ends with %v", err)
	}
	ix := open(t, dir)
	catchUp(t, ix)
	for what, view := range map[string]func(context.Context) error{
		"a tile": func(ctx context.Context) error {
			_, err := ix.Tile(ctx, Selection{}, Range{To: 20e9, Cols: 10, Rows: 10})
			return err
		},
		"a zoom": func(ctx context.Context) error {
			_, err := ix.Tile(ctx, Selection{}, Range{From: 1e9, To: 2e9, Cols: 300, Rows: 10})
			return err
		},
		"an instant":                func(ctx context.Context) error { _, err := ix.At(ctx, Selection{}, 1e9, 0, 0); return err },
		"a list of keys":            func(ctx context.Context) error { _, _, err := ix.Keys(ctx, Selection{}, 1e9, 0, 100); return err },
		"the affinity of all keys":  func(ctx context.Context) error { _, err := ix.Affinity(ctx, Selection{}, nil); return err },
		"the affinity of some keys": func(ctx context.Context) error { _, err := ix.Affinity(ctx, Selection{}, []godwit.Key{3}); return err },
		"the life of a key":         func(ctx context.Context) error { _, err := ix.Life(ctx, 3); return err },
	} {
		if err := view(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if err := view(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("%s that nobody waits for ends with %v", what, err)
		}
	}
}

// For hours nothing happens, and another segment begins then. Meanwhile keys stay where they are, for who follows the run and who reads it later.
func TestKeysStayWhereTheyAreWhileNothingHappens(t *testing.T) {
	const hour = int64(3600e9)
	dir := t.TempDir()
	w := writer(t, dir, trace.Header{Nodes: 1})
	add := func(at int64, key int, kind trace.Kind) {
		w.Add(trace.Event{Time: at, Key: godwit.Key(key), Kind: kind})
		w.Add(trace.Event{Time: at, Key: godwit.Key(key), Kind: trace.Accessed, N: 1})
		w.Flush()
	}
	add(1e9, 1, trace.Created)
	follows := open(t, dir)
	catchUp(t, follows)
	add(3*hour, 2, trace.Created)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	reads := open(t, dir)
	for name, ix := range map[string]*Index{"follows": follows, "reads": reads} {
		catchUp(t, ix)
		x, err := ix.Tile(t.Context(), Selection{Sort: ByKey}, Range{To: math.MaxInt64, Cols: 30, Rows: 10})
		if err != nil {
			t.Fatal(err)
		}
		for c := 1; c < x.Cols-1; c++ {
			if x.Owner[c] != 0 || x.Owner[x.Cols+c] != None {
				t.Fatalf("who %s: at column %d of %d the keys are at %d and %d, want at node 0 and not made yet", name, c, x.Cols, x.Owner[c], x.Owner[x.Cols+c])
			}
		}
		if n := x.Cols; x.Owner[2*n-1] != 0 || x.To < 3*hour {
			t.Errorf("who %s: the key that was made last is at %d at %d ns", name, x.Owner[2*n-1], x.To)
		}
	}
}

// Whatever the windows are, what happens evenly is told evenly, up to the end.
func TestTheLastWindowIsAsLongAsItLasts(t *testing.T) {
	for _, n := range []int{1, 151, 200, 213, 255} {
		ix := open(t, accesses(t, n, 0)) // 100 a second
		catchUp(t, ix)
		for cols := 1; cols < 40; cols++ {
			s, all := ix.Series(0, math.MaxInt64, cols), 0.0
			for i, count := range s.Nodes[0][Accesses] {
				from, to := s.Window(i)
				rate := count / float64(to-from) * 1e9
				if all += count; n > 1 && (rate < 90 || rate > 125) {
					t.Errorf("of %d accesses in %d windows, window %d of %d has %.0f a second, want 100", n, cols, i, s.Cols, rate)
				}
			}
			if math.Abs(all-float64(n)) > 1e-6 || s.Cols < 1 || s.Cols > cols {
				t.Errorf("%d windows have %g accesses, want up to %d with %d", s.Cols, all, cols, n)
			}
		}
	}
}

// What workers write down in sum, at the end of seconds that are as long as they have many keys, is told evenly over that time: by curves and by pictures, in windows of any
// width and in a closer look.
func TestWhatIsWrittenDownInSumIsToldEvenly(t *testing.T) {
	for _, lasts := range []int64{12, 150, 300, 700} { // windows of 0.1, 0.2, 0.4 and 0.8 s
		dir := t.TempDir()
		for node := range 2 {
			w := writer(t, dir, trace.Header{Node: godwit.NodeID(node), Nodes: 2, Start: 1e18})
			e := trace.Event{Node: godwit.NodeID(node), Key: godwit.Key(node)}
			add := func(at int64, kind trace.Kind, n uint32) {
				e.Time, e.Kind, e.N = at, kind, n
				w.Add(e)
			}
			add(0, trace.Created, 0)
			each := int64(node+1) * 1e9
			for at := int64(1e8); at < lasts*1e9; at += 1e8 {
				if at%each == 4e8 {
					add(at, trace.Accessed, uint32(each/1e6))
					add(at, trace.Missed, uint32(each/1e7))
				}
				if at%1e9 == 7e8 {
					add(at, trace.RefreshCount, 500)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		ix := open(t, dir)
		catchUp(t, ix)
		for _, cols := range []int{100, 300, 1000} {
			s := ix.Series(0, math.MaxInt64, cols)
			within := 1 + float64(ix.grid.width)/float64(second) // it is not known where in a window they were written
			for i := range s.Cols {
				from, to := s.Window(i)
				if from < 3e9 || to > (lasts-3)*1e9 {
					continue
				}
				for node := range s.Nodes {
					for c, want := range map[Count]float64{Accesses: 1000, Misses: 100, Refreshes: 500} {
						if rate := s.Nodes[node][c][i] / float64(to-from) * 1e9; rate < want/within/1.01 || rate > want*within*1.01 {
							t.Errorf("of %d s in %d windows, window %d has %.0f a second of kind %d of node %d, want %v", lasts, s.Cols, i, rate, c, node, want)
						}
					}
				}
			}
		}
		if n := sum(ix, Refreshes); n != uint64(1000*lasts) {
			t.Errorf("of %d s there were %d refreshes, want %d", lasts, n, 1000*lasts)
		}
		for _, r := range []Range{{To: math.MaxInt64}, {From: 5e9, To: 7e9}, {From: 5e9, To: 5.5e9}, {From: 5e9, To: 5.001e9}, {From: lasts*1e9 - 5e8, To: math.MaxInt64}} {
			r.Cols, r.Rows = 800, 2
			x, err := ix.Tile(t.Context(), Selection{Sort: ByKey}, r)
			if err != nil {
				t.Fatal(err)
			}
			for at := range x.Cols {
				if x.From+int64(at)*(x.To-x.From)/int64(x.Cols) < 3e9 {
					continue
				}
				for row := range x.Rows {
					if heat := x.Heat[row*x.Cols+at]; heat < heatCode(400) || heat > heatCode(2500) {
						t.Errorf("of %d s, a picture from %d ns has heat %d at column %d of key %d, want %d", lasts, r.From, heat, at, row, heatCode(1000))
					}
				}
			}
		}
	}
}

// What nodes had of keys is counted key by key and window by window, whichever keys are meant and in which order.
func TestAnAffinityCountsEachKeyInEachWindow(t *testing.T) {
	const nodes, keys, windows = 11, 50, 7
	rng := seeded(t)
	ix := &Index{grid: newGrid(nodes, 0, 1, 64, 1<<20)}
	for i := range windows {
		ix.grid.keys = keys - windows + i // of some windows, keys that came later have no room
		c := ix.grid.column(i)
		for k := range c.owner {
			c.owner[k] = uint8(rng.IntN(nodes + 1))
			for n := range nodes {
				c.replicas[2*k+n/8] |= uint8(rng.IntN(2)*rng.IntN(2)*(k%2)) << (n & 7)
			}
		}
	}
	for _, w := range ix.grid.walkers {
		w.at = windows
	}
	var meant []int32
	for _, k := range rng.Perm(keys)[:keys/2] {
		meant = append(meant, int32(k))
	}
	want, some := make([]Share, nodes), make([]float64, len(meant))
	for _, c := range ix.grid.columns {
		for j, k := range meant {
			if o := c.ownerOf(int(k)); o >= 0 {
				want[o].Owned += 1.0 / windows / float64(len(meant))
			}
			have := nodesOf(c.replicasOf(int(k), 2))
			for _, n := range have {
				want[n].Replicated += 1.0 / windows / float64(len(meant))
			}
			if len(have) > 0 {
				some[j] += 1.0 / windows
			}
		}
	}
	a := &Affinity{Nodes: make([]Share, nodes)}
	somewhere, err := ix.places(t.Context(), a, meant)
	if err != nil || len(somewhere) != len(some) {
		t.Fatalf("%d keys, want %d (%v)", len(somewhere), len(some), err)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	for n, x := range a.Nodes {
		if !near(x.Owned, want[n].Owned) || !near(x.Replicated, want[n].Replicated) {
			t.Errorf("node %d had %+v, want %+v", n, x, want[n])
		}
	}
	for j := range some {
		if !near(somewhere[j], some[j]) {
			t.Errorf("of key %d some node had a replica for %v of the time, want %v", meant[j], somewhere[j], some[j])
		}
	}
}
