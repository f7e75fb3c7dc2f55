package node

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// A hooked policy is Adaptive, and calls a function when a planner begins or ends
// an intent.
type hooked struct {
	placement.Policy
	hook atomic.Pointer[func()] // called once
}

func (h *hooked) OnIntent(hot bool) placement.Ask {
	if f := h.hook.Swap(nil); f != nil {
		(*f)()
	}
	return h.Policy.OnIntent(hot)
}

// inPass halts the planner the next time that it begins or ends an intent. It returns
// what is closed then, and what lets it go on.
func (h *hooked) inPass() (reached chan struct{}, goOn func()) {
	reached, on := make(chan struct{}), make(chan struct{})
	halt := func() { close(reached); <-on }
	h.hook.Store(&halt)
	return reached, func() { close(on) }
}

// wanted reports how many of some keys a node wants.
func wanted(n *Node, keys []godwit.Key) (some int) {
	for _, k := range keys {
		if n.Holding(k).Wanted {
			some++
		}
	}
	return some
}

func TestAnIntentBeginsAndEndsForEachOfItsKeys(t *testing.T) {
	c := local(t, 2, Config{Model: model(t, 4000, 1), Policy: placement.Adaptive, Workers: 1})
	n := c.Nodes[0]
	w := n.Worker(0)
	keys := slices.Concat(homedAt(t, n, 0, 1000), homedAt(t, n, 1, 1000))
	must(t, w.Intent(keys, 0, 3))
	eventually(t, "all keys are wanted", func() bool { return wanted(n, keys) == len(keys) })
	for range 3 {
		w.Advance()
	}
	eventually(t, "no key is wanted any more", func() bool { return wanted(n, keys) == 0 })
	eventually(t, "nothing counts as announced", func() bool { return n.workers[0].held.Load() == 0 })
}

// An intent is begun in time although it was announced while the planner was at
// work, which then sleeps until it has to do something for the worker.
func TestAnIntentThatIsAnnouncedWhileThePlannerIsAtWorkIsNotForgotten(t *testing.T) {
	policy := &hooked{Policy: placement.Adaptive}
	c := local(t, 2, Config{Model: model(t, 40, 1), Policy: policy, Workers: 1})
	n := c.Nodes[0]
	w := n.workers[0]
	keys := homedAt(t, n, 0, 2)
	must(t, w.Intent(keys[:1], 0, 5))
	eventually(t, "the planner sleeps until clock 5", func() bool { return w.next.Load() == 5 })
	reached, goOn := policy.inPass()
	for range 5 {
		w.Advance()
	}
	<-reached
	start := godwit.Clock(6 + w.ahead.Load()) // not soon enough to wake the planner, which is to look at clock 5
	err := w.Intent(keys[1:], start, godwit.Forever)
	goOn()
	must(t, err)
	eventually(t, "the first intent has ended", func() bool { return wanted(n, keys[:1]) == 0 })
	for w.Clock() < start {
		w.Advance()
	}
	eventually(t, fmt.Sprintf("key %d is wanted from clock %d on", keys[1], start), func() bool { return wanted(n, keys[1:]) == 1 })
}

// An intent ends although its worker passed the end while the planner was about to
// begin it.
func TestAnIntentWhoseEndPassesWhileItBeginsEnds(t *testing.T) {
	policy := &hooked{Policy: placement.Adaptive}
	c := local(t, 2, Config{Model: model(t, 40, 1), Policy: policy, Workers: 1})
	n := c.Nodes[0]
	w := n.workers[0]
	keys := homedAt(t, n, 0, 1)
	reached, goOn := policy.inPass()
	must(t, w.Intent(keys, 0, 5))
	<-reached
	for range 5 {
		w.Advance()
	}
	goOn()
	eventually(t, "the intent has ended", func() bool { return wanted(n, keys) == 0 })
}
