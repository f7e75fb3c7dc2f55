package operation

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
	"github.com/godwit-ps/godwit/node/internal/tick"
	"github.com/godwit-ps/godwit/transport"
)

func TestMain(m *testing.M) { roomtest.Main(m) }

func tables(t *testing.T) *Tables {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 100, Dim: 2})
	roomtest.Must(t, err)
	return New(m, 3, 2, host.Limits{Asked: 3000, Ops: 4, Ahead: 10})
}

// issue opens an operation that asks node 1 for keys.
func issue(tb *Table, dst []float32, keys ...godwit.Key) *Op {
	o := tb.Begin("pull", dst)
	if o == nil {
		return nil
	}
	miss := make([]int, 0, 2*len(keys))
	for i := range keys {
		miss = append(miss, i, 2*i)
	}
	o.Expect(tb.all.model, keys, miss)
	for range keys {
		tb.Ask(link.CostOf(2))
	}
	tb.Issued(o, 0)
	o.Asked(1)
	return o
}

func isDone(o *Op) bool { return len(o.Done) > 0 }

// Replies come in any order and portions; the last completes the operation.
func TestAnOperationIsCompleteWithItsLastReply(t *testing.T) {
	ts := tables(t)
	tb := ts.Of(1)
	dst := make([]float32, 6)
	o := issue(tb, dst, 5, 6, 7)
	if s := o.Span(); s.Keys != 3 || s.First != 5 || s.Last != 7 || tb.UnderWay() != 3*link.CostOf(2) {
		t.Errorf("it asked for %+v, %d bytes", s, tb.UnderWay())
	}
	reply := func(i uint32) wire.Record {
		return wire.Record{Kind: wire.PullReply, Op: o.ID, Index: i, Key: 5 + godwit.Key(i), Vals: []float32{float32(i), 10}}
	}
	ts.Complete(1, reply(2))
	if isDone(o) {
		t.Error("it is complete with a reply of three")
	}
	ts.Complete(1, reply(0), reply(1))
	if !isDone(o) || tb.UnderWay() != 0 {
		t.Errorf("with all replies it is complete: %v; %d bytes are under way", isDone(o), tb.UnderWay())
	}
	for i, want := range []float32{0, 10, 1, 10, 2, 10} {
		if dst[i] != want {
			t.Errorf("the values are %v", dst)
			break
		}
	}
	<-o.Done
	tb.End(o)
	if tb.Open() != 0 {
		t.Errorf("%d operations are open", tb.Open())
	}
}

// What comes for an operation that was given up touches nothing, and frees its slot;
// a token that was lent to it comes back then.
func TestAnOperationThatIsGivenUpEndsWithItsReplies(t *testing.T) {
	ts := tables(t)
	tb := ts.Of(0)
	dst := make([]float32, 2)
	token := make(chan struct{}, 1)
	o := issue(tb, dst, 5)
	o.Lend(token)
	h := tb.Handle(o.ID)
	if !o.Abandon() {
		t.Fatal("an operation without replies cannot be given up")
	}
	if x, ok := tb.Get(h); x != nil || !ok {
		t.Errorf("its handle gives %v, %v", x, ok)
	}
	ts.Complete(1, wire.Record{Kind: wire.PullReply, Op: o.ID, Key: 5, Vals: []float32{1, 2}})
	if dst[0] != 0 || tb.Open() != 0 || len(token) != 1 {
		t.Errorf("the value was written: %v; %d operations are open; %d tokens are back", dst, tb.Open(), len(token))
	}
	if o = issue(tb, dst, 5); o == nil || o.Abandon() == isDone(o) {
		t.Error("the slot is not free")
	}
}

// Slots are used again, also of operations that nobody waited for, and no more are open
// than may be.
func TestSlotsAreUsedAgain(t *testing.T) {
	ts := tables(t)
	tb := ts.Of(0)
	for range 100 {
		o := issue(tb, nil, 1)
		if o == nil {
			tb.Reap()
			o = issue(tb, nil, 1)
		}
		if o == nil {
			t.Fatal("no slot is free, though all operations are complete")
		}
		ts.Complete(1, wire.Record{Kind: wire.Done, Op: o.ID, Key: 1})
	}
	if n := len(tb.slots); n > 4 {
		t.Errorf("there are %d slots, want 4", n)
	}
}

// A handle is of one worker of one node.
func TestHandlesAreNotTakenForOthers(t *testing.T) {
	ts := tables(t)
	o := issue(ts.Of(0), nil, 1)
	h := ts.Of(0).Handle(o.ID)
	if x, ok := ts.Of(0).Get(h); x != o || !ok {
		t.Errorf("a handle gives %v, %v", x, ok)
	}
	for what, get := range map[string]func(godwit.Handle) (*Op, bool){
		"another worker": ts.Of(1).Get,
		"another node":   New(ts.model, 4, 2, host.Usual).Of(0).Get,
	} {
		if x, ok := get(h); x != nil || ok {
			t.Errorf("%s takes the handle: %v, %v", what, x, ok)
		}
	}
	if _, ok := ts.Of(0).Get(h + 1<<slotBits); ok {
		t.Error("a handle of an operation that is to come is one")
	}
}

// What waits for a tick has bounds of its own, and gives its room back at its end.
func TestOperationsThatWaitForATickHaveBoundsOfTheirOwn(t *testing.T) {
	ts := tables(t)
	tb := ts.Of(0)
	settled := 0
	ts.Settled = func() { settled++ }
	roomtest.Must(t, tb.Reserve(6))
	if err := ts.Of(1).Reserve(5); err == nil {
		t.Error("11 of 10 keys are reserved")
	}
	o := tb.Begin("pull", make([]float32, 12))
	keys := []godwit.Key{1, 2, 3, 4, 5, 6}
	o.Expect(ts.model, keys, []int{0, 0, 1, 2, 2, 4, 3, 6, 4, 8, 5, 10})
	tb.Delay(o, tick.First(0).At(7))
	tb.Issued(o, 0)
	if tb.Open() != 0 || tb.Ahead() != 1 || ts.Ahead() != 6 {
		t.Errorf("%d operations are open, %d ahead, of %d keys", tb.Open(), tb.Ahead(), ts.Ahead())
	}
	for i, k := range keys {
		ts.Complete(1, wire.Record{Kind: wire.PullReply, Op: o.ID, Index: uint32(i), Key: k, Vals: make([]float32, 2)})
	}
	<-o.Done
	tb.End(o)
	if tb.Ahead() != 0 || ts.Ahead() != 0 || tb.ahead.floats != 0 {
		t.Errorf("%d operations are ahead, of %d keys, %d floats", tb.Ahead(), ts.Ahead(), tb.ahead.floats)
	}

	push := issue(tb, nil, 9)
	tb.Follow(push, 9, tick.First(0).At(3), true, 5)
	if at, ok := tb.Oldest(); !ok || at != tick.First(0).At(3) {
		t.Errorf("the oldest update is of %v, %v", at, ok)
	}
	if k, late := tb.Overdue(6); !late || k != 9 {
		t.Errorf("a push with the deadline 5 at clock 6: %d, %v", k, late)
	}
	ts.Complete(1, wire.Record{Kind: wire.Done, Op: push.ID, Key: 9})
	if _, ok := tb.Oldest(); ok || settled != 1 {
		t.Errorf("a complete push is still waited for: %v; that was told %d times", ok, settled)
	}
}

// Whoever waits for room hears of it when half of it is back.
func TestRoomComesBackWithReplies(t *testing.T) {
	tb := tables(t).Of(0)
	if tb.Room != 1000 {
		t.Fatalf("a worker has room for %d bytes, want a third", tb.Room)
	}
	if !tb.Ask(2000) {
		t.Error("the first may not be asked for")
	}
	if tb.Ask(1) {
		t.Error("there is room beside too much")
	}
	tb.Wait(true)
	tb.Got(1400)
	if len(tb.moved) != 0 {
		t.Error("the worker hears of room that is too little")
	}
	tb.Got(200)
	if len(tb.moved) != 1 || !tb.Short() {
		t.Error("the worker does not hear of room")
	}
}

// Replies without values give back what their keys cost, of whatever tables they are.
func TestRepliesWithoutValuesGiveBackWhatTheirKeysCost(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "a", Rows: 10, Dim: 2}, godwit.Table{Name: "b", Rows: 10, Dim: 7})
	roomtest.Must(t, err)
	ts := New(m, 3, 2, host.Limits{Asked: 3000, Ops: 4, Ahead: 10})
	tb := ts.Of(0)
	o := tb.Begin("push", nil)
	keys := []godwit.Key{3, 4, 12, 13, 14}
	o.Expect(m, keys, []int{0, 0, 1, 2, 2, 4, 3, 11, 4, 18})
	tb.Ask(2*link.CostOf(2) + 3*link.CostOf(7))
	tb.Issued(o, 0)
	ts.CompleteBatch(1, &wire.Batch{Kind: wire.Done, Op: o.ID, Keys: keys, Indexes: []uint32{0, 1, 2, 3, 4}}, 4)
	if tb.UnderWay() != link.CostOf(7) || isDone(o) {
		t.Errorf("with one reply missing, %d bytes are under way, want %d; complete: %v", tb.UnderWay(), link.CostOf(7), isDone(o))
	}
	ts.CompleteBatch(1, &wire.Batch{Kind: wire.Done, Op: o.ID, Keys: keys[4:], Indexes: []uint32{4}}, 1)
	if tb.UnderWay() != 0 || !isDone(o) {
		t.Errorf("with all replies, %d bytes are under way; complete: %v", tb.UnderWay(), isDone(o))
	}
}

// A read notes whether it was interrupted.
type read struct {
	transport.InlineReader
	interrupted int
}

func (r *read) Interrupt() { r.interrupted++ }

// Who reads its own connection is interrupted when the answer comes by another way.
func TestAWorkerReadsNoLongerWhenAnotherWayBroughtTheAnswer(t *testing.T) {
	for from, want := range map[godwit.NodeID]int{1: 0, 2: 1} {
		ts := tables(t)
		o := issue(ts.Of(0), make([]float32, 2), 5)
		var r read
		o.Read(&r)
		ts.Complete(from, wire.Record{Kind: wire.PullReply, Op: o.ID, Key: 5, Vals: []float32{1, 2}})
		if !isDone(o) || r.interrupted != want {
			t.Errorf("node 1 was asked, node %d answers: the reader is interrupted %d times, want %d", from, r.interrupted, want)
		}
	}
}

// A reply of the wrong length does not reach beyond the caller's memory, nor change what is there.
func TestAReplyThatIsTooLongChangesNothing(t *testing.T) {
	ts := tables(t)
	dst := make([]float32, 4)
	o := issue(ts.Of(0), dst, 5, 6)
	ts.Complete(1, wire.Record{Kind: wire.PullReply, Op: o.ID, Index: 1, Key: 6, Vals: []float32{1, 2, 3}})
	if dst[2] != 0 || dst[3] != 0 {
		t.Errorf("the values are %v", dst)
	}
}

// What was not issued has no reply to wait for.
func TestKeysThatWereNotIssuedAreNotWaitedFor(t *testing.T) {
	ts := tables(t)
	tb := ts.Of(0)
	o := tb.Begin("pull", make([]float32, 6))
	o.Expect(ts.model, []godwit.Key{5, 6, 7}, []int{2, 4, 0, 0, 1, 2}) // in any order
	if s := o.Span(); s.First != 5 || s.Last != 7 {
		t.Errorf("it asked for %+v", s)
	}
	tb.Issued(o, 2)
	if isDone(o) {
		t.Error("it is complete without the reply of the key that was issued")
	}
	ts.Complete(1, wire.Record{Kind: wire.PullReply, Op: o.ID, Index: 0, Key: 7, Vals: []float32{1, 2}})
	if !isDone(o) {
		t.Error("it waits for keys that were not issued")
	}
}

// The ids of a worker's operations begin anew after the last one, and stay its own.
func TestIDsBeginAnewWithinTheirBits(t *testing.T) {
	ts := tables(t)
	tb := ts.Of(1)
	tb.gen = 1<<genBits - 1
	o := issue(tb, make([]float32, 2), 5)
	if _, ok := tb.Get(tb.Handle(o.ID)); !ok || o.ID>>(slotBits+genBits) != 1 || o.ID>>slotBits&(1<<genBits-1) == 0 {
		t.Errorf("the id behind the last one is %#x", o.ID)
	}
}

// Pushes of a side of cuts count until they are complete, and one is overdue behind its deadline.
func TestAPushCountsUntilItIsComplete(t *testing.T) {
	ts := tables(t)
	tb := ts.Of(0)
	o := issue(tb, nil, 5)
	ts.Changes(o, true)
	tb.Follow(o, 5, tick.First(0), true, 7)
	if _, over := tb.Overdue(7); over || ts.Changing(true) != 1 || ts.Changing(false) != 0 {
		t.Errorf("overdue at its deadline: %v; %d odd and %d even changes", over, ts.Changing(true), ts.Changing(false))
	}
	if k, over := tb.Overdue(8); !over || k != 5 {
		t.Errorf("overdue behind its deadline: %v, of key %d", over, k)
	}
	ts.Complete(1, wire.Record{Kind: wire.Done, Op: o.ID, Key: 5})
	if _, over := tb.Overdue(8); over || ts.Changing(true) != 0 {
		t.Errorf("complete, and overdue: %v; %d changes", over, ts.Changing(true))
	}
}

// Latencies are microseconds.
func TestLatenciesAreInMicroseconds(t *testing.T) {
	ts := tables(t)
	now := int64(1_000_000)
	ts.Measure(func() int64 { return now }, 3)
	o := issue(ts.Of(0), make([]float32, 2), 5)
	o.Began = now
	now += 250_000
	ts.Complete(1, wire.Record{Kind: wire.PullReply, Op: o.ID, Key: 5, Vals: []float32{1, 2}})
	if c := ts.Latency(1); c.Sum != 250 {
		t.Errorf("the operation took %d µs, want 250", c.Sum)
	}
}

// A reply to nothing is none to an operation that is over: it gives back no room that was not taken.
func TestAReplyToNothingIsForNoOperation(t *testing.T) {
	ts := tables(t)
	tb := ts.Of(0)
	o := issue(tb, make([]float32, 2), 5)
	ts.Complete(1, wire.Record{Kind: wire.PullReply, Op: o.ID, Key: 5, Vals: []float32{1, 2}})
	<-o.Done
	tb.End(o)
	ts.Complete(1, wire.Record{Kind: wire.PullReply, Key: 5, Vals: []float32{1, 2}})
	if tb.UnderWay() != 0 {
		t.Errorf("%d bytes are under way", tb.UnderWay())
	}
}
