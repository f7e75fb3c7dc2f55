package round

import (
	"fmt"
	"math/rand/v2"
	"runtime"
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

// Where a round finds room for one row only, each gets its turn, whatever its shard.
func TestNoShardTakesAllTheRoomOfEachRound(t *testing.T) {
	policy, err := placement.ByName("replicate")
	roomtest.Must(t, err)
	cfg := roomtest.Protocol(t, 0, 2, policy, 9, godwit.Table{Name: "t", Rows: 3000, Dim: 1})
	limits := host.Usual
	limits.Copies = 1
	h, bell := host.New(host.Real()), host.NewBell()
	ls := link.New(h, 0, 2, 1, limits, filter.Compress{}, bell)
	ls.Imagine(1, func() {})
	s, err := shards.New(cfg, 1<<30, store.HeapAlloc, bell)
	roomtest.Must(t, err)
	l := New(Config{Host: h, Links: ls, Rows: s, Bell: bell, Budget: host.NewBudget(1, 2), IDs: new(atomic.Uint64)})
	out := ls.Sender()
	var keys []godwit.Key
	for k := godwit.Key(0); len(keys) < 300; k++ {
		if cfg.Homes.Home(k) == 0 {
			keys = append(keys, k)
		}
	}
	v, a := s.Server(1, &out), s.Access()
	for _, k := range keys {
		roomtest.Must(t, v.Step(&out, &wire.Record{Kind: wire.Interest, Key: k, Seq: 1, Origin: 1}))
	}
	var d wire.Decoder
	d.Lists = &wire.Known{}
	take := func() []wire.Record {
		out.Flush()
		return roomtest.Records(t, &d, ls.To(1).Take)
	}
	take()
	got := map[godwit.Key]bool{}
	for range keys {
		a.Serve(wire.Push, keys, make([]float32, len(keys)))
		l.Round()
		for _, r := range take() {
			got[r.Key] = true
		}
	}
	if len(got) < len(keys)/2 {
		t.Errorf("%d of %d keys were refreshed in as many rounds", len(got), len(keys))
	}
}

// A round that finds no room at any node leaves the rest as it is: what there is no room for costs nothing, and goes later.
func TestARoundWithoutRoomLeavesTheRest(t *testing.T) {
	const keys = 3000
	cfg := roomtest.Protocol(t, 0, 2, placement.ReplicateAll, 6, godwit.Table{Name: "t", Rows: 3 * keys, Dim: 1})
	limits := host.Usual
	limits.Copies = 2000
	h, bell := host.New(processors{host.Real(), 1}), host.NewBell()
	ls := link.New(h, 0, 2, 1, limits, filter.Compress{}, bell)
	ls.Imagine(1, func() {})
	s, err := shards.New(cfg, 1<<30, store.HeapAlloc, bell)
	roomtest.Must(t, err)
	l := New(Config{Host: h, Links: ls, Rows: s, Bell: bell, Budget: host.NewBudget(1, 2), IDs: new(atomic.Uint64)})
	out := ls.Sender()
	var own []godwit.Key
	for k := godwit.Key(0); len(own) < keys; k++ {
		if cfg.Homes.Home(k) == 0 {
			own = append(own, k)
		}
	}
	v, a := s.Server(1, &out), s.Access()
	for _, k := range own {
		roomtest.Must(t, v.Step(&out, &wire.Record{Kind: wire.Interest, Key: k, Seq: 1, Origin: 1}))
	}
	d := wire.Decoder{Lists: &wire.Known{}}
	take := func() []wire.Record {
		out.Flush()
		return roomtest.Records(t, &d, ls.To(1).Take)
	}
	take()
	a.Serve(wire.Push, own, make([]float32, keys))
	got, rounds := map[godwit.Key]int{}, 0
	for held := true; held; rounds++ {
		if rounds > keys {
			t.Fatal("rounds end never")
		}
		held = l.Round()
		if l.Round() != held {
			t.Fatal("a round without room forgets that something stays")
		}
		for _, r := range take() {
			got[r.Key]++
		}
	}
	if rounds < 10 {
		t.Fatalf("the test is vacuous: all went in %d rounds", rounds)
	}
	for _, k := range own {
		if got[k] != 1 {
			t.Fatalf("key %d is refreshed %d times", k, got[k])
		}
	}
	if !s.Idle() {
		t.Error("something is left")
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

// A world of so many processors, for all that a team asks.
type processors struct {
	host.World
	n int
}

func (w processors) Processors() int { return w.n }

// A still world is one where nothing takes time: queues have room for all that the limits allow.
type still struct{ processors }

func (still) Now() int64 { return 1 }

// BenchmarkRound is what a round takes that refreshes 30,000 replicas of 16 floats at three nodes, by one goroutine, and by as many as there are
// processors.
func BenchmarkRound(b *testing.B) {
	const dim, peers = 16, 3
	for _, keys := range []int{10_000, 500_000} {
		for _, n := range []int{1, runtime.GOMAXPROCS(0)} {
			b.Run(fmt.Sprintf("keys=%d/processors=%d", keys, n), func(b *testing.B) {
				cfg := roomtest.Protocol(b, 0, 1+peers, placement.ReplicateAll, 8, godwit.Table{Name: "t", Rows: 5 * uint64(keys), Dim: dim})
				h, bell := host.New(still{processors{host.Real(), n}}), host.NewBell()
				limits := host.Usual
				limits.Copies = 1 << 30
				ls := link.New(h, 0, 1+peers, 1, limits, filter.Compress{}, bell)
				rows, err := shards.New(cfg, 1<<30, store.HeapAlloc, bell)
				roomtest.Must(b, err)
				l := New(Config{Host: h, Links: ls, Rows: rows, Bell: bell, Budget: host.NewBudget(1, 1+peers), IDs: new(atomic.Uint64)})
				out := ls.Sender()
				own := make([]godwit.Key, 0, keys)
				for k := godwit.Key(0); len(own) < keys; k++ {
					if cfg.Homes.Home(k) == 0 {
						own = append(own, k)
					}
				}
				rand.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
				a, push := rows.Access(), make([]float32, keys*dim)
				for i := range push {
					push[i] = float32(i%7) / 3
				}
				buf := make([]byte, 1<<20)
				take := func() {
					for i := 1; i <= peers; i++ {
						for len(ls.To(godwit.NodeID(i)).Take(buf)) > 0 {
						}
					}
				}
				for i := 1; i <= peers; i++ {
					ls.Imagine(godwit.NodeID(i), func() {})
					v := rows.Server(godwit.NodeID(i), &out)
					for _, k := range own {
						roomtest.Must(b, v.Step(&out, &wire.Record{Kind: wire.Interest, Key: k, Seq: 1, Origin: godwit.NodeID(i)}))
					}
				}
				out.Flush()
				take()
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					take()
					a.Serve(wire.Push, own, push)
					b.StartTimer()
					for l.Round() { // the queues had no room for some
						b.StopTimer()
						take()
						b.StartTimer()
					}
				}
				b.ReportMetric(float64(l.Helped())/float64(b.N), "helped/op")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(keys*peers), "ns/record")
				h.Halt()
				h.Join()
			})
		}
	}
}

// BenchmarkDeltas is what a round takes that sends the updates of replicas of 16 floats to three owners.
func BenchmarkDeltas(b *testing.B) {
	const dim, peers = 16, 3
	for _, keys := range []int{10_000, 500_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			cfg := roomtest.Protocol(b, 0, 1+peers, placement.ReplicateAll, 8, godwit.Table{Name: "t", Rows: 2 * uint64(keys), Dim: dim})
			h, bell := host.New(still{processors{host.Real(), 1}}), host.NewBell()
			limits := host.Usual
			limits.Copies, limits.Rows = 1<<30, 1<<40
			ls := link.New(h, 0, 1+peers, 1, limits, filter.Compress{}, bell)
			rows, err := shards.New(cfg, 1<<30, store.HeapAlloc, bell)
			roomtest.Must(b, err)
			l := New(Config{Host: h, Links: ls, Rows: rows, Bell: bell, Budget: host.NewBudget(1, 1+peers), IDs: new(atomic.Uint64)})
			out := ls.Sender()
			dec := wire.Decoder{Lists: &wire.Known{}}
			var servers [1 + peers]*shards.Server
			for i := 1; i <= peers; i++ {
				ls.Imagine(godwit.NodeID(i), func() {})
				v := rows.Server(godwit.NodeID(i), &out)
				servers[i] = &v
			}
			version := godwit.Version(1)
			answer := func(kind wire.Kind, with wire.Kind, vals []float32) (n int) {
				out.Flush()
				for i := 1; i <= peers; i++ {
					for _, r := range roomtest.Records(b, &dec, ls.To(godwit.NodeID(i)).Take) {
						if r.Kind != kind {
							b.Fatalf("%v is sent", r.Kind)
						}
						n++
						roomtest.Must(b, servers[i].Step(&out, &wire.Record{Kind: with, Key: r.Key, Epoch: 1, Version: version, Seq: r.Seq, Vals: vals}))
					}
				}
				return n
			}
			var own []godwit.Key
			for k := godwit.Key(0); len(own) < keys; k++ {
				if cfg.Homes.Home(k) != 0 {
					own = append(own, k)
					rows.Hold(&out, k)
				}
			}
			if n := answer(wire.Interest, wire.Refresh, make([]float32, dim)); n != keys {
				b.Fatalf("%d replicas are asked for", n)
			}
			rand.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
			a, push := rows.Access(), make([]float32, keys*dim)
			for i := range push {
				push[i] = float32(i%7) / 3
			}
			for b.Loop() {
				b.StopTimer()
				a.Serve(wire.Push, own, push)
				for sent := 0; sent < keys; { // the queues have room for some of them
					b.StartTimer()
					l.Round()
					b.StopTimer()
					version++
					sent += answer(wire.Delta, wire.Ack, nil)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(keys), "ns/record")
			h.Halt()
			h.Join()
		})
	}
}
