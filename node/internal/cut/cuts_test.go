package cut

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// Rows are handed over without pauses only while no worker would use the processors.
func TestAllWorkersMustRestForRowsToBeHandedOverInAHurry(t *testing.T) {
	c, first, second := new(Cuts), new(Party), new(Party)
	for i, p := range []*Party{first, second} {
		c.Join(p, godwit.WorkerID{Local: i}, new(tick.Clock), func() {})
	}
	for _, step := range []struct {
		does func()
		want bool
	}{
		{func() {}, true}, // nothing yet
		{first.Unpark, false},
		{second.Unpark, false},
		{func() { second.Rest() }, false},
		{func() { first.Barrier(nil) }, false}, // it may go on at any moment
		{func() { first.Rest() }, true},
	} {
		if step.does(); c.resting() != step.want {
			t.Fatalf("%v and %v: in a hurry is %v", first.parked, second.parked, c.resting())
		}
	}
}

// A worker that has finished is at the beginning of the next era, to which others may come before they hear of the cut: it crosses when it is known
// where all do. One that rests crosses at once.
func TestAWorkerThatHasFinishedCrossesWhereAllDo(t *testing.T) {
	for _, oneClock := range []bool{false, true} {
		c := &Cuts{Config: Config{Host: host.New(host.Real()), Rows: Rows{Proto: &protocol.Config{}}, Bounded: !oneClock, OneClock: oneClock}}
		clocks := tick.NewClocks(0, 3, 0)
		finished, comes, rests := new(Party), new(Party), new(Party)
		for i, p := range []*Party{finished, comes, rests} {
			c.Join(p, godwit.WorkerID{Local: i}, clocks[i], func() {})
			p.Unpark()
		}
		for i, p := range []*Party{finished, comes} {
			enter := func() { clocks[i].Enter() }
			if oneClock {
				enter = nil
			}
			p.Finish(enter)
		}
		rests.Rest()
		c.ask()
		if finished.over() || comes.over() || !rests.over() {
			t.Fatalf("one clock %v: before it is known where, who finished has crossed: %v and %v; who rests: %v", oneClock, finished.over(), comes.over(), rests.over())
		}
		comes.Barrier(func() { clocks[1].Enter() })
		c.gate.Lock()
		c.meeting.agree(tick.First(1).At(1), false) // of a node that has heard of the cut when all were in the next era
		c.gate.Unlock()
		if comes.over() {
			t.Errorf("one clock %v: who comes to the barrier crosses before the others do", oneClock)
		}
		clocks[1].Crossed()
		comes.Unpark()
		if clocks[1].Advance(); !oneClock {
			clocks[1].Follow()
		}
		comes.Advance() // which has the tick follow, where it is the one clock
		if !comes.over() {
			t.Errorf("one clock %v: it has not crossed at %v", oneClock, clocks[1].Tick())
		}
	}
}
