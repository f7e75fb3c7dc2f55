package protocol

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/history"
	"github.com/godwit-ps/godwit/internal/restless"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run the storms of this seed only")
	seedsFlag = flag.Int("seeds", 20, "storms a configuration")
)

// weather is the configuration of a storm; what it leaves open the seed says.
type weather struct {
	nodes  int
	policy placement.Policy
	hints  bool
	async  bool      // workers have several operations outstanding
	repeat bool      // some records that may come again do, much later
	lose   wire.Kind // the network loses one record of this kind; 0: none
	pauses bool      // now and then, all comes to rest and copies must be equal
	broken Broken
	idle   bool        // replicas may be idle
	learn  bool        // workers announce nothing, and nodes learn from what they do
	join   godwit.Rule // if set, that of the rows of the largest, and only these are used
}

func (w weather) String() string {
	s := fmt.Sprintf("%s/%d nodes", w.policy.Name(), w.nodes)
	if w.learn {
		s += "/learn"
	}
	if w.hints {
		s += "/hints"
	}
	if w.async {
		s += "/async"
	}
	if w.idle {
		s += "/idle"
	}
	return s
}

// A storm runs random workers on a random schedule: each step delivers one
// record, runs one sync round, or lets one worker do one thing.
type storm struct {
	weather
	c       *cluster
	rng     *rand.Rand
	history *history.History
	workers []*stormWorker
	keys    []godwit.Key
	moves   bool // call Localize
	ops     uint64
	late    []repeated
	slow    map[[2]godwit.NodeID]bool // links that mostly wait
}

type stormWorker struct {
	id      int
	n       *testNode
	left    int
	pending []*operation
	wants   []godwit.Key // intents not ended
	pushed  map[godwit.Key]float32
	flush   *flushing
}

// operation is a request under way.
type operation struct {
	op      uint64
	kind    wire.Kind
	key     godwit.Key
	reading *history.Reading
	set     int
}

// flushing is a flush under way and what the main copies contain when it ends.
type flushing struct {
	f    Flush
	want map[godwit.Key][]int
}

type repeated struct {
	r        wire.Record
	from, to godwit.NodeID
}

// The tables of a storm. Keys 64 positions apart share a place in a shard's
// small tables, so the pads bring some together.
const (
	stormA = 0   // 4 rows, plain
	stormB = 4   // 3 rows with state
	stormC = 64  // 4 longer rows with state that may lag
	stormM = 68  // 2 rows of the largest that was pushed
	stormD = 128 // 3 rows that are also set
)

var stormKeys = []godwit.Key{0, 1, 2, 3, 4, 5, 6, 64, 65, 66, 67, 68, 69, 128, 129, 130}

// relaxed reports whether a key is of a relaxed table.
func relaxed(k godwit.Key) bool { return k < stormB || stormC <= k && k < stormM }

func stormModel(workers int, join godwit.Rule) *godwit.Model {
	if join == nil {
		join = optim.Max{}
	}
	m, err := godwit.NewModel(
		godwit.Table{Name: "a", Rows: 4, Dim: workers, Relaxed: true},
		godwit.Table{Name: "b", Rows: 3, Dim: workers, Rule: counting{}},
		godwit.Table{Name: "pad", Rows: stormC - 7, Dim: 1},
		godwit.Table{Name: "c", Rows: 4, Dim: workers + 3, Rule: turned{}, Relaxed: true},
		godwit.Table{Name: "m", Rows: 2, Dim: workers + 2, Rule: join},
		godwit.Table{Name: "pad 2", Rows: stormD - stormM - 2, Dim: 1},
		godwit.Table{Name: "d", Rows: 3, Dim: workers + 1})
	if err != nil {
		panic(err)
	}
	return m
}

// counting is a rule with state: it counts the pushes of a row.
type counting struct{ godwit.Add }

func (counting) Name() string          { return "counting" }
func (counting) StateLen(int) int      { return 1 }
func (counting) InitState(s []float32) { s[0] = 0 }
func (c counting) Apply(v, s, p []float32) {
	c.Add.Apply(v, nil, p)
	s[0]++
}

// turned is a counting rule whose updates travel with the other sign, and
// whose copies may have older state: a row into which something came that was
// not packed, or twice, or whose state was overwritten, is wrong in the end.
type turned struct{ counting }

func (turned) Name() string { return "turned" }

func (turned) Pack(_, _, dv []float32)  { vec.Scale(dv, -1) }
func (turned) Merge(v, _, dv []float32) { vec.Sub(v, dv) }
func (turned) Fresh(dim int) int        { return dim }

func newStorm(seed uint64, w weather) *storm {
	rng := rand.New(rand.NewPCG(seed, 1))
	workers := 2 * w.nodes
	s := &storm{weather: w, rng: rng, moves: rng.IntN(2) == 0,
		c: newCluster(w.nodes, stormModel(workers, w.join), w.policy, w.hints, w.broken)}
	if w.idle {
		s.c.idling()
	}
	s.c.watch = &watch{c: s.c, epoch: map[godwit.Key]godwit.Epoch{}, since: map[godwit.Key]godwit.Version{}}
	hot := s.c.nodes[0].cfg.hot
	single := func(k godwit.Key) bool {
		return w.learn && !relaxed(k) || !w.policy.Everywhere(hot(k)) && w.policy.OnIntent(hot(k)) != placement.Copy
	}
	s.history = history.New(workers, func(i int) int { return i % w.nodes }, single, !w.async || !w.hints)
	s.keys = slices.Clone(stormKeys)
	rng.Shuffle(len(s.keys), func(i, j int) { s.keys[i], s.keys[j] = s.keys[j], s.keys[i] })
	s.keys = s.keys[:2+rng.IntN(len(s.keys)-1)] // the fewer, the more they meet
	if w.join != nil {
		s.keys = []godwit.Key{stormM, stormM + 1}
	}
	if rng.IntN(2) == 0 {
		odds := 2 + rng.IntN(5)
		s.c.room = func() bool {
			if rng.IntN(odds) == 0 {
				s.c.watch.rare.Full++
				return false
			}
			return true
		}
	}
	if rng.IntN(2) == 0 {
		s.c.rows = 1 + rng.IntN(2)
	}
	if rng.IntN(2) == 0 {
		odds := 2 + rng.IntN(5)
		s.c.takes = func() bool {
			ok := rng.IntN(odds) > 0
			if !ok {
				s.c.watch.rare.Stalled++
			}
			return ok
		}
	}
	if rests := rand.New(rand.NewPCG(seed, 0x4e57)); rests.IntN(2) == 0 {
		odds := 2 + rests.IntN(5)
		s.c.rests = func(godwit.NodeID) bool {
			if rests.IntN(odds) > 0 {
				return false
			}
			s.c.watch.rare.Rested++
			return true
		}
	}
	s.slow = map[[2]godwit.NodeID]bool{}
	for range rng.IntN(w.nodes + 1) {
		s.slow[[2]godwit.NodeID{godwit.NodeID(rng.IntN(w.nodes)), godwit.NodeID(rng.IntN(w.nodes))}] = true
	}
	for i := range workers {
		s.workers = append(s.workers, &stormWorker{id: i, n: s.c.nodes[i%w.nodes], left: 40, pushed: map[godwit.Key]float32{}})
	}
	for _, n := range s.c.nodes {
		for _, k := range stormKeys {
			if w.policy.Everywhere(hot(k)) {
				n.Hold(n, k)
			}
		}
	}
	return s
}

func (s *storm) run() error {
	for i := 0; ; i++ {
		if done, err := s.step(); err != nil {
			return err
		} else if done {
			break
		}
		if s.c.life != nil && s.c.life.err != nil {
			return s.c.life.err
		}
		if i%64 == 0 {
			if err := s.asks(); err != nil {
				return err
			}
		}
		if i > 100_000 {
			return fmt.Errorf("the storm does not end: %s", s.stuck())
		}
	}
	for _, w := range s.workers {
		for _, k := range w.wants {
			w.n.Unwant(w.n, k)
		}
	}
	if err := s.settle(); err != nil {
		return err
	}
	if err := s.c.check(); err != nil {
		return err
	}
	if err := s.unwanted(); err != nil {
		return err
	}
	for _, w := range s.workers {
		if err := s.flushed(w); err != nil {
			return err
		}
		if w.flush != nil {
			return fmt.Errorf("node %d: a flush never ends", w.n.id)
		}
	}
	return s.final()
}

// asks compares what nodes say of whether they have to ask for keys with a search of their rows.
func (s *storm) asks() error {
	for _, n := range s.c.nodes {
		for _, k := range s.keys {
			_, away := n.dir.Away(k)
			want := away || n.cfg.Homes.Home(k) != n.id
			if r, here := n.st.Find(k); here {
				want = stateOf(n.st.Header(r)) == frozen
			}
			if got := n.Asks(k); got != want {
				return fmt.Errorf("node %d asks for key %d: %v, want %v", n.id, k, got, want)
			}
		}
	}
	return nil
}

// settle lets everything arrive, updates that a policy holds back, too.
func (s *storm) settle() error {
	if err := s.c.settle(s.rng, 2000*s.nodes); err != nil {
		return err
	}
	rests := s.c.rests
	s.c.rests = nil
	defer func() { s.c.rests = rests }()
	for _, n := range s.c.nodes {
		n.Round(n, true, false)
		n.BeginFlush()
	}
	return s.c.settle(s.rng, 2000*s.nodes)
}

// stuck describes the requests that are not answered.
func (s *storm) stuck() string {
	var b strings.Builder
	for _, w := range s.workers {
		for _, o := range w.pending {
			fmt.Fprintf(&b, "worker %d at node %d waits for %v of key %d (home %d):", w.id, w.n.id, o.kind, o.key, s.c.homes.Home(o.key))
			for _, n := range s.c.nodes {
				fmt.Fprintf(&b, " %v", n.holding(o.key))
				if d := n.sideAt(o.key); d != nil {
					fmt.Fprintf(&b, " (%d wait)", n.waits(d))
				}
			}
			b.WriteString("\n")
		}
	}
	for _, p := range s.c.busy() {
		fmt.Fprintf(&b, "%d → %d: %d records, first %+v\n", p[0], p[1], len(s.c.pipes[p]), s.c.pipes[p][0])
	}
	return b.String()
}

// unwanted checks that nothing stays replicated that no policy wants so.
func (s *storm) unwanted() error {
	for _, n := range s.c.nodes {
		for _, k := range s.keys {
			if n.learner.Has(k) && !n.holding(k).isReplica() {
				return fmt.Errorf("node %d wishes for key %d, which is %v there", n.id, k, n.holding(k))
			}
			if n.holding(k).isReplica() && !s.policy.Everywhere(n.cfg.hot(k)) && !(s.learn && relaxed(k) && n.Holding(k).Wished) && !n.Idle(k) {
				return fmt.Errorf("key %d stays replicated at node %d and nobody wants it", k, n.id)
			}
		}
	}
	return nil
}

func (s *storm) final() error {
	for _, k := range s.keys {
		row := s.c.main(k)
		dim := s.c.model.Dim(k)
		if row == nil {
			if err := s.history.Final(k, nil); err != nil {
				return err
			}
			continue
		}
		if err := s.history.Final(k, row[:dim]); err != nil {
			return err
		}
		if state := row[dim:]; len(state) > 0 {
			if all, _ := s.history.Pushes(k); int(state[0]) != all {
				return fmt.Errorf("key %d: state counts %v pushes, there were %d", k, state[0], all)
			}
		}
	}
	return nil
}

// step does one thing.
func (s *storm) step() (done bool, err error) {
	ps := s.c.busy()
	if s.pauses && s.rng.IntN(60) == 0 {
		return false, s.pause()
	}
	switch x := s.rng.IntN(20); {
	case x < 10 && len(ps) > 0:
		p := ps[s.rng.IntN(len(ps))]
		if s.slow[p] && s.rng.IntN(20) > 0 {
			return false, nil
		}
		if s.loses(p) {
			return false, nil
		}
		s.repeatLater(p)
		return false, s.c.deliver(p)
	case x < 12:
		n := s.c.nodes[s.rng.IntN(len(s.c.nodes))]
		n.AskDue(n)
		n.Round(n, false, false)
		return false, nil
	case x == 12 && len(s.late) > 0:
		return false, s.again()
	}
	w := s.workers[s.rng.IntN(len(s.workers))]
	if err := s.answers(w); err != nil {
		return false, err
	}
	if err := s.flushed(w); err != nil {
		return false, err
	}
	outstanding := 1
	if s.async {
		outstanding = 4
	}
	if w.left > 0 && len(w.pending) < outstanding {
		w.left--
		return false, s.act(w)
	}
	return s.over(ps), nil
}

// pause lets everything that is under way arrive, and compares the copies.
func (s *storm) pause() error {
	if err := s.settle(); err != nil {
		return err
	}
	for _, k := range s.keys {
		if err := s.c.checkKey(k); err != nil {
			return fmt.Errorf("at a pause: %w", err)
		}
	}
	return nil
}

// over reports whether all workers are done.
func (s *storm) over(busy [][2]godwit.NodeID) bool {
	for _, w := range s.workers {
		if w.left > 0 || len(w.pending) > 0 {
			if len(busy) == 0 {
				for _, n := range s.c.nodes {
					n.AskDue(n)
					n.Round(n, false, false)
				}
			}
			return false
		}
	}
	return true
}

// loses drops a record if it is one to lose.
func (s *storm) loses(p [2]godwit.NodeID) bool {
	q := s.c.pipes[p]
	if q[0].Kind != s.lose || s.rng.IntN(10) > 0 {
		return false
	}
	if s.lose, s.c.pipes[p] = 0, q[1:]; len(q) == 1 {
		delete(s.c.pipes, p)
	}
	return true
}

// mayComeAgain says which records the protocol recognizes when they come a
// second time, at any later moment: those that end a move, by their epoch, and
// what owners and copies tell each other, by sequence number and version. An
// operation, its reply, an Interest and a Transfer must come once.
func mayComeAgain(k wire.Kind) bool {
	switch k {
	case wire.Claim, wire.Release, wire.Drained, wire.Delta, wire.End, wire.Refresh, wire.Ack, wire.Dropped:
		return true
	}
	return false
}

// repeatLater notes some records, to deliver them again.
func (s *storm) repeatLater(p [2]godwit.NodeID) {
	if r := s.c.pipes[p][0]; s.repeat && mayComeAgain(r.Kind) && !r.Coming && s.rng.IntN(2) == 0 {
		s.late = append(s.late, repeated{r, p[0], p[1]})
	}
}

func (s *storm) again() error {
	i := s.rng.IntN(len(s.late))
	x := s.late[i]
	s.late = slices.Delete(s.late, i, i+1)
	n := s.c.nodes[x.to]
	s.c.watch.rare.Again++
	if err := n.Step(n, x.from, &x.r); err != nil {
		return err
	}
	return s.c.watch.after(&x.r)
}

// act lets a worker do one thing.
func (s *storm) act(w *stormWorker) error {
	k := s.keys[s.rng.IntN(len(s.keys))]
	if s.learn && s.rng.IntN(4) > 0 {
		k = s.keys[int(w.n.id)%len(s.keys)] // of which the node makes most changes
	}
	switch x := s.rng.IntN(20); {
	case x < 7:
		return s.pull(w, k)
	case x < 13:
		s.push(w, k)
	case x == 13 && k >= stormD:
		s.set(w, k)
	case s.learn && x > 15:
		if w.n.Shard.learner.Has(k) {
			w.n.Used(k, uint32(s.rng.IntN(2)))
		}
	case x == 14 && s.moves && !s.learn:
		s.request(w, &operation{kind: wire.Localize, key: k}, nil)
	case x == 15 && w.flush == nil:
		s.begin(w)
	case x < 18 && !s.learn:
		w.wants = append(w.wants, k)
		w.n.Want(w.n, k)
	default:
		if len(w.wants) > 0 {
			i := s.rng.IntN(len(w.wants))
			if i%2 == 0 || !w.n.UnwantOwned(w.n, w.wants[i]) {
				w.n.Unwant(w.n, w.wants[i])
			}
			w.wants = slices.Delete(w.wants, i, i+1)
		}
	}
	return s.c.watch.key(k)
}

func (s *storm) pull(w *stormWorker, k godwit.Key) error {
	r := s.history.ReadIssued(w.id, k)
	dst := make([]float32, s.c.model.Dim(k))
	if w.n.Pull(k, dst) != Elsewhere {
		return s.history.Read(r, dst)
	}
	s.request(w, &operation{kind: wire.Pull, key: k, reading: r}, nil)
	return nil
}

func (s *storm) push(w *stormWorker, k godwit.Key) {
	p := make([]float32, s.c.model.Dim(k))
	p[w.id] = 1
	if w.pushed[k]++; k == stormM || k == stormM+1 {
		p[w.id] = w.pushed[k] // the largest of a worker's is how many there are
	}
	s.history.PushIssued(w.id, k)
	if w.n.Push(k, p) != Elsewhere {
		s.history.PushComplete(w.id, k)
		return
	}
	s.request(w, &operation{kind: wire.Push, key: k}, p)
}

func (s *storm) set(w *stormWorker, k godwit.Key) {
	if d := w.n.replicaAt(k); d != nil && (d.sent != 0 || d.unsent != none) {
		s.c.watch.rare.Sets++
	}
	j := s.history.SetIssued(w.id, k)
	v := make([]float32, s.c.model.Dim(k))
	for i := range v {
		v[i] = float32(history.Era * j)
	}
	s.request(w, &operation{kind: wire.Set, key: k, set: j}, v)
}

func (s *storm) request(w *stormWorker, o *operation, vals []float32) {
	s.ops++
	o.op = s.ops
	w.pending = append(w.pending, o)
	w.n.Request(w.n, &wire.Record{Kind: o.kind, Key: o.key, Op: o.op, Vals: vals})
	if s.learn && (o.kind == wire.Pull || o.kind == wire.Push) {
		w.n.Missed(w.n, o.key, o.kind == wire.Push, 1, 16)
	}
}

// answers takes the replies to a worker's requests that are there.
func (s *storm) answers(w *stormWorker) error {
	for i := 0; i < len(w.n.replies); {
		r := w.n.replies[i]
		j := slices.IndexFunc(w.pending, func(o *operation) bool { return o.op == r.Op })
		if j < 0 {
			i++
			continue
		}
		o := w.pending[j]
		w.pending = slices.Delete(w.pending, j, j+1)
		w.n.replies = slices.Delete(w.n.replies, i, i+1)
		switch o.kind {
		case wire.Pull:
			if err := s.history.Read(o.reading, r.Vals); err != nil {
				return err
			}
		case wire.Push:
			s.history.PushComplete(w.id, o.key)
		case wire.Set:
			s.history.SetComplete(o.key, o.set)
		}
	}
	return nil
}

// begin begins a flush of the worker's node.
func (s *storm) begin(w *stormWorker) {
	w.flush = &flushing{f: w.n.BeginFlush(), want: map[godwit.Key][]int{}}
	for _, k := range s.keys {
		if k < stormD {
			w.flush.want[k] = s.history.Completed(int(w.n.id), k)
		}
	}
}

// flushed judges a flush that has ended: the main copies have everything.
func (s *storm) flushed(w *stormWorker) error {
	if w.flush == nil || !w.n.Flushed(&w.flush.f) {
		return nil
	}
	for _, k := range s.keys {
		row := s.c.main(k)
		for i, n := range w.flush.want[k] {
			if n > 0 && (row == nil || int(row[i]) < n) {
				return fmt.Errorf("node %d flushed key %d, worker %d had pushed %d times, the main copy is %v", w.n.id, k, i, n, row)
			}
		}
	}
	w.flush = nil
	return nil
}

// rare sums what happened.
func (s *storm) rare() rare {
	r := s.c.watch.rare
	for _, n := range s.c.nodes {
		r.Waited += int(n.Stats.Waited)
	}
	return r
}

// weathers lists the configurations of policies and networks.
func weathers() []weather {
	var ws []weather
	held, _ := placement.ByName("nonuniform(threshold=2)")
	policies := []placement.Policy{restless.Policy{}, held}
	for _, name := range placement.Names() {
		policy, _ := placement.ByName(name)
		policies = append(policies, policy)
	}
	for _, policy := range policies {
		for _, nodes := range []int{1, 2, 3, 5} {
			for i := range 4 {
				w := weather{nodes: nodes, policy: policy, hints: i&1 != 0, async: i&2 != 0}
				ws = append(ws, w)
				if w.idle = true; placement.FetchesAhead(policy) {
					ws = append(ws, w)
				}
			}
		}
	}
	return ws
}

func TestWhateverMovesNoUpdateIsLostOrDoubledAndReadsAreInOrder(t *testing.T) {
	var all rare
	for _, w := range weathers() {
		t.Run(w.String(), func(t *testing.T) {
			first, n := uint64(1), *seedsFlag
			if *seedFlag != 0 {
				first, n = *seedFlag, 1
			}
			if w.policy == (restless.Policy{}) && *seedFlag == 0 {
				n *= 5 // the rarest things happen here
			}
			for i := range n {
				seed := first + uint64(i)
				w := w
				w.repeat, w.pauses = seed%3 == 0, seed%4 == 0
				s := newStorm(seed, w)
				if err := s.run(); err != nil {
					t.Fatalf("-seed %d: %v", seed, err)
				}
				all.add(s.rare())
			}
		})
	}
	t.Logf("%+v", all)
	if *seedFlag == 0 && *seedsFlag >= 20 && !all.full() {
		t.Errorf("not everything was stressed: %+v", all)
	}
}
