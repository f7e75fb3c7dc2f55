package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/godwit-ps/godwit"
)

// A worker makes the writes that the plan has for it, and between them whatever
// comes to its mind.
type worker struct {
	*judge
	w       godwit.Worker
	id      int
	rng     *rand.Rand
	now     moment
	sum     []int32                   // what its coordinate of each key is, with what it has issued
	pending map[godwit.Key][]int32    // writes that it has not waited for
	open    []*operation              // likewise, and other operations
	samples map[godwit.SampleID]order // that are prepared
}

type order struct{ sampler, n int }

// An operation is one that was begun.
type operation struct {
	h     godwit.Handle
	after godwit.Clock // not to be waited for before this one
	over  func() error // judges it
}

func (j *judge) worker(w godwit.Worker) *worker {
	id := int(w.ID().Node)*j.perNode + w.ID().Local
	return &worker{judge: j, w: w, id: id, rng: rand.New(rand.NewPCG(j.seed, uint64(100+id))), sum: make([]int32, j.model.Keys()),
		pending: map[godwit.Key][]int32{}, samples: map[godwit.SampleID]order{}}
}

func (x *worker) run(ctx context.Context) error {
	for i, e := range x.eras {
		for s := range e.steps {
			x.now = moment{e.first + s, i}
			if err := x.step(ctx, x.writes[x.id][x.now.step]); err != nil {
				return err
			}
			x.w.Advance()
		}
		x.now = moment{e.first + e.steps, i}
		if err := x.meet(ctx, e); err != nil {
			return err
		}
		x.now.era++
	}
	return x.end(ctx)
}

// step makes writes, with other things before, between and after them.
func (x *worker) step(ctx context.Context, todo []write) error {
	for len(todo) > 0 || x.rng.IntN(3) > 0 {
		if len(todo) == 0 || x.rng.IntN(2) == 0 {
			if err := x.act(ctx); err != nil {
				return err
			}
			continue
		}
		n := 1
		if x.table(todo[0].key) != set {
			for n < len(todo) && n < 3 && x.table(todo[n].key) != set {
				n++
			}
		}
		if err := x.write(ctx, todo[:n]); err != nil {
			return err
		}
		todo = todo[n:]
	}
	return nil
}

// meet ends an era.
func (x *worker) meet(ctx context.Context, e era) error {
	if err := x.settle(ctx); err != nil {
		return err
	}
	if x.rng.IntN(2) == 0 {
		x.w.Finish()
	}
	steps := []func(context.Context) error{x.w.Barrier}
	switch {
	case e.whole && e.all:
		steps = []func(context.Context) error{x.syncAll}
	case e.whole:
		steps = []func(context.Context) error{x.sync, x.w.Barrier, x.sync}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end judges all rows when nothing is under way any more.
func (x *worker) end(ctx context.Context) error {
	all := godwit.Key(x.model.Keys())
	n, err := x.model.RangeFloats(0, all)
	if err != nil {
		return err
	}
	vals := make([]float32, n)
	if err := godwit.PullRange(ctx, x.w, 0, all, vals); err != nil {
		return err
	}
	for k := range all {
		if err := x.ends(k, vals[:x.model.Dim(k)]); err != nil {
			return fmt.Errorf("worker %d: %w", x.id, err)
		}
		vals = vals[x.model.Dim(k):]
	}
	return nil
}

// some returns a few keys, which may repeat.
func (x *worker) some() []godwit.Key {
	keys := make([]godwit.Key, 1+x.rng.IntN(3))
	for i := range keys {
		keys[i] = godwit.Key(x.rng.Uint64N(x.model.Keys()))
	}
	return keys
}

func (x *worker) act(ctx context.Context) error {
	switch r := x.rng.IntN(20); {
	case r < 6:
		return x.pull(ctx)
	case r < 10:
		start := x.w.Clock() + godwit.Clock(x.rng.IntN(4))
		return x.w.Intent(x.some(), start, start+1+godwit.Clock(x.rng.IntN(4)))
	case r < 12:
		return x.glance()
	case r == 12:
		return x.localize(ctx)
	case r == 13:
		return x.sample(ctx)
	case r == 14:
		return x.scan(ctx)
	case r == 15:
		return x.pullAfter(ctx)
	case r < 18:
		return x.cutShort(ctx)
	case r == 18 && x.rng.IntN(3) == 0:
		return x.sync(ctx)
	}
	return x.tear(ctx)
}

// begun takes an operation that was begun, and waits for some of those that are
// open.
func (x *worker) begun(ctx context.Context, o *operation, err error) error {
	if err != nil {
		return err
	}
	x.open = append(x.open, o)
	for most := x.rng.IntN(5); len(x.open) > most; {
		i := x.rng.IntN(len(x.open))
		if x.open[i].after > x.w.Clock() {
			return nil
		}
		if err := x.wait(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (x *worker) wait(ctx context.Context, i int) error {
	o := x.open[i]
	x.open = slices.Delete(x.open, i, i+1)
	if err := x.w.Wait(ctx, o.h); err != nil {
		return err
	}
	return o.over()
}

// settle waits for all operations that may be waited for at this clock.
func (x *worker) settle(ctx context.Context) error {
	for i := 0; i < len(x.open); {
		if x.open[i].after > x.w.Clock() {
			i++
		} else if err := x.wait(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// write makes writes of one call: a set or pushes.
func (x *worker) write(ctx context.Context, ws []write) error {
	var keys []godwit.Key
	var vals []float32
	for _, w := range ws {
		keys = append(keys, w.key)
		vals = append(vals, x.next(w)...)
	}
	k, is := keys[0], x.sum[keys[0]]
	if x.table(k) == set {
		call := x.w.Push
		if ws[0].set {
			call = x.w.Set
		}
		if err := call(ctx, keys, vals); err != nil {
			return err
		}
		x.completed(x.id, k, is)
		return nil
	}
	issued := make([]int32, len(keys))
	for i := len(keys) - 1; i >= 0; i-- {
		issued[i] = x.sum[keys[i]] - int32(count1(keys[i+1:], keys[i]))
		x.pending[keys[i]] = append(x.pending[keys[i]], issued[i])
	}
	h, err := x.w.PushAsync(ctx, keys, vals)
	return x.begun(ctx, &operation{h: h, over: func() error {
		for i, k := range keys {
			x.acknowledged(k, issued[i])
		}
		return nil
	}}, err)
}

func count1(keys []godwit.Key, k godwit.Key) (n int) {
	for _, o := range keys {
		if o == k {
			n++
		}
	}
	return n
}

// acknowledged notes that a push of a key is complete. All before the first that is
// not are.
func (x *worker) acknowledged(k godwit.Key, is int32) {
	left := slices.DeleteFunc(x.pending[k], func(o int32) bool { return o == is })
	x.pending[k] = left
	done := x.sum[k]
	if len(left) > 0 {
		done = slices.Min(left) - 1
	}
	x.completed(x.id, k, done)
}

// next begins a write and returns what it writes.
func (x *worker) next(w write) []float32 {
	v := make([]float32, x.model.Dim(w.key))
	sum := &x.sum[w.key]
	if w.set {
		*sum = (*sum/setEra + 1) * setEra
	} else {
		*sum++
	}
	x.begins(x.id, w.key, *sum)
	switch t := x.table(w.key); {
	case w.set:
		for i := range v {
			v[i] = float32(*sum)
		}
	case t == set:
		v[0] = 1
	case t == most:
		v[x.id] = float32(*sum)
	case t == counted:
		v[2*x.id] = counterStep
	default:
		v[x.id] = 1
	}
	return v
}

// asked are keys that are being read.
type asked struct {
	keys []godwit.Key
	vals []float32
	rs   []*reading
}

func (x *worker) ask(keys []godwit.Key, after int) *asked {
	n, _ := x.model.Floats(keys) // the keys exist
	a := &asked{keys: keys, vals: make([]float32, n)}
	for _, k := range keys {
		a.rs = append(a.rs, x.reads(x.id, k, x.now, after))
	}
	return a
}

func (x *worker) answered(a *asked) error {
	vals := a.vals
	for i, k := range a.keys {
		if err := x.read(a.rs[i], vals[:x.model.Dim(k)]); err != nil {
			return err
		}
		vals = vals[x.model.Dim(k):]
	}
	return nil
}

func (x *worker) pull(ctx context.Context) error {
	a := x.ask(x.some(), -1)
	h, err := x.w.PullAsync(ctx, a.keys, a.vals)
	return x.begun(ctx, &operation{h: h, over: func() error { return x.answered(a) }}, err)
}

func (x *worker) pullAfter(ctx context.Context) error {
	e := x.eras[x.now.era]
	keys := slices.DeleteFunc(x.some(), func(k godwit.Key) bool { return x.stale[x.table(k)] == godwit.Eventual })
	if len(keys) == 0 {
		return nil
	}
	clock := x.now.step - e.first
	after := max(0, clock-1+x.rng.IntN(min(4, e.steps-clock+2)))
	a := x.ask(keys, after)
	at := x.w.Clock() + godwit.Clock(after-clock)
	h, err := x.w.PullAfter(ctx, at, a.keys, a.vals)
	return x.begun(ctx, &operation{h: h, after: at, over: func() error { return x.answered(a) }}, err)
}

func (x *worker) glance() error {
	a := x.ask(x.some()[:1], -1)
	if !x.w.PullIfLocal(a.keys[0], a.vals) {
		return nil
	}
	x.counts.glances.Add(1)
	return x.answered(a)
}

func (x *worker) localize(ctx context.Context) error {
	h, err := x.w.LocalizeAsync(ctx, x.some())
	return x.begun(ctx, &operation{h: h, over: func() error { return nil }}, err)
}

// sync waits for what the worker has begun, and then for the owners.
func (x *worker) sync(ctx context.Context) error { return x.synced(ctx, x.w.WaitSync) }

// syncAll waits for what the worker has begun, and then until all is visible to all.
func (x *worker) syncAll(ctx context.Context) error { return x.synced(ctx, x.w.SyncAll) }

func (x *worker) synced(ctx context.Context, wait func(context.Context) error) error {
	if err := x.settle(ctx); err != nil {
		return err
	}
	s := x.syncs(x.id)
	if err := wait(ctx); err != nil {
		return err
	}
	x.over(s)
	return nil
}

// sample prepares a sample, or pulls or forgets one.
func (x *worker) sample(ctx context.Context) error {
	if len(x.samples) < 3 {
		i := x.rng.IntN(len(x.samplers))
		n := 1 + x.rng.IntN(int(x.samplers[i].Dist.Rows()))
		id, err := x.w.PrepareSample(i, n, x.w.Clock(), x.w.Clock()+3)
		if err == nil {
			x.samples[id] = order{i, n}
		}
		return err
	}
	for id, o := range x.samples {
		delete(x.samples, id)
		if x.rng.IntN(4) == 0 {
			x.w.FinishSample(id)
			return nil
		}
		return x.pullSample(ctx, id, o)
	}
	return nil
}

func (x *worker) pullSample(ctx context.Context, id godwit.SampleID, o order) error {
	spec := x.samplers[o.sampler]
	t := x.model.Table(spec.Table)
	rs := map[godwit.Key]*reading{}
	for row := range t.Rows {
		k := x.model.Key(spec.Table, row)
		rs[k] = x.reads(x.id, k, x.now, -1)
	}
	keys, vals := make([]godwit.Key, o.n), make([]float32, o.n*t.Dim)
	if err := x.w.PullSample(ctx, id, keys, vals); err != nil {
		return err
	}
	for i, k := range keys {
		switch {
		case rs[k] == nil:
			return fmt.Errorf("sampler %s of table %s drew key %d", spec.Name, t.Name, k)
		case spec.Distinct && slices.Contains(keys[:i], k):
			return fmt.Errorf("sampler %s drew the keys %v, which are to be distinct", spec.Name, keys)
		}
		if err := x.read(rs[k], vals[i*t.Dim:(i+1)*t.Dim]); err != nil {
			return fmt.Errorf("in a sample: %w", err)
		}
		x.counts.samples.Add(1)
	}
	return nil
}

// scan reads the rows in use of a range: at least those of which a write is known
// to be complete, each once and in order.
func (x *worker) scan(ctx context.Context) error {
	end := godwit.Key(x.rng.Uint64N(x.model.Keys() + 1))
	first := godwit.Key(x.rng.Uint64N(uint64(end) + 1))
	rs, used := map[godwit.Key]*reading{}, map[godwit.Key]bool{}
	for k := first; k < end; k++ {
		rs[k] = x.reads(x.id, k, x.now, -1)
		for i := range x.done[k] {
			used[k] = used[k] || x.done[k][i].Load() > 0
		}
	}
	next := first
	for row, err := range godwit.Rows(ctx, x.w, first, end, godwit.NoNode) {
		if err != nil {
			return err
		}
		if row.Key < next || row.Key >= end {
			return fmt.Errorf("a scan of the keys %d … %d has key %d where none before %d may come", first, end, row.Key, next)
		}
		next = row.Key + 1
		delete(used, row.Key)
		if err := x.read(rs[row.Key], row.Value); err != nil {
			return fmt.Errorf("in a scan: %w", err)
		}
		x.counts.scans.Add(1)
	}
	for k, is := range used {
		if is {
			return fmt.Errorf("a scan of the keys %d … %d lacks key %d, which is in use", first, end, k)
		}
	}
	return nil
}

// hasty is a context that ends soon.
func (x *worker) hasty(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(x.rng.Int64N(int64(300*time.Microsecond))))
}

// cut sorts the error of a call with a hasty context: one that was cut short
// says so, as its worker's.
func (x *worker) cut(err error) (bool, error) {
	var op *godwit.OpError
	switch {
	case err == nil:
		return false, nil
	case !errors.Is(err, context.DeadlineExceeded):
		return false, err
	case !errors.As(err, &op) || op.Worker != x.w.ID():
		return false, fmt.Errorf("a call of worker %d that was cut short returned %v, want an OpError of its own", x.id, err)
	}
	x.counts.cancelled.Add(1)
	return true, nil
}

// cutShort makes a call that may not come to its end.
func (x *worker) cutShort(ctx context.Context) error {
	ctx, cancel := x.hasty(ctx)
	defer cancel()
	var err error
	switch x.rng.IntN(4) {
	case 0:
		err = x.w.Localize(ctx, x.some())
	case 1:
		err = x.w.WaitSync(ctx)
	default:
		a := x.ask(x.some(), -1)
		if err = x.w.Pull(ctx, a.keys, a.vals); err == nil {
			return x.answered(a)
		}
	}
	_, err = x.cut(err)
	return err
}

// tear pushes by a call that may not come to its end: the push counts once or not
// at all.
func (x *worker) tear(ctx context.Context) error {
	k := x.model.Key(torn, x.rng.Uint64N(x.model.Table(torn).Rows))
	v := x.next(write{key: k})
	if x.rng.IntN(2) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = x.hasty(ctx)
		defer cancel()
	}
	short, err := x.cut(x.w.Push(ctx, []godwit.Key{k}, v))
	switch {
	case err != nil:
		return err
	case short:
		x.counts.tornWrites.Add(1)
	default:
		x.completed(x.id, k, x.done[k][x.id].Load()+1)
	}
	return nil
}
