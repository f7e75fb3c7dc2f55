package cut

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/node/internal/link"
)

// A hasty world passes the time of a sleep at once, and tells what the clock says then.
type hasty struct {
	host.World
	now   atomic.Int64
	slept func(now time.Duration)
}

func (h *hasty) Now() int64 { return h.now.Load() }

func (h *hasty) Sleep(d time.Duration, _, _ <-chan struct{}) int {
	h.slept(time.Duration(h.now.Add(int64(d))))
	return -1
}

// roomy returns the cuts of node 0 of two while rows are handed over.
func roomy(slept func(c *Cuts, now time.Duration)) (*Cuts, *hasty) {
	w := &hasty{World: host.Real()}
	h := host.New(w)
	c := &Cuts{Config: Config{Host: h, Links: link.New(h, 0, 2, 1, host.Usual, filter.Compress{}, host.NewBell())}, peers: make([]progress, 2)}
	c.Links.Imagine(1, func() {})
	w.slept = func(now time.Duration) { slept(c, now) }
	w.now.Store(int64(time.Hour))
	c.handsOver(true)
	return c, w
}

// Workers wait for a sink as long as it takes rows now and then, and 5 s more. The error names the node whose sink it is.
func TestWorkersWaitFiveSecondsForASinkThatTakesNothing(t *testing.T) {
	for _, peers := range []bool{false, true} {
		full := func(c *Cuts) {
			if c.Full(true); peers {
				c.Full(false)
				c.mu.Lock()
				c.hears(&c.peers[1], true)
				c.mu.Unlock()
			}
		}
		c, w := roomy(func(c *Cuts, now time.Duration) {
			if now < time.Hour+7*time.Second && now%(4*time.Second) < waitsForRoom { // rows are taken every 4 s, twice
				c.tookAt.Store(int64(now))
			}
		})
		full(c)
		c.waitForRoom()
		waited := time.Duration(w.Now()) - time.Hour
		if last := 4 * time.Second; waited < last+noProgress || waited > last+noProgress+time.Second {
			t.Errorf("a sink took rows for the last time after %v, and was given up after %v", last, waited)
		}
		if says := strings.Contains(c.fault.Error(), "the sink of node 1 took no rows for 5s"); !errors.Is(c.fault, errShort) || says != peers || c.handing.Load() {
			t.Errorf("full at the peer %v: given up for %v; workers wait still: %v", peers, c.fault, c.handing.Load())
		}
	}
	c, _ := roomy(func(c *Cuts, now time.Duration) {
		if now > time.Hour+3*time.Second {
			c.Full(false)
		}
	})
	c.Full(true)
	if c.waitForRoom(); c.fault != nil || !c.handing.Load() {
		t.Errorf("when there is room again, the cut is given up: %v", c.fault)
	}
}

// Shards count the copies of all cuts, and a call is told of those of its own.
func TestACutTellsOfTheCopiesThatItKept(t *testing.T) {
	c, _ := roomy(nil)
	for i, total := range []uint64{5, 8, 8, 9} {
		x := &call{number: uint64(i + 1), done: make(chan struct{})}
		c.call = x
		c.number.Store(x.number)
		c.end(total)
		if want := total - []uint64{0, 5, 8, 8}[i]; x.stats.Kept != want || x.err != nil {
			t.Errorf("cut %d kept %d copies (%v), want %d", i+1, x.stats.Kept, x.err, want)
		}
	}
	c.number.Store(5)
	c.end(20) // a cut that another node asked for
	x := &call{number: 6, done: make(chan struct{})}
	c.call = x
	c.number.Store(6)
	if c.end(21); x.stats.Kept != 1 {
		t.Errorf("after a cut of another node's, one kept %d copies, want 1", x.stats.Kept)
	}
}
