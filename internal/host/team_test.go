package host

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A teamWorld is real, has as many processors as a test says, and does with helpers what it says.
type teamWorld struct {
	World
	processors int
	help       func(f func()) bool
	worked     atomic.Int64
}

func (w *teamWorld) Processors() int         { return w.processors }
func (w *teamWorld) Help(f func()) bool      { return w.help(f) }
func (w *teamWorld) Worked(_ Duty, keys int) { w.worked.Add(int64(keys)) }
func (w *teamWorld) Measure(f func()) int64  { f(); return 1 }
func worldOf(processors int, t *testing.T) *teamWorld {
	w := &teamWorld{World: Real(), processors: processors}
	w.help = func(f func()) bool { w.Go(f); return true }
	t.Cleanup(w.Join)
	return w
}

// Each part is done once, before Do returns, and a member does one part at a time.
func TestATeamDoesEachPartOnce(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	const size = 4
	w := worldOf(size, t)
	var did [300]atomic.Int32
	var keys [300]int
	var busy [size]atomic.Bool
	total := int64(0)
	team := NewTeam(New(w), Rounds, 8, 100, func(member, part int) int {
		if busy[member].Swap(true) {
			t.Errorf("member %d does two parts at a time", member)
		}
		did[part].Add(1)
		if part%16 == 0 {
			time.Sleep(10 * time.Microsecond)
		}
		busy[member].Store(false)
		return keys[part]
	})
	if team.Size() != size {
		t.Fatalf("a team of %d at %d processors", team.Size(), size)
	}
	for range 300 {
		parts := rng.IntN(len(did))
		for i := range did {
			did[i].Store(0)
			keys[i] = rng.IntN(4)
			if i < parts {
				total += int64(keys[i])
			}
		}
		team.Do(parts)
		for i := range did {
			if n := did[i].Load(); n != 1 && i < parts || n != 0 && i >= parts {
				t.Fatalf("seed %d: part %d of %d was done %d times", seed, i, parts, n)
			}
		}
	}
	if n := w.worked.Load(); n != total {
		t.Errorf("seed %d: the world is told of %d keys, want %d", seed, n, total)
	}
	if team.Helped() == 0 {
		t.Errorf("seed %d: no helper took part", seed)
	}
}

// Members work at the same time, as many as there are processors, and their time is summed.
func TestMembersWorkAtTheSameTime(t *testing.T) {
	const size = 3
	var there sync.WaitGroup
	meets := false
	team := NewTeam(New(worldOf(size, t)), Rounds, 8, 100, func(_, part int) int {
		if meets && part < size {
			there.Done()
			there.Wait() // for one part of each member
		}
		return 8
	})
	team.Do(1) // what was done last time was enough for a helper
	meets = true
	there.Add(size)
	if cost := team.Do(20); cost < size-1 {
		t.Errorf("the time of helpers is %d, want 1 for each of %d or more", cost, size-1)
	}
	if team.Helped() < size-1 {
		t.Errorf("helpers took %d parts", team.Helped())
	}
}

// Little work, and work where no processor is free, is done alone.
func TestATeamIsAloneWhereNobodyCanHelp(t *testing.T) {
	asked := 0
	w := worldOf(4, t)
	w.help = func(func()) bool { asked++; return false }
	keys := 1
	team := NewTeam(New(w), Planning, 100, 100, func(member, _ int) int {
		if member != 0 {
			t.Errorf("member %d works", member)
		}
		return keys
	})
	team.Do(50)
	if asked != 0 {
		t.Errorf("for 50 keys, a helper is asked for %d times", asked)
	}
	keys = 10
	team.Do(50)
	if asked != 4 { // after 100 keys each, of 500, but the last
		t.Errorf("for 500 keys, a helper is asked for %d times, want 4", asked)
	}
	if team.Helped() != 0 {
		t.Errorf("helpers took %d parts", team.Helped())
	}
	if one := NewTeam(New(worldOf(1, t)), Rounds, 1, 100, nil); one.Size() != 1 {
		t.Errorf("on one processor a team has %d members", one.Size())
	}
}

// Nobody waits for a helper that has not begun, and one that begins late takes no part.
func TestALateHelperTakesNoPart(t *testing.T) {
	w := worldOf(4, t)
	var late []func()
	w.help = func(f func()) bool { late = append(late, f); return true }
	var did atomic.Int32
	team := NewTeam(New(w), Rounds, 1, 100, func(int, int) int { did.Add(1); return 1 })
	for range 3 {
		team.Do(10)
	}
	if len(late) != 1 {
		t.Fatalf("%d helpers are to come at a time", len(late))
	}
	late[0]()
	if len(team.left) > 0 || team.in > 0 {
		t.Error("a late helper counts as one who has taken part")
	}
	if did.Load() != 30 || team.Helped() != 0 {
		t.Errorf("%d parts were done, %d by helpers, want 30 and 0", did.Load(), team.Helped())
	}
	team.Do(10)
	if len(late) != 2 {
		t.Errorf("after a late helper, %d were asked for, want 2", len(late))
	}
}
