package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// An Index is that of one run's trace. Any goroutine may use it; [Index.Poll] is one goroutine's.
type Index struct {
	dir    string
	header trace.Header
	tails  []*trace.Tail
	loaded bool
	shift  []int64 // by node: ns from the run's start to the node's; negative: not known yet
	start  int64   // ns since 1970

	mu      sync.RWMutex // of what follows
	trace   *trace.Trace // of the segments that there were; nil: to be opened
	keys    dict
	totals  []Totals
	grid    *grid
	lost    uint64
	thinned uint32 // details were those of one key of so many, at the least; 0: of all
	events  uint64
	last    int64
	bytes   int64 // of the segments that there were at first
	caught  bool  // once everything was read that there was

	names map[godwit.Key]string // does not change

	ordering sync.Mutex // of what follows; taken after mu
	orders   map[Selection]order
}

// Totals are what became of a key, in all of the run and at all nodes.
type Totals struct {
	Accesses                                  uint64
	Missed, Moves, Copies, Refreshes, Intents uint32
}

// How an index goes about it.
const (
	firstWidth  = int64(100 * time.Millisecond) // of windows
	mostColumns = 1024
	gridBytes   = 128 << 20
	zoomBytes   = 32 << 20
	// mostNodes is how many nodes a run may have that is shown.
	mostNodes = 255
)

// ErrWaiting says that the nodes of the run have not begun to write.
var ErrWaiting = errors.New("the run has not begun to write its trace")

// Open begins an index of the trace in a run's folder. All nodes must have begun to write, or, if late is set, one of them;
// else the error is ErrWaiting. A node that begins later is read when it does, too.
func Open(dir string, late bool) (*Index, error) {
	found, err := fs.Glob(os.DirFS(dir), "node-*/*.trace")
	if err != nil || len(found) == 0 {
		return nil, ErrWaiting
	}
	t, err := trace.Open(dir)
	if err != nil {
		return nil, err
	}
	if t.Header.Nodes > mostNodes {
		return nil, fmt.Errorf("dashboard: the run has %d nodes, %d can be shown", t.Header.Nodes, mostNodes)
	}
	starts := t.Starts()
	if len(starts) < t.Header.Nodes && !late {
		return nil, ErrWaiting
	}
	all := uint64(0)
	for _, x := range t.Header.Tables {
		all = max(all, uint64(x.First)+x.Rows)
	}
	ix := &Index{dir: dir, keys: newDict(all), header: t.Header, shift: make([]int64, t.Header.Nodes), grid: newGrid(t.Header.Nodes, 0, firstWidth, mostColumns, gridBytes),
		orders: map[Selection]order{}}
	for _, at := range starts {
		if ix.start == 0 || at < ix.start {
			ix.start = at
		}
	}
	for n := range ix.shift {
		ix.tails = append(ix.tails, trace.NewTail(dir, godwit.NodeID(n)))
		ix.shift[n] = -1
		if at, ok := starts[godwit.NodeID(n)]; ok {
			ix.shift[n] = at - ix.start
		}
	}
	if ix.bytes, err = sizeOf(dir, found); err != nil {
		return nil, err
	}
	ix.names, err = readNames(dir, &t.Header)
	return ix, err
}

// Close closes the files that are open. Nothing may be called after it.
func (ix *Index) Close() error {
	var errs []error
	for _, t := range ix.tails {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}

// Poll reads on, for a few milliseconds at the most, and returns whether there was anything. It reads the node that is furthest behind.
// The first call reads all that there is, until ctx ends. After an error of that call, the index is of no use.
func (ix *Index) Poll(ctx context.Context) (bool, error) {
	if !ix.loaded {
		if err := ix.load(ctx); err != nil {
			return false, err
		}
		ix.loaded = true
		return true, nil
	}
	done := make([]bool, len(ix.tails))
	for range ix.tails {
		n := ix.behind(done)
		events, err := ix.poll(n)
		if err != nil || events > 0 {
			return true, err
		}
		done[n] = true
	}
	ix.mu.Lock()
	ix.caught = true
	ix.mu.Unlock()
	return false, nil
}

// behind returns the node that is furthest behind, of those that are not done.
func (ix *Index) behind(done []bool) (node int) {
	node = -1
	for n, w := range ix.grid.walkers {
		if !done[n] && (node < 0 || w.last < ix.grid.walkers[node].last) {
			node = n
		}
	}
	return node
}

func (ix *Index) poll(node int) (events int, err error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	t, w := ix.tails[node], ix.grid.walkers[node]
	return t.Read(func(e *trace.Event) {
		if ix.shift[node] < 0 { // it began late
			ix.shift[node] = max(0, t.Header.Start-ix.start)
		}
		e.Time += ix.shift[node]
		if w.segment != t.Header.Segment {
			ix.grid.step(w, e.Time) // what the node had holds until then
			ix.segment(w, t)
		}
		w.where = mark{t.Header.Segment, t.Before()}
		ix.take(w, e)
	})
}

// segment takes note that a node's next segment begins.
func (ix *Index) segment(w *walker, t *trace.Tail) {
	clear(w.has) // what it has follows
	w.segment = t.Header.Segment
	ix.trace = nil
}

// take takes note of an event.
func (ix *Index) take(w *walker, e *trace.Event) {
	ix.events++
	w.last, ix.last = max(w.last, e.Time), max(ix.last, e.Time)
	switch e.Kind {
	case trace.Lost:
		ix.lost += uint64(e.N)
		return
	case trace.Thinned:
		ix.thinned = max(ix.thinned, e.N)
		return
	}
	k := ix.number(e.Key)
	ix.grid.step(w, e.Time)
	ix.grid.apply(w, k, e)
	ix.totals[k].add(e)
}

// number returns the number of a key, and makes room for it if it is new.
func (ix *Index) number(key godwit.Key) int {
	k := ix.keys.add(key)
	if k == len(ix.totals) {
		ix.totals = append(ix.totals, Totals{})
		ix.grid.room(k)
	}
	return k
}

func (t *Totals) add(e *trace.Event) {
	switch e.Kind {
	case trace.Accessed:
		t.Accesses += uint64(e.N)
	case trace.Missed:
		t.Missed += e.N
	case trace.Arrived:
		t.Moves++
	case trace.Copied:
		t.Copies++
	case trace.Refreshed:
		t.Refreshes++
	case trace.RefreshCount:
		t.Refreshes += e.N
	case trace.Wanted:
		t.Intents++
	}
}

// A State is what an index knows of a run.
type State struct {
	Header       trace.Header
	Start        int64 // ns since 1970; 0 of a simulation
	Keys         int   // that had an event
	Events, Lost uint64
	Thinned      uint32  // intents, requests and decisions were written of one key of so many, at the least; 0: of all
	To           int64   // time of the last event, in ns
	Window       int64   // ns
	Done         bool    // everything was read that there was, once
	Progress     float64 // 0 … 1
	Named        bool    // keys have names
}

// State returns what is known of the run.
func (ix *Index) State() State {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	s := State{Header: ix.header, Start: ix.start, Keys: len(ix.keys.keys), Events: ix.events, Lost: ix.lost, Thinned: ix.thinned, To: ix.last, Window: ix.grid.width, Done: ix.caught, Progress: 1, Named: len(ix.names) > 0}
	if read := int64(ix.events) * trace.RecordLen; !s.Done && read < ix.bytes {
		s.Progress = float64(read) / float64(ix.bytes)
	}
	return s
}

func sizeOf(dir string, files []string) (bytes int64, err error) {
	for _, f := range files {
		s, err := os.Stat(filepath.Join(dir, f))
		if err != nil {
			return 0, fmt.Errorf("dashboard: %w", err)
		}
		bytes += s.Size()
	}
	return bytes, nil
}
