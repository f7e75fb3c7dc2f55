package cut

import (
	"testing"
	"time"

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

// A node comes to the stages of a cut one after the other, and to the next cut behind the last stage of this one.
func TestStagesFollowEachOther(t *testing.T) {
	for _, c := range []struct {
		at     progress
		number uint64
		stage  stage
		goesOn bool // next
		before bool // it has yet to come there
	}{
		{progress{number: 5, stage: asked}, 5, settled, true, true},
		{progress{number: 5, stage: asked}, 5, saved, false, true},
		{progress{number: 5, stage: settled}, 5, settled, false, false},
		{progress{number: 5, stage: settled}, 6, asked, false, true},
		{progress{number: 5, stage: ended}, 5, ended + 1, false, true},
		{progress{number: 5, stage: ended}, 6, asked, true, true},
		{progress{number: 5, stage: ended}, 9, asked, true, true}, // numbers need only grow
		{progress{number: 5, stage: ended}, 6, settled, false, true},
		{progress{number: 5, stage: ended}, maxNumber, asked, true, true},
		{progress{number: 5, stage: ended}, maxNumber + 1, asked, false, true},
		{progress{number: 5, stage: asked}, 4, ended, false, false},
	} {
		if goesOn, before := c.at.goesOn(c.number, c.stage), c.at.before(c.number, c.stage); goesOn != c.goesOn || before != c.before {
			t.Errorf("a peer at stage %d of cut %d may come to stage %d of cut %d next: %v; it has yet to: %v", c.at.stage, c.at.number, c.stage, c.number, goesOn, before)
		}
	}
}

func TestAWorkerCrossesAtTheMeetingAndWaitsAtItsReach(t *testing.T) {
	at := func(c godwit.Clock) tick.Tick { return tick.First(0).At(c) }
	for _, c := range []struct {
		m            meeting
		t            tick.Tick
		cross, waits bool
	}{
		{meeting{anywhere: true}, at(3), true, false},
		{meeting{}, at(3), false, false},
		{meeting{reach: at(4)}, at(3), false, false},
		{meeting{reach: at(4)}, at(4), false, true},
		{meeting{reach: at(4), where: at(6)}, at(5), false, false},
		{meeting{reach: at(4), where: at(6)}, at(6), true, false},
	} {
		if cross, waits := c.m.at(c.t); cross != c.cross || waits != c.waits {
			t.Errorf("%+v: at %v a worker crosses: %v, and waits: %v", c.m, c.t, cross, waits)
		}
	}
}

// The reach of a worker is where it probably is when all nodes have heard of the cut; of one that is parked, behind its last step.
func TestTheReachIsWhatAWorkerMakesMeanwhile(t *testing.T) {
	p := pace{clock: 100, at: 0}
	if got := p.lead(350, int64(time.Second)); got != 5 { // 250 a second, for 20 ms
		t.Errorf("a worker of 250 clocks a second makes %d clocks until all have heard", got)
	}
	if got := p.lead(350, int64(2*time.Second)); got != 1 {
		t.Errorf("a worker that stands makes %d clocks, want one at least", got)
	}
	c := &Cuts{Config: Config{Host: host.New(host.Real()), Rows: Rows{Proto: &protocol.Config{}}, Bounded: true}}
	clocks := tick.NewClocks(0, 1, 0)
	w := new(Party)
	c.Join(w, godwit.WorkerID{}, clocks[0], func() {})
	w.Unpark()
	for range 3 {
		clocks[0].Advance()
		clocks[0].Follow()
	}
	w.Rest()
	if got, want := c.ask(), tick.First(0).At(clocks[0].Tick().Clock()+1); got != want {
		t.Errorf("the reach of a worker that rests at %v is %v, want %v", clocks[0].Tick(), got, want)
	}
}
