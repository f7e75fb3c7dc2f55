package link

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// A line is a connection that takes as many frames at once as a test says, and keeps them all.
type line struct {
	features wire.Features
	free     int // frames that it takes without a wait
	err      error

	frames [][]byte // that it took
	waited int      // … of them, with a wait
	closed int

	took func()        // is told of each frame before it is there; nil: nobody is
	full chan struct{} // with a wait, a frame is taken when this is closed; nil: at once
}

func (c *line) Peer() transport.Hello      { return wire.Hello{Features: c.features} }
func (c *line) ReadFrame() ([]byte, error) { return nil, io.EOF }
func (c *line) Ready() bool                { return false }
func (c *line) Close() error               { c.closed++; return nil }

func (c *line) TryFrame(f []byte) (bool, error) {
	if c.err != nil {
		return c.free > 0, c.err
	}
	if c.free == 0 {
		return false, nil
	}
	c.free--
	if c.took != nil {
		c.took()
	}
	c.frames = append(c.frames, slices.Clone(f))
	return true, nil
}

func (c *line) WriteFrame(f []byte) error {
	if c.err != nil {
		return c.err
	}
	if c.full != nil {
		<-c.full
	}
	c.waited++
	c.frames = append(c.frames, slices.Clone(f))
	return nil
}

// lined returns links of node 0 of two, the other one over a line.
func lined(c *line, limits host.Limits, by filter.Compress) *Links {
	ls := New(host.New(host.Real()), 0, 2, 1, limits, by, host.NewBell())
	ls.Connect(1, c)
	return ls
}

func TestLinksAreToAllNodesButThisOne(t *testing.T) {
	ls := New(host.New(host.Real()), 1, 4, 1, host.Usual, filter.Compress{}, host.NewBell())
	c := &line{}
	ls.Connect(0, c)
	ls.Imagine(2, func() {})
	ls.Imagine(3, func() {})
	if ls.Nodes() != 4 || ls.Alone() || ls.To(1) != nil || ls.To(0).Conn() != c || ls.To(0).Shared() != nil || ls.To(2).Conn() != nil {
		t.Errorf("the links are %+v", ls)
	}
	if s := ls.Sender(); s.Self() != 1 {
		t.Errorf("node %d sends, want 1", s.Self())
	}
	var all []godwit.NodeID
	for id, l := range ls.All {
		if l != ls.To(id) {
			t.Errorf("the way to node %d is another one", id)
		}
		if all = append(all, id); id == 2 {
			break
		}
	}
	if !slices.Equal(all, []godwit.NodeID{0, 2}) {
		t.Errorf("the ways up to node 2 are those to %v", all)
	}
	if ls.Close(); c.closed != 1 {
		t.Errorf("the connection was closed %d times, want once", c.closed)
	}
	if one := New(host.New(host.Real()), 0, 1, 1, host.Usual, filter.Compress{}, host.NewBell()); !one.Alone() {
		t.Error("the only node is not alone")
	}
}

// The slowest peer is the one for which most is queued.
func TestTheSlowestPeerIsFound(t *testing.T) {
	ls := imagined(4)
	if peer := ls.Slowest(); peer != godwit.NoNode {
		t.Errorf("node %d is the slowest, though nothing is queued", peer)
	}
	ls.To(3).Push(make([]byte, 1))
	if peer := ls.Slowest(); peer != 3 {
		t.Errorf("node %d is the slowest, want 3", peer)
	}
	for peer, bytes := range []int{1: 100, 2: 200, 3: 199} {
		if peer > 0 {
			ls.To(godwit.NodeID(peer)).Push(make([]byte, bytes))
		}
	}
	if peer := ls.Slowest(); peer != 2 {
		t.Errorf("node %d is the slowest, want 2", peer)
	}
}

// A peer is sent what its hello says that it takes.
func TestAPeerIsSentWhatItTakes(t *testing.T) {
	for _, takes := range []wire.Features{0, wire.SupportsCodings, wire.SupportsLists, wire.SupportsS2} {
		c := &line{features: takes, free: 1}
		ls := lined(c, host.Usual, filter.Compress{Method: filter.S2})
		o, s := ls.To(1), ls.Sender()
		if o.enc.Plain != (takes != wire.SupportsCodings) || (o.enc.Lists != nil) != (takes == wire.SupportsLists) {
			t.Errorf("features %b: values are plain: %v, lists: %v", takes, o.enc.Plain, o.enc.Lists)
		}
		s.Send(1, &wire.Record{Kind: wire.Delta, Vals: make([]float32, 1000)})
		s.Flush()
		if got, want := wire.Compression(c.frames[0]), takes&wire.SupportsS2; got != want {
			t.Errorf("features %b: a frame is compressed by %b, want %b", takes, got, want)
		}
	}
}

// A simulated peer takes all there is.
func TestASimulatedPeerTakesAll(t *testing.T) {
	if o := imagined(2).To(1); o.enc.Plain || o.enc.Lists == nil {
		t.Error("a simulated peer takes no codings, or no lists")
	}
}

// What has left is counted as it left, and before it was compressed.
func TestWhatALinkSentIsCounted(t *testing.T) {
	c := &line{features: wire.SupportsS2 | wire.SupportsLists, free: 100}
	o := lined(c, host.Usual, filter.Compress{Method: filter.S2}).To(1)
	c.took = func() {
		if n := o.Counts().Frames; n != uint64(len(c.frames)+1) {
			t.Errorf("%d frames count when frame %d leaves", n, len(c.frames)+1)
		}
	}
	for range 4 {
		for i := range 40 { // a list of keys, which travels as its hash the third time
			o.put(&wire.Record{Kind: wire.Pull, Key: godwit.Key(i * i * 1000), Op: 1, Index: uint32(i * i)})
		}
		o.put(ack(1)) // … as is known when another record comes
		o.put(&wire.Record{Kind: wire.Delta, Vals: make([]float32, 1000)})
		o.Flush()
	}
	o.Beat(wire.Heartbeat{Arrived: 1})
	bytes := uint64(0)
	for _, f := range c.frames {
		bytes += uint64(len(f))
	}
	n := o.Counts()
	if n.Frames != 5 || n.Bytes != bytes || n.Plain < 16_000 || n.Bytes > 8000 || n.Lists != 2 || n.Saved == 0 || n.Queued != 0 {
		t.Errorf("the counts are %+v, want 5 frames of %d bytes, and 2 lists", n, bytes)
	}
	if acks := n.Kinds[wire.Ack]; n.Kinds[wire.Delta] < 16_000 || n.Kinds[wire.Pull] < 4*100 || n.Kinds[wire.Push] != 0 || acks < 4 || acks > 100 {
		t.Errorf("by kind, the counts are %v", n.Kinds)
	}
	if got := o.Payload(); got != bytes-wire.HeartbeatLen {
		t.Errorf("without the heartbeat %d bytes were sent, want %d", got, bytes-wire.HeartbeatLen)
	}
}

// Who asks for a list gets it before all else, and it counts as an answer; of what cannot be answered the error says why.
func TestAPeerThatLacksAListGetsIt(t *testing.T) {
	o := imagined(2).To(1)
	var unknown *wire.UnknownListError
	d := wire.Decoder{Lists: &wire.Known{}}
	for i := range 3 {
		for i := range 40 {
			o.put(&wire.Record{Kind: wire.Pull, Key: godwit.Key(i * i * 1000), Op: 1, Index: uint32(i * i)})
		}
		o.Flush()
		if f := o.Take(nil); i == 2 {
			if err := d.Reset(f); err != nil {
				t.Fatal(err)
			}
			var r wire.Record
			if _, err := d.Next(&r); !errors.As(err, &unknown) {
				t.Fatalf("a list that was never seen is known: %v", err)
			}
		}
	}
	o.put(&wire.Record{Kind: wire.Delta, Vals: make([]float32, 1)})
	if err := o.List(unknown.Question()); err != nil {
		t.Fatal(err)
	}
	if !o.Owes(0) {
		t.Error("a list is no answer")
	}
	o.Flush()
	if f := o.Take(nil); !wire.Answers(f) || o.Owes(0) {
		t.Errorf("first came %q, want the list", f)
	}
	if err := o.List(wire.Goodbye(1)); err == nil {
		t.Error("a goodbye is a question for a list")
	}
	if err := lined(&line{}, host.Usual, filter.Compress{}).To(1).List(unknown.Question()); err == nil || err.Error() != "asked for a list of keys, though it does not take any" {
		t.Errorf("a peer that takes no lists, and asks for one, is told %v", err)
	}
}
