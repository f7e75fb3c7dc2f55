package schedule

import (
	"cmp"
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var seed = flag.Uint64("seed", 0, "the seed of random tests; 0: another each time")

func rng(t *testing.T) *rand.Rand {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("-seed %d", s)
	return rand.New(rand.NewPCG(s, 1))
}

func TestChunksFollowFromTheStepsAlone(t *testing.T) {
	for _, steps := range []int{0, 1, 2, 1025, mostChunks - 1, mostChunks, mostChunks + 1, 5 * mostChunks, 1 << 20, 1<<20 + 1} {
		n, per := Cut(steps)
		if n > mostChunks || steps > 2*mostChunks && n < mostChunks/2 {
			t.Errorf("%d steps are %d chunks", steps, n)
		}
		sum := 0
		for c := range n {
			k := Steps(steps, c)
			if k < 1 || k > per || c < n-1 && k != per {
				t.Errorf("chunk %d of %d has %d of %d steps", c, n, k, steps)
			}
			sum += k
		}
		if sum != steps {
			t.Errorf("the chunks of %d steps have %d", steps, sum)
		}
	}
}

func TestProgressGrowsFromNoneToAllInEachRange(t *testing.T) {
	for _, n := range []int{1, 3, 7, 40} {
		for _, chunks := range []int{1, 5, 40, 1000} {
			for i := range n {
				from, to := Range(chunks, i, n)
				for c := from; c < to; c++ {
					if got, want := Progress(chunks, c, n, 0.5), (float64(c-from)+0.5)/float64(to-from); got != want {
						t.Errorf("chunk %d of %d, part %d of %d: progress %v, want %v", c, chunks, i, n, got, want)
					}
				}
			}
		}
	}
}

func TestItemsHaveEachItemOncePerEpochInAnotherOrder(t *testing.T) {
	r := rng(t)
	for _, n := range []int{1, 2, 7, 100, 1000, 12345, 2*mostItemChunks + 1} {
		for _, batch := range []int{1, 3, 64, 20000} {
			s, other := NewItems(n, batch, 3), NewItems(n, batch, 3)
			if c := s.Chunks(); c > mostItemChunks || c < min((n+batch-1)/batch, mostItemChunks/2) {
				t.Errorf("%d items by %d are %d chunks", n, batch, c)
			}
			var orders [3][]int32
			for epoch := 1; epoch <= 2; epoch++ {
				seen := make([]int, n)
				for c := range s.Chunks() {
					for step := range s.Steps(c) {
						b := s.Batch(epoch, c, step)
						if len(b) > batch || len(b) == 0 {
							t.Fatalf("%d items by %d: a batch has %d", n, batch, len(b))
						}
						orders[epoch] = append(orders[epoch], b...)
						for _, i := range b {
							seen[i]++
						}
					}
				}
				for i, k := range seen {
					if k != 1 {
						t.Fatalf("%d items by %d: item %d was trained %d times in epoch %d", n, batch, i, k, epoch)
					}
				}
			}
			// Who asks for a chunk, and after which, makes no difference.
			for range 20 {
				c := r.IntN(s.Chunks())
				if step := r.IntN(s.Steps(c)); !slices.Equal(s.Batch(2, c, step), other.Batch(2, c, step)) {
					t.Fatalf("chunk %d differs", c)
				}
				other.Batch(1, r.IntN(s.Chunks()), 0)
			}
			if n >= 100 && slices.Equal(orders[1], orders[2]) {
				t.Errorf("%d items by %d: two epochs have the same order", n, batch)
			}
		}
	}
}

func TestGroupsKeepTheirItemsAndAreSpreadEvenly(t *testing.T) {
	const n, batch = 64 * 16 * 8, 8
	s := NewItems(n, batch, 1)
	if s.groups != mostGroups {
		t.Fatalf("%d groups", s.groups)
	}
	items := func(epoch int) (of []int32) {
		for c := range s.Chunks() / mostGroups {
			for step := range s.Steps(c) {
				of = append(of, s.Batch(epoch, c, step)...)
			}
		}
		slices.Sort(of)
		return of
	}
	one := items(1)
	if !slices.Equal(one, items(2)) {
		t.Error("a group has other items in another epoch")
	}
	for i := 1; i < len(one); i++ {
		if gap := one[i] - one[i-1]; gap > 3*mostGroups {
			t.Errorf("a gap of %d items in a group of every %d-th", gap, mostGroups)
		}
	}
}

// A cluster trains the chunks of a plan in simulated time.
type cluster struct {
	t       *testing.T
	plan    Plan
	pool    *Pool
	stocks  []*Stock
	cost    func(node, worker, epoch, chunk int) float64 // time that a chunk takes
	trained map[Chunk]int
	by      map[Chunk]int // the node that trained it last
	ends    map[int]float64
	asks    int
	ahead   func(node int) int     // chunks that each worker of a node should know ahead; nil: 0
	last    []bool                 // by node: it was told that nothing else is left
	begun   func(epoch, known int) // nil, or told when a worker begins a chunk how many it knows, this one included
}

type working struct {
	at           float64
	node, worker int
	queue        []Chunk
}

func newCluster(t *testing.T, p Plan) *cluster {
	c := &cluster{t: t, plan: p, pool: NewPool(p), last: make([]bool, len(p.Workers)), trained: map[Chunk]int{}, by: map[Chunk]int{}, ends: map[int]float64{}}
	begun := c.pool.Begin()
	for node, n := range p.Workers {
		s := NewStock(n)
		s.Add(begun[node])
		c.stocks = append(c.stocks, s)
	}
	return c
}

// ask asks the leader for a node, and reports whether it leased anything.
func (c *cluster) ask(node, idle int) bool {
	if c.last[node] {
		return false
	}
	c.asks++
	ls, last, err := c.pool.Ask(node, c.stocks[node].Report(idle))
	if err != nil {
		c.t.Fatal(err)
	}
	if idle > 0 && len(ls) == 0 && !last {
		c.t.Fatalf("a worker of node %d is idle and gets nothing, and it is not told that nothing is left", node)
	}
	c.last[node] = last
	c.stocks[node].Add(ls)
	return len(ls) > 0
}

// fill gives a worker chunks ahead, one at least if there is any.
func (c *cluster) fill(w *working) {
	s, ahead := c.stocks[w.node], 0
	if c.ahead != nil {
		ahead = c.ahead(w.node)
	}
	for len(w.queue) < 200 {
		if s.Due() {
			c.ask(w.node, 0)
		}
		next, ok := s.Take(w.worker, ahead)
		if !ok && len(w.queue) == 0 && c.ask(w.node, 1) {
			continue
		}
		if !ok {
			return
		}
		w.queue = append(w.queue, next)
	}
}

// run trains all that is left of the plan. An epoch begins when the one before has ended.
func (c *cluster) run() {
	var ws []*working
	for node, n := range c.plan.Workers {
		for i := range n {
			ws = append(ws, &working{node: node, worker: i})
		}
	}
	now := 0.0
	first := c.pool.epochs[0].epoch
	for epoch := first; epoch <= c.plan.Epochs; epoch++ {
		for _, w := range ws {
			w.at = now
		}
		for {
			slices.SortStableFunc(ws, func(a, b *working) int { return cmp.Compare(a.at, b.at) })
			var w *working
			for _, x := range ws {
				c.fill(x)
				if len(x.queue) > 0 && x.queue[0].Epoch == epoch {
					w = x
					break
				}
			}
			if w == nil {
				break
			}
			x := w.queue[0]
			if c.begun != nil {
				c.begun(x.Epoch, len(w.queue))
			}
			w.queue = w.queue[1:]
			w.at += c.cost(w.node, w.worker, x.Epoch, x.Chunk)
			c.trained[Chunk{Epoch: x.Epoch, Chunk: x.Chunk}]++
			c.by[Chunk{Epoch: x.Epoch, Chunk: x.Chunk}] = w.node
			c.stocks[w.node].Finish(w.worker, x)
			now = max(now, w.at)
		}
		c.ends[epoch] = now
	}
}

func (c *cluster) check() {
	c.t.Helper()
	for e := 1; e <= c.plan.Epochs; e++ {
		for k := range c.plan.Chunks {
			if n := c.trained[Chunk{Epoch: e, Chunk: k}]; n != 1 {
				c.t.Fatalf("chunk %d of epoch %d was trained %d times", k, e, n)
			}
		}
	}
}

func TestASlowNodeDoesNotHoldUpTheEpoch(t *testing.T) {
	for _, ahead := range []int{0, 10, 1 << 20} {
		for _, workers := range []int{1, 2, 4} {
			for _, chunks := range []int{500, 1000} {
				c := newCluster(t, Plan{Chunks: chunks, Epochs: 3, Workers: []int{workers, workers, workers, workers}})
				c.cost = func(node, _, _, _ int) float64 {
					if node == 2 {
						return 2
					}
					return 1
				}
				c.ahead = func(node int) int { return ahead / int(c.cost(node, 0, 0, 0)) }
				c.run()
				c.check()
				ideal := float64(chunks) / (3.5 * float64(workers))
				static := 2 * math.Ceil(float64(chunks)/4/float64(workers))
				begin := 0.0
				for e := 1; e <= 3; e++ {
					took := c.ends[e] - begin
					begin = c.ends[e]
					t.Logf("%d workers, %d chunks, %d ahead, epoch %d: %.0f, ideal %.0f, cut in advance %.0f; %d asks", workers, chunks, ahead, e, took, ideal, static, c.asks)
					if took > 1.1*ideal {
						t.Errorf("%d workers a node that look %d chunks ahead: epoch %d takes %.1f, the ideal is %.1f", workers, ahead, e, took, ideal)
					}
				}
				if most := 3 * 40 * 4 * workers; c.asks > most {
					t.Errorf("%d asks for 3 epochs, want at most %d", c.asks, most)
				}
			}
		}
	}
}

// Workers that should know 10 chunks ahead do, but for those that begin the last of an epoch: what they know less than 10 of
// is a hundredth of an epoch; and of the first one none, as the next follows at once.
func TestWorkersKnowAsManyChunksAheadAsTheyShould(t *testing.T) {
	few := func(ahead int) (n int) {
		c := newCluster(t, Plan{Chunks: 1600, Epochs: 3, Workers: []int{4, 4, 4, 4}})
		r := rng(t)
		c.cost = func(int, int, int, int) float64 { return 0.9 + 0.2*r.Float64() }
		c.ahead = func(int) int { return ahead }
		c.begun = func(epoch, known int) {
			if epoch < 3 && known < 10 {
				n++
			}
		}
		c.run()
		c.check()
		return n
	}
	without, with := few(0), few(10)
	t.Logf("of 3200 chunks, %d begin where fewer than 10 are known; %d if workers look 10 ahead", without, with)
	if without < 300 || with > 300 {
		t.Errorf("of 3200 chunks, %d begin where fewer than 10 are known, and %d if workers look 10 ahead", without, with)
	}
}

func TestNodesOfEqualSpeedKeepTheirOwnChunks(t *testing.T) {
	c := newCluster(t, Plan{Chunks: 1000, Epochs: 3, Workers: []int{2, 2, 2, 2}})
	r := rng(t)
	c.cost = func(int, int, int, int) float64 { return 0.95 + 0.1*r.Float64() }
	c.run()
	c.check()
	foreign := 0
	for x, node := range c.by {
		if from, to := Range(1000, node, 4); x.Chunk < from || x.Chunk >= to {
			foreign++
		}
	}
	if foreign > 3*1000/50 {
		t.Errorf("%d of 3000 chunks were trained by another node than their own", foreign)
	}
}

func TestEveryChunkIsTrainedOnceWhateverTheSpeeds(t *testing.T) {
	r := rng(t)
	for range 200 {
		workers := make([]int, 1+r.IntN(6))
		speeds := make([]float64, len(workers))
		for i := range workers {
			workers[i], speeds[i] = 1+r.IntN(4), math.Exp(3*r.Float64())
		}
		c := newCluster(t, Plan{Chunks: r.IntN(200), Epochs: 1 + r.IntN(4), Workers: workers})
		c.cost = func(node, _, _, _ int) float64 { return speeds[node] * r.ExpFloat64() }
		c.ahead = func(int) int { return int(r.ExpFloat64() * 10) }
		c.run()
		c.check()
	}
}

func TestARunGoesOnAtAPositionWithOtherNodes(t *testing.T) {
	r := rng(t)
	for range 100 {
		chunks := 1 + r.IntN(100)
		at := Position{First: 2, Epochs: []Epoch{{Epoch: 2}, {Epoch: 3}}}
		done, under := map[Chunk]bool{}, map[Chunk]int{}
		for i := range at.Epochs {
			e := &at.Epochs[i]
			var cs []int
			for k := range chunks {
				switch r.IntN(3 + 3*i) {
				case 0:
					cs = append(cs, k)
					done[Chunk{Epoch: e.Epoch, Chunk: k}] = true
				case 1:
					e.Under = append(e.Under, Under{k, 1 + r.IntN(3)})
					under[Chunk{Epoch: e.Epoch, Chunk: k}] = e.Under[len(e.Under)-1].Steps
				}
			}
			e.Done = Runs(cs)
		}
		text, err := json.Marshal(at)
		if err != nil {
			t.Fatal(err)
		}
		again, err := readPosition(text, chunks)
		if err != nil || !reflect.DeepEqual(again, at) {
			t.Fatalf("%+v becomes %+v, %v", at, again, err)
		}
		p := NewPool(Plan{Chunks: chunks, Epochs: 4, Workers: []int{1, 1 + r.IntN(3)}, At: again})
		left := map[Chunk]bool{}
		for e := 2; e <= 4; e++ {
			for k := range chunks {
				if c := (Chunk{Epoch: e, Chunk: k}); !done[c] {
					left[c] = true
				}
			}
		}
		var leased [2][]Lease
		for asks := 0; len(left) > 0 || len(leased[0])+len(leased[1]) > 0; asks++ {
			if asks > 10*3*chunks+100 {
				t.Fatalf("%d chunks are never leased", len(left))
			}
			node := r.IntN(2)
			var rep Report
			if len(leased[node]) > 0 {
				rep.Finished, leased[node] = leased[node][:1], leased[node][1:]
			} else {
				rep.Idle = 1
			}
			ls, _, err := p.Ask(node, rep)
			if err != nil {
				t.Fatal(err)
			}
			leased[node] = append(leased[node], ls...)
			for _, l := range ls {
				for c := l.From; c < l.To; c++ {
					key := Chunk{Epoch: l.Epoch, Chunk: c}
					if !left[key] {
						t.Fatalf("chunk %v is leased, which is finished or was leased before", key)
					}
					delete(left, key)
					want, got := under[key], 0
					if c == l.From {
						got = l.Skip
					}
					if got != want {
						t.Fatalf("chunk %v is leased with %d steps done, want %d", key, got, want)
					}
				}
			}
		}
	}
}

// A position of a program that divided epochs into other chunks is refused, unless nothing is trained of an epoch.
func TestAPositionOfAnotherDivisionIsRefused(t *testing.T) {
	some := []Run{{0, 1}}
	for _, c := range []struct {
		of     int
		done   []Run
		chunks int
		want   string
	}{
		{of: 7, done: some, chunks: 7},
		{of: 7, done: some, chunks: 8, want: "epoch 3 was divided into 7 chunks, and is now divided into 8"},
		{of: 7, chunks: 8},
		{done: some, chunks: formerChunks},
		{done: some, chunks: formerChunks + 1, want: "epoch 3 was divided into 1024 chunks, and is now divided into 1025"},
	} {
		err := Position{First: 3, Epochs: []Epoch{{Epoch: 3, Chunks: c.of, Done: c.done}}}.CheckDivision(c.chunks)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	m, err := Merge(Position{First: 1}, Position{First: 1, Epochs: []Epoch{{Epoch: 1, Done: some}}}, Position{First: 1, Epochs: []Epoch{{Epoch: 1, Chunks: 9, Done: []Run{{2, 3}}}}})
	if err != nil || m.Epochs[0].Chunks != 9 {
		t.Errorf("positions of 9 chunks are together %+v, %v", m, err)
	}
}

// What a node begins with is about a quarter of its share, from the begin of its range, and nobody else's.
func TestNodesBeginWithAPartOfTheirShare(t *testing.T) {
	const chunks = 1200
	for _, workers := range [][]int{{1, 1}, {2, 2, 2, 2}, {1, 3}, {4, 1, 1}} {
		p := NewPool(Plan{Chunks: chunks, Epochs: 2, Workers: workers})
		all := 0
		for _, n := range workers {
			all += n
		}
		taken := map[int]bool{}
		for node, ls := range p.Begin() {
			got := 0
			for _, l := range ls {
				got += l.To - l.From
				for c := l.From; c < l.To; c++ {
					if l.Epoch != 1 || taken[c] {
						t.Fatalf("%v: node %d begins with chunk %d of epoch %d, which another has", workers, node, c, l.Epoch)
					}
					taken[c] = true
				}
			}
			want := chunks * workers[node] / (4 * all)
			if from, _ := Range(chunks, node, len(workers)); ls[0].From != from || got < want-2 || got > want+2 {
				t.Errorf("%v: node %d begins with %d chunks, from %d on; want %d, from %d", workers, node, got, ls[0].From, want, from)
			}
			if got, _, err := p.Ask(node, Report{Finished: ls}); err != nil || len(got) == 0 {
				t.Errorf("%v: node %d finished what it began with, and gets %v, %v", workers, node, got, err)
			}
		}
	}
	if ls := NewPool(Plan{Chunks: 3, Epochs: 1, Workers: []int{2, 2, 2, 2}}).Begin(); len(ls[0])+len(ls[1])+len(ls[2]) != 3 || len(ls[3]) != 0 {
		t.Errorf("with three chunks, four nodes begin with %v, want one for each, and none for the last", ls)
	}
	// A run that goes on: of the epoch where it begins, and without what is trained.
	at := Position{First: 3, Epochs: []Epoch{{Epoch: 3, Done: []Run{{0, 10}}, Under: []Under{{10, 2}}}}}
	if ls := NewPool(Plan{Chunks: 40, Epochs: 4, Workers: []int{1, 1}, At: at}).Begin(); len(ls[0]) != 1 || ls[0][0] != (Lease{Epoch: 3, Run: Run{10, 13}, Skip: 2}) {
		t.Errorf("a run goes on with %v, want chunks 10 … 12 of epoch 3, of the first all but 2 steps", ls[0])
	}
}

// A node is told that nothing else is left as soon as that is so, also with its last leases, and not before.
func TestANodeIsToldThatNothingElseIsLeft(t *testing.T) {
	p := NewPool(Plan{Chunks: 4, Epochs: 2, Workers: []int{1, 1}})
	var of [2]int // by epoch, so many chunks
	for range 20 {
		ls, last, err := p.Ask(0, Report{Idle: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range ls {
			of[l.Epoch-1] += l.To - l.From
		}
		if all := of[1] == 4; last != all {
			t.Fatalf("after %d and %d of 4 chunks of the two epochs, nothing else is left: %v", of[0], of[1], last)
		}
		if last {
			if ls, last, _ := p.Ask(1, Report{}); len(ls) > 0 || !last {
				t.Errorf("the other node gets %v, the last: %v; want nothing", ls, last)
			}
			return
		}
	}
	t.Errorf("a node that is idle got %v of 4 chunks of each epoch", of)
}

func TestReportsOfWhatWasNotLeasedAreRefused(t *testing.T) {
	p := NewPool(Plan{Chunks: 10, Epochs: 2, Workers: []int{1, 1}})
	ls, _, err := p.Ask(0, Report{})
	if err != nil || len(ls) == 0 {
		t.Fatal(ls, err)
	}
	for _, l := range []Lease{{Epoch: 1, Run: Run{9, 10}}, {Epoch: 7, Run: Run{0, 1}}, {Epoch: 1, Run: Run{-1, 0}}, {Epoch: 1, Run: Run{0, 99}}} {
		if _, _, err := p.Ask(0, Report{Finished: []Lease{l}}); err == nil {
			t.Errorf("%+v was taken", l)
		}
	}
	if _, _, err := p.Ask(1, Report{Finished: ls[:1]}); err == nil {
		t.Error("a node finished what another one has leased")
	}
	if _, _, err := p.Ask(0, Report{Finished: ls}); err != nil {
		t.Error(err)
	}
	if _, _, err := p.Ask(0, Report{Finished: ls}); err == nil {
		t.Error("chunks were finished twice")
	}
}

func TestPositionsOfNodesGoTogether(t *testing.T) {
	a := Position{First: 3, Epochs: []Epoch{{Epoch: 2, Done: []Run{{5, 6}}}, {Epoch: 3, Done: []Run{{0, 2}, {7, 8}}, Under: []Under{{9, 4}}, LossBits: math.Float64bits(1.5), Examples: 10}}}
	b := Position{First: 4, Epochs: []Epoch{{Epoch: 3, Done: []Run{{2, 7}}, LossBits: math.Float64bits(2), Examples: 5}, {Epoch: 4, Under: []Under{{0, 1}}}}}
	both, err := Merge(a, b)
	got, want := both.Whole(), Position{First: 3, Epochs: []Epoch{{Epoch: 3, Done: []Run{{0, 8}}, Under: []Under{{9, 4}}, LossBits: math.Float64bits(3.5), Examples: 15}, {Epoch: 4, Under: []Under{{0, 1}}}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	// A node that has begun the next epoch says what it has finished of the last one.
	if both, err = Merge(b); err != nil || !reflect.DeepEqual(both, b) {
		t.Errorf("%+v, %v, want %+v", both, err, b)
	}
	if _, err := Merge(a, a); err == nil {
		t.Error("two nodes trained the same chunks, and that is no error")
	}
	// A run that began with chunks under way has finished one and gone on with another.
	begin := Position{Epochs: []Epoch{{Epoch: 2, Done: []Run{{1, 2}}}, {Epoch: 3, Under: []Under{{0, 1}, {1, 2}, {2, 3}}}}}
	since := Position{First: 3, Epochs: []Epoch{{Epoch: 3, Done: []Run{{0, 1}}, Under: []Under{{1, 5}}}}}
	both, err = Merge(begin, since)
	got = both.Whole()
	want = Position{First: 3, Epochs: []Epoch{{Epoch: 3, Done: []Run{{0, 1}}, Under: []Under{{1, 5}, {2, 3}}}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if both, err = Merge(since, begin); err != nil || !reflect.DeepEqual(both.Whole(), want) {
		t.Errorf("in another order: %+v, %v, want %+v", both.Whole(), err, want)
	}
}

// readPosition reads a position as JSON, and checks it.
func readPosition(text []byte, chunks int) (p Position, err error) {
	if err = json.Unmarshal(text, &p); err != nil {
		return p, err
	}
	return p, p.Check(chunks)
}

func FuzzReadPosition(f *testing.F) {
	p := Position{First: 3, Epochs: []Epoch{{Epoch: 3, Done: []Run{{0, 2}}, Under: []Under{{4, 1}}}}}
	text, _ := json.Marshal(p)
	f.Add(text, 10)
	f.Add([]byte(`{"first":1,"epochs":[{"epoch":1,"done":[{"from":5,"to":2}]}]}`), 3)
	f.Fuzz(func(t *testing.T, text []byte, chunks int) {
		if chunks < 0 || chunks > 1<<12 {
			return
		}
		p, err := readPosition(text, chunks)
		if err != nil || p.First > 1<<20 {
			return
		}
		q := NewPool(Plan{Chunks: chunks, Epochs: 1, Workers: []int{1}, At: p})
		if _, _, err := q.Ask(0, Report{Idle: 1}); err != nil {
			t.Error(err)
		}
	})
}

// asks asks for a node that has finished everything it had leased, or nothing.
func asks(t *testing.T, p *Pool, node int, done []Lease) []Lease {
	t.Helper()
	ls, _, err := p.Ask(node, Report{Finished: done, Idle: 1})
	if err != nil {
		t.Fatal(err)
	}
	return ls
}

// Node 1 is much slower than node 0. L5 refuses it the last chunks, and it goes on with the next epoch for good (L6).
func TestANodeThatIsTooSlowGoesOnWithTheNextEpoch(t *testing.T) {
	p := NewPool(Plan{Chunks: 64, Epochs: 2, Workers: []int{1, 1}})
	a := p.epochs[0]
	a.free, a.left, a.done, a.out = [][]Run{nil, {{63, 64}}}, 1, []int{50, 1}, []int{1, 0}
	if ls := asks(t, p, 1, nil); len(ls) == 0 || ls[0].Epoch != 2 {
		t.Fatalf("node 1 gets %v, though node 0 would be through with that first", ls)
	}
	a.out[0] = 0 // nobody else is at work in epoch 1 any more
	for _, l := range asks(t, p, 1, nil) {
		if l.Epoch != 2 {
			t.Errorf("node 1 gets %v behind chunks of epoch 2", l)
		}
	}
	a.out[0], a.gone[0] = 1, true
	if p.slow(a, 1) {
		t.Error("node 1 is refused a chunk because of a node that gets none either (L7)")
	}
	if a.out[0], a.gone[0] = 0, false; p.slow(a, 1) {
		t.Error("node 1 is refused a chunk because of a node that has none")
	}
	// Node 0 is three times as fast. When node 1 is through with the last chunk, node 0 would be with it, behind the one that it has begun.
	a.pace, a.done, a.out, a.left = []float64{0, 0}, []int{29, 10}, []int{1, 0}, 1
	if p.slow(a, 1) {
		t.Error("node 1 is refused a chunk that it would finish by the time that node 0 needs for it behind its own")
	}
}

func TestAWorkerThatIsIdleGetsAChunkWhateverTheNodeHas(t *testing.T) {
	p := NewPool(Plan{Chunks: 10, Epochs: 1, Workers: []int{2, 2}})
	a := p.epochs[0]
	a.free, a.left, a.out = [][]Run{{{4, 5}}, nil}, 1, []int{8, 1} // one worker of node 0 has taken all that the node has leased
	if ls := asks(t, p, 0, nil); len(ls) == 0 {
		t.Error("a worker has nothing to do, a chunk is free, and its node gets none")
	}
}

func TestANodeThatFinishedNothingOfAnEpochTakesPartInTheNext(t *testing.T) {
	p := NewPool(Plan{Chunks: mostChunks, Epochs: 2, Workers: []int{1, 1}})
	for ls := asks(t, p, 0, nil); ls[0].Epoch == 1; {
		ls = asks(t, p, 0, ls)
	}
	got := 0
	for _, l := range asks(t, p, 1, nil) {
		got += l.To - l.From
	}
	if got < mostChunks/256 {
		t.Errorf("a node that finished nothing of the epoch before gets %d of %d chunks", got, mostChunks)
	}
}

func TestTheLastChunksGoToAsManyWorkers(t *testing.T) {
	p := NewPool(Plan{Chunks: 8, Epochs: 1, Workers: []int{1, 1, 1, 1}})
	a := p.epochs[0]
	a.free, a.left = [][]Run{{{0, 2}}, {{3, 4}}, nil, nil}, 3
	if ls := asks(t, p, 0, nil); len(ls) != 1 || ls[0].Run != (Run{0, 1}) {
		t.Errorf("of the last 3 chunks of 4 nodes, one with a worker gets %v, want one chunk", ls)
	}
}

func TestOnlyTheFirstChunkOfALeaseHasStepsThatAreDone(t *testing.T) {
	s := NewStock(1)
	s.Add([]Lease{{Epoch: 1, Run: Run{0, 2}, Skip: 3}, {Epoch: 1, Run: Run{5, 6}, Skip: 1}})
	for _, want := range []Chunk{{Epoch: 1, Chunk: 0, Skip: 3}, {Epoch: 1, Chunk: 1}, {Epoch: 1, Chunk: 5, Skip: 1}} {
		if c, ok := s.Take(0, 0); !ok || c != want {
			t.Errorf("the next chunk is %+v (%v), want %+v", c, ok, want)
		}
	}
}

func TestANodeThatGotNothingDoesNotAskAgainAtOnce(t *testing.T) {
	s := NewStock(1)
	if !s.Due() {
		t.Error("a node never asks for its first chunks")
	}
	s.Report(1)
	if s.Add(nil); s.Due() {
		t.Error("a node that got nothing asks again, though it has nothing to tell")
	}
}

func TestPositionsThatCannotBeAreRefused(t *testing.T) {
	for what, e := range map[string]Epoch{
		"a chunk is finished and under way":  {Done: []Run{{0, 2}}, Under: []Under{{1, 1}}},
		"a chunk is finished twice":          {Done: []Run{{0, 2}, {1, 3}}},
		"a chunk is behind the last":         {Done: []Run{{9, 11}}},
		"there are more chunks than numbers": {Parts: 2, Stages: math.MaxInt},
		"a stage is of no parts":             {Stages: 1},
		"a node divided data into no parts":  {Nodes: 1},
		"examples are less than none":        {Examples: -1},
		"parts are less than none":           {Parts: -1},
		"nodes are less than none":           {Parts: 1, Nodes: -1},
		"stages are less than none":          {Parts: 1, Stages: -1},
		"a chunk is under way twice":         {Under: []Under{{3, 1}, {3, 2}}},
		"chunks under way are in no order":   {Under: []Under{{4, 1}, {3, 1}}},
		"a chunk under way is the one past":  {Under: []Under{{10, 1}}},
		"a chunk under way has no steps":     {Under: []Under{{3, 0}}},
	} {
		e.Epoch = 1
		if err := (Position{First: 1, Epochs: []Epoch{e}}).Check(10); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestTheStageIsTheFirstThatIsNotFinished(t *testing.T) {
	for _, c := range []struct {
		done []Run
		want int
	}{{nil, 0}, {[]Run{{0, 1}}, 0}, {[]Run{{0, 2}}, 1}, {[]Run{{0, 3}, {4, 6}}, 1}, {[]Run{{2, 4}}, 0}, {[]Run{{0, 6}}, 3}} {
		if got := (&Epoch{Parts: 2, Stages: 3, Done: c.done}).Stage(); got != c.want {
			t.Errorf("with %v finished, the stage is %d, want %d", c.done, got, c.want)
		}
	}
	for stages, want := range map[int]int{0: 0, 1: 1} {
		if got := (&Epoch{Parts: 2, Stages: stages, Done: []Run{{0, 2}}}).Stage(); got != want {
			t.Errorf("with all finished of %d stages, the stage is %d, want %d", stages, got, want)
		}
	}
}

// Chunks are numbered by stage, and in a stage by part.
func TestAChunkIsOfAPartAndAStage(t *testing.T) {
	for _, c := range []struct {
		chunk       Chunk
		stage, part int
	}{{Chunk{Chunk: 7, Parts: 3}, 0, 7}, {Chunk{Chunk: 7, Parts: 3, Stages: 4}, 2, 1}} {
		if s, p := c.chunk.Stage(), c.chunk.Part(); s != c.stage || p != c.part {
			t.Errorf("%+v is of stage %d and part %d, want %d and %d", c.chunk, s, p, c.stage, c.part)
		}
	}
}

func TestStepsAreThoseOfTheChunkUnderWay(t *testing.T) {
	e := Epoch{Under: []Under{{3, 2}, {5, 7}}}
	if e.Steps(3) != 2 || e.Steps(4) != 0 || e.Steps(5) != 7 {
		t.Errorf("steps of chunks 3, 4, 5: %d, %d, %d; want 2, 0, 7", e.Steps(3), e.Steps(4), e.Steps(5))
	}
}

func TestPositionsOfAnEpochThatWasDividedInTwoWaysDoNotGoTogether(t *testing.T) {
	of := func(e Epoch) Position { e.Epoch = 1; return Position{First: 1, Epochs: []Epoch{e}} }
	base := Epoch{Parts: 4, Nodes: 2, Stages: 3}
	for _, e := range []Epoch{{Parts: 5, Nodes: 2, Stages: 3}, {Parts: 4, Nodes: 1, Stages: 3}, {Parts: 4, Nodes: 2, Stages: 2}} {
		if _, err := Merge(of(base), of(e)); err == nil || !strings.Contains(err.Error(), "epoch 1 is divided") {
			t.Errorf("%+v and %+v: %v", base, e, err)
		}
	}
}

func TestARunThatGoesOnInItsLastEpochEndsWithIt(t *testing.T) {
	p := NewPool(Plan{Chunks: 4, Epochs: 3, Workers: []int{1}, At: Position{First: 3, Epochs: []Epoch{{Epoch: 3, Done: []Run{{0, 3}}}}}})
	ls, last, err := p.Ask(0, Report{Idle: 1})
	if err != nil || len(ls) != 1 || ls[0] != (Lease{Epoch: 3, Run: Run{3, 4}}) || !last {
		t.Errorf("the node gets %v, the last: %v, %v; want the last chunk of epoch 3", ls, last, err)
	}
	if ls, last, err = p.Ask(0, Report{Finished: ls, Idle: 1}); err != nil || len(ls) > 0 || !last {
		t.Errorf("behind the last chunk, the node gets %v, the last: %v, %v; want nothing", ls, last, err)
	}
}

func TestWhoTakesOfAnothersChunksLeavesHalf(t *testing.T) {
	p := NewPool(Plan{Chunks: 128, Epochs: 1, Workers: []int{1, 1}, At: Position{First: 1, Epochs: []Epoch{{Epoch: 1, Under: []Under{{80, 1}}}}}})
	a := p.epochs[0]
	a.free[0], a.left = nil, 64 // 64 … 127 are node 1's
	for _, want := range []Run{{96, 128}, {80, 96}, {76, 80}} {
		n := 100
		if want.To == 80 {
			n = 4
		}
		if l := p.lease(a, 0, n); l.Run != want || l.Skip != a.skip[want.From] {
			t.Errorf("node 0 takes %+v, want %v", l, want)
		}
	}
}

func TestANodeCountsInTheNextEpochByWhatItFinished(t *testing.T) {
	p := NewPool(Plan{Chunks: 800, Epochs: 2, Workers: []int{1, 1}})
	for node, n := range []int{600, 200} {
		for _, l := range p.leases(p.epochs[0], node, n) {
			if err := p.finish(node, l); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got [2]int
	for node := range got {
		for _, l := range asks(t, p, node, nil) {
			got[node] += l.To - l.From
		}
	}
	if got[0] < 4*got[1] { // of equals, the first would get twice as many as the second
		t.Errorf("a node that was three times as fast as the other gets %d chunks, the other %d", got[0], got[1])
	}
}

func TestANodeThatBeginsWithLeasesAsksWhenHalfIsFinished(t *testing.T) {
	s := NewStock(1)
	s.Add([]Lease{{Epoch: 1, Run: Run{0, 4}}})
	for i, due := range []bool{false, false, true} {
		if s.Due() != due {
			t.Errorf("with %d of 4 chunks finished, it is time to ask: %v", i, !due)
		}
		c, _ := s.Take(0, 0)
		s.Finish(0, c)
	}
}

func TestWhoHasNoChunksTakesTheLastOfWhoIsFurthestBehind(t *testing.T) {
	p := NewPool(Plan{Chunks: 300, Epochs: 1, Workers: []int{1, 1, 1}})
	a := p.epochs[0]
	a.free[0] = nil
	a.free[1] = []Run{{150, 200}}
	a.free[2] = []Run{{260, 300}}
	a.left, a.done = 90, []int{100, 50, 10}
	if ls := asks(t, p, 0, nil); len(ls) == 0 || ls[0].To != 300 || ls[0].From <= 260 {
		t.Errorf("node 0 gets %v, want the last chunks of node 2, which is slower than node 1", ls)
	}
}
