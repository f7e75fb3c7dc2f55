package round

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
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

// ops returns the numbers of what was sent, which must be of one kind.
func (n *node) ops(t *testing.T, kind wire.Kind) (ops []uint64) {
	t.Helper()
	for _, r := range n.sent(t) {
		if r.Kind != kind {
			t.Fatalf("the peer is sent %v, want a %v", r, kind)
		}
		ops = append(ops, r.Op)
	}
	return ops
}

// A WaitSync asks the peers when this node's updates have arrived, and ends with their
// answers.
func TestAWaitSyncEndsWithTheAnswersOfAllPeers(t *testing.T) {
	n := nodeOf(t, host.Usual, Config{})
	done := n.Sync.Begin(0)
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

// However often a worker gives up while a peer does not answer, it has one call, and the peer is asked once. A call that is begun meanwhile
// ends when the peer has been asked after that.
func TestCallsThatAreGivenUpDoNotPileUp(t *testing.T) {
	n := nodeOf(t, host.Usual, Config{})
	fail := errors.New("given up")
	var done <-chan struct{}
	for range 100 {
		done = n.Sync.Begin(0)
		err := n.Sync.All(0, func(_ string, begin func() <-chan struct{}) error {
			begin()
			return fail
		}, func() error { return nil })
		if err != fail {
			t.Fatal(err)
		}
		n.Sync.Begin(Node)
		n.Round()
	}
	if calls, _ := n.Sync.Open(); calls > 3 {
		t.Errorf("%d calls go on", calls)
	}
	asked := slices.DeleteFunc(n.ops(t, wire.SyncMark), func(op uint64) bool { return op == 0 }) // those say that the node rests
	if len(asked) != 2 {
		t.Fatalf("the peer is asked %d times, want once for the worker and once for the node", len(asked))
	}
	for range 2 {
		select {
		case <-done:
			t.Fatal("it ends with an answer from before it was begun")
		default:
		}
		for _, op := range asked {
			n.Sync.Acknowledged(op)
		}
		n.Round()
		asked = n.ops(t, wire.SyncMark)
	}
	if <-done; n.Sync.Waiting() || len(asked) > 0 {
		t.Errorf("calls go on, and the peer is asked %d times more", len(asked))
	}
}

// A peer's mark is answered behind what is new for it, and not while something had to
// stay.
func TestAMarkIsAnsweredWhenThePeerHasEverything(t *testing.T) {
	limits := host.Usual
	limits.Copies = 1
	n := changed(t, limits, Config{})
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

// A frame may say that updates have arrived: it has a round come at once while all workers wait for that, and not for the answers of peers.
func TestAFrameHurriesRoundsWhileUpdatesAreOnTheirWay(t *testing.T) {
	n := nodeOf(t, host.Usual, Config{})
	hurried := func() bool {
		select {
		case <-n.bell.Hurried():
			return true
		default:
			return false
		}
	}
	if n.Sync.Stir(); hurried() {
		t.Error("rounds hurry though nobody waits")
	}
	done := n.Sync.Begin(0)
	hurried() // to send what is to be sent
	if n.Sync.Stir(); !hurried() {
		t.Error("rounds do not hurry while updates are on their way")
	}
	n.Sync.rests = make([]bool, 2) // another worker goes on
	if n.Sync.Stir(); hurried() {
		t.Error("rounds hurry while a worker computes")
	}
	n.Sync.rests = n.Sync.rests[:1]
	n.Round()
	if n.Sync.Stir(); hurried() {
		t.Error("rounds hurry though peers are asked")
	}
	n.Sync.Acknowledged(n.sent(t)[0].Op)
	<-done
}

// In the first half of a SyncAll, peers hear that the node rests, once all of its workers do, before its updates; in the second it asks for all
// that is new. A worker that gives up has it asked at once.
func TestANodeRestsWhileAllOfItsWorkersAreInASyncAll(t *testing.T) {
	n := nodeOf(t, host.Usual, Config{})
	kinds := func() []uint64 {
		n.Round()
		return n.ops(t, wire.SyncMark)
	}
	step := make(chan string)
	over := make(chan error)
	fail := errors.New("given up")
	all := func(gives string) {
		wait := func(what string) func(func() <-chan struct{}) error {
			return func(begin func() <-chan struct{}) error {
				done := begin()
				step <- what
				if what == gives {
					return fail
				}
				<-done
				return nil
			}
		}
		halves := []string{"first", "second"}
		over <- n.Sync.All(0, func(_ string, begin func() <-chan struct{}) error {
			half := halves[0]
			halves = halves[1:]
			return wait(half)(begin)
		}, func() error {
			step <- "meet"
			if gives == "meet" {
				return fail
			}
			return nil
		})
	}
	expect := func(want string) {
		t.Helper()
		if got := <-step; got != want {
			t.Fatalf("it is at %q, want %q", got, want)
		}
	}

	go all("")
	expect("first")
	if ops := kinds(); !slices.Equal(ops, []uint64{0}) {
		t.Errorf("marks %v, want that it rests", ops)
	}
	expect("meet")
	expect("second")
	ops := kinds()
	if len(ops) != 1 || ops[0] == 0 {
		t.Fatalf("marks %v, want one that asks", ops)
	}
	n.Sync.Acknowledged(ops[0])
	roomtest.Must(t, <-over)

	for _, gives := range []string{"first", "meet"} {
		go all(gives)
		expect("first")
		if gives == "meet" {
			if ops := kinds(); !slices.Equal(ops, []uint64{0}) {
				t.Errorf("marks %v, want that it rests", ops)
			}
			expect("meet")
		}
		if err := <-over; err != fail {
			t.Fatal(err)
		}
		ops := kinds()
		if len(ops) == 0 || ops[len(ops)-1] == 0 {
			t.Errorf("given up at %q: marks %v, want one that asks", gives, ops)
		}
		for _, op := range ops {
			n.Sync.Acknowledged(op)
		}
		if n.Sync.Waiting() {
			t.Errorf("given up at %q: calls go on", gives)
		}
	}
}

// A worker may give up before the second half of its SyncAll has begun. The peers, which take the node to rest, hear that it does not.
func TestANodeDoesNotRestForEverWhenASecondHalfDoesNotBegin(t *testing.T) {
	n := nodeOf(t, host.Usual, Config{})
	fail, half := errors.New("given up"), 0
	err := n.Sync.All(0, func(_ string, begin func() <-chan struct{}) error {
		if half++; half == 2 {
			return fail
		}
		done := begin()
		n.Round()
		<-done
		return nil
	}, func() error { return nil })
	if err != fail {
		t.Fatal(err)
	}
	n.Round()
	ops := n.ops(t, wire.SyncMark)
	if len(ops) != 2 || ops[0] != 0 || ops[1] == 0 {
		t.Errorf("marks %v, want that it rests, and one that asks", ops)
	}
}

// A round that sends updates only, as a worker began a SyncAll, answers no echo: what it leaves out, the peer would not get.
func TestEchoesWaitForARoundThatSendsRefreshes(t *testing.T) {
	n := nodeOf(t, host.Usual, Config{Copies: true})
	n.Sync.rest(0)
	n.Sync.goesOn(0)
	n.Echoes.Marked(1, 7)
	done := func() (ops []uint64) {
		n.Round()
		for _, r := range n.sent(t) {
			if r.Kind == wire.RoundDone {
				ops = append(ops, r.Op)
			}
		}
		return ops
	}
	if ops := done(); len(ops) > 0 {
		t.Errorf("a round without refreshes answers %v", ops)
	}
	if ops := done(); !slices.Equal(ops, []uint64{7}) {
		t.Errorf("the next one answers %v, want 7", ops)
	}
}

// A peer that rests gets no refreshes, and its updates are acknowledged at once; what it lacks it gets when it asks for it.
func TestAPeerThatRestsIsRefreshedWhenItAsks(t *testing.T) {
	n := held(t, host.Usual, Config{})
	v, a := n.rows.Server(1, &n.out), n.rows.Access()
	n.Sync.Marked(1, 0)
	a.Serve(wire.Push, []godwit.Key{n.key}, []float32{1})
	n.Round()
	if recs := n.sent(t); len(recs) > 0 {
		t.Errorf("the peer is sent %v, want nothing", recs)
	}
	roomtest.Must(t, v.Step(&n.out, &wire.Record{Kind: wire.Delta, Key: n.key, Seq: 2, Origin: 1, Vals: []float32{3}}))
	n.out.Flush()
	if recs := n.sent(t); len(recs) != 1 || recs[0].Kind != wire.Ack || recs[0].Seq != 2 {
		t.Errorf("the peer is sent %v, want an acknowledgement", recs)
	}
	n.Sync.Marked(1, 7)
	n.Round()
	recs := n.sent(t)
	if len(recs) != 2 || recs[0].Kind != wire.Refresh || recs[0].Vals[0] != 4 || recs[1].Kind != wire.SyncAck {
		t.Errorf("the peer is sent %v, want a refresh with 4, then the answer", recs)
	}
}

// When a run is over, nothing is sent any more, and who has something to send does not ask again and again whether there is room.
func TestThereAreNoRoundsInARunThatIsOver(t *testing.T) {
	n := nodeOf(t, host.Usual, Config{Last: []Stage{&stage{more: true}}})
	n.host.Go(n.Run)
	n.bell.Ring()
	for n.Rounds() < 3 { // each leaves something
		time.Sleep(time.Millisecond)
	}
	n.host.Fail(errors.New("lost"))
	time.Sleep(100 * host.MinPause)
	before := n.Rounds()
	n.bell.Ring()
	time.Sleep(10 * host.MinPause)
	if now := n.Rounds(); now != before {
		t.Errorf("%d rounds after the end", now-before)
	}
	n.host.Halt()
	n.host.Join()
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

// A replicated is node 0 of a run in which every node holds every key, with what rounds need.
type replicated struct {
	*Loop
	rows   *shards.Set
	links  *link.Links
	out    link.Sender
	keys   []godwit.Key     // some whose home is here, or of which none is
	access shards.Access    // of a worker
	peers  []*shards.Server // by node; nil for this one
	dec    []*wire.Decoder  // of what is sent to them
}

// replicatedOf returns such a node with so many peers, and so many keys in any order. If here is set, they have their homes here, and all peers hold them.
func replicatedOf(t testing.TB, w host.World, limits host.Limits, shift uint, peers, keys, dim int, here bool) *replicated {
	cfg := roomtest.Protocol(t, 0, 1+peers, placement.ReplicateAll, shift, godwit.Table{Name: "t", Rows: 3 * uint64(peers) * uint64(keys), Dim: dim})
	h, bell := host.New(w), host.NewBell()
	t.Cleanup(func() { h.Halt(); h.Join() })
	r := &replicated{links: link.New(h, 0, 1+peers, 1, limits, filter.Compress{}, bell)}
	r.out = r.links.Sender()
	var err error
	r.rows, err = shards.New(cfg, 1<<30, store.HeapAlloc, bell)
	roomtest.Must(t, err)
	r.Loop = New(Config{Host: h, Links: r.links, Rows: r.rows, Bell: bell, Budget: host.NewBudget(1, 1+peers), IDs: new(atomic.Uint64)})
	r.access = r.rows.Access()
	for k := godwit.Key(0); len(r.keys) < keys; k++ {
		if (cfg.Homes.Home(k) == 0) == here {
			r.keys = append(r.keys, k)
		}
	}
	rng := rand.New(rand.NewPCG(*roomtest.Seed, 0))
	rng.Shuffle(keys, func(i, j int) { r.keys[i], r.keys[j] = r.keys[j], r.keys[i] })
	r.peers, r.dec = make([]*shards.Server, 1+peers), make([]*wire.Decoder, 1+peers)
	for i := 1; i <= peers; i++ {
		r.links.Imagine(godwit.NodeID(i), func() {})
		v := r.rows.Server(godwit.NodeID(i), &r.out)
		r.peers[i], r.dec[i] = &v, &wire.Decoder{Lists: &wire.Known{}}
		for _, k := range r.keys {
			if here {
				roomtest.Must(t, v.Step(&r.out, &wire.Record{Kind: wire.Interest, Key: k, Seq: 1, Origin: godwit.NodeID(i)}))
			}
		}
	}
	r.drop()
	return r
}

// take returns what was sent to a peer.
func (r *replicated) take(t testing.TB, peer int) []wire.Record {
	r.out.Flush()
	return roomtest.Records(t, r.dec[peer], r.links.To(godwit.NodeID(peer)).Take)
}

// drop takes what was sent to all peers.
func (r *replicated) drop() {
	r.out.Flush()
	buf := make([]byte, 1<<20)
	for _, l := range r.links.All {
		for len(l.Take(buf)) > 0 {
		}
	}
}

// push changes all keys.
func (r *replicated) push(push []float32) { r.access.Serve(wire.Push, r.keys, push) }

// Where a round finds room for one row only, each gets its turn, whatever its shard.
func TestNoShardTakesAllTheRoomOfEachRound(t *testing.T) {
	limits := host.Usual
	limits.Copies = 1
	r := replicatedOf(t, host.Real(), limits, 9, 1, 300, 1, true)
	got := map[godwit.Key]bool{}
	for range r.keys {
		r.push(make([]float32, len(r.keys)))
		r.Round()
		for _, x := range r.take(t, 1) {
			got[x.Key] = true
		}
	}
	if len(got) < len(r.keys)/2 {
		t.Errorf("%d of %d keys were refreshed in as many rounds", len(got), len(r.keys))
	}
}

// Where others help, what they have put into the queues is sent at the end of the round.
func TestWhatHelpersPutIntoTheQueuesIsSent(t *testing.T) {
	limits := host.Usual
	limits.Share = 1
	r := replicatedOf(t, roomtest.Yielding{Sized: roomtest.Sized{World: host.Real(), N: 4}}, limits, 7, 3, 1000, 1, true)
	for range 20 {
		r.push(make([]float32, 1000))
		r.Sync.Marked(1, 7) // so that copies that are not used are refreshed, too
		if r.Round() {
			t.Fatal("something stays though there is room")
		}
		for _, s := range r.over.outs {
			if s.Any() {
				t.Fatal("after a round, something is to be flushed")
			}
		}
		for i := 1; i <= 3; i++ {
			n := 0
			for _, x := range r.take(t, i) {
				if x.Kind == wire.Refresh {
					n++
				}
			}
			if n != 1000 {
				t.Fatalf("%d of 1000 keys are refreshed at node %d", n, i)
			}
		}
	}
	if r.Helped() == 0 {
		t.Error("nobody helped")
	}
}

// A round that finds no room at any node leaves the rest as it is: what there is no room for costs nothing, and goes later.
func TestARoundWithoutRoomLeavesTheRest(t *testing.T) {
	const keys = 3000
	limits := host.Usual
	limits.Copies = 2000
	r := replicatedOf(t, roomtest.Sized{World: host.Real(), N: 1}, limits, 6, 1, keys, 1, true)
	r.push(make([]float32, keys))
	got, rounds := map[godwit.Key]int{}, 0
	for held := true; held; rounds++ {
		if rounds > keys {
			t.Fatal("rounds end never")
		}
		held = r.Round()
		if r.Round() != held {
			t.Fatal("a round without room forgets that something stays")
		}
		for _, x := range r.take(t, 1) {
			got[x.Key]++
		}
	}
	if rounds < 10 {
		t.Fatalf("the test is vacuous: all went in %d rounds", rounds)
	}
	for _, k := range r.keys {
		if got[k] != 1 {
			t.Fatalf("key %d is refreshed %d times", k, got[k])
		}
	}
	if !r.rows.Idle() {
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

// A still world is one where nothing takes time: queues have room for all that the limits allow.
type still struct{ roomtest.Sized }

func (still) Now() int64 { return 1 }

// BenchmarkRound is what a round takes that refreshes 30,000 replicas of 16 floats at three nodes, by one goroutine, and by as many as there are
// processors.
func BenchmarkRound(b *testing.B) {
	const dim, peers = 16, 3
	for _, keys := range []int{10_000, 500_000} {
		for _, n := range []int{1, runtime.GOMAXPROCS(0)} {
			b.Run(fmt.Sprintf("keys=%d/processors=%d", keys, n), func(b *testing.B) {
				r := replicatedOf(b, still{roomtest.Sized{World: host.Real(), N: n}}, large(), 8, peers, keys, dim, true)
				push := thirds(keys * dim)
				for b.Loop() {
					b.StopTimer()
					r.drop()
					r.push(push)
					b.StartTimer()
					if r.Round() {
						b.Fatal("something stays")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(keys*peers), "ns/record")
			})
		}
	}
}

// BenchmarkDeltas is what rounds take that send the updates of replicas of 16 floats to three owners: in one round, and in many, because there is
// room for 64 KiB only.
func BenchmarkDeltas(b *testing.B) {
	const dim, peers = 16, 3
	for _, keys := range []int{10_000, 500_000} {
		for _, room := range []int{1 << 30, 64 << 10} {
			b.Run(fmt.Sprintf("keys=%d/room=%d", keys, room), func(b *testing.B) {
				limits := large()
				limits.Copies = room
				r := replicatedOf(b, still{roomtest.Sized{World: host.Real(), N: 1}}, limits, 8, peers, keys, dim, false)
				version := godwit.Version(1)
				answer := func(kind, with wire.Kind, vals []float32) (n int) {
					for i := 1; i <= peers; i++ {
						for _, x := range r.take(b, i) {
							if x.Kind != kind {
								b.Fatalf("%v is sent", x.Kind)
							}
							n++
							roomtest.Must(b, r.peers[i].Step(&r.out, &wire.Record{Kind: with, Key: x.Key, Epoch: 1, Version: version, Seq: x.Seq, Vals: vals}))
						}
					}
					return n
				}
				for _, k := range r.keys {
					r.rows.Hold(&r.out, k)
				}
				if n := answer(wire.Interest, wire.Refresh, make([]float32, dim)); n != keys {
					b.Fatalf("%d replicas are asked for", n)
				}
				push := thirds(keys * dim)
				for b.Loop() {
					b.StopTimer()
					r.push(push)
					for sent := 0; sent < keys; {
						b.StartTimer()
						r.Round()
						b.StopTimer()
						version++
						sent += answer(wire.Delta, wire.Ack, nil)
					}
					b.StartTimer()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(keys), "ns/record")
			})
		}
	}
}

// large returns limits without a bound for rows and copies.
func large() host.Limits {
	l := host.Usual
	l.Copies, l.Rows = 1<<30, 1<<40
	return l
}

// thirds returns so many values that have no shorter form.
func thirds(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i%7+1) / 3
	}
	return v
}

// held is a node whose peer holds a copy of a key.
func held(t *testing.T, limits host.Limits, c Config) *node {
	n := nodeOf(t, limits, c)
	v := n.rows.Server(1, &n.out)
	n.rows.Want(&n.out, []godwit.Key{n.key}) // so that the key stays
	roomtest.Must(t, v.Step(&n.out, &wire.Record{Kind: wire.Interest, Key: n.key, Op: 1, Origin: 1}))
	n.out.Flush()
	n.sent(t)
	return n
}

// changed is one that is held, and to which a worker has pushed since.
func changed(t *testing.T, limits host.Limits, c Config) *node {
	n := held(t, limits, c)
	a := n.rows.Access()
	a.Serve(wire.Push, []godwit.Key{n.key}, []float32{1})
	return n
}

// The round behind a worker that came to rest sends no refreshes, unless a peer asks for what is new, or a stage needs them.
func TestARoundOfAWorkerThatRestsSendsRefreshesToWhoNeedsThem(t *testing.T) {
	for _, c := range []struct{ asks, press bool }{{false, false}, {true, false}, {false, true}} {
		s := &stage{press: c.press}
		n := changed(t, host.Usual, Config{First: []Stage{s}})
		n.Sync.rests = make([]bool, 2) // another worker goes on
		if n.Sync.rest(0); c.asks {
			n.Sync.Marked(1, 7)
		}
		n.Round()
		refreshed := slices.ContainsFunc(n.sent(t), func(r wire.Record) bool { return r.Kind == wire.Refresh })
		if refreshed != (c.asks || c.press) {
			t.Errorf("a peer asks: %v, a stage presses: %v; it is refreshed: %v", c.asks, c.press, refreshed)
		}
	}
}

// Peers hear that the node rests while all of its workers do, and neither while some go on nor when one has gone on.
func TestPeersHearOnlyOfANodeThatRests(t *testing.T) {
	n := nodeOf(t, host.Usual, Config{})
	n.Sync.rests, n.Sync.last = make([]bool, 2), [2][]*call{make([]*call, 2-Node), make([]*call, 2-Node)}
	told := func() []uint64 {
		n.Round()
		return n.ops(t, wire.SyncMark)
	}
	n.Sync.rest(0)
	if ops := told(); len(ops) > 0 {
		t.Errorf("marks %v, though a worker goes on", ops)
	}
	n.Sync.rest(1)
	n.Sync.goesOn(0)
	if ops := told(); len(ops) > 0 {
		t.Errorf("marks %v, though a worker has gone on", ops)
	}
}

// The first shard of which something had to stay begins the next round, whoever tells of it first.
func TestTheFirstShardThatHadToStayBeginsTheNextRound(t *testing.T) {
	var o over
	for _, n := range []int{5, 3, 0, 4} {
		o.stayed(n)
	}
	if got := o.stays.Load(); got != 3 || !o.held.Load() {
		t.Errorf("the next round begins with the shard %d behind the first, want 3", got)
	}
}

// A call that is begun anew while updates are on their way waits for what was pushed until then, too.
func TestACallThatIsBegunAnewWaitsForWhatWasPushedSince(t *testing.T) {
	r := replicatedOf(t, host.Real(), host.Usual, 4, 1, 1, 1, false)
	version, acked := godwit.Version(1), 0
	answer := func(x wire.Record, with wire.Kind, vals []float32) {
		version++
		roomtest.Must(t, r.peers[1].Step(&r.out, &wire.Record{Kind: with, Key: x.Key, Epoch: 1, Version: version, Seq: x.Seq, Vals: vals}))
	}
	r.rows.Hold(&r.out, r.keys[0])
	for _, x := range r.take(t, 1) {
		answer(x, wire.Refresh, []float32{0})
	}
	r.push([]float32{1})
	done := r.Sync.Begin(Node)
	r.Round() // sends the update
	r.push([]float32{1})
	if r.Sync.Begin(Node) != done {
		t.Fatal("the same caller has two calls")
	}
	for range 10 {
		sent := r.take(t, 1)
		for _, x := range sent {
			if x.Kind == wire.SyncMark {
				r.Sync.Acknowledged(x.Op)
			}
		}
		select {
		case <-done:
			if acked != 2 {
				t.Fatalf("the call is over with %d of 2 updates at the owner", acked)
			}
			return
		default:
		}
		for _, x := range sent {
			if x.Kind == wire.Delta {
				answer(x, wire.Ack, nil)
				acked++
			}
		}
		r.Round()
	}
	t.Error("the call is never over")
}
