package diagnose

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// A patient is a simulated run. The zero values of its ills are health.
type patient struct {
	seed   uint64
	policy placement.Policy
	step   time.Duration // a batch takes it
	batch  int           // keys of a batch
	ahead  godwit.Clock  // batches that the loader looks ahead
	silent bool          // nothing is announced
	slow   map[int]float64
	far    time.Duration // further way between nodes 1 and 3
	hot    int           // keys of each batch that are the same everywhere
	memory func(*record.Process)
	epochs time.Duration // that it trains for
}

// well returns a patient without an ill.
func well(seed uint64) patient {
	return patient{seed: seed, policy: placement.Adaptive, step: 2 * time.Millisecond, batch: 16, ahead: 12, epochs: 400 * time.Millisecond}
}

const (
	nodes = 4
	rows  = 1 << 14
)

// train runs a patient and returns what its nodes recorded.
func (p patient) train(t testing.TB) *record.Run {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: 8})
	if err != nil {
		t.Fatal(err)
	}
	network, err := sim.NetworkNamed("10g")
	if err != nil {
		t.Fatal(err)
	}
	if p.far > 0 {
		network.Far = func(from, to int) time.Duration {
			if from+to == 4 && from != to {
				return p.far
			}
			return 0
		}
	}
	dir := t.TempDir()
	keys, err := trace.ParseKeys("", m)
	if err != nil {
		t.Fatal(err)
	}
	traces := make([]*trace.Writer, nodes)
	c, err := sim.New(sim.Config{Nodes: nodes, Workers: 1, Seed: p.seed, Model: m, Policy: p.policy, Network: network,
		Compute: sim.Compute{Step: p.step, Spread: 0.1, Key: 100 * time.Nanosecond, Frame: 2 * time.Microsecond, Record: 200 * time.Nanosecond, Round: 200 * time.Nanosecond, Slow: p.slow},
		Trace: func(n godwit.NodeID) (*trace.Writer, error) {
			w, err := trace.Create(trace.Config{Dir: dir, Keys: keys, Plain: true, Header: trace.Header{Run: "r", Policy: p.policy.Name(), Node: n, Nodes: nodes, Tables: trace.TablesOf(m)}})
			traces[n] = w
			return w, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	r := &record.Run{About: record.About{Policy: p.policy.Name()}}
	for i := range nodes {
		r.Nodes = append(r.Nodes, &record.Node{Header: record.Header{Node: godwit.NodeID(i), Nodes: nodes, Workers: 1}, Samples: []record.Sample{{}}})
	}
	items := make([]int64, nodes)
	end := c.Now() + p.epochs
	_, err = c.Run(t.Context(), func(ctx context.Context, w godwit.Worker) error {
		self := int(w.ID().Node)
		next := c.Now() + p.epochs/4
		x := newStudent(p, w)
		for c.Now() < end {
			if err := x.train(ctx); err != nil {
				return err
			}
			items[self] += int64(p.batch)
			if c.Now() >= next {
				next += p.epochs / 4
				r.Nodes[self].Samples = append(r.Nodes[self].Samples, p.sample(c, self, items[self], traces[self]))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for i, w := range traces {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		s := r.Nodes[i].Samples
		x := w.Census()
		s[len(s)-1].Hot, s[len(s)-1].Most = x.Hot, x.Most
		s[len(s)-1].Tables = []record.Table{{Name: "t", Use: x.Tables[0]}}
	}
	return r
}

// sample takes a sample as job does.
func (p patient) sample(c *sim.Cluster, self int, items int64, w *trace.Writer) record.Sample {
	s := record.Sample{Time: int64(c.Now()), Items: items, Process: record.Process{Processor: int64(c.Now()), Used: 1e9, Available: 8e9}}
	x := c.Node(self).Snapshot()
	s.Fill(&x)
	st := c.Stats(self)
	s.Accesses = record.Accesses{Local: st.Local, Replica: st.Replica, Ahead: st.Ahead, Queued: st.Queued, Remote: st.Remote, Late: st.Late}
	s.RoundTime = int64(st.RoundTime)
	if p.memory != nil && self == 2 {
		p.memory(&s.Process)
	}
	return s
}

// A student is one worker of a patient.
type student struct {
	p      patient
	w      godwit.Worker
	rng    *rand.Rand
	loaded [][]godwit.Key // batches to come
	vals   []float32
}

func newStudent(p patient, w godwit.Worker) *student {
	return &student{p: p, w: w, rng: rand.New(rand.NewPCG(p.seed, uint64(w.ID().Node))), vals: make([]float32, 8*(p.batch+p.hot))}
}

// load loads a batch and announces it.
func (x *student) load() error {
	ks := make([]godwit.Key, 0, x.p.batch+x.p.hot)
	for i := range x.p.hot {
		ks = append(ks, godwit.Key(100+i))
	}
	for range x.p.batch {
		ks = append(ks, godwit.Key(1000+x.rng.IntN(rows-1000)))
	}
	slices.Sort(ks)
	ks = slices.Compact(ks)
	at := x.w.Clock() + godwit.Clock(len(x.loaded))
	x.loaded = append(x.loaded, ks)
	if x.p.silent {
		return nil
	}
	return x.w.Intent(ks, at, at+1)
}

func (x *student) train(ctx context.Context) error {
	for len(x.loaded) <= int(x.p.ahead) {
		if err := x.load(); err != nil {
			return err
		}
	}
	ks := x.loaded[0]
	x.loaded = x.loaded[1:]
	v := x.vals[:8*len(ks)]
	if err := x.w.Pull(ctx, ks, v); err != nil {
		return err
	}
	if x.rng.IntN(8) == 0 { // something that nobody announces: it shows how long answers take
		k := []godwit.Key{godwit.Key(1000 + x.rng.IntN(rows-1000))}
		if err := x.w.Pull(ctx, k, make([]float32, 8)); err != nil {
			return err
		}
	}
	if err := x.w.Push(ctx, ks, v); err != nil {
		return err
	}
	x.w.Advance()
	return nil
}

var relocate, _ = placement.ByName("relocate")

// ills make a patient ill, with a severity that is drawn.
var ills = map[Ill]func(*patient, *rand.Rand){
	SlowNode: func(p *patient, rng *rand.Rand) { p.slow = map[int]float64{2: 1.4 + 3*rng.Float64()} },
	SlowLink: func(p *patient, rng *rand.Rand) {
		p.far, p.epochs = time.Duration(2+18*rng.Float64())*time.Millisecond, 2*time.Second
	},
	LateIntents: func(p *patient, rng *rand.Rand) {
		p.ahead, p.step = 0, time.Duration(200+600*rng.Float64())*time.Microsecond
	},
	HotKey: func(p *patient, rng *rand.Rand) {
		p.policy, p.hot, p.epochs = relocate, 1+rng.IntN(4), 1300*time.Millisecond
	},
	SmallBatches: func(p *patient, rng *rand.Rand) {
		p.step, p.batch, p.ahead = time.Duration(4+10*rng.Float64())*time.Microsecond, 1+rng.IntN(3), godwit.Clock(rng.IntN(4))
		p.epochs /= 8
	},
	MemoryPressure: func(p *patient, rng *rand.Rand) {
		switch share := rng.Float64(); rng.IntN(3) {
		case 0:
			p.memory = func(x *record.Process) { x.Stalled = int64((0.05 + 0.6*share) * float64(x.Processor)) }
		case 1:
			p.memory = func(x *record.Process) { x.GC = int64((0.2 + 0.5*share) * float64(x.Processor)) }
		default:
			p.memory = func(x *record.Process) { x.Used, x.Available = 8e9, uint64(3e8*share) }
		}
	},
	NoIntents: func(p *patient, rng *rand.Rand) {
		p.silent, p.step = true, time.Duration(200+1000*rng.Float64())*time.Microsecond
	},
}

// seeds is how many of each ill, from SEEDS of the environment.
func seeds(t *testing.T, usual int) uint64 {
	n, err := strconv.Atoi(os.Getenv("SEEDS"))
	if os.Getenv("SEEDS") == "" {
		return uint64(usual)
	}
	if err != nil {
		t.Fatal(err)
	}
	return uint64(n)
}

func (p patient) String() string {
	return fmt.Sprintf("seed %d: policy %s, step %v, batch %d, ahead %d, silent %v, slow %v, far %v, hot %d", p.seed, p.policy.Name(), p.step, p.batch, p.ahead, p.silent, p.slow, p.far, p.hot)
}

func TestIllsAreFound(t *testing.T) {
	n := seeds(t, 1)
	for ill, infect := range ills {
		t.Run(string(ill), func(t *testing.T) {
			wrong := 0
			for seed := range n {
				p := well(seed)
				infect(&p, rand.New(rand.NewPCG(seed, 5)))
				found := Diagnose(From(p.train(t)))
				if len(found) == 0 || found[0].Ill != ill {
					wrong++
					t.Logf("%v: found %+v", p, found)
				}
			}
			if wrong > int(n)/20 {
				t.Errorf("of %d runs, %d were diagnosed wrongly", n, wrong)
			}
		})
	}
}

// Of two ills at once, one is found first.
func TestIllsAreFoundTogether(t *testing.T) {
	n, wrong := seeds(t, 1), 0
	names := slices.Sorted(maps.Keys(ills))
	for seed := range n {
		rng := rand.New(rand.NewPCG(seed, 6))
		i := rng.IntN(len(names))
		j := (i + 1 + rng.IntN(len(names)-1)) % len(names)
		p := well(seed)
		ills[names[i]](&p, rng)
		ills[names[j]](&p, rng)
		found := Diagnose(From(p.train(t)))
		if len(found) == 0 || found[0].Ill != names[i] && found[0].Ill != names[j] {
			wrong++
			t.Logf("%s and %s, %v: found %+v", names[i], names[j], p, found)
		}
	}
	if wrong > int(n)/20 {
		t.Errorf("of %d runs, %d were diagnosed wrongly", n, wrong)
	}
}

func TestWhatIsWellHasNoIll(t *testing.T) {
	wrong, n := 0, seeds(t, 1)
	for seed := range n {
		p := well(seed)
		if found := Diagnose(From(p.train(t))); len(found) > 0 {
			wrong++
			t.Logf("%v: found %+v", p, found)
		}
	}
	if wrong > int(n)/20 {
		t.Errorf("of %d runs that are well, %d have an ill", n, wrong)
	}
}

// Who follows the advice, as it says, is rid of the ill: workers wait less.
func TestAdviceHelps(t *testing.T) {
	for _, c := range []struct {
		ill    Ill
		follow func(*patient, *Finding)
	}{
		{ill: LateIntents, follow: func(p *patient, f *Finding) { p.ahead = godwit.Clock(f.Figures["need"]) }},
		{ill: NoIntents, follow: func(p *patient, f *Finding) { p.silent = false }},
		{ill: HotKey, follow: func(p *patient, f *Finding) { p.policy = placement.Adaptive }},
		{ill: SmallBatches, follow: func(p *patient, f *Finding) {
			times := int(f.Figures["times"])
			p.batch, p.step, p.epochs = p.batch*times, p.step*time.Duration(times), p.epochs*8
		}},
		{ill: SlowLink, follow: func(p *patient, f *Finding) { p.far = 0 }},
	} {
		t.Run(string(c.ill), func(t *testing.T) {
			for seed := range seeds(t, 1) {
				p := well(seed)
				ills[c.ill](&p, rand.New(rand.NewPCG(seed, 5)))
				in := From(p.train(t))
				before, was := Diagnose(in), most(&in)
				if len(before) == 0 || before[0].Ill != c.ill {
					t.Fatalf("%v: found %+v", p, before)
				}
				c.follow(&p, &before[0])
				in = From(p.train(t))
				is := most(&in)
				t.Logf("%v: workers waited %.1f %% of the time, and then %.1f %%", p, 100*was, 100*is)
				if is > 0.75*was {
					t.Errorf("%v: workers waited %.3f of the time; after %q, %.3f", p, was, before[0].Advice, is)
				}
			}
		})
	}
}

// most is the share of their time for which the workers of the node waited that waits most.
func most(in *Input) (share float64) {
	for i := range in.Nodes {
		share = max(share, waited(&in.Nodes[i]))
	}
	return share
}

// A node whose machine is rid of what made it slow is as fast as the others.
func TestANodeThatIsRidOfOtherProgramsIsNotSlow(t *testing.T) {
	for seed := range seeds(t, 1) {
		p := well(seed)
		ills[SlowNode](&p, rand.New(rand.NewPCG(seed, 5)))
		before := Diagnose(From(p.train(t)))
		p.slow = nil
		in := From(p.train(t))
		d := doctor{in: in}
		ratio := d.ratio(2, func(n *Node) float64 { return speed(&n.Usage) })
		if len(before) == 0 || before[0].Figures["speed"] > slowSpeed || ratio < 0.95 {
			t.Errorf("%v: found %+v; after that, the node has %.2f of the others' speed", p, before, ratio)
		}
	}
}
