package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"slices"
	"sync"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/internal/folder"
)

// A Trace is the trace of a run, of which the segments were found. What they contain is read
// when it is asked for. Any goroutine may use it.
type Trace struct {
	Header Header // of the first segment of the first node: run, policy, nodes, tables
	dir    string
	nodes  [][]segment
	ctx    context.Context // of what is read
}

// WithContext returns the same trace, what is read of which ends with an error when ctx ends.
func (t *Trace) WithContext(ctx context.Context) *Trace {
	within := *t
	within.ctx = ctx
	return &within
}

var errEmpty = errors.New("there are no segments")

// IsEmpty reports whether an error of Open says that the folder has no segment whose header was written whole.
func IsEmpty(err error) bool { return errors.Is(err, errEmpty) }

// A segment is a file of a node.
type segment struct {
	path   string
	header Header
	begin  int64 // of its events, in bytes
}

// Restarted returns the name under which a run goes on by itself for the n-th time, from 1 on. It writes to a folder of that name, beside its
// earlier ones.
func Restarted(run string, n int) string { return folder.Restarted(run, n) }

// Restarts returns the name that a run began under, and how often it has gone on by itself since, from its name now; 0: the name is none of
// [Restarted].
func Restarts(run string) (of string, n int) { return folder.Restarts(run) }

// Open finds the segments of a trace: dir is the folder of a run, or one that has no more than
// one such folder in it, of a run that has gone on by itself (see [Restarted]) the last one. Segments whose header was not written whole are left out.
func Open(dir string) (*Trace, error) {
	dir, err := folder.Run(dir, "node-*/*.trace")
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	t := &Trace{dir: dir, ctx: context.Background()}
	paths, err := folder.Glob(dir, "node-*/*.trace")
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	for _, path := range paths {
		h, begin, err := readHeader(path)
		if errors.Is(err, errShort) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%w (%s)", err, path)
		}
		if len(t.nodes) == 0 {
			t.Header, t.nodes = h, make([][]segment, h.Nodes)
		}
		if h.Run != t.Header.Run || h.Nodes != t.Header.Nodes {
			return nil, fmt.Errorf("trace: %s is of run %q of %d nodes, another segment of run %q of %d: a trace is of one run", path, h.Run, h.Nodes, t.Header.Run, t.Header.Nodes)
		}
		t.nodes[h.Node] = append(t.nodes[h.Node], segment{path, h, int64(begin)})
	}
	if len(t.nodes) == 0 {
		return nil, fmt.Errorf("trace: %w in %s: want the folder that --trace named, or one in it", errEmpty, dir)
	}
	return t, nil
}

// Starts returns when the trace of each node began that has one, in nanoseconds since 1970 by its clock.
func (t *Trace) Starts() map[godwit.NodeID]int64 {
	at := map[godwit.NodeID]int64{}
	for n, segments := range t.nodes {
		if len(segments) > 0 {
			at[godwit.NodeID(n)] = segments[0].header.Start
		}
	}
	return at
}

// Segments returns how many segments of a node Events reads for a time on, up to another one.
func (t *Trace) Segments(n godwit.NodeID, from, to int64) (count int) {
	for i, s := range t.nodes[n] {
		ends := i+1 < len(t.nodes[n]) && t.nodes[n][i+1].header.Base*micro <= from
		if !ends && s.header.Base*micro <= to {
			count++
		}
	}
	return count
}

var errShort = errors.New("trace: the segment ends within its header")

// readHeader returns the header of a segment, and its length.
func readHeader(path string) (h Header, length int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return h, 0, fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	b := make([]byte, preamble)
	if _, err := io.ReadFull(f, b); err != nil {
		return h, 0, errShort
	}
	n := int(b[12]) | int(b[13])<<8 | int(b[14])<<16 | int(b[15])<<24
	if n > preamble && n <= maxHeader {
		b = append(b, make([]byte, n-preamble)...)
		if _, err := io.ReadFull(f, b[preamble:]); err != nil {
			return h, 0, errShort
		}
	}
	h, _, err = decodeHeader(b)
	return h, len(b), err
}

// Events calls yield for each event of a node, in the order in which the node wrote
// them, until it returns false. Before come events Owns and Replicates: what the
// node had of keys when its first segment began.
func (t *Trace) Events(n godwit.NodeID, yield func(Event) bool) error {
	return t.each(n, 0, func([]byte) bool { return true }, yield)
}

// each is Events of the records that are wanted, from the last segment on that began at a time or before.
func (t *Trace) each(n godwit.NodeID, from int64, wanted func([]byte) bool, yield func(Event) bool) error {
	if int(n) >= len(t.nodes) {
		return nil
	}
	segments := t.nodes[n]
	i, found := slices.BinarySearchFunc(segments, from/micro, func(s segment, at int64) int { return cmp.Compare(s.header.Base, at) })
	if !found && i > 0 {
		i--
	}
	for ; i < len(segments); i++ {
		if more, err := segments[i].each(t.ctx, wanted, yield); err != nil || !more {
			return err
		}
	}
	return nil
}

// buffers are what segments are read by.
var buffers = sync.Pool{New: func() any { b := make([]byte, tailBytes/RecordLen*RecordLen); return &b }}

// each calls yield for the events that are wanted until it returns false, and returns whether it never did. It ends with ctx.
func (s *segment) each(ctx context.Context, wanted func([]byte) bool, yield func(Event) bool) (more bool, err error) {
	f, err := os.Open(s.path)
	if err != nil {
		return false, fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(s.begin, io.SeekStart); err != nil {
		return false, fmt.Errorf("trace: %w", err)
	}
	pooled := buffers.Get().(*[]byte)
	defer buffers.Put(pooled)
	buf := *pooled
	var g gatherer
	for {
		if err := context.Cause(ctx); err != nil {
			return false, fmt.Errorf("trace: %w", err)
		}
		n, err := io.ReadFull(f, buf)
		for b := buf[:n]; len(b) >= RecordLen; b = b[RecordLen:] {
			if Kind(b[6]) != Input && !wanted(b) {
				continue
			}
			if e, ok := g.take(b, &s.header); ok && !yield(e) {
				return false, nil
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("trace: %w", err)
		}
	}
}

// A Copy is what a node has of a key at a time.
type Copy struct {
	Main  bool         // the main copy; else a replica
	Epoch godwit.Epoch // of the key's ownership, as the node knew it
}

// At returns what a node has of the traced keys at a time. It reads one segment.
func (t *Trace) At(n godwit.NodeID, time int64) (map[godwit.Key]Copy, error) {
	has := map[godwit.Key]Copy{}
	ofCopies := func(b []byte) bool {
		k := Kind(b[6])
		return k <= Refreshed || k == Ended || k == Owns || k == Replicates
	}
	err := t.each(n, time, ofCopies, func(e Event) bool {
		switch e.Kind {
		case Owns, Replicates:
			has[e.Key] = Copy{e.Kind == Owns, e.Epoch}
			return true
		}
		if e.Time > time {
			return false
		}
		switch e.Kind {
		case Created, Arrived:
			has[e.Key] = Copy{true, e.Epoch}
		case Copied, Refreshed:
			has[e.Key] = Copy{false, e.Epoch}
		case Left, Ended:
			delete(has, e.Key)
		}
		return true
	})
	return has, err
}

// A Reign is the time for which a node owned a key, in an epoch. Where the node did not write that the key left, as it was killed, the reign ends when
// the next one begins.
type Reign struct {
	Epoch    godwit.Epoch  // that it is
	Owner    godwit.NodeID // who owned the key
	From, To int64         // by the owner's clock; To is negative while it lasts
}

// A Life is what became of a key.
type Life struct {
	Key    godwit.Key // whose life it is
	Reigns []Reign    // in the order of their epochs, of which each has one
	// Events are those of all nodes, in the order of epochs; those of a node are in their order. Of
	// events that tell no epoch, it is the one that the node knew before.
	Events []Event
	// Thinned says when only some of the key's events were written.
	Thinned []Gap
	Lost    map[godwit.NodeID]uint64 // how many events of all keys are missing of a node, some perhaps of this one
	Silent  []godwit.NodeID          // of which there is no trace
}

// A Gap is the time for which a node did not write details of a key, which are its intents, what was asked for it and decided about it, as
// there were too many of all keys.
type Gap struct {
	Node     godwit.NodeID // which
	From, To int64         // by its clock; To is negative if it lasted
}

// Life reads the life of a key. The order of reigns follows from epochs, whatever the nodes' clocks
// said. An error is returned where two nodes owned the key in one epoch.
func (t *Trace) Life(k godwit.Key) (*Life, error) {
	keys, err := t.Header.Keys()
	if err != nil {
		return nil, err
	}
	l := &Life{Key: k, Lost: map[godwit.NodeID]uint64{}}
	for n := range t.nodes {
		if len(t.nodes[n]) == 0 {
			l.Silent = append(l.Silent, godwit.NodeID(n))
		}
		known := godwit.Epoch(0)
		err := t.each(godwit.NodeID(n), 0, func(b []byte) bool { return keyOf(b) == k || Kind(b[6]).ofAll() }, func(e Event) bool {
			switch e.Kind {
			case Owns, Replicates:
				return true
			case Lost:
				l.Lost[e.Node] += uint64(e.N)
				return true
			case Thinned:
				l.thin(&e, keys.detailed(k, uint32(bits.Len32(e.N))-1))
				return true
			}
			known = max(known, e.Epoch)
			e.Epoch = known
			l.Events = append(l.Events, e)
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(l.Events, func(a, b Event) int { return cmp.Compare(a.Epoch, b.Epoch) })
	return l, l.reign(t.Starts())
}

// thin takes note that a node writes details of fewer keys from an event on, or of more: of this one, or not.
func (l *Life) thin(e *Event, detailed bool) {
	last := len(l.Thinned) - 1
	lasts := last >= 0 && l.Thinned[last].Node == e.Node && l.Thinned[last].To < 0
	switch {
	case lasts && detailed:
		l.Thinned[last].To = e.Time
	case !lasts && !detailed:
		l.Thinned = append(l.Thinned, Gap{e.Node, e.Time, -1})
	}
}

// reign finds out who owned the key. starts says when nodes began, each by its clock.
func (l *Life) reign(starts map[godwit.NodeID]int64) error {
	for _, e := range l.Events {
		last := len(l.Reigns) - 1
		switch {
		case e.Kind == Created || e.Kind == Arrived:
			if last >= 0 && l.Reigns[last].Epoch == e.Epoch {
				return fmt.Errorf("trace: key %d has two owners in epoch %d: nodes %d and %d", l.Key, e.Epoch, l.Reigns[last].Owner, e.Node)
			}
			if last >= 0 && l.Reigns[last].To < 0 {
				before := &l.Reigns[last]
				before.To = max(0, before.From, e.Time+starts[e.Node]-starts[before.Owner])
			}
			l.Reigns = append(l.Reigns, Reign{e.Epoch, e.Node, e.Time, -1})
		case e.Kind == Left && last >= 0 && l.Reigns[last].Epoch == e.Epoch && l.Reigns[last].Owner == e.Node:
			l.Reigns[last].To = e.Time
		}
	}
	return nil
}
