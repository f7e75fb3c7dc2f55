package receive

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/ask"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/liveness"
	"github.com/godwit-ps/godwit/node/internal/operation"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
	"github.com/godwit-ps/godwit/node/internal/round"
	"github.com/godwit-ps/godwit/node/internal/run"
	"github.com/godwit-ps/godwit/node/internal/scan"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/tick"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/transport"
)

func TestMain(m *testing.M) { roomtest.Main(m) }

// session is one of a run that ends only by itself.
type session struct{ failed chan error }

func (session) Done() <-chan struct{} { return nil }
func (session) Err() error            { return nil }
func (s session) Fail(err error)      { s.failed <- err }

// node is the rooms of node 0 of two that take what node 1 sends.
type node struct {
	*Receiver
	model  *godwit.Model
	in     *Inbound
	enc    wire.Encoder // of node 1
	key    godwit.Key   // that has its home here
	homed  []godwit.Key // all such keys
	leads  uint64
	failed chan error
}

func nodeOf(t *testing.T) *node {
	cfg := roomtest.Protocol(t, 0, 2, placement.Static, 4, godwit.Table{Name: "t", Rows: 1000, Dim: 1})
	members := []coord.Member{{ID: 0, Addr: "a"}, {ID: 1, Addr: "b"}}
	h, bell := host.New(host.Real()), host.NewBell()
	t.Cleanup(func() { h.Halt(); h.Join() })
	limits := host.Usual
	limits.Owed = 1000
	ls := link.New(h, 0, 2, 1, limits, filter.Compress{}, bell)
	ls.Imagine(1, func() {})
	n := &node{model: cfg.Model, failed: make(chan error, 1)}
	r := run.New(h, ls, session{n.failed}, func(lost *coord.MemberError) error { return lost }, members)
	rows, err := shards.New(cfg, 0, store.HeapAlloc, bell)
	roomtest.Must(t, err)
	ops := operation.New(cfg.Model, 0, 1, limits)
	ls.Answered = ops.Complete
	clocks := tick.NewClocks(0, 1, 0)
	loop := round.New(round.Config{Host: h, Links: ls, Rows: rows, Clocks: clocks, Setup: tick.NewSetup(clocks), Bell: bell, Budget: host.NewBudget(1, 2), IDs: new(atomic.Uint64)})
	n.Receiver = New(Config{Host: h, Links: ls, Rows: rows, Ops: ops, Sync: loop.Sync, Questions: scan.NewQuestions(h, cfg, ls), Answers: scan.NewAnswers(cfg, ls, bell, r.Broke),
		Asks: ask.New(h, ls, r.Fail), Pulse: liveness.New(h, ls, members, time.Minute), Run: r, Leads: func(_, keys uint64) { n.leads += keys }})
	n.in = n.Inbound(1)
	n.enc.Lists = &wire.Sent{}
	for k := range godwit.Key(1000) {
		if cfg.Homes.Home(k) == 0 {
			n.homed = append(n.homed, k)
		}
	}
	n.key = n.homed[0]
	return n
}

// frame returns a frame of node 1.
func (n *node) frame(recs ...wire.Record) []byte {
	n.enc.Reset(nil, 1)
	for i := range recs {
		n.enc.Append(&recs[i])
	}
	return n.enc.Frame()
}

// sent returns what is sent to node 1 in records.
func (n *node) sent(t *testing.T) []wire.Record {
	n.in.Flush()
	return roomtest.Records(t, &wire.Decoder{Lists: &wire.Known{}}, func(buf []byte) []byte {
		for {
			if buf = n.Links.To(1).Take(buf); len(buf) == 0 || wire.IsData(buf) {
				return buf
			}
		}
	})
}

// Requests of a frame are served in their order, and answered; what does not fit the run is
// refused.
func TestAFrameIsServedInItsOrder(t *testing.T) {
	n := nodeOf(t)
	frame := n.frame(
		wire.Record{Kind: wire.Push, Key: n.key, Op: 1, Origin: 1, Vals: []float32{3}},
		wire.Record{Kind: wire.Pull, Key: n.key, Op: 2, Origin: 1},
		wire.Record{Kind: wire.Set, Key: n.key, Op: 3, Origin: 1, Vals: []float32{7}},
		wire.Record{Kind: wire.Pull, Key: n.key, Op: 4, Origin: 1},
		wire.Record{Kind: wire.SyncMark, Op: 5})
	roomtest.Must(t, n.in.Frame(frame))
	var pulled []float32
	for _, r := range n.sent(t) {
		if r.Kind == wire.PullReply {
			pulled = append(pulled, r.Vals...)
		}
	}
	if len(pulled) != 2 || pulled[0] != 3 || pulled[1] != 7 {
		t.Errorf("the pulls got %v, want 3 and 7", pulled)
	}
	if _, nodes := n.Sync.Open(); nodes != 1 {
		t.Errorf("%d nodes wait for their marks", nodes)
	}
	if n.Bytes() != uint64(len(frame)) {
		t.Errorf("%d bytes came, want %d", n.Bytes(), len(frame))
	}
	for what, r := range map[string]wire.Record{
		"a key that is none":           {Kind: wire.Localize, Key: 1000, Op: 1, Origin: 1},
		"a bound, where there is none": {Kind: wire.Rebound, Op: 1, Seq: 3},
		"an origin that is no node":    {Kind: wire.Localize, Key: 1, Origin: 2},
		"a record in a circle":         {Kind: wire.Localize, Key: 1, Origin: 1, Hops: 255},
		"a holder that is no node":     {Kind: wire.Transfer, Key: 1, Origin: 1, Holders: []wire.Holder{{Node: 7}}},
		"a pull of another length":     {Kind: wire.Push, Key: n.key, Op: 1, Origin: 1, Vals: []float32{1, 2}},
	} {
		if err := n.in.Frame(n.frame(r)); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}

// A reply completes its operation.
func TestAReplyCompletesItsOperation(t *testing.T) {
	n := nodeOf(t)
	tb, dst := n.Ops.Of(0), make([]float32, 1)
	o := tb.Begin("pull", dst)
	o.Expect(n.model, []godwit.Key{n.key + 1}, []int{0, 0})
	tb.Ask(link.CostOf(1))
	tb.Issued(o, 0)
	roomtest.Must(t, n.in.Frame(n.frame(wire.Record{Kind: wire.PullReply, Key: n.key + 1, Op: o.ID, Vals: []float32{42}})))
	select {
	case <-o.Done:
	default:
		t.Fatal("the operation is not complete")
	}
	if dst[0] != 42 || tb.UnderWay() != 0 {
		t.Errorf("the value is %v; %d bytes are under way", dst[0], tb.UnderWay())
	}
}

// Answers in frames of their own count as owed, too: a peer that asks on and reads none of them has the run end.
func TestAnswersThatNobodyReadsAreBounded(t *testing.T) {
	n := nodeOf(t)
	n.Asks.Serve(func(int, []byte) []byte { return make([]byte, 400) })
	answered := 0
	var err error
	for ; err == nil && answered < 10; answered++ {
		err = n.in.Frame(wire.Ask{Number: uint64(answered + 1)}.Frame())
	}
	if f := (*floodError)(nil); !errors.As(err, &f) || answered != 3 {
		t.Errorf("after %d answers of 400 bytes: %v", answered, err)
	}
	n = nodeOf(t)
	n.Asks.Serve(func(int, []byte) []byte { return make([]byte, 400) })
	for i := range 10 { // they are read
		roomtest.Must(t, n.in.Frame(wire.Ask{Number: uint64(i + 1)}.Frame()))
		n.Links.To(1).Take(nil)
	}
}

// What comes when the run is over is taken no more, and the peer is not to blame.
func TestAFrameIsNotTakenWhenTheRunIsOver(t *testing.T) {
	n := nodeOf(t)
	over := errors.New("over")
	n.Host.Fail(over)
	recs := make([]wire.Record, 2000)
	for i := range recs {
		recs[i] = wire.Record{Kind: wire.Push, Key: n.key, Op: 1, Index: uint32(i), Origin: 1, Vals: []float32{1}}
	}
	before, err := n.in.Handle(n.frame(recs...), false)
	if err != over || before == len(recs) {
		t.Errorf("%d of %d records are taken: %v", before, len(recs), err)
	}
	select {
	case err := <-n.failed:
		t.Errorf("the others hear of it: %v", err)
	default:
	}
}

// A long run of requests is served in its order, key by key, whatever becomes of the keys
// between them: some are served, some are passed on.
func TestALongRunIsServedInItsOrder(t *testing.T) {
	n := nodeOf(t)
	n.Links.Limits.Owed = 1 << 20
	var away []godwit.Key // homed at node 1
	for k := range godwit.Key(1000) {
		if !slices.Contains(n.homed, k) {
			away = append(away, k)
		}
	}
	const calls = 150
	var run []wire.Record
	want, seen := map[godwit.Key]float32{}, []float32{}
	for i := range calls {
		k := n.homed[i*i%7] // each many times
		if i%10 == 9 {
			k = away[i]
		}
		for _, kind := range []wire.Kind{wire.Push, wire.Pull} {
			run = append(run, wire.Record{Kind: kind, Key: k, Op: uint64(kind), Index: uint32(i), Origin: 1, Hops: 1})
		}
		run[2*i].Vals = []float32{float32(i)}
		if want[k] += float32(i); i%10 != 9 {
			seen = append(seen, want[k])
		}
	}
	// As they are, none is in a run with the next; pushes in one run, then pulls in one, all are.
	check := func(recs []wire.Record, pulled []float32) {
		t.Helper()
		roomtest.Must(t, n.in.Frame(n.frame(recs...)))
		var got []float32
		passed, done := 0, 0
		index := map[wire.Kind]int{wire.PullReply: -1, wire.Done: -1}
		for _, r := range n.sent(t) {
			switch r.Kind {
			case wire.PullReply, wire.Done:
				if int(r.Index) <= index[r.Kind] {
					t.Fatalf("%v %d comes after %d", r.Kind, r.Index, index[r.Kind])
				}
				index[r.Kind] = int(r.Index)
				got = append(got, r.Vals...)
				done++
			default:
				if r.Hops != 2 || r.Index%10 != 9 {
					t.Fatalf("passed on: %+v", r)
				}
				passed++
			}
		}
		if passed != 2*calls/10 || done != 2*calls-passed || !slices.Equal(got, pulled) {
			t.Errorf("%d were passed on, %d answered; the pulls got %v,\nwant %v", passed, done, got, pulled)
		}
	}
	check(run, seen)
	slices.SortStableFunc(run, func(a, b wire.Record) int { return int(b.Kind) - int(a.Kind) })
	var last []float32
	for i := range calls {
		if r := run[calls+i]; r.Index%10 != 9 {
			last = append(last, 2*want[r.Key])
		}
	}
	check(run, last)
}

// Of a long run that the model does not have, nothing behind the first such key is done.
func TestALongRunIsRefusedAtItsFirstKeyThatIsNone(t *testing.T) {
	n := nodeOf(t)
	var run []wire.Record
	for i := range 50 {
		run = append(run, wire.Record{Kind: wire.Push, Key: n.homed[i], Op: 1, Index: uint32(i), Origin: 1, Vals: []float32{1}})
	}
	run[20].Key = 1 << 40
	if err := n.in.Frame(n.frame(run...)); err == nil || !strings.Contains(err.Error(), "1099511627776") {
		t.Fatalf("a run with a key that is none: %v", err)
	}
	a, v := n.Rows.Access(), make([]float32, 1)
	for i, want := range map[int]float32{19: 1, 21: 0} {
		if a.Read(n.Rows.Table(n.homed[i]), n.homed[i], v); v[0] != want {
			t.Errorf("the value at %d is %v, want %v", i, v[0], want)
		}
	}
	replies := make([]wire.Record, 10)
	for i := range replies {
		replies[i] = wire.Record{Kind: wire.PullReply, Key: godwit.Key(i), Op: 1, Index: uint32(i), Vals: []float32{1, 2}}
	}
	if err := n.in.Frame(n.frame(replies...)); err == nil || !strings.Contains(err.Error(), "with 2 floats, want 1") {
		t.Errorf("replies with two floats: %v", err)
	}
}

// Replies to many keys of an operation complete it, and each value goes where its key
// stands.
func TestALongRunOfRepliesCompletesItsOperation(t *testing.T) {
	const keys = 200
	n := nodeOf(t)
	tb, dst := n.Ops.Of(0), make([]float32, keys)
	o := tb.Begin("pull", dst)
	var miss []int
	var replies []wire.Record
	for i := range keys {
		miss = append(miss, i, keys-1-i)
		replies = append(replies, wire.Record{Kind: wire.PullReply, Key: godwit.Key(i * i % 997), Op: o.ID, Index: uint32(i), Vals: []float32{float32(i)}})
		tb.Ask(link.CostOf(1))
	}
	o.Expect(n.model, make([]godwit.Key, keys), miss)
	tb.Issued(o, 0)
	roomtest.Must(t, n.in.Frame(n.frame(replies[:keys-1]...)))
	if len(o.Done) > 0 || tb.UnderWay() != link.CostOf(1) {
		t.Fatalf("with one reply missing: complete %v, %d bytes under way", len(o.Done) > 0, tb.UnderWay())
	}
	roomtest.Must(t, n.in.Frame(n.frame(replies[keys-1])))
	if len(o.Done) == 0 || tb.UnderWay() != 0 {
		t.Errorf("with all replies: complete %v, %d bytes under way", len(o.Done) > 0, tb.UnderWay())
	}
	for i, v := range dst {
		if v != float32(keys-1-i) {
			t.Fatalf("the value at %d is %v", i, v)
		}
	}
}

// Frames behind one that refers to a list of keys that is not known wait for it, in their
// order.
func TestFramesWaitForAListOfKeys(t *testing.T) {
	n := nodeOf(t)
	var keys []wire.Record
	for i := range 40 { // not one after the other, which would be no list
		keys = append(keys, wire.Record{Kind: wire.Push, Key: n.homed[i*i%97], Op: 1, Index: uint32(i), Origin: 1, Hops: 1, Vals: []float32{1}})
	}
	for range 2 {
		roomtest.Must(t, n.in.Frame(n.frame(keys...)))
	}
	n.in.Forget()
	n.sent(t)
	roomtest.Must(t, n.in.Frame(n.frame(keys...)))
	roomtest.Must(t, n.in.Frame(n.frame(keys[0])))
	if n.in.Waiting() != 2 || n.Lacked() != 1 {
		t.Fatalf("%d frames wait for %d lists", n.in.Waiting(), n.Lacked())
	}
	var question []byte
	for f := n.Links.To(1).Take(nil); len(f) > 0; f = n.Links.To(1).Take(nil) {
		if wire.Asks(f) {
			question = f
		}
	}
	answer, err := n.enc.Lists.Answer(question)
	roomtest.Must(t, err)
	roomtest.Must(t, n.in.Frame(answer))
	a, v := n.Rows.Access(), make([]float32, 1)
	if a.Read(n.Rows.Table(n.key), n.key, v); v[0] != 4 || n.in.Waiting() != 0 {
		t.Errorf("the value is %v, want 4; %d frames wait", v[0], n.in.Waiting())
	}
	if err := n.in.Frame(answer); err == nil || !strings.Contains(err.Error(), "nobody asked for") {
		t.Errorf("a list that nobody asked for: %v", err)
	}
}

// Whoever has more answers wait than it may ends the run, and is named, whoever passed its
// requests on.
func TestAPeerThatAsksForTooMuchEndsTheRun(t *testing.T) {
	n := nodeOf(t)
	var recs []wire.Record
	for i := range 300 {
		recs = append(recs, wire.Record{Kind: wire.Pull, Key: n.homed[i], Op: 1, Index: uint32(i), Origin: 1})
	}
	var flood *floodError
	_, err := n.in.Handle(n.frame(recs...), false)
	if !errors.As(err, &flood) || flood.peer != 1 {
		t.Fatalf("300 answers that nobody reads: %v", err)
	}
	if err := <-n.failed; !errors.Is(err, godwit.ErrPeerLost) || !strings.Contains(err.Error(), "node 1") {
		t.Errorf("the run ended with %v", err)
	}
}

// one is a connection over which a frame comes.
type one struct {
	transport.Conn
	frame []byte
}

func (c one) ReadFrame() ([]byte, error) { return c.frame, nil }

// Whoever takes a frame, a worker too, panics on behalf of the node, and the others are told.
func TestAPanicOverAFrameIsTold(t *testing.T) {
	n := nodeOf(t)
	n.Sync = nil // a defect, behind what the frame asks for
	var told error
	n.Host.OnPanic(func(err error) { told = err })
	defer func() {
		if recover() == nil || told == nil || !strings.Contains(told.Error(), "panic in ") {
			t.Errorf("told: %v", told)
		}
	}()
	t.Errorf("it ends with %v", n.in.Serve(one{frame: n.frame(wire.Record{Kind: wire.Pull, Key: n.key, Op: 2, Origin: 1})}))
}
