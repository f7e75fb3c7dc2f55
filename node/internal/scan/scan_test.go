package scan

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/placement"
)

func TestMain(m *testing.M) { roomtest.Main(m) }

// A desk is a node as scans see it, with two workers.
type desk struct {
	host  *host.Host
	proto *protocol.Config
	links *link.Links
	bell  *host.Bell
	*Questions
	*Answers
	workers [2]*Scans
	outs    [2]link.Sender
	in      link.Sender   // of who takes frames
	read    *wire.Decoder // of frames of this node
	broke   error
}

// deskOf returns node self of a run of some with so many keys, of which those that
// have their home there are in use that use says.
func deskOf(t testing.TB, self godwit.NodeID, nodes int, keys uint64, sent func(), use func(godwit.Key) bool) *desk {
	t.Helper()
	d := &desk{host: host.New(host.Real()), bell: host.NewBell(), read: &wire.Decoder{Lists: &wire.Known{}}}
	d.proto = roomtest.Protocol(t, self, nodes, placement.Static, 4, godwit.Table{Name: "t", Rows: keys, Dim: 1})
	d.links = link.New(d.host, self, nodes, 1, host.Usual, filter.Compress{}, d.bell)
	for i := range nodes {
		if id := godwit.NodeID(i); id != self {
			d.links.Imagine(id, sent)
		}
	}
	rows, err := shards.New(d.proto, 1<<20, store.HeapAlloc, d.bell)
	roomtest.Must(t, err)
	var own []godwit.Key
	for k := range godwit.Key(keys) {
		if d.proto.Homes.Home(k) == self && use(k) {
			own = append(own, k)
		}
	}
	access := rows.Access()
	access.Serve(wire.Pull, own, make([]float32, len(own)))
	d.Questions = NewQuestions(d.host, d.proto, d.links)
	d.Answers = NewAnswers(d.proto, d.links, d.bell, func(peer godwit.NodeID, err error) { d.broke = fmt.Errorf("node %d: %w", peer, err) })
	for i := range d.workers {
		d.outs[i] = d.links.Sender()
		d.workers[i] = d.Questions.Worker(godwit.WorkerID{Node: self, Local: i}, &d.outs[i])
	}
	d.in = d.links.Sender()
	return d
}

// records takes what waits in the queue to a peer.
func (d *desk) records(t testing.TB, to godwit.NodeID) []wire.Record {
	t.Helper()
	return roomtest.Records(t, d.read, d.links.To(to).Take)
}

// take hands a record to a node.
func (d *desk) take(from godwit.NodeID, r *wire.Record) error {
	if r.Kind == wire.Scan {
		return d.Answers.Asked(&d.in, from, r)
	}
	d.in.LetGo()
	return d.Questions.Answered(from, r)
}

// joined returns the nodes of a run, between which records travel until the test ends.
func joined(t testing.TB, nodes int, keys uint64, use func(godwit.Key) bool) []*desk {
	sent := make(chan struct{}, 1)
	wake := func() {
		select {
		case sent <- struct{}{}:
		default:
		}
	}
	ds := make([]*desk, nodes)
	for i := range ds {
		ds[i] = deskOf(t, godwit.NodeID(i), nodes, keys, wake, use)
	}
	var carrier sync.WaitGroup
	end := make(chan struct{})
	t.Cleanup(func() { close(end); carrier.Wait() })
	carrier.Go(func() {
		for {
			select {
			case <-sent:
			case <-end:
				return
			}
			for _, from := range ds {
				for to := range from.links.All {
					for _, r := range from.records(t, to) {
						if err := ds[to].take(from.links.Self, &r); err != nil {
							t.Errorf("node %d, from node %d: %v", to, from.links.Self, err)
						}
					}
					ds[to].in.Flush()
				}
			}
		}
	})
	return ds
}

// keysOf returns what a scan says.
func keysOf(s *Scans, ctx context.Context, first, end godwit.Key, home godwit.NodeID) (keys []godwit.Key, err error) {
	s.Each(ctx, first, end, home, func(k godwit.Key, e error) bool {
		if err = e; e == nil {
			keys = append(keys, k)
		}
		return true
	})
	return keys, err
}

// A scan of all homes names the keys in use, in order; one of a home, its own.
func TestAScanMergesWhatTheHomesSay(t *testing.T) {
	const nodes, keys = 3, 30_000
	rng := rand.New(rand.NewPCG(*roomtest.Seed, 0x5ca))
	used := map[godwit.Key]bool{}
	for range 2 * keys { // more than one answer of each home names
		used[godwit.Key(rng.IntN(keys))] = true
	}
	ds := joined(t, nodes, keys, func(k godwit.Key) bool { return used[k] })
	ctx := roomtest.Background(t)
	for range 3 {
		a, b := godwit.Key(rng.IntN(keys+1)), godwit.Key(rng.IntN(keys+1))
		first, end := min(a, b), max(a, b)
		asks := rng.IntN(nodes)
		for home := godwit.NodeID(0); home <= nodes; home++ {
			from := home
			if home == nodes {
				from = godwit.NoNode
			}
			var want []godwit.Key
			for k := first; k < end; k++ {
				if used[k] && (from == godwit.NoNode || ds[0].proto.Homes.Home(k) == from) {
					want = append(want, k)
				}
			}
			if got, err := keysOf(ds[asks].workers[0], ctx, first, end, from); err != nil || !slices.Equal(got, want) {
				t.Errorf("node %d hears of %d keys of %d … %d at node %d (%v), want %d", asks, len(got), first, end, from, err, len(want))
			}
		}
	}
	for i, d := range ds {
		if n := d.workers[0].Open(); n != 0 {
			t.Errorf("%d parts of scans are open at node %d", n, i)
		}
	}
}

// The loop over a scan may end early, and scan meanwhile.
func TestAScanMayEndEarlyAndBeOneOfSeveral(t *testing.T) {
	const keys = 20_000
	ds := joined(t, 2, keys, func(godwit.Key) bool { return true })
	ctx := roomtest.Background(t)
	s, n := ds[1].workers[1], godwit.Key(0)
	s.Each(ctx, 0, keys, godwit.NoNode, func(k godwit.Key, err error) bool {
		roomtest.Must(t, err)
		if k != n {
			t.Fatalf("key %d comes where key %d should", k, n)
		}
		if n++; k%4000 == 0 {
			inner := k
			s.Each(ctx, k, keys, godwit.NoNode, func(k godwit.Key, err error) bool {
				roomtest.Must(t, err)
				inner = k
				return k < n+20
			})
			if inner != n+20 {
				t.Errorf("the scan within comes to key %d, want %d", inner, n+20)
			}
		}
		return n < 15_000
	})
	if n != 15_000 {
		t.Errorf("%d keys came", n)
	}
	roomtest.Eventually(t, "an end of scans that nobody waits for", func() bool { return s.Open() == 0 })
}

func TestABadScanSaysWhatIsWrong(t *testing.T) {
	d := deskOf(t, 0, 2, 40, func() {}, func(godwit.Key) bool { return false })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for what, x := range map[string]struct {
		ctx        context.Context
		first, end godwit.Key
		home       godwit.NodeID
		is         error
		says       string
	}{
		"beyond the last key":   {t.Context(), 0, 41, godwit.NoNode, godwit.ErrKeyRange, "up to key 41"},
		"backwards":             {t.Context(), 7, 6, godwit.NoNode, godwit.ErrKeyRange, "from key 7"},
		"at a node there isn't": {t.Context(), 0, 40, 2, nil, "no node 2"},
		"with an ended context": {ended, 0, 40, godwit.NoNode, context.Canceled, ""},
	} {
		_, err := keysOf(d.workers[1], x.ctx, x.first, x.end, x.home)
		var op *godwit.OpError
		if !errors.As(err, &op) || op.Op != "scan" || op.First != x.first || op.Worker.Local != 1 || x.is != nil && !errors.Is(err, x.is) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	slow, cancel := context.WithCancel(t.Context())
	d.links.Imagine(1, cancel) // it is asked, and does not answer
	var op *godwit.OpError
	if _, err := keysOf(d.workers[0], slow, 0, 40, 1); !errors.Is(err, context.Canceled) || !errors.As(err, &op) || op.Peer != 1 || op.Keys != 40 {
		t.Errorf("of a node that does not answer: %v", err)
	}
	d.host.Fail(godwit.ErrClosed)
	if _, err := keysOf(d.workers[0], t.Context(), 0, 40, godwit.NoNode); !errors.Is(err, godwit.ErrClosed) {
		t.Errorf("when the node was closed: %v", err)
	}
}

// A node may have many scans open, and no more: one too many is refused, and what
// was refused leaves room for others when some end, be it before their answers.
func TestOneScanTooManyIsRefused(t *testing.T) {
	const keys, thousand = 400, 1 << 10
	d := deskOf(t, 0, 2, keys, func() {}, func(godwit.Key) bool { return true })
	begun := func(worker int) error { // a scan that takes nothing
		m := merge{of: d.workers[worker], end: keys}
		defer m.close()
		return m.begin(t.Context(), 1)
	}
	for i := range thousand {
		roomtest.Must(t, begun(i%2))
	}
	if err := begun(0); !errors.Is(err, godwit.ErrFull) {
		t.Fatalf("scan %d: %v, want %v", thousand+1, err, godwit.ErrFull)
	}
	if a, b := d.workers[0].Open(), d.workers[1].Open(); a+b != thousand {
		t.Errorf("%d scans are open, want %d", a+b, thousand)
	}
	for i, r := range d.records(t, 1) {
		roomtest.Must(t, d.take(1, &wire.Record{Kind: wire.Scanned, Op: r.Op, Key: keys}))
		if i == 0 {
			roomtest.Must(t, begun(1))
		}
	}
	if a, b := d.workers[0].Open(), d.workers[1].Open(); a+b != 1 {
		t.Errorf("%d scans are open when all but the last were answered", a+b)
	}
}

// What a home says that cannot be is refused, and what nobody asked for is dropped.
func TestAnswersThatCannotBeAreRefused(t *testing.T) {
	const keys = 400
	d := deskOf(t, 0, 3, keys, func() {}, func(godwit.Key) bool { return true })
	m := merge{of: d.workers[0], end: keys}
	roomtest.Must(t, m.begin(t.Context(), 1))
	op := d.records(t, 1)[0].Op
	for _, unasked := range []uint64{op + 1, 1 << 48, 2 << 48, 1<<64 - 1} {
		if err := d.take(1, &wire.Record{Kind: wire.Scanned, Op: unasked, Key: keys}); err != nil {
			t.Errorf("an answer that nobody waits for, %#x: %v", unasked, err)
		}
	}
	if err := d.take(2, &wire.Record{Kind: wire.Scanned, Op: op, Key: keys}); err == nil {
		t.Error("another node answers than was asked")
	}
	if err := d.take(1, &wire.Record{Kind: wire.Scanned, Op: op, Key: keys + 1}); err == nil {
		t.Error("an answer goes beyond what was asked")
	}
}

// Questions of scans are short, and answers long: who asks, and takes no answers,
// gets no more of them than have room, and its questions wait, up to a bound.
func TestWhoAsksForScansAndTakesNoAnswersIsBounded(t *testing.T) {
	const keys, peer = 3000, godwit.NodeID(1)
	d := deskOf(t, 0, 3, keys, func() {}, func(k godwit.Key) bool { return k < 60 })
	out, l := d.links.Sender(), d.links.To(peer)
	ask := func(op uint64) error {
		defer d.in.Flush()
		return d.take(peer, &wire.Record{Kind: wire.Scan, Op: op, Seq: keys})
	}
	round := func() bool {
		defer out.Flush()
		return d.Answers.Close(&out, true, false)
	}
	answered := func() (ops []uint64) {
		for _, r := range d.records(t, peer) {
			if r.Kind == wire.Scanned {
				ops = append(ops, r.Op)
			}
		}
		return ops
	}
	roomtest.Must(t, ask(1))
	if got := answered(); !slices.Equal(got, []uint64{1}) {
		t.Fatalf("the scans %v are answered, want 1", got)
	}

	full := make([]byte, host.Usual.Answers+wire.DataLen)
	l.Push(full) // it takes nothing
	var want []uint64
	for op := range uint64(most) {
		roomtest.Must(t, ask(op))
		want = append(want, op)
	}
	select {
	case <-d.bell.Rung():
	default:
		t.Error("questions wait, and no round is asked for")
	}
	before := l.Counts().Queued
	if !round() {
		t.Error("a round leaves nothing for later")
	}
	if now := l.Counts().Queued; now != before {
		t.Errorf("%d bytes are queued, want %d as before: there is no room", now, before)
	}
	if err := ask(most); err == nil || !strings.Contains(err.Error(), fmt.Sprint(most)) || !strings.Contains(err.Error(), "scans") {
		t.Errorf("one scan too many: %v", err)
	}
	roomtest.Must(t, d.take(2, &wire.Record{Kind: wire.Scan, Op: 7, Seq: keys})) // others are not held up
	d.in.Flush()
	if d.links.To(2).Counts().Queued == 0 {
		t.Error("another node gets no answer")
	}

	l.Take(nil)
	if round() {
		t.Error("a round leaves something for later, though there is room")
	}
	if got := answered(); !slices.Equal(got, want) {
		t.Errorf("%d scans are answered, want %d, in their order", len(got), len(want))
	}

	// What cannot be answered is the same late as early.
	if err := d.take(peer, &wire.Record{Kind: wire.Scan, Op: 1, Seq: keys + 1}); err == nil {
		t.Error("a scan beyond the last key is answered")
	}
	l.Push(full)
	roomtest.Must(t, d.take(peer, &wire.Record{Kind: wire.Scan, Op: 1, Seq: keys + 1}))
	l.Take(nil)
	round()
	if d.broke == nil || !strings.Contains(d.broke.Error(), "node 1") || !strings.Contains(d.broke.Error(), "up to 3001") {
		t.Errorf("the run ended with %v", d.broke)
	}
}

// Nobody's question overtakes one that waits.
func TestQuestionsAreAnsweredInTheirOrder(t *testing.T) {
	const keys = 100
	d := deskOf(t, 0, 2, keys, func() {}, func(godwit.Key) bool { return true })
	l := d.links.To(1)
	l.Push(make([]byte, host.Usual.Answers+wire.DataLen)) // it takes nothing
	roomtest.Must(t, d.take(1, &wire.Record{Kind: wire.Scan, Op: 1, Seq: keys}))
	l.Take(nil)
	roomtest.Must(t, d.take(1, &wire.Record{Kind: wire.Scan, Op: 2, Seq: keys}))
	d.in.Flush()
	if rs := d.records(t, 1); len(rs) > 0 {
		t.Errorf("scan %d is answered before one that came earlier", rs[0].Op)
	}
}
