package protocol

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
)

// A value is rounded only if the request allows it, the table does, and bytes bound the network.
func TestAnAnswerIsRoundedOnlyWhereAllAllowIt(t *testing.T) {
	const exact, near = 1 + 1.0/512, 1.0
	m, err := godwit.NewModel(
		godwit.Table{Name: "trained", Rows: 8, Dim: 2, Rule: optim.SGD{LR: 1}, Init: godwit.Uniform{Lo: exact, Hi: exact}},
		godwit.Table{Name: "added", Rows: 8, Dim: 2, Init: godwit.Uniform{Lo: exact, Hi: exact}},
		godwit.Table{Name: "counted", Rows: 8, Dim: 2, Rule: optim.SGD{LR: 1}, Counts: true, Init: godwit.Uniform{Lo: exact, Hi: exact}},
		godwit.Table{Name: "bounded", Rows: 8, Dim: 2, Rule: optim.SGD{LR: 1}, Staleness: godwit.Within(1), Init: godwit.Uniform{Lo: exact, Hi: exact}},
		godwit.Table{Name: "filtered", Rows: 8, Dim: 2, Rule: optim.SGD{LR: 1}, Filters: []godwit.Filter{filter.BF16{Answers: true}}, Init: godwit.Uniform{Lo: exact, Hi: exact}},
		godwit.Table{Name: "held back", Rows: 8, Dim: 2, Rule: optim.SGD{LR: 1}, Filters: []godwit.Filter{filter.Significant{Threshold: 1}}, Init: godwit.Uniform{Lo: exact, Hi: exact}},
		godwit.Table{Name: "compressed", Rows: 8, Dim: 2, Rule: optim.SGD{LR: 1}, Filters: []godwit.Filter{filter.Compress{Method: filter.S2}}, Init: godwit.Uniform{Lo: exact, Hi: exact}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for table := range m.Tables() {
		for i := range 4 {
			rough, strained := i&1 != 0, i&2 != 0
			c := newCluster(2, m, placement.Static, false, Broken{})
			c.strained = func() bool { return strained }
			k := m.Key(table, 0)
			asker := c.nodes[1-c.homes.Home(k)]
			asker.Request(asker, &wire.Record{Kind: wire.Pull, Key: k, Op: 7, Rough: rough})
			calm(t, c)
			if len(asker.replies) != 1 {
				t.Fatalf("%d answers", len(asker.replies))
			}
			a := asker.replies[0]
			want, coding := float32(exact), wire.Raw
			if rough && strained && table == 0 {
				want, coding = near, wire.BF16
			}
			if table != 4 && (a.Vals[0] != want || a.Coding != coding) || table == 4 && a.Coding != wire.BF16 {
				t.Errorf("table %q, may be rounded: %v, strained: %v: the answer is %v of coding %d, want %v of %d", m.Table(table).Name, rough, strained, a.Vals, a.Coding, want, coding)
			}
		}
	}
}

// A wide row of which few floats changed travels without the others, unchanged.
func TestUpdatesOfFewFloatsTakeFewBytes(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 8, Dim: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		changed int
		want    wire.Coding
	}{{3, wire.Sparse}, {50, wire.Sparse}, {51, wire.Raw}, {100, wire.Raw}} {
		c, home, away := pair(t, m, placement.ReplicateAll)
		var sent []wire.Coding
		c.sent = func(_, _ godwit.NodeID, r *wire.Record) {
			if r.Kind == wire.Delta || r.Kind == wire.Refresh {
				sent = append(sent, r.Coding)
			}
		}
		push := make([]float32, 100)
		for i := range x.changed {
			push[i] = 1.0 / 3
		}
		away.Push(0, push)
		calm(t, c)
		home.Push(0, push)
		calm(t, c)
		if !slices.Equal(sent, []wire.Coding{x.want, x.want}) || !slices.Equal(home.row(0), away.row(0)) {
			t.Errorf("%d of 100 floats changed: sent as %v, want %v twice; the owner has %v, the copy %v", x.changed, sent, x.want, home.row(0), away.row(0))
		}
	}
}

// Where the way is crowded, copies of whole numbers take a byte or two for each, and are what they were.
func TestWholeNumbersTakeFewBytesWhereTheWayIsCrowded(t *testing.T) {
	first := func(x ...float32) []float32 { return append(x, 4, 5, 6, 7, 8) }
	for _, x := range []struct {
		push    []float32
		crowded bool
		want    wire.Coding
	}{
		{first(1, -2, 127), true, wire.Fixed8},
		{first(1, -2, 127), false, wire.Raw},
		{first(1, -2, 128), true, wire.Fixed16},
		{first(1, -32767, 0), true, wire.Fixed16},
		{first(1, -32768, 0), true, wire.Raw},
		{first(1, 1e9, 0), true, wire.Raw},
		{first(1, 1.5, 0), true, wire.Raw},
		{first(1, float32(math.NaN()), float32(math.Inf(1))), true, wire.Raw},
		{append(first(1, 2, 3), make([]float32, 20)...), true, wire.Fixed8 | wire.Sparse},
		{append([]float32{1, 2}, make([]float32, 20)...), true, wire.Sparse},
		{[]float32{1, 2, 3}, true, wire.Raw},
		{[]float32{1, 2, 3, 4}, true, wire.Fixed8},
	} {
		m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 8, Dim: len(x.push)})
		if err != nil {
			t.Fatal(err)
		}
		c, home, away := pair(t, m, placement.ReplicateAll)
		c.strained = func() bool { return x.crowded }
		var sent []wire.Coding
		var frame wire.Encoder
		c.sent = func(_, _ godwit.NodeID, r *wire.Record) {
			if r.Kind != wire.Delta && r.Kind != wire.Refresh {
				return
			}
			frame.Reset(nil, 0)
			frame.Append(r)
			var d wire.Decoder
			var got wire.Record
			if err := d.Reset(frame.Frame()); err != nil {
				t.Fatal(err)
			}
			if ok, err := d.Next(&got); !ok || err != nil {
				t.Fatal(ok, err)
			}
			sent = append(sent, got.Coding)
			if !slices.EqualFunc(got.Vals, r.Vals, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
				t.Errorf("%v arrive as %v", r.Vals, got.Vals)
			}
		}
		away.Push(0, x.push)
		calm(t, c)
		if slices.Contains(x.push, float32(math.Inf(1))) {
			home.Push(0, make([]float32, len(x.push)))
		} else {
			for i := range x.push {
				x.push[i] *= -2 // and so the row is the opposite of the push
			}
			home.Push(0, x.push)
		}
		calm(t, c)
		if !slices.Equal(sent, []wire.Coding{x.want, x.want}) {
			t.Errorf("%v, crowded: %v: sent as %v, want %v twice", x.push, x.crowded, sent, x.want)
		}
	}
}

// pass delivers what is under way, and has each node make some rounds.
func (c *cluster) pass(t *testing.T, all bool) {
	t.Helper()
	for range 20 {
		for ps := c.busy(); len(ps) > 0; ps = c.busy() {
			if err := c.deliver(ps[0]); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range c.nodes {
			n.Round(n, all, false)
		}
	}
}

// copiesOf counts the updates and refreshes that are sent, by their coding.
func (c *cluster) copiesOf() map[wire.Coding]int {
	sent := map[wire.Coding]int{}
	c.sent = func(_, _ godwit.NodeID, r *wire.Record) {
		if (r.Kind == wire.Delta || r.Kind == wire.Refresh) && len(r.Vals) > 0 {
			sent[r.Coding]++
		}
	}
	return sent
}

// Updates and refreshes are rounded only if the policy and the table allow it, and the way is crowded.
func TestCopiesAreRoundedOnlyWhereAllAllowIt(t *testing.T) {
	for _, x := range []struct {
		what    string
		table   godwit.Table
		policy  placement.Policy
		crowded bool
		rounded bool
	}{
		{"sgd", godwit.Table{Rule: optim.SGD{LR: 1}}, placement.Adaptive, true, true},
		{"adagrad", godwit.Table{Rule: optim.AdaGrad{LR: 1}}, placement.Adaptive, true, true},
		{"enough room", godwit.Table{Rule: optim.SGD{LR: 1}}, placement.Adaptive, false, false},
		{"another policy", godwit.Table{Rule: optim.SGD{LR: 1}}, placement.AdaPM, true, false},
		{"a rule of sums", godwit.Table{}, placement.Adaptive, true, false},
		{"counts", godwit.Table{Rule: optim.SGD{LR: 1}, Counts: true}, placement.Adaptive, true, false},
		{"a bound", godwit.Table{Rule: optim.SGD{LR: 1}, Staleness: godwit.Within(1)}, placement.Adaptive, true, false},
		{"a filter", godwit.Table{Rule: optim.SGD{LR: 1}, Filters: []godwit.Filter{filter.Significant{Threshold: 1}}}, placement.Adaptive, true, false},
		{"a filter that loses nothing", godwit.Table{Rule: optim.SGD{LR: 1}, Filters: []godwit.Filter{filter.Compress{Method: filter.S2}}}, placement.Adaptive, true, false},
	} {
		x.table.Name, x.table.Rows, x.table.Dim = "t", 8, 2
		m, err := godwit.NewModel(x.table)
		if err != nil {
			t.Fatal(err)
		}
		c := newCluster(2, m, x.policy, false, Broken{})
		home, away := c.nodes[c.homes.Home(0)], c.nodes[1-c.homes.Home(0)]
		home.Want(home, 0)
		away.Want(away, 0)
		calm(t, c)
		c.strained = func() bool { return x.crowded }
		sent := c.copiesOf()
		away.Push(0, []float32{1.0 / 3, 1})
		c.pass(t, false)
		home.Push(0, []float32{1.0 / 3, 1})
		c.pass(t, false)
		if rounded := sent[wire.BF16] > 0; sent[wire.BF16]+sent[wire.Raw] < 2 || rounded != x.rounded || rounded && sent[wire.Raw] > 0 {
			t.Errorf("%s: sent %v, rounded: %v, want %v", x.what, sent, rounded, x.rounded)
		}
	}
}

// crowdedPair is two nodes that use a key, of which the owner has pushed a value that takes more than 8 bits, while
// ways are crowded, unless the test says that they are not.
func crowdedPair(t *testing.T, rule godwit.Rule) (c *cluster, home, away *testNode, crowded *bool) {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 8, Dim: 2, Rule: rule})
	if err != nil {
		t.Fatal(err)
	}
	c = newCluster(2, m, placement.Adaptive, false, Broken{})
	home, away = c.nodes[c.homes.Home(0)], c.nodes[1-c.homes.Home(0)]
	home.Want(home, 0)
	away.Want(away, 0)
	calm(t, c)
	is := true
	c.strained = func() bool { return is }
	home.Push(0, []float32{1.0 / 3, 1.0 / 7})
	c.pass(t, false)
	if got, want := away.row(0)[0], home.row(0)[0]; got == want || !(math.Abs(float64(got-want)) < 0.01) {
		t.Fatalf("the copy has %v, the owner %v: the test is vacuous", got, want)
	}
	return c, home, away, &is
}

// A copy that was sent rounded is exact when there is room again, or somebody waits for rounds.
func TestARoundedCopyGetsItsRowExactlyLater(t *testing.T) {
	for _, waits := range []bool{false, true} {
		c, home, away, crowded := crowdedPair(t, optim.SGD{LR: 1})
		*crowded = waits
		sent := c.copiesOf()
		c.pass(t, waits)
		if !slices.Equal(home.row(0), away.row(0)) || sent[wire.Raw] != 1 || sent[wire.BF16] != 0 {
			t.Errorf("somebody waits: %v: the owner has %v, the copy %v; sent %v, want one exact row", waits, home.row(0), away.row(0), sent)
		}
		if err := c.check(); err != nil {
			t.Error(err)
		}
	}
}

// Who waits for rounds hears that something had to stay while there is no room for an exact row.
func TestARoundedCopyKeepsWhoWaitsWhileThereIsNoRoom(t *testing.T) {
	c, home, away, crowded := crowdedPair(t, optim.SGD{LR: 1})
	*crowded = false
	room := false
	c.room = func() bool { return room }
	for _, waits := range []bool{false, true} {
		if home.mend(home, waits) != waits {
			t.Errorf("somebody waits: %v: it is not told that something stays, or is", waits)
		}
	}
	room = true
	if home.mend(home, true) {
		t.Error("something stays though there is room")
	}
	calm(t, c)
	if !slices.Equal(home.row(0), away.row(0)) {
		t.Errorf("the owner has %v, the copy %v", home.row(0), away.row(0))
	}
}

// A way that is crowded keeps no other node's copies rounded.
func TestACopyIsExactThoughTheWayToAnotherNodeIsCrowded(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 640, Dim: 2, Rule: optim.SGD{LR: 1}})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(3, m, placement.Adaptive, false, Broken{})
	var keys []godwit.Key
	for k := godwit.Key(0); k < 640; k++ {
		if c.homes.Home(k) == 0 {
			keys = append(keys, k)
		}
	}
	// The first is changed first, so that the others lie on it.
	first, both, others := keys[0], keys[1], keys[2:3*mostStay]
	home, a, b := c.nodes[0], c.nodes[1], c.nodes[2]
	for _, k := range keys[:3*mostStay] {
		home.Want(home, k)
		if k != first {
			a.Want(a, k)
		}
	}
	b.Want(b, first)
	b.Want(b, both)
	calm(t, c)
	crowded := map[godwit.NodeID]bool{1: true, 2: true}
	c.crowded = func(to godwit.NodeID) bool { return crowded[to] }
	for _, k := range append([]godwit.Key{first, both}, others...) {
		home.Push(k, []float32{1.0 / 3, 1.0 / 7})
		c.pass(t, false)
	}
	exact := func(n *testNode, k godwit.Key) bool { return slices.Equal(home.row(k), n.row(k)) }
	if exact(b, first) || exact(b, both) || exact(a, others[0]) {
		t.Fatal("the copies are not rounded")
	}
	crowded[2] = false
	for range 10 {
		c.pass(t, false)
	}
	if !exact(b, first) || !exact(b, both) {
		t.Error("copies are rounded still, as the way to another node is crowded")
	}
	if exact(a, both) || exact(a, others[0]) {
		t.Error("copies are exact at the node to which the way is crowded")
	}
	crowded[1] = false
	c.pass(t, false)
	c.pass(t, false)
	for _, k := range append(others, both) {
		if !exact(a, k) {
			t.Errorf("the copy of key %d is rounded still", k)
		}
	}
}

// A holder that rests gets its row exactly when it asks for what it lacks, also if the row did not change.
func TestARoundedCopyOfWhoRestsIsExactWhenItAsks(t *testing.T) {
	c, home, away, crowded := crowdedPair(t, optim.SGD{LR: 1})
	rests := true
	c.rests = func(n godwit.NodeID) bool { return rests && n == away.id }
	*crowded = false
	sent := c.copiesOf()
	c.pass(t, false)
	if len(sent) > 0 {
		t.Errorf("sent %v to who rests", sent)
	}
	rests = false
	c.pass(t, true)
	if !slices.Equal(home.row(0), away.row(0)) || sent[wire.Raw] != 1 {
		t.Errorf("the owner has %v, the copy %v; sent %v, want one exact row", home.row(0), away.row(0), sent)
	}
	if err := c.check(); err != nil {
		t.Error(err)
	}
}

// Where somebody waits for rounds, a row that changed is sent once.
func TestARowThatChangedIsSentOnceToWhoWaits(t *testing.T) {
	c, home, away, _ := crowdedPair(t, optim.SGD{LR: 1})
	home.Push(0, []float32{1.0 / 3, 1.0 / 7})
	sent := c.copiesOf()
	c.pass(t, true)
	if !slices.Equal(home.row(0), away.row(0)) || sent[wire.Raw] != 1 || sent[wire.BF16] != 0 {
		t.Errorf("the owner has %v, the copy %v; sent %v, want one exact row", home.row(0), away.row(0), sent)
	}
}

// A holder that gives its rounded copy up leaves nothing behind at the owner.
func TestARoundedCopyThatIsGivenUpIsForgotten(t *testing.T) {
	c, _, away, crowded := crowdedPair(t, optim.SGD{LR: 1})
	away.Unwant(away, 0)
	c.pass(t, false)
	*crowded = false
	calm(t, c)
	if err := c.check(); err != nil {
		t.Error(err)
	}
}

// Who sets a row reads it as it was set.
func TestARowThatWasSetIsExactAtWhoSetIt(t *testing.T) {
	c, home, away, _ := crowdedPair(t, optim.SGD{LR: 1})
	want := []float32{2.0 / 3, 2.0 / 7}
	away.Request(away, &wire.Record{Kind: wire.Set, Key: 0, Op: 7, Vals: want})
	c.pass(t, false)
	if len(away.replies) != 1 || !slices.Equal(away.row(0), want) || !slices.Equal(home.row(0), want) {
		t.Errorf("%d answers; the owner has %v, the copy %v, want %v", len(away.replies), home.row(0), away.row(0), want)
	}
}

// A key that moves leaves no rounded copies behind, and takes no rounded row along.
func TestAKeyMovesExactly(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 8, Dim: 2, Rule: optim.SGD{LR: 1}})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(4, m, passing{placement.Adaptive.(placement.AheadPolicy)}, false, Broken{})
	home := c.nodes[c.homes.Home(0)]
	var holders []*testNode
	for _, n := range c.nodes {
		n.Want(n, 0)
		if n != home {
			holders = append(holders, n)
		}
	}
	calm(t, c)
	c.strained = func() bool { return true }
	home.Push(0, []float32{1.0 / 3, 1.0 / 7})
	c.pass(t, false)
	want := slices.Clone(home.row(0))
	for _, n := range holders {
		if slices.Equal(n.row(0), want) {
			t.Fatal("a copy is exact: the test is vacuous")
		}
	}
	holders[2].Unwant(holders[2], 0)
	c.pass(t, false)
	owners := 0
	for _, n := range holders[:2] {
		if n.holding(0) == owner {
			owners++
		}
		if !slices.Equal(n.row(0), want) {
			t.Errorf("node %d, where the key is %v, has %v, want %v", n.id, n.holding(0), n.row(0), want)
		}
	}
	if owners != 1 {
		t.Error("the key did not move: the test is vacuous")
	}
}

// passing is a policy that hands a key to the first of its holders when another one gives its copy up.
type passing struct{ placement.AheadPolicy }

func (p passing) Decide(s placement.Situation) placement.Action {
	if s.Asked == placement.Nothing && len(s.Others) == 2 {
		return placement.Action{Verb: placement.Relocate, To: s.Others[0]}
	}
	return p.AheadPolicy.Decide(s)
}

// What rounding takes off updates is not lost: with a flush, all copies are what pushes make them without rounding.
func TestRoundedUpdatesArriveWhole(t *testing.T) {
	for _, rule := range []godwit.Rule{optim.SGD{LR: 1}, optim.AdaGrad{LR: 0.1}, optim.RowAdaGrad{LR: 0.1}} {
		c, home, away, crowded := crowdedPair(t, rule)
		sent := c.copiesOf()
		state := len(home.row(0)) - 2
		squares := []float64{1.0 / 9, 1.0 / 49}
		sum := []float64{-1.0 / 3, -1.0 / 7}
		rng := rand.New(rand.NewPCG(3, 4))
		for i := range 300 {
			push := []float32{rng.Float32() - 0.4, rng.Float32() / 7}
			for j, x := range push {
				sum[j] -= float64(x)
				squares[j] += float64(x) * float64(x)
			}
			c.nodes[i%2].Push(0, push)
			c.pass(t, false)
		}
		if sent[wire.BF16] < 250 || sent[wire.Raw] > 0 {
			t.Fatalf("%s: sent %v: the test is vacuous", rule.Name(), sent)
		}
		flush := away.BeginFlush()
		c.pass(t, true)
		*crowded = false
		calm(t, c)
		if !away.Flushed(&flush) {
			t.Errorf("%s: a flush did not end", rule.Name())
		}
		if err := c.check(); err != nil {
			t.Errorf("%s: %v", rule.Name(), err)
		}
		got := home.row(0)
		if state == 0 {
			squares = sum // and no state
		} else if state == 1 {
			squares = []float64{0, 0, (squares[0] + squares[1]) / 2}
		} else {
			squares = []float64{0, 0, squares[0], squares[1]}
		}
		for j := range got {
			if state > 0 && j < 2 {
				continue // where steps depend on their order
			}
			if math.Abs(float64(got[j])-squares[j]) > 1e-4*max(1, math.Abs(squares[j])) {
				t.Errorf("%s: the owner has %v, want %v", rule.Name(), got, squares)
			}
		}
	}
}

func TestZerosAreLeftOutIfHalfOfAVectorIsZero(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	negative := float32(math.Copysign(0, -1))
	for n := range 70 {
		for zeros := range n + 1 {
			vals := make([]float32, n)
			for i := zeros; i < n; i++ {
				vals[i] = []float32{1, -1, negative, math.SmallestNonzeroFloat32, float32(math.NaN())}[rng.IntN(5)]
			}
			rng.Shuffle(n, func(i, j int) { vals[i], vals[j] = vals[j], vals[i] })
			r := wire.Record{Vals: vals}
			left, want, coding := omitZeros(&r), n, wire.Raw
			if zeros > 8 && zeros >= n/2 {
				want, coding = n-zeros, wire.Sparse
			}
			if left != want || r.Coding != coding {
				t.Errorf("of %d floats, %d of them zero, %d are left by coding %v; want %d, %v", n, zeros, left, r.Coding, want, coding)
			}
		}
	}
}

func BenchmarkOmitZeros(b *testing.B) {
	for _, n := range []int{8, 32, 100, 500} {
		for name, every := range map[string]int{"dense": 1, "sparse": 4} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				r := wire.Record{Vals: make([]float32, n)}
				for i := 0; i < n; i += every {
					r.Vals[i] = 1
				}
				for b.Loop() {
					omitZeros(&r)
				}
			})
		}
	}
}
