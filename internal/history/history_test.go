package history

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/linear"
)

var seedFlag = flag.Uint64("seed", 0, "judge the history of this seed only")

const key = godwit.Key(7)

// A faulty is a key of one copy that few clients use, whose every operation
// takes effect at one moment between its call and its return, or, now and then,
// wrongly. What they do and see goes to both judges.
type faulty struct {
	rng     *rand.Rand
	faults  int // of 1000 operations
	sets    bool
	clients []*client
	row     []float32   // a coordinate for each client and one that nobody pushes to
	past    [][]float32 // all rows that there were
	wrong   int

	fast *History
	slow linear.History
	err  error // of the fast judge
}

type client struct {
	id      int
	op      *linear.Op // under way
	reading *Reading
	set     int
	took    bool // effect
}

func newFaulty(seed uint64, faults int, sets bool) *faulty {
	rng := rand.New(rand.NewPCG(seed, 2))
	n := 2 + rng.IntN(3)
	f := &faulty{rng: rng, faults: faults, sets: sets, row: make([]float32, n+1),
		fast: New(n, func(i int) int { return i % 2 }, func(godwit.Key) bool { return true }, false)}
	for i := range n {
		f.clients = append(f.clients, &client{id: i})
	}
	f.past = append(f.past, slices.Clone(f.row))
	return f
}

// run lets the clients do some operations, and then reads the row at rest.
func (f *faulty) run(ops int) {
	open := 0
	for ops > 0 || open > 0 {
		c := f.clients[f.rng.IntN(len(f.clients))]
		switch {
		case c.op == nil && ops > 0:
			ops--
			open++
			f.begin(c)
		case c.op != nil && !c.took:
			f.take(c)
		case c.op != nil:
			open--
			f.end(c)
		}
	}
	o := f.slow.Begin(0, 0, linear.Read, key, nil)
	f.slow.End(o, slices.Clone(f.row))
	f.judge(f.fast.Final(key, f.row))
}

func (f *faulty) judge(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *faulty) begin(c *client) {
	c.took = false
	v := make([]float32, len(f.row))
	switch x := f.rng.IntN(20); {
	case x < 2 && f.sets:
		c.set = f.fast.SetIssued(c.id, key)
		for i := range v {
			v[i] = float32(Era * c.set)
		}
		c.op = f.slow.Begin(c.id, c.id%2, linear.Set, key, v)
	case x < 10:
		f.fast.PushIssued(c.id, key)
		v[c.id] = 1
		c.op = f.slow.Begin(c.id, c.id%2, linear.Push, key, v)
	default:
		c.reading = f.fast.ReadIssued(c.id, key)
		c.op = f.slow.Begin(c.id, c.id%2, linear.Read, key, nil)
	}
}

// take lets an operation take effect: not at all, twice, or on an older row, if
// it is a faulty one.
func (f *faulty) take(c *client) {
	c.took = true
	fault := f.rng.IntN(1000) < f.faults
	if fault {
		f.wrong++
	}
	if c.op.Kind == linear.Read {
		c.op.Vals = slices.Clone(f.row)
		if fault {
			c.op.Vals = slices.Clone(f.past[f.rng.IntN(len(f.past))])
		}
		return
	}
	times := 1
	if fault {
		times = 2 * f.rng.IntN(2)
	}
	for range times {
		if c.op.Kind == linear.Set {
			f.row = slices.Clone(c.op.Vals)
		} else {
			f.row[c.id]++
		}
		f.past = append(f.past, slices.Clone(f.row))
	}
}

func (f *faulty) end(c *client) {
	switch c.op.Kind {
	case linear.Push:
		f.fast.PushComplete(c.id, key)
	case linear.Set:
		f.fast.SetComplete(key, c.set)
	default:
		f.judge(f.fast.Read(c.reading, c.op.Vals))
	}
	f.slow.End(c.op, c.op.Vals)
	c.op = nil
}

// agree judges many random histories both ways. The fast judge may miss some
// illegal ones, up to a share, but must not call a legal one illegal.
func agree(t *testing.T, seeds uint64, sets bool, missable float64) {
	first := uint64(1)
	if *seedFlag != 0 {
		first, seeds = *seedFlag, 1
	}
	legal, illegal, missed := 0, 0, 0
	for seed := first; seed < first+seeds; seed++ {
		f := newFaulty(seed, int(seed%3)*30, sets)
		f.run(24)
		slow := f.slow.Atomic(godwit.Add{})
		switch {
		case slow == nil && f.err != nil:
			t.Errorf("-seed %d: an order explains the history, the fast judge says: %v", seed, f.err)
		case slow != nil && f.wrong == 0:
			t.Errorf("-seed %d: nothing went wrong, the search says: %v", seed, slow)
		case slow == nil:
			legal++
		default:
			illegal++
			if f.err == nil {
				missed++
				t.Logf("-seed %d: the fast judge misses that %v", seed, slow)
			}
		}
	}
	t.Logf("%d legal histories, %d illegal, of which the fast judge misses %d", legal, illegal, missed)
	if float64(missed) > missable*float64(illegal) {
		t.Errorf("the fast judge misses %d of %d illegal histories, want at most a share of %v", missed, illegal, missable)
	}
	if seeds > 1 && (legal < int(seeds)/4 || illegal < int(seeds)/10) {
		t.Error("the test is vacuous")
	}
}

func TestPushesAndReadsAreJudgedAsByASearchForAnOrder(t *testing.T) { agree(t, 4000, false, 0) }

// With sets, which pushes a set overwrote can only be bounded.
func TestSetsAreJudgedAlmostAsByASearchForAnOrder(t *testing.T) { agree(t, 4000, true, 0.02) }

// The last coordinate, which nobody pushes to, is that of the last set, in reads and at the end; without one it is 0.
func TestACoordinateThatNobodyPushesToIsJudged(t *testing.T) {
	for _, single := range []bool{true, false} {
		h := New(2, func(i int) int { return i }, func(godwit.Key) bool { return single }, false)
		h.PushIssued(0, key)
		h.PushComplete(0, key)
		for _, wrong := range []float32{Era, 1} {
			if err := h.Read(h.ReadIssued(0, key), []float32{1, 0, wrong}); err == nil {
				t.Errorf("a read of %v that nobody wrote is well", wrong)
			}
			if err := h.Final(key, []float32{1, 0, wrong}); err == nil {
				t.Errorf("an end with %v that nobody wrote is well", wrong)
			}
		}
		if err := h.Read(h.ReadIssued(0, key), []float32{1, 0, 0}); err != nil {
			t.Error(err)
		}
		if err := h.Final(key, []float32{1, 0, 0}); err != nil {
			t.Error(err)
		}
		h.SetComplete(key, h.SetIssued(1, key))
		if err := h.Final(key, []float32{Era, Era, 0, Era}); err == nil {
			t.Error("an end of which a coordinate was not set is well")
		}
		if err := h.Final(key, []float32{Era, Era, Era, Era}); err != nil {
			t.Error(err)
		}
	}
}

// What a faulty run seldom or never does is judged, too: its past rows are all of one order, and what it reads of them is mostly of one push.
func TestReadsThatNoOrderExplainsAreJudged(t *testing.T) {
	h := oneCopy(false)
	a, b := h.ReadIssued(0, key), h.ReadIssued(1, key)
	h.PushIssued(0, key)
	h.PushIssued(1, key)
	for _, err := range []error{h.Read(a, []float32{1, 0, 0}), h.Read(b, []float32{0, 1, 0})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	h.PushComplete(0, key)
	h.PushComplete(1, key)
	if h.Final(key, []float32{1, 1, 0}) == nil {
		t.Error("two reads each of which lacks the other's push go unnoticed")
	}

	h = oneCopy(false)
	late := h.ReadIssued(1, key)
	h.PushIssued(0, key)
	h.PushComplete(0, key)
	h.PushIssued(1, key)
	if h.Read(late, []float32{0, 1, 0}) == nil {
		t.Error("a read goes unnoticed that has a push without the one that was complete before it")
	}

	h = oneCopy(false)
	for range 2 {
		h.SetComplete(key, h.SetIssued(0, key))
	}
	if h.Read(h.ReadIssued(1, key), []float32{Era, Era, Era}) == nil {
		t.Error("a read goes unnoticed that is of a set before the last one")
	}
}
