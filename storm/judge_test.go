package main

import (
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// judged is a judge of two nodes of one worker each, in one process.
func judged(t *testing.T, policy placement.Policy) *judge {
	t.Helper()
	for seed := uint64(1); ; seed++ {
		p, err := newPlan(seed, false)
		if err != nil {
			t.Fatal(err)
		}
		if p.nodes == 2 && p.perNode == 1 && p.stale[plain] == godwit.Within(1) && p.window[plain] == godwit.Eventual && p.steps() > 10 && p.eras[0].steps > 8 && !p.noHints {
			p.policy = policy
			return newJudge(p, &counts{})
		}
	}
}

// written has a worker complete its first n writes of key 0.
func (j *judge) written(worker int, n int32) {
	for i := range n {
		j.begins(worker, 0, i+1)
	}
	j.completed(worker, 0, n)
}

// At replicas, a read owes its node's writes and what its node has seen; at the
// main copy alone, everybody's. Nobody reads what was not written.
func TestReadsThatCannotBeAreFound(t *testing.T) {
	for _, c := range []struct {
		what   string
		policy placement.Policy
		reads  []float32 // by worker 0
		want   string    // empty: it may be
	}{
		{"own and the other's", placement.ReplicateAll, []float32{3, 2}, ""},
		{"own only", placement.ReplicateAll, []float32{3, 0}, ""},
		{"one of its own is missing", placement.ReplicateAll, []float32{2, 2}, "2 of worker 0, want 3"},
		{"one more than there are", placement.ReplicateAll, []float32{3, 3}, "3 of worker 1, which wrote 2"},
		{"half a push", placement.ReplicateAll, []float32{3, 1.5}, "no number of pushes"},
		{"the other's is missing at the main copy", placement.Static, []float32{3, 1}, "1 of worker 1, want 2"},
		{"all at the main copy", placement.Static, []float32{3, 2}, ""},
	} {
		j := judged(t, c.policy)
		j.written(0, 3)
		j.written(1, 2)
		err := j.read(j.reads(0, 0, moment{}, -1), c.reads)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

func TestANodeThatGoesBackIsFound(t *testing.T) {
	j := judged(t, placement.ReplicateAll)
	j.written(1, 2)
	if err := j.read(j.reads(0, 0, moment{}, -1), []float32{0, 2}); err != nil {
		t.Fatal(err)
	}
	if err := j.read(j.reads(0, 0, moment{}, -1), []float32{0, 1}); err == nil {
		t.Error("a read that goes back is taken")
	}
}

// Under a policy that has values fetched ahead, the workers of a node see what the others of it did
// later than they do, but each sees its own writes and does not go back.
func TestWorkersThatFetchAheadAreJudgedOneByOne(t *testing.T) {
	for _, c := range []struct {
		policy placement.Policy
		stale  godwit.Bound
		others bool // a read owes what the other worker of the node wrote and read
	}{
		{placement.Adaptive, godwit.Eventual, false},
		{placement.Adaptive, godwit.Within(1), true},
		{placement.AdaPM, godwit.Eventual, true},
	} {
		// It lacks a write of worker 1, or what that saw.
		for _, reads := range [][]float32{{2, 1, 4, 0}, {2, 3, 1, 0}} {
			j := judgedTwice(t, c.policy, c.stale)
			j.written(0, 2)
			j.written(1, 3)
			j.written(2, 4)
			read := func(worker int, reads ...float32) error { return j.read(j.reads(worker, 0, moment{}, -1), reads) }
			if err := read(1, 2, 3, 4, 0); err != nil {
				t.Fatal(err)
			}
			if err := read(0, reads...); (err != nil) != c.others {
				t.Errorf("%v, a bound of %v: worker 0 reads %v: %v", c.policy, c.stale, reads, err)
			}
			if read(0, 1, 3, 4, 0) == nil {
				t.Errorf("%v: a read that lacks a write of its own is taken", c.policy)
			}
			if read(1, 2, 3, 2, 0) == nil {
				t.Errorf("%v: a worker that goes back is taken", c.policy)
			}
		}
	}
}

// judgedTwice is a judge of two nodes of two workers each, with a bound of the first table.
func judgedTwice(t *testing.T, policy placement.Policy, stale godwit.Bound) *judge {
	t.Helper()
	for seed := uint64(1); ; seed++ {
		p, err := newPlan(seed, false)
		if err != nil {
			t.Fatal(err)
		}
		if p.nodes == 2 && p.perNode == 2 && !p.noHints {
			p.policy, p.stale[plain] = policy, stale
			return newJudge(p, &counts{})
		}
	}
}

// The bound of the table is 1: a read at clock c owes what was written before
// clock c - 1, and a PullAfter what was before the clock that it names.
func TestReadsBeyondTheirBoundAreFound(t *testing.T) {
	j := judged(t, placement.ReplicateAll)
	before := func(step int) float32 { return float32(j.sums[step][1][0]) }
	step := 2
	for ; before(step) == before(step-1); step++ {
		if step == j.eras[0].steps-1 {
			t.Fatal("by the plan, worker 1 writes nothing")
		}
	}
	j.written(1, int32(before(step)))
	own := j.sums[j.steps()][0][0]
	j.written(0, own)
	lacks := []float32{float32(own), before(step) - 1}
	if err := j.read(j.reads(0, 0, moment{step: step}, -1), lacks); err != nil {
		t.Errorf("within the bound: %v", err)
	}
	if err := j.read(j.reads(0, 0, moment{step: step}, step), lacks); err == nil {
		t.Error("a PullAfter that lacks a write is taken")
	}
	if err := j.read(j.reads(0, 0, moment{step: step + 1}, -1), lacks); err == nil {
		t.Error("a read beyond its bound is taken")
	}
}

func TestReadsThatFitInNoOrderAreFound(t *testing.T) {
	j := judged(t, placement.Static)
	for w := range 2 {
		j.begins(w, 0, 1)
	}
	a, b := j.reads(0, 0, moment{}, -1), j.reads(1, 0, moment{}, -1)
	if err := j.read(a, []float32{1, 0}); err != nil {
		t.Fatal(err)
	}
	if err := j.read(b, []float32{0, 1}); err != nil {
		t.Fatal(err)
	}
	if err := j.fits(); err == nil {
		t.Error("two reads of which neither came first are taken")
	}
}

func TestPushesThatAreMissingInTheEndAreFound(t *testing.T) {
	j := judged(t, placement.ReplicateAll)
	last := j.sums[j.steps()]
	row := []float32{float32(last[0][0]), float32(last[1][0])}
	if err := j.ends(0, row); err != nil {
		t.Error(err)
	}
	for _, d := range []float32{-1, 1} {
		if j.ends(0, []float32{row[0], row[1] + d}) == nil {
			t.Errorf("an end that is off by %v is taken", d)
		}
	}
}

// What was synchronized at one node is owed at another one, once that is.
func TestReadsThatLackWhatWaitSyncPromisesAreFound(t *testing.T) {
	j := judged(t, placement.ReplicateAll)
	j.written(1, 1)
	j.over(j.syncs(1))
	if err := j.read(j.reads(0, 0, moment{}, -1), []float32{0, 0}); err != nil {
		t.Errorf("before its own WaitSync: %v", err)
	}
	j.over(j.syncs(0))
	if j.read(j.reads(0, 0, moment{}, -1), []float32{0, 0}) == nil {
		t.Error("a read without what was synchronized is taken")
	}
}
