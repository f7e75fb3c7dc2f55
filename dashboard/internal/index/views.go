package index

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// None is the owner of a key that no node told that it owns: it was not made yet, or is on its way.
const None = 255

// A Tile is the allocation of keys over time: a row has some keys, a column a window of time.
type Tile struct {
	Rows, Cols int
	Keys       int     // of the selection
	PerRow     int     // keys of a row; the last one may have fewer
	From, To   int64   // ns
	First      []int64 // by row: its first key
	// By row and column. Owner is the node that owns most of the row's keys at the end of the column, or None; Agree the share of
	// keys of which that is so, of 255; Replicas four times the mean number of replicas of a key; Heat the code of
	// the accesses a second of all keys about the column ([heatCode]).
	Owner, Agree, Replicas, Heat []uint8
}

// heatCode returns the code of a number: 8·log₂(n+1), rounded.
func heatCode(n float64) uint8 { return uint8(min(255, math.Round(8*math.Log2(n+1)))) }

// A Range is what a tile shows.
type Range struct {
	From, To      int64 // ns
	Cols, Rows    int   // at the most
	Offset, Limit int   // of the keys of the selection; Limit 0: all
}

// Tile returns the allocation of a selection of keys over time. Like all views, it ends with an error when ctx ends.
func (ix *Index) Tile(ctx context.Context, s Selection, r Range) (*Tile, error) {
	tr, err := ix.open(ctx)
	if err != nil {
		return nil, err
	}
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	keys := cut(ix.selected(s), r.Offset, r.Limit)
	g, rows, err := ix.gridOf(tr, &r, keys)
	if err != nil {
		return nil, err
	}
	first, end := g.columnsOf(r.From, r.To)
	t := &Tile{Keys: len(keys), Cols: end - first, PerRow: max(1, (len(keys)+r.Rows-1)/r.Rows), From: g.origin + int64(first)*g.width}
	t.To = t.From + int64(t.Cols)*g.width
	t.Rows = (len(keys) + t.PerRow - 1) / t.PerRow
	t.First = make([]int64, t.Rows)
	for i := range t.First {
		t.First[i] = int64(ix.keys.keys[keys[i*t.PerRow]])
	}
	n := t.Rows * t.Cols
	t.Owner, t.Agree, t.Replicas, t.Heat = make([]uint8, n), make([]uint8, n), make([]uint8, n), make([]uint8, n)
	parallel(t.Cols, func(c int) {
		if ctx.Err() == nil {
			t.column(c, g, g.complete(first+c), rows)
		}
	})
	if ix.grid.width <= second || t.To-t.From < 10*second {
		g, rows = ix.grid, keys // a closer look at what is written down by the second shows no more
	}
	t.warm(ctx, g, rows, ix.last)
	return t, context.Cause(ctx)
}

// warm fills in the heat of the tile.
func (t *Tile) warm(ctx context.Context, g *grid, keys []int32, last int64) {
	if t.Cols == 0 || len(g.columns) == 0 {
		return
	}
	// What nodes wrote down in window i is of the windows from[i] to to[i]. What is not written down yet is taken to be as what was last.
	from, to := make([]int, len(g.columns)), make([]int, len(g.columns))
	for i := range from {
		from[i], to[i] = i, i+1
	}
	for node := range g.nodes {
		latest := -1
		for i, first := range g.since(node, Accesses) {
			if g.columns[i].counts[node*int(Counted)+int(Accesses)] > 0 {
				if latest >= 0 {
					to[latest] = latest + 1
				}
				from[i], latest = min(from[i], first), i
				to[i] = max(to[i], min(2*i+1-from[i], len(g.columns)))
			}
		}
	}
	width := (t.To - t.From) / int64(t.Cols)
	shown := func(c int) int { // the window that is seen in a column
		return min(int(max(0, t.From+int64(c)*width+width/2-g.origin)/g.width), len(g.columns)-1)
	}
	first, end := shown(0), shown(t.Cols-1)+1
	rates := make([][]float64, t.Rows) // by row, and by window how many more a second there are than in the window before
	for row := range rates {
		rates[row] = make([]float64, end-first+1)
	}
	parallel(t.Rows, func(row int) {
		of := rates[row]
		group := cut(keys, row*t.PerRow, t.PerRow)
		for i, c := range g.columns {
			if to[i] <= first || from[i] >= end || ctx.Err() != nil {
				continue
			}
			n := uint64(0)
			for _, k := range group {
				if int(k) < len(c.heat) {
					n += uint64(c.heat[k])
				}
			}
			if n > 0 {
				rate := float64(n) * float64(second) / float64(max(1e6, g.lasted(from[i], i+1, last)))
				of[max(0, from[i]-first)] += rate
				of[min(to[i], end)-first] -= rate
			}
		}
		at, rate := 0, of[0]
		for c := range t.Cols {
			for ; at < shown(c)-first; at++ {
				rate += of[at+1]
			}
			code := heatCode(max(0, rate))
			if rate > 1e-6 {
				code = max(1, code) // seldom is not never
			}
			t.Heat[row*t.Cols+c] = code
		}
	})
}

// cut returns a part of keys.
func cut(keys []int32, offset, limit int) []int32 {
	keys = keys[min(max(0, offset), len(keys)):]
	if limit > 0 {
		keys = keys[:min(limit, len(keys))]
	}
	return keys
}

// parallel calls do for 0 … n-1, on all processors.
func parallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	workers := min(n, runtime.GOMAXPROCS(0))
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				do(i)
			}
		})
	}
	wg.Wait()
}

// column fills in a column of the tile.
func (t *Tile) column(at int, g *grid, c *column, keys []int32) {
	owners := make([]int32, g.nodes+1)
	for row := range t.Rows {
		group := cut(keys, row*t.PerRow, t.PerRow)
		replicas := 0
		clear(owners)
		for _, k := range group {
			if int(k) >= len(c.owner) {
				owners[0]++
				continue
			}
			owners[c.owner[k]]++
			replicas += ones(c.replicasOf(int(k), g.bitmap))
		}
		best := 0
		for o, n := range owners {
			if n > owners[best] {
				best = o
			}
		}
		cell := row*t.Cols + at
		t.Owner[cell] = uint8(best) - 1 // 0 becomes None
		t.Agree[cell] = uint8(255 * int(owners[best]) / len(group))
		t.Replicas[cell] = uint8(min(255, 4*replicas/len(group)))
	}
}

// columnsOf returns in which columns a range of time lies, its ends included; at least one, if there is one.
func (g *grid) columnsOf(from, to int64) (first, end int) {
	first = int(max(0, from-g.origin) / g.width)
	end = min(int(max(0, to-g.origin)/g.width), len(g.columns)-1) + 1
	return max(0, min(first, end-1)), end
}

// How a tile is made of the segments themselves: if the index has fewer columns than these in the range, and no more segments
// have to be read.
const (
	fewColumns   = 200
	zoomSegments = 8
)

// gridOf returns the grid that shows keys in a range of time, the index's own or one of the range, and the numbers of the keys in
// it. It changes the range's ends to what the run has. It is called under the lock.
func (ix *Index) gridOf(tr *trace.Trace, r *Range, keys []int32) (g *grid, numbers []int32, err error) {
	r.From = min(max(0, r.From), ix.last)
	if r.To <= r.From || r.To > ix.last+1 {
		r.To = ix.last + 1
	}
	cols := min(r.Cols, zoomBytes/max(1, len(keys)*(cellBytes+ix.grid.bitmap)))
	if have := int((r.To - r.From) / ix.grid.width); have >= min(fewColumns, cols/2) || cols < 2 {
		return ix.grid, keys, nil
	}
	width := max(1000, (r.To-r.From+int64(cols)-1)/int64(cols))
	segments := 0
	for n := range ix.shift {
		segments += tr.Segments(godwit.NodeID(n), r.From-ix.late(n), r.To-ix.late(n))
	}
	if segments > zoomSegments {
		return ix.grid, keys, nil
	}
	return ix.zoom(tr, r.From, width, int((r.To-r.From+width-1)/width), keys)
}

// late returns by how much the times of a node are later than the run's, in ns.
func (ix *Index) late(n int) int64 { return max(0, ix.shift[n]) }

// zoom returns a grid of these keys that begins at a time, read from the segments, and their numbers in it.
func (ix *Index) zoom(tr *trace.Trace, from, width int64, cols int, keys []int32) (g *grid, numbers []int32, err error) {
	g = newGrid(ix.header.Nodes, from, width, cols, 0)
	g.fixed, g.keys = true, len(keys)
	for i := range cols {
		g.column(i)
	}
	numbers, of := make([]int32, len(keys)), make([]int32, len(ix.keys.keys))
	for i, k := range keys {
		numbers[i], of[k] = int32(i), int32(i+1)
	}
	locks := make([]sync.Mutex, cols) // of the columns
	changes, errs := make([][]change, len(g.walkers)), make([]error, len(g.walkers))
	parallel(len(errs), func(n int) { changes[n], errs[n] = ix.replay(tr, g, n, of, locks) })
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	g.place(changes)
	return g, numbers, nil
}

// replay counts what a node did in a fixed grid, and returns how the state of keys changed at the node, in the order of columns. It gives the grid's walker what the node had at the
// grid's begin. It takes the lock of each column in which it counts. of has the number of a key in the grid + 1; 0: the key is not in it.
func (ix *Index) replay(tr *trace.Trace, g *grid, node int, of []int32, locks []sync.Mutex) (changes []change, err error) {
	w := &walker{node: node, has: make([]uint8, g.keys), epoch: make([]uint32, g.keys)}
	begin := func() {
		if g.walkers[node].has == nil {
			g.walkers[node].has, g.walkers[node].epoch = slices.Clone(w.has), slices.Clone(w.epoch)
		}
	}
	err = ix.records(tr, w, g.origin, of, func(r trace.Record, t int64) bool {
		k := ix.keys.number(r.Key())
		if k >= 0 {
			k = int(of[k]) - 1
		}
		kind := r.Kind()
		if t < g.origin {
			if k >= 0 {
				w.has[k], w.epoch[k] = holds[kind]-1, r.Number()
			}
			return true
		}
		begin()
		w.at = max(w.at, int(min((t-g.origin)/g.width, int64(len(locks)))))
		if w.at >= len(locks) {
			return false
		}
		if k < 0 {
			return true
		}
		if x := holds[kind]; x != 0 && (w.has[k] != x-1 || x-1 == main && w.epoch[k] != r.Number()) {
			w.has[k], w.epoch[k] = x-1, r.Number()
			changes = append(changes, change{int32(w.at), int32(k), x - 1, uint8(r.Number())})
		}
		locks[w.at].Lock()
		defer locks[w.at].Unlock()
		g.count(w, k, &trace.Event{Kind: kind, N: r.Number()})
		return true
	})
	begin()
	return changes, err
}

// records calls yield for the records of a walker's node, with their times, until it returns false. What is lost or not known is left out. The
// records begin at or before a time; those before it are only those that say what the node has. The walker is given what the node had
// where they begin. of has the walker's number of each of the index's keys + 1, or 0 if it does not have the key; nil: the numbers are the same.
func (ix *Index) records(tr *trace.Trace, w *walker, from int64, of []int32, yield func(r trace.Record, t int64) bool) error {
	files := tr.Files(godwit.NodeID(w.node))
	late := ix.late(w.node)
	for len(files) > 1 && files[1].Header.Base*1000+late <= from {
		files = files[1:]
	}
	for i := range files {
		f, skip := &files[i], int64(0)
		if i == 0 {
			skip = ix.grid.restore(w, from, f.Header.Segment, of)
		}
		base, more := f.Header.Base*1000+late, true
		_, err := f.RecordsFrom(skip, func(b []byte) bool {
			for ; more && len(b) > 0; b = b[trace.RecordLen:] {
				r := trace.Record(b[:trace.RecordLen:trace.RecordLen])
				kind, t := r.Kind(), base+r.Micros()*1000
				if holds[kind] != 0 || t >= from && (kind == trace.Accessed || countOf[kind] != Accesses) {
					more = yield(r, t)
				}
			}
			return more
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// open returns the trace with the segments that there are, to be read until ctx ends.
func (ix *Index) open(ctx context.Context) (*trace.Trace, error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.trace == nil {
		t, err := trace.Open(ix.dir)
		if err != nil {
			return nil, err
		}
		ix.trace = t
	}
	return ix.trace.WithContext(ctx), nil
}

// An Instant is where keys are at a time.
type Instant struct {
	Time     int64   // ns
	Total    int     // keys of the selection
	Bitmap   int     // bytes of a bitmap of nodes
	Keys     []int64 // of the selection, as far as asked for
	Owner    []uint8 // by key, or None
	Heat     []uint8 // by key: the code of all its accesses ([heatCode])
	Replicas []uint8 // by key: a bitmap of the nodes that have one
}

// At returns where keys are at a time.
func (ix *Index) At(ctx context.Context, s Selection, time int64, offset, limit int) (*Instant, error) {
	tr, err := ix.open(ctx)
	if err != nil {
		return nil, err
	}
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	g, err := ix.instant(tr, time)
	if err != nil {
		return nil, err
	}
	c := g.now()
	keys := ix.selected(s)
	x := &Instant{Time: time, Total: len(keys), Bitmap: g.bitmap}
	for _, k := range cut(keys, offset, limit) {
		x.Keys = append(x.Keys, int64(ix.keys.keys[k]))
		x.Owner = append(x.Owner, uint8(c.ownerOf(int(k))))
		x.Heat = append(x.Heat, heatCode(float64(ix.totals[k].Accesses)))
		x.Replicas = append(x.Replicas, c.replicasOf(int(k), g.bitmap)...)
	}
	return x, nil
}

// instant returns a grid whose walkers have what nodes had at a time.
func (ix *Index) instant(tr *trace.Trace, time int64) (*grid, error) {
	g := newGrid(ix.header.Nodes, 0, 1, 1, 0)
	g.keys = len(ix.keys.keys)
	errs := make([]error, ix.header.Nodes)
	parallel(len(errs), func(n int) {
		if now := ix.grid.walkers[n]; now.last <= time {
			g.walkers[n].has, g.walkers[n].epoch = now.has, now.epoch
			return
		}
		errs[n] = ix.past(tr, g.walkers[n], time)
	})
	return g, errors.Join(errs...)
}

// past finds out what a node had at a time.
func (ix *Index) past(tr *trace.Trace, w *walker, time int64) error {
	w.has, w.epoch = make([]uint8, len(ix.keys.keys)), make([]uint32, len(ix.keys.keys))
	return ix.records(tr, w, time, nil, func(r trace.Record, t int64) bool {
		x := holds[r.Kind()]
		if x == 0 {
			return true
		}
		if t > time && r.Kind() != trace.Owns && r.Kind() != trace.Replicates {
			return false
		}
		if k := ix.keys.number(r.Key()); k >= 0 {
			w.has[k], w.epoch[k] = x-1, r.Number()
		}
		return true
	})
}
