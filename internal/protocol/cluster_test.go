package protocol

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol/directory"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// cluster is a handful of nodes of one shard each. Records travel through one
// queue for each ordered pair of nodes, and the test says who goes next.
type cluster struct {
	model    *godwit.Model
	homes    *directory.Homes
	nodes    []*testNode
	pipes    map[[2]godwit.NodeID][]wire.Record
	now      int64
	life     *life                                        // if set, judges every transition
	watch    *watch                                       // if set, judges every record and every state
	room     func() bool                                  // if set, answers Room
	takes    func() bool                                  // if set, answers Takes
	crowded  func(to godwit.NodeID) bool                  // if set, answers Crowded; else strained does
	strained func() bool                                  // if set, answers Strained
	rests    func(godwit.NodeID) bool                     // if set, answers Rests
	rows     int                                          // that a node may have asked of another; 0: any number
	sent     func(from, to godwit.NodeID, r *wire.Record) // if set, sees what is sent
}

type testNode struct {
	*Shard
	id      godwit.NodeID
	c       *cluster
	replies []wire.Record // for this node's own requests
	asked   [16]int       // rows that other nodes were asked for and have not sent
	call    *call         // under way, if a life watches
}

func newCluster(n int, model *godwit.Model, policy placement.Policy, hints bool, broken Broken) *cluster {
	c := &cluster{model: model, pipes: map[[2]godwit.NodeID][]wire.Record{}}
	var ids []godwit.NodeID
	for i := range n {
		ids = append(ids, godwit.NodeID(i))
	}
	c.homes = directory.NewHomes(model.Keys(), ids)
	for _, id := range ids {
		cfg := &Config{Self: id, Model: model, Policy: policy, Homes: c.homes, Hints: hints, Broken: broken, Idle: -1,
			Hot: func(k godwit.Key) bool { return k%5 == 0 }}
		if err := cfg.Prepare(); err != nil {
			panic(err)
		}
		s, err := NewShard(cfg, store.HeapAlloc)
		if err != nil {
			panic(err)
		}
		n := &testNode{Shard: s, id: id, c: c}
		cfg.Observe = func(k godwit.Key, from, to string) { n.becomes(k, stateNamed(from), stateNamed(to)) }
		c.nodes = append(c.nodes, n)
	}
	return c
}

// idling lets replicas be idle.
func (c *cluster) idling() *cluster {
	for _, n := range c.nodes {
		n.cfg.Idle = 0
	}
	return c
}

func (n *testNode) Send(to godwit.NodeID, r *wire.Record) {
	x := *r
	x.Vals = append([]float32(nil), r.Vals...)
	x.Holders = append([]wire.Holder(nil), r.Holders...)
	if n.c.sent != nil {
		n.c.sent(n.id, to, &x)
	}
	if to == n.id {
		if r.Kind != wire.PullReply && r.Kind != wire.Done {
			panic(fmt.Sprintf("node %d sends itself %v of key %d", to, r.Kind, r.Key))
		}
		n.replies = append(n.replies, x)
		return
	}
	p := [2]godwit.NodeID{n.id, to}
	n.sends(&x)
	n.c.pipes[p] = append(n.c.pipes[p], x)
}

func (n *testNode) Room(godwit.NodeID) bool { return n.c.room == nil || n.c.room() }
func (n *testNode) Rooms() bool             { return n.Room(0) }
func (n *testNode) Takes(godwit.NodeID) bool {
	return n.c.takes == nil || n.c.takes()
}
func (n *testNode) Strained(godwit.NodeID) bool {
	return n.c.strained != nil && n.c.strained()
}
func (n *testNode) Crowded(to godwit.NodeID) bool {
	if n.c.crowded != nil {
		return n.c.crowded(to)
	}
	return n.Strained(to)
}
func (n *testNode) Rests(to godwit.NodeID) bool { return n.c.rests != nil && n.c.rests(to) }
func (n *testNode) Now() int64                  { n.c.now += 10_000; return n.c.now } // so that copies get old

func (n *testNode) Ask(to godwit.NodeID, floats int) bool {
	if n.c.rows > 0 && n.asked[to] >= n.c.rows {
		if n.c.watch != nil {
			n.c.watch.rare.Denied++
		}
		return false
	}
	n.asked[to]++
	return true
}

func (n *testNode) Got(to godwit.NodeID, floats int) {
	if n.asked[to]--; n.asked[to] < 0 {
		panic(fmt.Sprintf("node %d got a row of node %d for which it had not asked", n.id, to))
	}
}

// deliver hands over the oldest record of a pair.
func (c *cluster) deliver(p [2]godwit.NodeID) error {
	q := c.pipes[p]
	r := q[0]
	if c.pipes[p] = q[1:]; len(q) == 1 {
		delete(c.pipes, p)
	}
	n := c.nodes[p[1]]
	if c.watch != nil {
		c.watch.before(n, &r)
	}
	done := r // Step may change a request
	if err := n.Step(n, p[0], &r); err != nil {
		return err
	}
	if r.Kind == wire.PullReply || r.Kind == wire.Done {
		n.replies = append(n.replies, done)
	}
	if c.watch != nil {
		return c.watch.after(&done)
	}
	return nil
}

// busy lists the pairs with records under way, in a fixed order.
func (c *cluster) busy() [][2]godwit.NodeID {
	var ps [][2]godwit.NodeID
	for i := range c.nodes {
		for j := range c.nodes {
			if p := [2]godwit.NodeID{godwit.NodeID(i), godwit.NodeID(j)}; len(c.pipes[p]) > 0 {
				ps = append(ps, p)
			}
		}
	}
	return ps
}

// settle delivers and runs rounds until nothing is left to do. It is an error
// if that takes more than limit deliveries.
func (c *cluster) settle(rng *rand.Rand, limit int) error {
	for rounds := 0; ; {
		ps := c.busy()
		if len(ps) > 0 {
			if limit--; limit < 0 {
				return fmt.Errorf("the cluster does not come to rest")
			}
			if err := c.deliver(ps[rng.IntN(len(ps))]); err != nil {
				return err
			}
			continue
		}
		work := false
		for _, n := range c.nodes {
			if n.Due() {
				n.AskDue(n)
				work = true
			}
			if n.Work() {
				n.Round(n, false, false)
				work = true
			}
		}
		if !work && len(c.busy()) == 0 {
			return nil
		}
		if rounds++; rounds > 1000 {
			return fmt.Errorf("the cluster has work for ever and sends nothing")
		}
	}
}

// holding returns the state of a key at a node.
func (n *testNode) holding(k godwit.Key) state {
	r, ok := n.st.Find(k)
	if !ok {
		return absent
	}
	return stateOf(n.st.Header(r))
}

func (n *testNode) row(k godwit.Key) []float32 {
	r, ok := n.st.Find(k)
	if !ok {
		return nil
	}
	return n.st.Floats(r)
}

// main returns a key's main copy: the row of the owner, else the row on its
// way there, else nil.
func (c *cluster) main(k godwit.Key) []float32 {
	var row []float32
	for _, n := range c.nodes {
		switch n.holding(k) {
		case owner, tentative:
			return n.row(k)
		case frozen:
			row = n.row(k)
		}
	}
	return row
}

// check judges a cluster at rest: one owner a key that the home agrees on,
// copies that are equal to it and that it knows, nothing that waits or leaks.
func (c *cluster) check() error {
	for k := godwit.Key(0); uint64(k) < c.model.Keys(); k++ {
		if err := c.checkKey(k); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		if err := n.check(); err != nil {
			return fmt.Errorf("node %d at rest: %w", n.id, err)
		}
	}
	return nil
}

func (c *cluster) checkKey(k godwit.Key) error {
	owners := 0
	var at *testNode
	var copies []godwit.NodeID
	for _, n := range c.nodes {
		switch st := n.holding(k); {
		case st == owner:
			owners++
			at = n
		case st.isReplica():
			copies = append(copies, n.id)
		case st != absent:
			return fmt.Errorf("key %d is %v at node %d at rest", k, n.holding(k), n.id)
		}
	}
	home := c.nodes[c.homes.Home(k)]
	o, away := home.dir.Away(k)
	if owners == 0 && len(copies) == 0 && !away {
		return nil // never touched
	}
	if owners != 1 {
		return fmt.Errorf("key %d has %d owners", k, owners)
	}
	if away && o.Node != at.id || !away && at != home {
		return fmt.Errorf("key %d: home %d says %v (away %v), owner is %d", k, home.id, o, away, at.id)
	}
	var known []godwit.NodeID
	if m := at.mainAt(k); m != nil {
		for h := at.firstHolder(m); h != nil; h = at.nextHolder(m, h) {
			known = append(known, h.node)
		}
	}
	slices.Sort(known)
	if !slices.Equal(known, copies) {
		return fmt.Errorf("key %d: its owner %d knows copies at %v, there are copies at %v", k, at.id, known, copies)
	}
	fresh := at.cfg.Model.Fresh(k)
	for _, n := range copies {
		got, want := c.nodes[n].row(k), at.row(k)
		if !slices.Equal(got[:fresh], want[:fresh]) {
			return fmt.Errorf("key %d: replica at node %d has %v, owner %d has %v", k, n, got, at.id, want)
		}
		for i, x := range got[fresh:] { // it may lag, and counts up
			if x > want[fresh+i] {
				return fmt.Errorf("key %d: state of the replica at node %d is ahead: %v, owner %d has %v", k, n, got, at.id, want)
			}
		}
	}
	return nil
}

// sideAt returns the side of a key's row, if it has one.
func (n *testNode) sideAt(k godwit.Key) *side {
	if r, ok := n.st.Find(k); ok {
		if h := n.st.Header(r); hasSide(h) {
			return n.side(h)
		}
	}
	return nil
}

// mainAt returns the side of a key's main copy, nil if there is none here, or it has none.
func (n *testNode) mainAt(k godwit.Key) *mainSide {
	if n.sideAt(k) == nil || !n.holding(k).isMain() {
		return nil
	}
	r, _ := n.st.Find(k)
	return n.main(n.st.Header(r))
}

// replicaAt returns the side of a key's replica, nil if there is none here.
func (n *testNode) replicaAt(k godwit.Key) *replicaSide {
	if !n.holding(k).isReplica() {
		return nil
	}
	r, _ := n.st.Find(k)
	return n.replica(n.st.Header(r))
}

func (n *testNode) check() error {
	sides := 0
	var err error
	held := [len(n.held)]int{absent: n.held[absent]}
	var strangers [len(n.slots)]uint32
	n.st.Each(func(r store.Ref) {
		h := n.st.Header(r)
		held[stateOf(h)]++
		if n.cfg.Homes.Home(h.Key) != n.cfg.Self {
			strangers[slot(h.Key, n.cfg.Shift)]++
		}
		if !hasSide(h) {
			return
		}
		sides++
		d := n.side(h)
		m, x := n.mainAt(h.Key), n.replicaAt(h.Key)
		switch {
		case d.queue != 0:
			err = fmt.Errorf("%d requests still wait for key %d", n.waits(d), h.Key)
		case x != nil && (x.sent != 0 || x.flight.present() || x.unsent != none):
			err = fmt.Errorf("updates of key %d never arrived: %+v", h.Key, *x)
		case m != nil && m.holders == 0:
			err = fmt.Errorf("key %d is %v, nobody holds a replica, and it keeps a side: %+v", h.Key, stateOf(h), *d)
		case m == nil && d.want == 0:
			err = fmt.Errorf("key %d is %v, nobody wants it, and it keeps a side: %+v", h.Key, stateOf(h), *d)
		}
	})
	if err != nil {
		return err
	}
	if held != n.held {
		return fmt.Errorf("%d keys are in the states absent … draining, and the shard counts %d", held, n.held)
	}
	if used := n.sides.used(); used != sides {
		return fmt.Errorf("%d sides are in use, %d rows have one", used, sides)
	}
	if n.waiters.used()+len(n.vectors.list)-len(n.vectors.free) != 0 {
		return fmt.Errorf("%d waiters and %d vectors are in use, and nobody waits", n.waiters.used(), len(n.vectors.list)-len(n.vectors.free))
	}
	for i, c := range n.slots {
		if c.remote != 0 {
			return fmt.Errorf("%d requests count as on the network at slot %d", c.remote, i)
		}
		if c.strangers != strangers[i] {
			return fmt.Errorf("%d rows of keys with other homes count at slot %d, there are %d", c.strangers, i, strangers[i])
		}
	}
	if n.asked != [16]int{} {
		return fmt.Errorf("the rows %v of other nodes count as asked for", n.asked)
	}
	if len(n.dirty)+len(n.changed)+len(n.due) > 0 {
		return fmt.Errorf("%d keys are dirty, %d changed, %d not asked for", len(n.dirty), len(n.changed), len(n.due))
	}
	if len(n.replies) > 0 {
		return fmt.Errorf("%d replies that nobody waits for, the first %+v", len(n.replies), n.replies[0])
	}
	return nil
}

// Pull copies the value of a key to dst if it can be read here and now.
func (s *Shard) Pull(k godwit.Key, dst []float32) Place { return s.PullAt(nil, k, dst) }

// Push applies the key's update rule if the key can be written here and now.
func (s *Shard) Push(k godwit.Key, push []float32) Place {
	if r, ok := s.st.Find(k); ok {
		t, _ := s.cfg.Model.Locate(k)
		if p := s.cfg.Update(t).Push(s.st.Header(r), k, push, s.cut.settled); p != Elsewhere {
			return p
		}
	}
	return s.PushAt(nil, k, push, s.cut.settled)
}
