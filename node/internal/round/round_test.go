package round

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/tick"
	"github.com/godwit-ps/godwit/placement"
)

func TestMain(m *testing.M) { roomtest.Main(m) }

// A stage that is told what to say, and counts.
type stage struct {
	opened, closed int
	press, more    bool
	urgent         bool
	held           bool // that something had to stay in the last round
}

func (s *stage) Open(*link.Sender) bool { s.opened++; return s.press }
func (s *stage) Close(_ *link.Sender, _, held bool) bool {
	s.closed++
	s.held = held
	return s.more
}
func (s *stage) Urgent() bool { return s.urgent }

// node is the parts of node 0 of two that rounds need.
type node struct {
	*Loop
	rows  *shards.Set
	links *link.Links
	out   link.Sender
	key   godwit.Key // that has its home here
}

func nodeOf(t *testing.T, limits host.Limits, c Config) *node {
	cfg := roomtest.Protocol(t, 0, 2, placement.Adaptive, 4, godwit.Table{Name: "t", Rows: 100, Dim: 1})
	c.Host, c.Bell, c.Budget, c.IDs = host.New(host.Real()), host.NewBell(), host.NewBudget(1, 2), new(atomic.Uint64)
	c.Links = link.New(c.Host, 0, 2, 1, limits, filter.Compress{}, c.Bell)
	c.Links.Imagine(1, func() {})
	var err error
	c.Rows, err = shards.New(cfg, 0, store.HeapAlloc, c.Bell)
	roomtest.Must(t, err)
	c.Clocks = tick.NewClocks(0, 1, 0)
	c.Setup = tick.NewSetup(c.Clocks)
	n := &node{New(c), c.Rows, c.Links, c.Links.Sender(), 0}
	for cfg.Homes.Home(n.key) != 0 {
		n.key++
	}
	return n
}

// sent returns what was sent to the peer, in order.
func (n *node) sent(t *testing.T) []wire.Record {
	return roomtest.Records(t, &wire.Decoder{Lists: &wire.Known{}}, n.links.To(1).Take)
}

// A WaitSync asks the peers when this node's updates have arrived, and ends with their
// answers.
func TestAWaitSyncEndsWithTheAnswersOfAllPeers(t *testing.T) {
	n := nodeOf(t, host.Usual, Config{})
	done := n.Sync.Begin()
	if calls, _ := n.Sync.Open(); calls != 1 || !n.Sync.Waiting() {
		t.Errorf("%d calls go on", calls)
	}
	n.Round()
	recs := n.sent(t)
	if len(recs) != 1 || recs[0].Kind != wire.SyncMark {
		t.Fatalf("the peer is sent %v, want a SyncMark", recs)
	}
	n.Sync.Acknowledged(recs[0].Op + 1) // of somebody else
	select {
	case <-done:
		t.Fatal("it ends with the answer to another question")
	default:
	}
	n.Sync.Acknowledged(recs[0].Op)
	if <-done; n.Sync.Waiting() {
		t.Error("a WaitSync that ended goes on")
	}
}

// A peer's mark is answered behind what is new for it, and not while something had to
// stay.
func TestAMarkIsAnsweredWhenThePeerHasEverything(t *testing.T) {
	limits := host.Usual
	limits.Copies = 1
	n := nodeOf(t, limits, Config{})
	k := n.key
	v := n.rows.Server(1, &n.out)
	n.rows.Want(&n.out, []godwit.Key{k}) // so that the key stays
	roomtest.Must(t, v.Step(&n.out, &wire.Record{Kind: wire.Interest, Key: k, Op: 1, Origin: 1}))
	n.out.Flush()
	n.sent(t)
	a := n.rows.Access()
	a.Serve(wire.Push, []godwit.Key{k}, []float32{1})
	n.links.To(1).Push(make([]byte, 10_000)) // the peer takes nothing
	n.Sync.Marked(1, 7)
	if !n.Round() {
		t.Fatal("nothing has to stay, though there is no room")
	}
	if _, nodes := n.Sync.Open(); nodes != 1 {
		t.Errorf("%d nodes wait to hear", nodes)
	}
	n.links.To(1).Take(nil)
	n.Round()
	recs := n.sent(t)
	if len(recs) != 2 || recs[0].Kind != wire.Refresh || recs[1].Kind != wire.SyncAck || recs[1].Op != 7 {
		t.Errorf("the peer is sent %v, want a refresh, then the answer", recs)
	}
}

// Stages have their turn in every round, and what they leave is left.
func TestStagesHaveTheirTurn(t *testing.T) {
	first, last := &stage{}, &stage{more: true}
	n := nodeOf(t, host.Usual, Config{First: []Stage{first}, Last: []Stage{last}})
	for range 3 {
		if !n.Round() {
			t.Error("what a stage leaves is forgotten")
		}
	}
	if first.opened != 3 || first.closed != 3 || last.opened != 3 || last.closed != 3 {
		t.Errorf("stages had their turn %+v, %+v", first, last)
	}
	if n.urgent() {
		t.Error("nobody waits, and rounds are urgent")
	}
	last.urgent = true
	if !n.urgent() {
		t.Error("a stage's wait is forgotten")
	}
}

// A policy's rate lets shards wait, but nobody who waits for rounds, nor the setup.
func TestARateLetsShardsWait(t *testing.T) {
	s := &stage{}
	n := nodeOf(t, host.Usual, Config{Rate: 0.001, First: []Stage{s}})
	n.setup = tick.NewSetup(n.clocks)
	now := int64(time.Hour)
	if n.early(now, false) {
		t.Error("a round without work is early")
	}
	work := func() {
		v := n.rows.Server(1, &n.out)
		n.rows.Want(&n.out, []godwit.Key{n.key})
		roomtest.Must(t, v.Step(&n.out, &wire.Record{Kind: wire.Interest, Key: n.key, Op: 1, Origin: 1}))
		a := n.rows.Access()
		a.Serve(wire.Push, []godwit.Key{n.key}, []float32{1})
	}
	if work(); n.rows.Idle() {
		t.Fatal("no shard has work")
	}
	if n.early(now, false) {
		t.Error("the first round is early")
	}
	if n.early(now+1, false) {
		t.Error("a round is early while the workers set up")
	}
	n.clocks[0].Advance()
	if !n.early(now+2, false) {
		t.Error("a round follows the one before at once")
	}
	if n.early(now+3, true) {
		t.Error("a peer that waits for its mark waits for the rate")
	}
	s.urgent = true
	if n.early(now+4, false) {
		t.Error("who waits for a stage waits for the rate")
	}
	s.urgent = false
	if n.early(now+int64(2*time.Hour), false) {
		t.Error("the rate lets a round wait for ever")
	}
}

// The loop runs when its bell rings, and ends when the node stops.
func TestTheLoopRunsWhenItsBellRings(t *testing.T) {
	s := &stage{}
	n := nodeOf(t, host.Usual, Config{Last: []Stage{s}})
	over := make(chan struct{})
	go func() { n.Run(); close(over) }()
	n.bell.Ring()
	roomtest.Eventually(t, "a round", func() bool { return n.Rounds() == 1 })
	n.host.Halt()
	<-over
	if s.closed != 1 {
		t.Errorf("the bell rang once, and there were %d rounds", s.closed)
	}
}
