package protocol

import (
	"fmt"
	"math/rand/v2"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/protocol/directory"
	"github.com/godwit-ps/godwit/protocol/placement"
	"github.com/godwit-ps/godwit/store"
	"github.com/godwit-ps/godwit/wire"
)

// cluster is a handful of nodes of one shard each. Records travel through one
// queue for each ordered pair of nodes, and the test says who goes next.
type cluster struct {
	model *godwit.Model
	homes *directory.Homes
	nodes []*testNode
	pipes map[[2]godwit.NodeID][]wire.Record
	now   int64
	sent  int
}

type testNode struct {
	*Shard
	id      godwit.NodeID
	c       *cluster
	replies []wire.Record // for this node's own requests
}

func newCluster(n int, model *godwit.Model, policy placement.Policy, hints bool, broken Broken) *cluster {
	c := &cluster{model: model, pipes: map[[2]godwit.NodeID][]wire.Record{}}
	var ids []godwit.NodeID
	for i := range n {
		ids = append(ids, godwit.NodeID(i))
	}
	c.homes = directory.NewHomes(model.Keys(), ids)
	for _, id := range ids {
		cfg := &Config{Self: id, Model: model, Policy: policy, Homes: c.homes, Hints: hints, Broken: broken,
			Hot: func(k godwit.Key) bool { return k%5 == 0 }}
		if err := cfg.Prepare(); err != nil {
			panic(err)
		}
		s, err := NewShard(cfg, store.HeapAlloc)
		if err != nil {
			panic(err)
		}
		c.nodes = append(c.nodes, &testNode{Shard: s, id: id, c: c})
	}
	return c
}

func (n *testNode) Send(to godwit.NodeID, r *wire.Record) {
	x := *r
	x.Vals = append([]float32(nil), r.Vals...)
	x.Holders = append([]wire.Holder(nil), r.Holders...)
	n.c.sent++
	if to == n.id {
		if r.Kind != wire.PullReply && r.Kind != wire.Done {
			panic(fmt.Sprintf("node %d sends itself %v of key %d", to, r.Kind, r.Key))
		}
		n.replies = append(n.replies, x)
		return
	}
	p := [2]godwit.NodeID{n.id, to}
	n.c.pipes[p] = append(n.c.pipes[p], x)
}

func (n *testNode) Room(godwit.NodeID) bool { return true }
func (n *testNode) Now() int64              { n.c.now++; return n.c.now }

// deliver hands over the oldest record of a pair.
func (c *cluster) deliver(p [2]godwit.NodeID) error {
	q := c.pipes[p]
	r := q[0]
	if c.pipes[p] = q[1:]; len(q) == 1 {
		delete(c.pipes, p)
	}
	n := c.nodes[p[1]]
	if err := n.Step(n, p[0], &r); err != nil {
		return err
	}
	if r.Kind == wire.PullReply || r.Kind == wire.Done {
		n.replies = append(n.replies, r)
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

// settle delivers and runs rounds until nothing is left to do.
func (c *cluster) settle(rng *rand.Rand) error {
	for i := 0; i < 100000; i++ {
		ps := c.busy()
		if len(ps) > 0 {
			if err := c.deliver(ps[rng.IntN(len(ps))]); err != nil {
				return err
			}
			continue
		}
		work := false
		for _, n := range c.nodes {
			if n.Work() {
				n.Round(n)
				work = true
			}
		}
		if !work && len(c.busy()) == 0 {
			return nil
		}
	}
	return fmt.Errorf("the cluster does not come to rest")
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

// check judges a cluster at rest: one owner a key that the home agrees on,
// equal replicas, nothing that waits.
func (c *cluster) check() error {
	for k := godwit.Key(0); uint64(k) < c.model.Keys(); k++ {
		owners := 0
		var at *testNode
		for _, n := range c.nodes {
			switch n.holding(k) {
			case owner:
				owners++
				at = n
			case tentative, frozen, placeholder:
				return fmt.Errorf("key %d is %v at node %d at rest", k, n.holding(k), n.id)
			}
		}
		home := c.nodes[c.homes.Home(k)]
		o, away := home.dir.Away(k)
		if owners == 0 && !away {
			continue // never touched
		}
		if owners != 1 {
			return fmt.Errorf("key %d has %d owners", k, owners)
		}
		if away && o.Node != at.id || !away && at != home {
			return fmt.Errorf("key %d: home %d says %v (away %v), owner is %d", k, home.id, o, away, at.id)
		}
		for _, n := range c.nodes {
			if n.holding(k) != replica {
				continue
			}
			if got, want := n.row(k), at.row(k); fmt.Sprint(got) != fmt.Sprint(want) {
				return fmt.Errorf("key %d: replica at node %d has %v, owner %d has %v", k, n.id, got, at.id, want)
			}
		}
	}
	for _, n := range c.nodes {
		for i := range n.sides {
			if len(n.sides[i].queue) > 0 {
				return fmt.Errorf("node %d: %d requests still wait", n.id, len(n.sides[i].queue))
			}
		}
		for i, a := range n.abroad {
			if a != 0 {
				return fmt.Errorf("node %d counts %d requests on the network at slot %d", n.id, a, i)
			}
		}
	}
	return nil
}
