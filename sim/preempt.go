package sim

import (
	"math/rand/v2"
	"time"

	"github.com/godwit-ps/godwit/internal/preempt"
)

// A scheduler lets others run where a node marks that they may come between, in a
// storm that was built with the tag preempt. How often, and for how long the
// interrupted one then waits, follows from the storm's seed.
type scheduler struct {
	c     *Cluster
	rng   *rand.Rand
	of    int           // it interrupts at one point of so many
	most  time.Duration // a pause
	count uint64        // interruptions
}

func newScheduler(seed uint64) *scheduler {
	rng := rand.New(rand.NewPCG(seed, 0x9ee7))
	return &scheduler{rng: rng, of: 2 << rng.IntN(8), most: 10 * time.Microsecond << rng.IntN(8)}
}

// install begins to interrupt the cluster's goroutines, until remove is called.
func (s *scheduler) install() (remove func()) { return preempt.Install(s.point) }

// point is called by whatever runs. What is no goroutine of a node cannot be
// interrupted: it is what the network and the coordinator do.
func (s *scheduler) point() {
	if s.c == nil || s.c.running == nil || s.c.aborting || s.rng.IntN(s.of) > 0 {
		return
	}
	s.count++
	s.c.park(s.c.running.host, time.Duration(s.rng.Int64N(int64(s.most))), [3]<-chan struct{}{})
}
