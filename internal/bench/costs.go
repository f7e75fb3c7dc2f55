package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/kge"
)

// Costs are what a node computes for accesses and messages, in nanoseconds: the
// costs of a simulated node (sim.Compute).
type Costs struct {
	// From says where they were measured: the command, the machine and its load.
	From string `json:"from"`

	Key  float64 `json:"key"`  // an access to a key that is here
	Byte float64 `json:"byte"` // … and a byte of its value

	Announce float64 `json:"announce"` // a key that a worker announces
	Plan     float64 `json:"plan"`     // a key whose intent the planner begins or ends
	Want     float64 `json:"want"`     // … beside that, where the policy acts on intents
	Load     float64 `json:"load"`     // loading a batch, a key that it announces
	Sample   float64 `json:"sample"`   // drawing a sample

	Send      float64 `json:"send"`       // a frame at its sender
	Frame     float64 `json:"frame"`      // a frame at its receiver
	Record    float64 `json:"record"`     // a record at its receiver
	FrameByte float64 `json:"frame_byte"` // a byte of a frame, at each end
	Round     float64 `json:"round"`      // a record that a sync round sends
}

// Check reports costs that cannot be meant.
func (c *Costs) Check() error {
	for _, x := range []float64{c.Key, c.Byte, c.Announce, c.Plan, c.Want, c.Load, c.Sample, c.Send, c.Frame, c.Record, c.FrameByte, c.Round} {
		if !(x >= 0) || x > 1e9 {
			return fmt.Errorf("bench: costs of %v ns, want 0 … 1 s each: %+v", x, *c)
		}
	}
	if c.Key+c.Frame+c.Record == 0 {
		return errors.New("bench: costs of nothing: is this the output of godwit bench --costs?")
	}
	return nil
}

// Calibrate measures the costs of this machine, for tables of as many rows as the
// options say: of what the caches hold, everything costs less. Local accesses are cases of their
// own. The costs of messages are fitted to the processor time of both processes in
// blocking remote calls, which is what a training program makes.
func Calibrate(ctx context.Context, o Options) (c *Costs, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	here := Here()
	c = &Costs{}
	for _, step := range []struct {
		what string
		do   func(context.Context, *Options) error
	}{
		{"local accesses", c.local}, {"messages", c.messages}, {"sync rounds", c.rounds},
		{"intents", c.intents}, {"samples", c.samples}, {"batches", c.batches},
	} {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if o.Progress != nil {
			o.Progress(&Case{Name: "costs of " + step.what})
		}
		if err := step.do(ctx, &o); err != nil {
			return nil, fmt.Errorf("bench: costs of %s: %w", step.what, err)
		}
	}
	here.LookAtLoad()
	c.From = fmt.Sprintf("godwit bench --costs, at most %d rows and %d MiB, %s; %s", o.Rows, o.Memory>>20, time.Now().UTC().Format(time.DateOnly), here.String())
	return c, c.Check()
}

// measured runs the cases whose names contain one of parts.
func measured(ctx context.Context, o *Options, keep func(x *Result), parts ...string) error {
	only := *o
	only.Only, only.Progress = parts, nil
	r, err := Run(ctx, only)
	if err != nil {
		return err
	}
	for i := range r.Results {
		keep(&r.Results[i])
	}
	return nil
}

// local fits Key and Byte to pulls and pushes of rows of several lengths.
func (c *Costs) local(ctx context.Context, o *Options) error {
	f := &fit{}
	err := measured(ctx, o, func(x *Result) {
		var dim float64
		_, _ = fmt.Sscanf(x.Name[strings.LastIndex(x.Name[:len(x.Name)-len("/1 worker")], "/")+1:], "%g floats", &dim)
		f.add(x.Nanos.Median, 1, 4*dim)
	}, "local/pull/10 floats/1", "local/pull/100 floats/1", "local/pull/500 floats/1",
		"local/push/10 floats/1", "local/push/100 floats/1", "local/push/500 floats/1")
	if err != nil {
		return err
	}
	x := f.solve()
	c.Key, c.Byte = x[0], x[1]
	return nil
}

// messages fits the costs of frames, records and bytes to calls of several sizes. A
// call is two frames and two records a key; the access itself is charged to the
// worker.
func (c *Costs) messages(ctx context.Context, o *Options) error {
	f := &fit{}
	var parts []string
	for _, op := range []string{"pull", "push"} {
		for _, keys := range []int{1, 10, 100, 1000} {
			for _, dim := range []int{4, 100, 512} {
				parts = append(parts, fmt.Sprintf("remote/%s/%s of %s/blocking", op, count(keys, "key"), count(dim, "float")))
			}
		}
	}
	err := measured(ctx, o, func(x *Result) {
		e := x.Ends
		keys := float64(e.Keys)
		worker := keys * (c.Key + c.Byte*float64(4*e.Floats))
		f.add(max(e.Path.Both.Median*keys-worker, 1), 2, 2*keys, 2*float64(e.AskBytes+e.AnswerBytes))
	}, parts...)
	if err != nil {
		return err
	}
	x := f.solve()
	c.Send, c.Frame, c.Record, c.FrameByte = x[0]/2, x[0]/2, x[1], x[2]
	return nil
}

// rounds takes the cost of a round's record from the time that a node spends in
// rounds that send what was pushed to its replicas.
func (c *Costs) rounds(ctx context.Context, o *Options) error {
	const dim, keys = 16, 1000
	p, err := startPair(ctx, o.Peer, 1<<15, dim, placement.ReplicateAll)
	if err != nil {
		return err
	}
	w, ks, buf := p.node.Worker(0), make([]godwit.Key, keys), make([]float32, keys*dim)
	for i := range buf {
		buf[i] = 1 // what changes nothing is not sent
	}
	var took []float64
	for range 50 {
		p.draw(ks)
		own := slices.Clone(ks)
		slices.Sort(own)
		updates := uint64(len(slices.Compact(own)))
		before := p.node.Stats()
		if err := w.Push(ctx, ks, buf); err != nil {
			return errors.Join(err, p.close(ctx))
		}
		// A WaitSync would look at each update, several times, and have rounds follow each other that send nothing.
		did, err := p.sent(ctx, before, updates)
		if err != nil {
			return errors.Join(err, p.close(ctx))
		}
		took = append(took, float64(did.RoundTime)/float64(did.Deltas))
		if err := w.WaitSync(ctx); err != nil {
			return errors.Join(err, p.close(ctx))
		}
	}
	c.Round = spread(took).Q1 // a round that was interrupted took longer
	return p.close(ctx)
}

// sent waits until rounds have sent so many updates since some stock was taken, and returns what was done since then.
func (p *pair) sent(ctx context.Context, before node.Stats, updates uint64) (did node.Stats, err error) {
	for {
		if did = p.node.Stats().Sub(before); did.Deltas >= updates {
			time.Sleep(time.Millisecond) // until the round is over that sent the last of them: what it took counts at its end
			return p.node.Stats().Sub(before), nil
		}
		select {
		case <-ctx.Done():
			return did, fmt.Errorf("rounds have sent %d of %d updates: %w", did.Deltas, updates, context.Cause(ctx))
		case <-time.After(100 * time.Microsecond):
		}
	}
}

// announcedRows is how many rows the table of intents and samples has.
func (o *Options) announcedRows() uint64 { return min(o.Rows, 1<<18) }

// intents takes the cost of announcing from a policy that does nothing about intents,
// and that of acting on them from one that does.
func (c *Costs) intents(ctx context.Context, o *Options) (err error) {
	if c.Announce, c.Plan, err = announcing(ctx, o, placement.Static); err != nil {
		return err
	}
	_, acting, err := announcing(ctx, o, placement.Adaptive)
	c.Want = max(0, acting-c.Plan)
	return err
}

// announcing announces keys whose home is here, so that nothing is sent for them. It
// returns the processor time of the worker for a key, and of the planner, which
// begins and ends each.
func announcing(ctx context.Context, o *Options, policy placement.Policy) (announce, plan float64, err error) {
	p, err := startPair(ctx, o.Peer, o.announcedRows(), 4, policy)
	if err != nil {
		return 0, 0, err
	}
	w := p.node.Worker(0)
	var own []godwit.Key
	for k := godwit.Key(0); w.Model().Has(k); k++ {
		if p.node.Home(k) != peerNode {
			own = append(own, k)
		}
	}
	rng := rand.New(rand.NewPCG(o.Seed, 7))
	rng.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
	if err := w.Pull(ctx, own, make([]float32, 4*len(own))); err != nil { // makes the rows
		return 0, 0, errors.Join(err, p.close(ctx))
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const calls, turns = 200, 20
	i := 0
	var worker []float64
	all, err := processorTimeOf(turns, calls*perCall, func() error {
		began := threadTime()
		for range calls {
			keys := own[i*perCall%(len(own)-perCall):][:perCall]
			i++
			if err := w.Intent(keys, w.Clock()+1, w.Clock()+2); err != nil {
				return err
			}
		}
		worker = append(worker, float64(threadTime()-began)/(calls*perCall))
		return settled(ctx, p.node)
	})
	if err := errors.Join(err, p.close(ctx)); err != nil {
		return 0, 0, err
	}
	announce = spread(worker).Median
	return announce, max(0, all-announce) / 2, nil
}

// settled waits until a node's planner has acted on all that was announced, and then
// on its end. The node tells what the planner holds, not what it has not taken yet,
// so it gets time for that.
func settled(ctx context.Context, n *node.Node) error {
	time.Sleep(5 * time.Millisecond)
	for again := true; again; again = n.Intents() > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n.Worker(0).Advance()
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// samples prepares samples on one node.
func (c *Costs) samples(ctx context.Context, o *Options) error {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: o.announcedRows(), Dim: 4})
	if err != nil {
		return err
	}
	n, err := node.Local(ctx, 1, node.Config{Model: m, Workers: 1, Seed: o.Seed, Samplers: []sampling.Spec{
		{Name: "s", Dist: sampling.Uniform(o.announcedRows()), Scheme: sampling.Prepared{}},
	}})
	if err != nil {
		return err
	}
	w := n.Nodes[0].Worker(0)
	if err := touch(ctx, n.Nodes[0].Workers(), o.announcedRows(), 4); err != nil {
		return errors.Join(err, n.Close(ctx))
	}
	c.Sample, err = processorTimeOf(20, 20_000, func() error {
		for range 200 {
			id, err := w.PrepareSample(0, perCall, w.Clock()+1, w.Clock()+2)
			if err != nil {
				return err
			}
			w.FinishSample(id)
		}
		return settled(ctx, n.Nodes[0])
	})
	return errors.Join(err, n.Close(ctx))
}

// batches loads those of knowledge graph embeddings.
func (c *Costs) batches(ctx context.Context, o *Options) error {
	task, err := kge.New(complExConfig(o.Seed), randomGraph(o.Seed, 100_000))
	if err != nil {
		return err
	}
	m, err := godwit.NewModel(task.Tables()...)
	if err != nil {
		return err
	}
	n, err := node.Local(ctx, 1, node.Config{Model: m, Workers: 1, Seed: o.Seed, Samplers: []sampling.Spec{
		{Name: "negatives", Dist: sampling.Uniform(entities), Scheme: sampling.Local{}},
	}})
	if err != nil {
		return err
	}
	s, err := newServed(ctx, task, n.Nodes[0].Worker(0))
	if err != nil {
		return errors.Join(err, n.Close(ctx))
	}
	var loaded train.Batch[kge.Batch]
	keys := 0
	load := func() {
		s.load(&loaded)
		keys += len(loaded.Keys)
	}
	for range 200 {
		load()
	}
	mean := max(keys/200, 1)
	c.Load, err = processorTimeOf(20, 200*mean, func() error {
		for range 200 {
			load()
		}
		return nil
	})
	return errors.Join(err, n.Close(ctx))
}

// processorTimeOf returns the median processor time of a unit in so many turns of a
// function that does so many units, in nanoseconds.
func processorTimeOf(turns, units int, do func() error) (float64, error) {
	var took []float64
	for range turns {
		before := host.ProcessorTime()
		if err := do(); err != nil {
			return 0, err
		}
		took = append(took, float64(host.ProcessorTime()-before)/float64(units))
	}
	return spread(took).Median, nil
}

// A fit finds the factors, none below 0, that explain figures best: with the least
// sum of squares of relative errors.
type fit struct {
	rows [][]float64 // each divided by its figure
}

// add notes a figure, which is about the sum of its parts times their factors.
func (f *fit) add(figure float64, parts ...float64) {
	row := make([]float64, len(parts))
	for i, p := range parts {
		row[i] = p / figure
	}
	f.rows = append(f.rows, row)
}

// solve tries every set of factors that may be other than 0: there are few.
func (f *fit) solve() []float64 {
	n := len(f.rows[0])
	var best []float64
	least := math.Inf(1)
	for set := 1; set < 1<<n; set++ {
		x, ok := f.least(set, n)
		if !ok {
			continue
		}
		sum := 0.0
		for _, row := range f.rows {
			e := -1.0
			for i, p := range row {
				e += p * x[i]
			}
			sum += e * e
		}
		if sum < least {
			least, best = sum, x
		}
	}
	return best
}

// least solves the normal equations for a set of factors, and reports whether none
// is below 0.
func (f *fit) least(set, n int) ([]float64, bool) {
	a := make([][]float64, n)
	for i := range a {
		a[i] = make([]float64, n+1)
		if set>>i&1 == 0 {
			a[i][i] = 1
			continue
		}
		for _, row := range f.rows {
			for j := range n {
				if set>>j&1 == 1 {
					a[i][j] += row[i] * row[j]
				}
			}
			a[i][n] += row[i]
		}
	}
	for i := range n {
		pivot := i
		for r := i + 1; r < n; r++ {
			if math.Abs(a[r][i]) > math.Abs(a[pivot][i]) {
				pivot = r
			}
		}
		a[i], a[pivot] = a[pivot], a[i]
		if a[i][i] == 0 {
			return nil, false
		}
		for r := range n {
			if r == i {
				continue
			}
			q := a[r][i] / a[i][i]
			for j := i; j <= n; j++ {
				a[r][j] -= q * a[i][j]
			}
		}
	}
	x := make([]float64, n)
	for i := range x {
		if x[i] = a[i][n] / a[i][i]; x[i] < 0 {
			return nil, false
		}
	}
	return x, true
}
