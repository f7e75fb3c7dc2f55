package diagnose

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// recorded returns a run of three nodes, with a sample a second.
func recorded(seconds int, change func(node, second int, s *record.Sample)) *record.Run {
	r := &record.Run{About: record.About{Policy: "adaptive"}}
	for i := range 3 {
		n := &record.Node{Header: record.Header{Workers: 2}}
		for j := range seconds {
			s := record.Sample{Time: int64(j) * 1e9, Items: int64(j) * 100, Steps: int64(j) * 10, Sent: []record.Sent{{Record: "refresh", Bytes: uint64(j) * 900}, {Record: "delta", Bytes: uint64(j) * 100}}}
			s.Process.Processor = int64(j) * 2e9
			change(i, j, &s)
			n.Samples = append(n.Samples, s)
		}
		r.Nodes = append(r.Nodes, n)
	}
	return r
}

// Only the time in which a node trained counts: loading, evaluating and waiting for the others at
// the end are not slowness.
func TestOnlyTrainingCounts(t *testing.T) {
	r := recorded(10, func(node, second int, s *record.Sample) {
		if node == 1 && second > 6 { // it ended early
			s.Items, s.Steps = 600, 60
		}
	})
	in := From(r)
	if in.Nodes[1].Seconds != 6 || in.Nodes[0].Seconds != 9 || len(Diagnose(in)) > 0 {
		t.Errorf("%+v: %+v", in.Nodes[1].Usage, Diagnose(in))
	}
	if last := Recent(r, 2*time.Second); last.Nodes[0].Seconds != 2 || len(last.Nodes) != 2 {
		t.Errorf("of the last 2 s: %+v", last.Nodes)
	}
}

// A node that is slow for a while only, as when another program runs, is none.
func TestANodeThatIsSlowForAWhileIsNotSlow(t *testing.T) {
	found := Diagnose(From(recorded(20, func(node, second int, s *record.Sample) {
		if node == 1 && second > 12 {
			s.Items = 1200 + int64(second-12)*30
		}
	})))
	if len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

func TestASlowNodeWhoseProcessorIsTakenSaysSo(t *testing.T) {
	found := Diagnose(From(recorded(10, func(node, second int, s *record.Sample) {
		if node == 2 {
			s.Items /= 2
			s.Process.Processor /= 2
		}
	})))
	if len(found) != 1 || found[0].Ill != SlowNode || found[0].Node != 2 || !strings.Contains(found[0].Text, "50 % of the others' speed") || !strings.Contains(found[0].Text, "a processor for 50 %") {
		t.Errorf("%+v", found)
	}
}

// Where nodes wait for a processor, their waits and speeds say nothing of the run.
func TestOnACrowdedMachineWaitsSayNothing(t *testing.T) {
	in := From(recorded(10, func(node, second int, s *record.Sample) {
		s.Waits = []record.Wait{{For: "answers", N: uint64(second), Time: int64(second) * 1e9}}
		s.Process.Delayed = int64(second) * 1e9
		if node == 2 {
			s.Items /= 2
		}
	}))
	for i := range in.Nodes {
		in.Nodes[i].Host = "h"
	}
	if found := Diagnose(in); !in.Crowded() || len(found) > 0 {
		t.Errorf("%v, %+v", in.Crowded(), found)
	}
	for i := range in.Nodes {
		in.Nodes[i].Delayed = 0
	}
	if found := Diagnose(in); in.Crowded() || len(found) != 2 {
		t.Errorf("with a processor each: %v, %+v", in.Crowded(), found)
	}
}

func TestRefreshesInVainAreFound(t *testing.T) {
	found := Diagnose(From(recorded(10, func(_, second int, s *record.Sample) {
		s.Waste = record.Waste{Refreshes: uint64(second) * 100, Unread: uint64(second) * 80}
		s.RoundTime, s.Most = int64(second)*4e8, 120
	})))
	if len(found) != 1 || found[0].Ill != VainRefreshes || !strings.HasPrefix(found[0].Text, "90 % of bytes are refreshes of 120 keys, and 80 %") {
		t.Errorf("%+v", found)
	}
}

// As mf was with four nodes on two processors: rounds took 5.5 % of the time, and 55 % of what they sent was in vain, which is 3 %.
func TestRefreshesInVainThatCostLittleAreNoIll(t *testing.T) {
	found := Diagnose(From(recorded(10, func(_, second int, s *record.Sample) {
		s.Waste = record.Waste{Refreshes: uint64(second) * 100, Unread: uint64(second) * 55}
		s.RoundTime, s.Most = int64(second)*11e7, 736
	})))
	if len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// Nothing, one sample and nodes that stand still are no reason to fail.
func TestARunWithoutFiguresHasNoFinding(t *testing.T) {
	still := recorded(5, func(_, _ int, s *record.Sample) { s.Items, s.Steps = 3, 3 })
	for _, r := range []*record.Run{{}, {Nodes: []*record.Node{nil, {}, {Samples: []record.Sample{{}}}}}, still} {
		if found := Diagnose(From(r)); len(found) > 0 {
			t.Errorf("%+v", found)
		}
	}
}

// What is advised is what the policy can do, whatever its parameters are.
func TestAdviceFitsThePolicy(t *testing.T) {
	for policy, want := range map[string]struct {
		hot       string
		announces bool
	}{
		"adaptive": {"announce it further ahead", true}, "adapm": {"announce it further ahead", true}, "adaptive-move-only": {"--policy adaptive", true}, "nonuniform(factor=50)": {"--policy adaptive", true},
		"static": {"--policy adaptive", false}, "static(ahead=1)": {"--policy adaptive", true}, "stale": {"--policy adaptive", false}, "stale(keep=3)": {"--policy adaptive", false},
	} {
		n := Node{Workers: 1, Usage: record.Usage{Seconds: 10, Steps: 1000, Compute: 5, Waits: map[string]float64{"answers": 5}}, Accesses: record.Accesses{Remote: 2000}, Answered: 1000,
			Missed: 2000, Hot: []trace.KeyUse{{Key: 1, Use: trace.Use{Missed: 1000}}}}
		announces := false
		for _, f := range Diagnose(Input{Policy: policy, Nodes: []Node{n}}) {
			announces = announces || f.Ill == NoIntents
			if f.Ill == HotKey && !strings.Contains(f.Advice, want.hot) {
				t.Errorf("of a hot key under %s it is advised: %s", policy, f.Advice)
			}
		}
		if announces != want.announces {
			t.Errorf("to announce keys under %s is advised: %v", policy, announces)
		}
	}
}

// The median of all numbers but one is that of the others.
func TestAMedianWithoutOne(t *testing.T) {
	numbers := []float64{1, 2, 2, 3, 5, 5, 5, 8, 9, 11}
	for n := range numbers {
		sorted := numbers[:n+1]
		for i, one := range sorted {
			want := 0.0
			if n > 0 {
				want = median(slices.Delete(slices.Clone(sorted), i, i+1))
			}
			if got := medianWithout(sorted, one); got != want {
				t.Errorf("of %v without %v: %v, want %v", sorted, one, got, want)
			}
		}
	}
}

// The least memory that was left counts, and a share of the time for which a machine waited, however many workers the node has.
func TestMemoryIsJudgedByTheWorst(t *testing.T) {
	in := From(recorded(10, func(node, second int, s *record.Sample) {
		s.Process.Available = []uint64{5e9, 1e9, 3e9}[second%3]
		if node == 1 {
			s.Process.Stalled = int64(second) * 3e7
		}
	}))
	if got := in.Nodes[0].Available; got != 1e9 {
		t.Errorf("%d bytes are left at the least, want 1e9", got)
	}
	if found := Diagnose(in); len(found) != 1 || found[0].Ill != MemoryPressure || found[0].Node != 1 || math.Abs(found[0].Figures["stalled"]-0.03) > 1e-9 {
		t.Errorf("%+v", found)
	}
}

// Garbage that is collected for a while only, as behind an evaluation, is no ill.
func TestGarbageMustBeCollectedAllTheTime(t *testing.T) {
	for begin, want := range map[int]int{0: 1, 12: 0} {
		found := Diagnose(From(recorded(20, func(node, second int, s *record.Sample) {
			if node == 1 {
				s.Process.GC = int64(max(0, second-begin)) * 1e9
			}
		})))
		if len(found) != want {
			t.Errorf("garbage is collected from second %d of 20 on: %+v", begin, found)
		}
	}
}

// Keys for which workers wait no more than for others are not named.
func TestOnlyKeysThatMakeWorkersWaitAreHot(t *testing.T) {
	n := Node{Workers: 1, Usage: record.Usage{Seconds: 10, Steps: 1000, Compute: 5, Waits: map[string]float64{"answers": 5}}, Accesses: record.Accesses{Remote: 2000}, Answered: 1000,
		Missed: 2000, Hot: []trace.KeyUse{{Key: 1, Use: trace.Use{Missed: 1500}}, {Key: 2, Use: trace.Use{Missed: 39}}}}
	found := Diagnose(Input{Policy: "adaptive", Nodes: []Node{n}})
	if len(found) == 0 || found[0].Ill != HotKey || len(found[0].Keys) != 1 || found[0].Keys[0] != 1 {
		t.Errorf("%+v", found)
	}
}

// A machine is crowded if threads waited for a processor for a fifth of the time for which they would have run.
func TestAMachineIsCrowdedFromAFifthOfTheTimeOn(t *testing.T) {
	for delayed, want := range map[float64]bool{22: false, 23: true} {
		if n := (Node{Processor: 90, Delayed: delayed}); n.Crowded() != want {
			t.Errorf("%v s without a processor and 90 with one: crowded %v", delayed, n.Crowded())
		}
	}
}

// What the nodes of a slow link wait for is said of the link. Of the others it is said what they wait for.
func TestNodesOfASlowLinkAreExcused(t *testing.T) {
	run := func(others float64) (found []Finding) {
		in := Input{Policy: "adaptive"}
		for i := range 4 {
			n := Node{Node: godwit.NodeID(i), Workers: 1, Answered: 100, Answers: map[godwit.NodeID]record.Times{}}
			n.Seconds, n.Compute, n.Items, n.Steps, n.Accesses.Remote = 10, 4, 1000, 100, 1000
			n.Waits = map[string]float64{"answers": others}
			for peer := range 4 {
				n.Answers[godwit.NodeID(peer)] = record.Times{N: 100, Sum: 100 * int64(time.Millisecond)}
			}
			if i == 1 || i == 3 {
				n.Waits["answers"] = 5
				n.Answers[godwit.NodeID(4-i)] = record.Times{N: 100, Sum: 100 * int64(20*time.Millisecond)}
			}
			in.Nodes = append(in.Nodes, n)
		}
		return Diagnose(in)
	}
	if found := run(0.1); len(found) != 1 || found[0].Ill != SlowLink || found[0].Node != 1 || found[0].Peer != 3 || found[0].Loss != 10.0/40 {
		t.Errorf("only the nodes of a slow link wait: %+v", found)
	}
	found := run(4)
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Ill == NoIntents })
	if len(found) != 2 || i < 0 || found[i].Node != 0 || math.Abs(found[i].Loss-8.0/40) > 1e-9 {
		t.Errorf("others wait, too: %+v", found)
	}
}
