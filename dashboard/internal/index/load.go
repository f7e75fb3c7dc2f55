package index

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// This file reads what there is of a trace when the index is opened: segments side by side, one a processor. A segment begins with
// what its node has, so none needs another. What is written later is read by Index.poll.

// load reads the segments that there are. It ends with an error when ctx ends.
func (ix *Index) load(ctx context.Context) error {
	tr, err := trace.Open(ix.dir)
	if err != nil {
		return err
	}
	tr = tr.WithContext(ctx)
	var jobs []job
	last := int64(0)
	for n := range ix.shift {
		files := tr.Files(godwit.NodeID(n))
		if ix.shift[n] < 0 {
			continue // it begins later, and is followed from its begin
		}
		for i := range files {
			jobs = append(jobs, job{node: n, file: &files[i], last: i == len(files)-1})
			if i > 0 {
				jobs[len(jobs)-2].until = files[i].Header.Base*1000 + ix.shift[n]
			}
			if i == len(files)-1 {
				micros, err := files[i].Last()
				if err != nil {
					return err
				}
				last = max(last, (files[i].Header.Base+micros)*1000+ix.shift[n])
			}
		}
	}
	ix.mu.Lock()
	ix.grid.expect(min(tracedBy(&ix.header), uint64(ix.bytes/trace.RecordLen)), last)
	ix.mu.Unlock()
	var next atomic.Int64
	var failed atomic.Bool
	workers := max(1, min(runtime.GOMAXPROCS(0), len(jobs)))
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			l := &loader{ix: ix, direct: make([]int32, len(ix.keys.direct)), hashed: map[godwit.Key]int32{}}
			for at := next.Add(1) - 1; at < int64(len(jobs)) && !failed.Load(); at = next.Add(1) - 1 {
				if errs[i] = l.load(&jobs[at]); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	wg.Wait()
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.grid.settle()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// tracedBy returns how many keys are traced at the most.
func tracedBy(h *trace.Header) uint64 {
	all := uint64(0)
	for _, t := range h.Tables {
		all += t.Rows
	}
	if ks, err := h.Keys(); err == nil {
		return min(all, ks.Most())
	}
	return all
}

// A job is a segment to read.
type job struct {
	node  int
	file  *trace.File
	last  bool  // of the node
	until int64 // ns: when the node's next segment begins, perhaps long after the last event of this one; of the last one 0
}

// A loader reads segments. What it finds it adds to the index when it comes to the end of a window. Keys are by
// their numbers in the index.
type loader struct {
	ix      *Index
	direct  []int32              // by key: its number + 1; 0: the loader has not met it. Of keys beyond, hashed
	hashed  map[godwit.Key]int32 // …
	node    int
	where   mark // of the record that is read
	at      int  // the column that it is in
	width   int64
	end     int64 // ns: when the window ends
	beyond  int64 // ns: no window begins then or later
	cells   []cell
	counts  [Counted]uint64
	totals  []Totals
	events  uint64
	lost    uint64
	thinned uint32
	last    int64
}

// A cell is what a loader knows of a key: together, because it is not in the cache.
type cell struct {
	accesses               uint32 // within the window
	refreshes              uint32 // within the segment
	moves, copies, intents uint16 // …, modulo 65,536; more are in totals
	has, epoch             uint8
}

// holds says of kinds of events what the node has of the key after it, plus 1; 0: as before.
var holds = [256]uint8{trace.Created: main + 1, trace.Arrived: main + 1, trace.Owns: main + 1, trace.Copied: replica + 1, trace.Refreshed: replica + 1, trace.Replicates: replica + 1,
	trace.Left: nothing + 1, trace.Ended: nothing + 1}

// load reads a segment.
func (l *loader) load(j *job) error {
	ix, h := l.ix, &j.file.Header
	base := h.Base*1000 + ix.shift[j.node]
	clear(l.cells)
	l.node, l.width = j.node, ix.grid.width // which nobody changes meanwhile
	l.where = mark{segment: h.Segment}
	ix.mu.Lock()
	most := 2 * ix.grid.limit()
	ix.mu.Unlock()
	l.at = int(min(max(0, base-ix.grid.origin)/l.width, int64(most-1)))
	l.end, l.beyond, l.last = ix.grid.end(l.at), ix.grid.end(most-1), base
	end, err := j.file.Records(func(b []byte) bool {
		for ; len(b) > 0; b = b[trace.RecordLen:] {
			l.take(trace.Record(b[:trace.RecordLen:trace.RecordLen]), base)
			l.where.records++
		}
		return true
	})
	if err != nil {
		return err
	}
	for j.until >= l.end && j.until < l.beyond {
		l.step()
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	l.merge(ix.grid.column(l.at), false)
	l.add()
	for k := range ix.totals[:min(len(ix.totals), len(l.totals))] {
		ix.totals[k].sum(&l.totals[k])
	}
	clear(l.totals)
	if j.last {
		w := &walker{node: j.node, segment: h.Segment, at: l.at, last: l.last, has: make([]uint8, len(l.cells)), epoch: make([]uint32, len(l.cells))}
		for k := range l.cells {
			w.has[k], w.epoch[k] = l.cells[k].has, uint32(l.cells[k].epoch) // which is compared modulo 256
		}
		ix.grid.walkers[j.node] = w
		ix.tails[j.node].Skip(j.file, end)
	}
	return nil
}

// take takes note of a record.
func (l *loader) take(r trace.Record, base int64) {
	l.events++
	kind := r.Kind()
	if kind == trace.Input {
		return
	}
	t := base + r.Micros()*1000
	l.last = max(l.last, t)
	switch kind {
	case trace.Lost:
		l.lost += uint64(r.Number())
		return
	case trace.Thinned:
		l.thinned = max(l.thinned, r.Number())
		return
	}
	key := r.Key()
	k := -1
	if key < godwit.Key(len(l.direct)) {
		k = int(l.direct[key]) - 1
	} else if n, ok := l.hashed[key]; ok {
		k = int(n)
	}
	if k < 0 {
		k = l.meet(key)
	}
	for t >= l.end && t < l.beyond { // the others: times that are damaged are counted in this window
		l.step()
	}
	c := &l.cells[k]
	if x := holds[kind]; x != 0 {
		c.has, c.epoch = x-1, uint8(r.Number())
	}
	n := uint32(1)
	switch kind {
	case trace.Accessed:
		if n = r.Number(); c.accesses > math.MaxUint32-n {
			l.totals[k].Accesses += uint64(n)
		} else {
			c.accesses += n
		}
	case trace.Missed:
		n = r.Number()
		l.totals[k].Missed += n
	case trace.Refreshed:
		c.refreshes++
	case trace.RefreshCount:
		n = r.Number()
		c.refreshes += n
	case trace.Arrived:
		if c.moves++; c.moves == 0 {
			l.totals[k].Moves += 1 << 16
		}
	case trace.Copied:
		if c.copies++; c.copies == 0 {
			l.totals[k].Copies += 1 << 16
		}
	case trace.Wanted:
		if c.intents++; c.intents == 0 {
			l.totals[k].Intents += 1 << 16
		}
	case trace.Ended, trace.Asked:
	default:
		return
	}
	l.counts[countOf[kind]] += uint64(n)
}

// meet takes note of a key that the loader has not met.
func (l *loader) meet(key godwit.Key) (k int) {
	l.ix.mu.Lock()
	k = l.ix.number(key)
	l.ix.mu.Unlock()
	if key < godwit.Key(len(l.direct)) {
		l.direct[key] = int32(k + 1)
	} else {
		l.hashed[key] = int32(k)
	}
	if k >= len(l.cells) {
		n := k + k/2 + 1024
		l.cells, l.totals = widen(l.cells, n), widen(l.totals, n)
	}
	return k
}

// step comes to the next window.
func (l *loader) step() {
	l.ix.mu.Lock()
	c := l.ix.grid.column(l.at)
	l.merge(c, true)
	c.mark(l.node, l.ix.grid.nodes, l.where)
	l.ix.mu.Unlock()
	l.at++
	l.end += l.width
}

// merge adds what happened in the window to its column and, if the segment goes on to its end, what the node has then. It is
// called under the lock.
func (l *loader) merge(c *column, ends bool) {
	ix := l.ix
	bit, bitmap, node := uint8(1)<<(l.node&7), ix.grid.bitmap, uint8(l.node+1)
	n := min(len(l.cells), len(c.owner))
	cells, heat, replicas, totals := l.cells[:n], c.heat[:n], c.replicas[l.node/8:], l.totals[:n]
	for k := range cells {
		x := &cells[k]
		if n := x.accesses; n > 0 {
			heat[k] = uint16(min(math.MaxUint16, uint64(heat[k])+uint64(n)))
			totals[k].Accesses += uint64(n)
			x.accesses = 0
		}
		if !ends {
			continue
		}
		if x.has == main {
			c.own(k, node, x.epoch)
		} else if x.has == replica {
			replicas[k*bitmap] |= bit
		}
	}
	for i, n := range l.counts {
		c.counts[l.node*int(Counted)+i] += n
	}
	clear(l.counts[:])
	ix.events, ix.lost, ix.last, ix.thinned = ix.events+l.events, ix.lost+l.lost, max(ix.last, l.last), max(ix.thinned, l.thinned)
	l.events, l.lost, l.thinned = 0, 0, 0
}

// add adds what happened in the segment to the totals.
func (l *loader) add() {
	for k := range l.cells {
		c, t := &l.cells[k], &l.totals[k]
		t.Refreshes += c.refreshes
		t.Moves += uint32(c.moves)
		t.Copies += uint32(c.copies)
		t.Intents += uint32(c.intents)
	}
}

func (t *Totals) sum(o *Totals) {
	t.Accesses += o.Accesses
	t.Missed += o.Missed
	t.Moves += o.Moves
	t.Copies += o.Copies
	t.Refreshes += o.Refreshes
	t.Intents += o.Intents
}
