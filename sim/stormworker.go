package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/history"
	"github.com/godwit-ps/godwit/placement"
)

// A stormWorker is one worker of a storm.
type stormWorker struct {
	*storm
	w    godwit.Worker
	rng  *rand.Rand
	id   int // among all workers
	node int
	open []*operation
	last godwit.Clock // the end of the last intent
	prep *prepared    // a sample that was announced and not given up

	cancels *rand.Rand // nil: no context ends
	amid    bool       // it gave up a barrier and has not come back to it

	pushed map[godwit.Key]float32

	// Under a policy that has values fetched ahead:
	before []map[godwit.Key][]float32 // the main copies when each of the last steps began, the present one last
	plan   []planned                  // steps that are announced
	steps  int                        // how often the worker announced keys for one step
}

// An operation is one that was not waited for yet.
type operation struct {
	h    godwit.Handle
	keys []godwit.Key
	vals []float32
	done func(i, off int) error // judges the key at position i

	sure     bool        // it is begun by a context that does not end
	gave     *int        // counts it if it is given up,
	dropped  func(i int) // which is noted so for the key at position i,
	unissued func(i int) // or so, where it was not begun

	after godwit.Clock // it is of a PullAfter: not to be waited for before
}

func (s *storm) work(ctx context.Context, w godwit.Worker) error {
	id := int(w.ID().Node)*s.config.Workers + w.ID().Local
	x := &stormWorker{storm: s, w: w, rng: rand.New(rand.NewPCG(s.seed, uint64(id)+77)), id: id, node: int(w.ID().Node), pushed: map[godwit.Key]float32{}, cancels: newCancels(s.seed, id)}
	if s.cuts != nil {
		x.cancels = nil
		x.w.(godwit.Cutter).OnCut(x.crossed)
		defer x.finish()
	}
	for i := range s.config.Steps {
		if s.bounds != nil && s.bounds.meets(i) {
			if err := x.barrier(ctx, func() error { return x.amidBarrier(ctx) }); err != nil {
				return err
			}
		}
		if err := x.act(ctx); err != nil {
			return err
		}
	}
	return x.end(ctx)
}

func (x *stormWorker) finish() {
	if x.bounds != nil {
		x.bounds.goOn(x.id, (*history.Clocks).Finish)
	}
	x.w.Finish()
}

// some returns a few of the storm's keys, which may repeat.
func (x *stormWorker) some() []godwit.Key {
	keys := make([]godwit.Key, 1+x.rng.IntN(3))
	for i := range keys {
		keys[i] = x.keys[x.rng.IntN(len(x.keys))]
		if x.silent && x.rng.IntN(4) > 0 {
			keys[i] = x.keys[x.node%len(x.keys)]
		}
	}
	return keys
}

// act lets the worker do one thing.
func (x *stormWorker) act(ctx context.Context) error {
	if x.lossy != nil && x.rng.IntN(6) == 0 {
		return x.part(ctx)
	}
	if x.ahead && x.rng.IntN(4) == 0 {
		return x.step(ctx)
	}
	keys := x.some()
	switch r := x.rng.IntN(20); {
	case r < 5:
		return x.pull(ctx, keys)
	case r < 10:
		return x.push(ctx, keys)
	case r == 10:
		return x.set(ctx, keys[0])
	case r == 11 && x.moves && !x.silent:
		return x.begin(ctx, &operation{gave: &x.cancelled.Others}, func(ctx context.Context) (godwit.Handle, error) { return x.w.LocalizeAsync(ctx, keys) })
	case r == 12 && (x.lossy != nil || x.rng.IntN(3) == 0):
		return x.sync(ctx)
	case r == 13:
		return x.pullIfLocal(keys[0])
	case r < 17 && x.silent:
		return x.pull(ctx, keys)
	case r < 17:
		start := x.w.Clock() + godwit.Clock(x.rng.IntN(4))
		end := start + 1 + godwit.Clock(x.rng.IntN(4))
		return x.announce(keys, start, end)
	case r == 17 && len(x.samples) > 0:
		return x.sample(ctx)
	case r == 18 && x.rng.IntN(3) == 0:
		return x.ranged(ctx)
	case r == 18 && x.bounds != nil:
		return x.pullAfter(ctx, keys)
	case r == 19 && x.bounds != nil && x.rng.IntN(8) == 0:
		return x.rebind(ctx)
	default:
		x.advance()
		return nil
	}
}

func (x *stormWorker) advance() {
	if x.bounds != nil {
		x.bounds.goOn(x.id, (*history.Clocks).Advance)
	}
	x.begins()
	x.w.Advance()
}

// begin begins an operation, and waits where the storm has no more of them
// outstanding.
func (x *stormWorker) begin(ctx context.Context, o *operation, call func(context.Context) (godwit.Handle, error)) error {
	p := &ending{Context: ctx}
	if !o.sure {
		p = x.ending(ctx)
	}
	var err error
	o.h, err = call(p)
	gave, err := p.gaveUp(o.gave, err)
	switch {
	case err != nil:
		return err
	case gave:
		x.drop(o, o.unissued)
		return nil
	}
	x.open = append(x.open, o)
	most := 0
	if x.async {
		most = 4
	}
	for len(x.open) > most && !x.amid {
		i := x.rng.IntN(len(x.open))
		o := x.open[i]
		x.open = slices.Delete(x.open, i, i+1)
		if err := x.over(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// drop takes note that an operation was given up.
func (x *stormWorker) drop(o *operation, note func(i int)) {
	x.giveUp(o.vals)
	for i := range o.keys {
		if note != nil {
			note(i)
		}
	}
}

// over waits for an operation and judges what it did.
func (x *stormWorker) over(ctx context.Context, o *operation) error {
	for x.w.Clock() < o.after {
		x.advance()
	}
	p := x.ending(ctx)
	gave, err := p.gaveUp(o.gave, x.w.Wait(p, o.h))
	switch {
	case err != nil:
		return err
	case gave:
		x.drop(o, o.dropped)
		return nil
	}
	off := 0
	for i, k := range o.keys {
		if err := o.done(i, off); err != nil {
			return err
		}
		off += x.model.Dim(k)
	}
	return nil
}

func (x *stormWorker) values(keys []godwit.Key) []float32 {
	n, _ := x.model.Floats(keys)
	return make([]float32, n)
}

func (x *stormWorker) pull(ctx context.Context, keys []godwit.Key) error {
	o := &operation{keys: keys, vals: x.values(keys), gave: &x.cancelled.Pulls}
	var rs []*history.Reading
	for _, k := range keys {
		rs = append(rs, x.history.ReadIssued(x.id, k))
	}
	began, before := x.moment(), x.oldest()
	o.done = func(i, off int) error {
		v := o.vals[off : off+x.model.Dim(keys[i])]
		if err := x.history.Read(rs[i], v); err != nil {
			return err
		}
		if err := x.recent(keys[i], v, before); err != nil {
			return err
		}
		return x.judge(keys[i], v, began)
	}
	return x.begin(ctx, o, func(ctx context.Context) (godwit.Handle, error) { return x.w.PullAsync(ctx, keys, o.vals) })
}

func (x *stormWorker) push(ctx context.Context, keys []godwit.Key) error {
	o := &operation{keys: keys, gave: &x.cancelled.Pushes}
	push, off := x.values(keys), 0
	for _, k := range keys {
		push[off+x.id] = x.issue(k)
		off += x.model.Dim(k)
	}
	o.done = func(i, _ int) error {
		x.history.PushComplete(x.id, keys[i])
		return nil
	}
	o.dropped = func(i int) { x.history.PushDropped(x.id, keys[i]) }
	o.unissued = func(i int) { x.unsure(keys[i]) }
	return x.begin(ctx, o, func(ctx context.Context) (godwit.Handle, error) {
		defer clear(push) // it was taken
		return x.w.PushAsync(ctx, keys, push)
	})
}

// unsure takes note of a push that was given up before it was begun for all of its
// keys.
func (x *stormWorker) unsure(k godwit.Key) {
	x.cancelled.Unissued++
	x.history.PushUnsure(x.id, k)
	if x.bounds != nil && !x.held(k) {
		x.bounds.clocks.PushUnsure(x.id, k)
	}
}

// issue begins a push of a key and returns what is to be pushed.
func (x *stormWorker) issue(k godwit.Key) float32 {
	x.history.PushIssued(x.id, k)
	if x.bounds != nil {
		x.bounds.clocks.Push(x.id, k)
		if x.held(k) { // it counts when it is sent
			x.bounds.clocks.PushUnsure(x.id, k)
		}
	}
	x.pushed[k]++
	if t, _ := x.model.Locate(k); t == mostTable {
		return x.pushed[k]
	}
	return 1
}

// set sets a key if it is one of those that are.
func (x *stormWorker) set(ctx context.Context, k godwit.Key) error {
	if t, _ := x.model.Locate(k); t != setTable {
		return nil
	}
	j := x.history.SetIssued(x.id, k)
	o := &operation{keys: []godwit.Key{k}, gave: &x.cancelled.Sets}
	vals := x.values(o.keys)
	for i := range vals {
		vals[i] = float32(history.Era * j)
	}
	x.cuts.set(x.id, k, j)
	o.done = func(int, int) error {
		x.cuts.setDone(k, j)
		x.history.SetComplete(k, j)
		return nil
	}
	o.unissued = func(int) {
		x.cancelled.Unissued++
		x.history.SetUnsure(x.id, k, j)
	}
	return x.begin(ctx, o, func(ctx context.Context) (godwit.Handle, error) { return x.w.SetAsync(ctx, o.keys, vals) })
}

// pullIfLocal reads a key if it is here.
func (x *stormWorker) pullIfLocal(k godwit.Key) error {
	v := x.values([]godwit.Key{k})
	r, began := x.history.ReadIssued(x.id, k), x.moment()
	if !x.w.PullIfLocal(k, v) {
		return nil
	}
	if err := x.history.Read(r, v); err != nil {
		return err
	}
	return x.judge(k, v, began)
}

// sync judges WaitSync: then the main copies have what was complete at this node
// before, and replicas here what the main copies had.
func (x *stormWorker) sync(ctx context.Context) error {
	done, main := map[godwit.Key][]int{}, map[godwit.Key][]float32{}
	for _, k := range x.keys {
		done[k], main[k] = x.history.Completed(x.group(x.id), k), x.c.Value(k)
	}
	p := x.ending(ctx)
	if gave, err := p.gaveUp(&x.cancelled.Syncs, x.w.WaitSync(p)); gave || err != nil {
		return err
	}
	for k, had := range main {
		sure := x.history.Flushed(x.group(x.id), k, done[k])
		if t, _ := x.model.Locate(k); t == setTable {
			continue
		}
		v := x.c.Value(k)
		for i, n := range sure {
			if n > 0 && v != nil && int(v[i]) < n {
				return fmt.Errorf("worker %d synchronized key %d: worker %d had pushed %d times at this node, the main copy is %v", x.id, k, i, n, v)
			}
		}
		h := x.c.hosts[x.node].virtual.Holding(k)
		if h.State != "replica" || had == nil {
			continue
		}
		for i := range had {
			if h.Row[i] < had[i] {
				return fmt.Errorf("worker %d synchronized key %d: its replica is %v, the main copy was %v before", x.id, k, h.Row, had)
			}
		}
	}
	return nil
}

// syncAll waits until all that all workers pushed is visible to all of them.
func (x *stormWorker) syncAll(ctx context.Context) error {
	return x.meet(ctx, &x.cancelled.Alls, x.w.SyncAll, nil)
}

// end waits for everything, sees that everybody sees the same, and outlives its
// intents.
func (x *stormWorker) end(ctx context.Context) error {
	for _, o := range x.open {
		if err := x.over(ctx, o); err != nil {
			return err
		}
	}
	if x.bounds != nil && x.rng.IntN(2) == 0 { // others need not wait for what comes before the barrier
		x.finish()
	}
	sync := func(ctx context.Context) error { return x.insist(ctx, &x.cancelled.Syncs, x.w.WaitSync, nil) }
	meet := func(ctx context.Context) error { return x.barrier(ctx, nil) }
	steps := []func(context.Context) error{sync, meet, sync}
	if x.all {
		steps = []func(context.Context) error{x.syncAll}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	vals := x.values(x.keys)
	if err := x.w.Pull(ctx, x.keys, vals); err != nil {
		return err
	}
	off := 0
	for _, k := range x.keys {
		dim := x.model.Dim(k)
		if err := x.history.Synced(k, vals[off:off+dim]); err != nil {
			return fmt.Errorf("worker %d, when all was synchronized: %w", x.id, err)
		}
		off += dim
	}
	if err := x.conserves(ctx); err != nil {
		return err
	}
	if keep, ok := placement.OnRead(x.config.Policy); ok {
		x.last = max(x.last, x.w.Clock()+1+godwit.Clock(keep))
	}
	for x.w.Clock() < x.last {
		x.advance()
	}
	h := x.c.hosts[x.node]
	for i := 0; i < mostStays && h.node.Intents() > 0 && h.node.Err() == nil; i++ { // what it used stays wanted for some more clocks
		x.advance()
		world{x.c, h}.Sleep(50*time.Millisecond, nil, nil)
	}
	return nil
}

// mostStays is for how many clocks a storm's workers go on at most until their node wants nothing any more.
const mostStays = 10_000
