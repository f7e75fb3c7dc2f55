package sim

import (
	"fmt"
	"math"
	"slices"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// watch judges the keys of a frame that a host has just handled.
func (c *Cluster) watch(h *host, f *frame) error {
	if !wire.IsData(f.bytes) {
		return nil
	}
	if err := c.read(f.bytes, &h.watched[f.from]); err != nil {
		return err
	}
	var r wire.Record
	for {
		ok, err := c.count.Next(&r)
		if err != nil || !ok {
			return err
		}
		switch r.Kind {
		case wire.SyncMark, wire.SyncAck, wire.Scan, wire.InUse, wire.Scanned, wire.Settled, wire.Rebound, wire.RoundMark, wire.RoundDone:
			continue // about no key's row
		}
		if most := protocol.MaxHops(len(c.hosts)); r.Hops > most {
			return fmt.Errorf("sim: %v of key %d for node %d travelled %d times, at most %d are needed", r.Kind, r.Key, r.Origin, r.Hops, most)
		}
		if err := c.watchKey(r.Key); err != nil {
			return fmt.Errorf("sim: after %v: %w", r.Kind, err)
		}
	}
}

// watchKey judges a key at any moment: of it there is one main copy at the
// most, one that was handed over at the most, and one of either if there ever
// was one; and epochs grow.
func (c *Cluster) watchKey(k godwit.Key) error {
	mains, frozen := 0, 0
	for _, h := range c.hosts {
		switch x := h.virtual.Holding(k); {
		case x.Main():
			mains++
			if x.Epoch < c.epochs[k] {
				return fmt.Errorf("key %d is owned by node %d in epoch %d after it was in epoch %d", k, h.id, x.Epoch, c.epochs[k])
			}
			c.epochs[k] = x.Epoch
		case x.State == "frozen":
			frozen++
		}
	}
	if mains > 1 || frozen > 1 {
		return fmt.Errorf("key %d has %d main copies and is frozen at %d nodes", k, mains, frozen)
	}
	home := c.hosts[c.hosts[0].node.Home(k)]
	if used := home.virtual.Owner(k) != home.id || home.virtual.Holding(k).Row != nil; used && mains+frozen == 0 {
		return fmt.Errorf("nobody has the row of key %d", k)
	}
	return nil
}

// Check judges a cluster at rest, between two programs: every key has one
// owner, which its home knows, and which knows all replicas; they are equal to
// the main copy. Nothing waits, and once all intents have ended, only what the
// policy holds everywhere is replicated.
func (c *Cluster) Check() error {
	if c.err != nil {
		return c.err
	}
	for _, h := range c.hosts {
		if err := h.virtual.Resting(); err != nil {
			return fmt.Errorf("sim: node %d at rest: %w", h.id, err)
		}
	}
	for k := godwit.Key(0); c.cfg.Model.Has(k); k++ {
		if err := c.checkKey(k); err != nil {
			return fmt.Errorf("sim: at rest: %w", err)
		}
	}
	return nil
}

func (c *Cluster) checkKey(k godwit.Key) error {
	owner, holds, replicas := c.holdings(k)
	home := c.hosts[c.hosts[0].node.Home(k)]
	switch {
	case len(owner) == 0 && len(replicas) == 0 && home.virtual.Owner(k) == home.id:
		return nil // never touched
	case len(owner) != 1:
		return fmt.Errorf("key %d is owned by nodes %v", k, owner)
	case home.virtual.Owner(k) != owner[0]:
		return fmt.Errorf("key %d is owned by node %d, its home %d says %d", k, owner[0], home.id, home.virtual.Owner(k))
	}
	main := holds[owner[0]]
	if !slices.Equal(main.Holders, replicas) {
		return fmt.Errorf("key %d: its owner %d knows replicas at %v, there are some at %v", k, owner[0], main.Holders, replicas)
	}
	fresh := c.cfg.Model.Fresh(k)
	for _, id := range replicas {
		x := holds[id]
		if !slices.EqualFunc(x.Row[:fresh], main.Row[:fresh], same) {
			return fmt.Errorf("key %d: the replica at node %d is %v, the owner %d has %v", k, id, x.Row, owner[0], main.Row)
		}
		if !x.Wanted && !x.Idle {
			return fmt.Errorf("key %d is replicated at node %d, and nothing there wants it", k, id)
		}
	}
	return nil
}

// same compares what two copies of a key have. Whole numbers add up exactly;
// others may differ as far as the order of additions rounds differently.
func same(a, b float32) bool {
	if a == b || a != a && b != b {
		return true
	}
	x, y := float64(a), float64(b)
	whole := x == math.Trunc(x) && y == math.Trunc(y)
	return !whole && math.Abs(x-y) <= 1e-3*max(math.Abs(x), math.Abs(y), 1)
}

// holdings returns what each node has of a key: who says to own it, and who
// replicates it.
func (c *Cluster) holdings(k godwit.Key) (owner []godwit.NodeID, holds []protocol.Holding, replicas []godwit.NodeID) {
	preempt.Hold() // they are looked at as they are at one moment
	defer preempt.Release()
	for _, h := range c.hosts {
		x := h.virtual.Holding(k)
		holds = append(holds, x)
		switch {
		case x.Main():
			owner = append(owner, h.id)
		case x.State == "replica":
			replicas = append(replicas, h.id)
		}
	}
	return owner, holds, replicas
}

// unwanted returns an error if intents have not ended, or something of them was
// left over.
func (c *Cluster) unwanted() error {
	policy := c.cfg.Policy
	if policy == nil {
		policy = placement.Adaptive
	}
	for _, h := range c.hosts {
		if n := h.node.Intents(); n > 0 {
			return fmt.Errorf("sim: %d keys are still announced at node %d", n, h.id)
		}
		for k := godwit.Key(0); c.cfg.Model.Has(k) && !policy.Everywhere(true); k++ {
			if x := h.virtual.Holding(k); x.Wanted && !(x.Wished && c.relaxed(k)) {
				return fmt.Errorf("sim: key %d counts as wanted at node %d after all intents ended", k, h.id)
			}
		}
	}
	return nil
}

// relaxed reports whether nodes may have copies of a key that nobody announced.
func (c *Cluster) relaxed(k godwit.Key) bool {
	i, _ := c.cfg.Model.Locate(k)
	return c.cfg.Model.Table(i).Relaxed
}

// Value returns the value of a key's main copy as it is; nil if nobody ever
// accessed the key.
func (c *Cluster) Value(k godwit.Key) []float32 {
	preempt.Hold()
	defer preempt.Release()
	for _, h := range c.hosts {
		if x := h.virtual.Holding(k); x.Main() {
			i, _ := c.cfg.Model.Locate(k)
			t := c.cfg.Model.Table(i)
			v := append([]float32(nil), x.Row[:t.Dim]...)
			if q, ok := t.Rule.(godwit.Querier); ok {
				q.Query(v, x.Row[:t.Dim], x.Row[t.Dim:])
			}
			return v
		}
	}
	return nil
}
