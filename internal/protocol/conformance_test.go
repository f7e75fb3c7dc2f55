package protocol

import (
	"testing"

	"github.com/godwit-ps/godwit/internal/history"
	"github.com/godwit-ps/godwit/internal/restless"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// These tests hold statements of docs/conformance.md, each with what must have
// happened for it to mean something.

// A did is what storms did and judged.
type did struct {
	rare
	judged history.Judged
	stats  Stats
	hops   [16]int
}

// conform runs storms of some weathers, on 2 to 5 nodes, until the first fails.
func conform(t *testing.T, seeds uint64, ws ...weather) (sum did) {
	t.Helper()
	for seed := uint64(1); seed <= seeds; seed++ {
		w := ws[seed%uint64(len(ws))]
		w.nodes = 2 + int(seed/7%4)
		s := newStorm(seed, w)
		if err := s.run(); err != nil {
			t.Fatalf("seed %d, %v: %v", seed, w, err)
		}
		sum.add(s.rare())
		sum.judged.Add(s.history.Judged)
		for i, n := range s.c.watch.hops {
			sum.hops[i] += n
		}
		for _, n := range s.c.nodes {
			sum.stats.Forwards += n.Stats.Forwards
			sum.stats.Copies += n.Stats.Copies
			sum.stats.Drops += n.Stats.Drops
		}
	}
	t.Logf("%+v", sum)
	return sum
}

func TestConformanceC2AsynchronousOperationsKeepTheirOrderWithoutHints(t *testing.T) {
	d := conform(t, 200,
		weather{policy: placement.RelocateAll, async: true}, weather{policy: placement.AdaptiveMoveOnly, async: true}, weather{policy: placement.Static, async: true})
	if d.Moves < 1000 || d.Waited < 1000 || d.stats.Forwards < 1000 || d.judged.Own < 1000 || d.stats.Copies > 0 {
		t.Error("the test is vacuous")
	}
}

func TestConformanceC3C4NodesReadTheirWritesAndNeverGoBackWhateverBecomesOfCopies(t *testing.T) {
	d := conform(t, 300,
		weather{policy: placement.Adaptive}, weather{policy: placement.Adaptive, hints: true},
		weather{policy: restless.Policy{}}, weather{policy: restless.Policy{}, hints: true, repeat: true},
		weather{policy: placement.AdaptiveReplicateOnly, async: true})
	if d.judged.Own < 10_000 || d.judged.Back < 10_000 || d.stats.Copies < 1000 || d.DirtyDrop < 100 || d.MovesToCopy < 100 || d.RefreshFlight < 500 || d.StaleRefresh == 0 {
		t.Error("the test is vacuous")
	}
}

func TestConformanceC5NobodySeesAPushWithoutWhatCameBeforeIt(t *testing.T) {
	d := conform(t, 150, weather{policy: placement.RelocateAll}, weather{policy: placement.AdaptiveMoveOnly, hints: true})
	if d.judged.After < 5000 || d.Moves < 500 {
		t.Error("the test is vacuous")
	}
}

func TestConformanceC6CopiesAreEqualAtRestAndPushesAddUp(t *testing.T) {
	d := conform(t, 240,
		weather{policy: placement.Adaptive, async: true, pauses: true}, weather{policy: placement.ReplicateAll, async: true},
		weather{policy: placement.NonUniform, async: true}, weather{policy: restless.Policy{}, async: true, pauses: true})
	if d.stats.Copies < 2000 || d.RefreshFlight < 500 || d.DirtyDrop < 50 {
		t.Error("the test is vacuous")
	}
}

// Whatever record is lost, once, storms notice: so they would notice if the
// protocol itself let one go. Where keys move, a lost update comes with the key
// after all, because the replica keeps it until it is taken: hence the policy.
// A refresh or ack that another one follows may be lost, so of them some must
// be noticed.
func TestConformanceC6ALostRecordIsNoticed(t *testing.T) {
	for kind := wire.Pull; kind <= wire.Drained; kind++ {
		t.Run(kind.String(), func(t *testing.T) {
			enough, most := 5, 0
			if kind == wire.Refresh || kind == wire.Ack {
				enough, most = 40, 39
			}
			w := weather{nodes: 3, policy: placement.AdaptiveReplicateOnly}
			if kind == wire.Localize || kind >= wire.Transfer {
				w.policy = placement.RelocateAll
			}
			lost, passed := 0, 0
			for seed := uint64(1); seed <= 2000 && lost < enough; seed++ {
				w.lose = kind
				s := newStorm(seed, w)
				err := s.run()
				if s.lose == kind {
					continue // none was lost
				}
				if lost++; err == nil {
					passed++
				}
			}
			if passed > most {
				t.Errorf("%d of %d storms pass with a %v lost, want at most %d", passed, lost, kind, most)
			}
			if lost < enough {
				t.Errorf("%d records were lost: the test is vacuous", lost)
			}
		})
	}
}

func TestConformanceC10NoPushIsLostOrDoubledWhileKeysMoveAllTheTime(t *testing.T) {
	d := conform(t, 500,
		weather{policy: placement.RelocateAll, async: true, hints: true}, weather{policy: placement.RelocateAll, async: true},
		weather{policy: restless.Policy{}, async: true, hints: true, repeat: true})
	if d.Moves < 10_000 || d.stats.Forwards < 1000 || d.Waited < 100 || d.ThirdHop < 100 || d.Again < 1000 {
		t.Error("the test is vacuous")
	}
}

// The watch looks at every key after every step: one main copy, epochs and
// versions that grow, one move at a time, a row always somewhere.
func TestConformanceC11AKeyHasOneOwnerAndItsEpochsGrow(t *testing.T) {
	d := conform(t, 200, weather{policy: placement.RelocateAll, repeat: true, hints: true}, weather{policy: placement.Adaptive, repeat: true})
	if d.Moves < 2000 || d.Again < 1000 || d.MovesToCopy < 100 {
		t.Error("the test is vacuous")
	}
}

func TestConformanceC12RequestsTravelAFewTimesHoweverKeysMove(t *testing.T) {
	d := conform(t, 300, weather{policy: placement.RelocateAll, hints: true}, weather{policy: placement.RelocateAll, hints: true, async: true})
	all, far := 0, 0
	for i, n := range d.hops {
		all += n
		if i > 4 {
			far += n
		}
	}
	t.Logf("%d of %d requests travelled more than 4 times", far, all)
	if far*1000 > all {
		t.Errorf("%d of %d requests travelled more than 4 times, want at most one of 1000", far, all)
	}
	if all < 10_000 || d.hops[3] < 100 || d.Moves < 5000 {
		t.Error("the test is vacuous")
	}
}
