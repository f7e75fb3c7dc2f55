package cut

import (
	"fmt"
	"sync/atomic"
	"time"
)

// This file is what happens when copies of rows take half of what they may while rows are handed
// over, at any node: workers wait at their step boundaries until there is room, as long as the sink of that
// node takes rows. What a worker changes in one step must fit into the other half. Before rows are
// handed over nobody waits: workers that have not crossed may wait for those that have.

const (
	waitsForRoom = 200 * time.Microsecond // until a worker looks again
	noProgress   = 5 * time.Second        // after which nobody waits for a sink any more
	fullAgain    = time.Second            // after which peers are told again that workers wait, and the sink takes rows
)

// A room is what is known of copies and sinks.
type room struct {
	full    atomic.Int64 // shards here, and peers, with many copies
	handing atomic.Bool  // rows are handed over: workers wait where there are many copies
	tookAt  atomic.Int64 // when a sink took rows last, as far as this node knows
}

// Full takes note that a shard has much to hand over, or no longer.
func (c *Cuts) Full(full bool) {
	if full {
		c.full.Add(1)
	} else {
		c.full.Add(-1)
	}
}

// hears takes a peer's word whether workers are to wait. The lock is held.
func (c *Cuts) hears(p *progress, full bool) {
	if full != p.full {
		p.full = full
		c.Full(full)
	}
	if full {
		c.tookAt.Store(c.Host.Now())
	}
}

// waitForRoom has a worker wait while copies take much of what they may.
func (c *Cuts) waitForRoom() {
	for c.full.Load() > 0 && c.handing.Load() {
		if c.Host.Now()-c.tookAt.Load() > int64(noProgress) {
			c.mu.Lock()
			c.giveUp(c.stalled())
			c.mu.Unlock()
			return
		}
		if c.Host.Sleep(waitsForRoom, nil, c.Host.Stop()) == 1 {
			return
		}
	}
}

// stalled makes the error of a cut for which workers waited in vain. The lock is held.
func (c *Cuts) stalled() error {
	for peer := range c.Links.All {
		if c.peers[peer].full {
			return fmt.Errorf("the sink of node %d took no rows for %v while workers waited for room for copies: %w", peer, noProgress, errShort)
		}
	}
	return fmt.Errorf("the sink took no rows for %v while workers waited for room for copies: %w", noProgress, errShort)
}

// tellFull tells peers whether workers are to wait, when that has changed, and again while they are. The lock
// telling is held.
func (c *Cuts) tellFull() {
	full, now := c.handing.Load() && c.ownFull(), c.Host.Now()
	if full != c.toldFull || full && now-c.toldAt > int64(fullAgain) {
		c.toldFull, c.toldAt = full, now
		c.mu.Lock()
		s := c.stage
		c.mu.Unlock()
		c.say(s)
	}
}

// ownFull reports whether copies take much at this node.
func (c *Cuts) ownFull() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.full.Load()
	for i := range c.peers {
		if c.peers[i].full {
			n--
		}
	}
	return n > 0
}

// tellOn tells peers whether workers are to wait, also while the sink takes its time, until tells is not set.
func (c *Cuts) tellOn() {
	for more := true; more && c.Host.Sleep(lastPause, nil, c.Host.Stop()) < 0; {
		c.telling.Lock()
		if more = c.tells; more {
			c.tellFull()
		}
		c.telling.Unlock()
	}
}

// tellMeanwhile has tellOn run, or no longer.
func (c *Cuts) tellMeanwhile(on bool) {
	c.telling.Lock()
	c.tells, c.toldFull = on, false // the word of the next stage says that nobody is to wait any more
	c.telling.Unlock()
	if on && !c.Links.Alone() {
		c.Host.Go(c.tellOn)
	}
}

// handsOver notes whether rows are handed over from now on.
func (c *Cuts) handsOver(yes bool) {
	c.tookAt.Store(c.Host.Now())
	c.handing.Store(yes)
}
