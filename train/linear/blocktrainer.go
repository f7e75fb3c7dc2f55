package linear

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/buffer"
)

// A Turn is a worker's step on a block.
type Turn struct {
	pass, block int
	all         bool // whether no weight is left out in this pass
}

// A blockTrainer is one worker's share of [Blocks]. It belongs to one goroutine.
type blockTrainer struct {
	task *Blocks
	w    godwit.Worker
	keys keys
	part train.Partition
	cols *columns
	m    *matrix // nil, unless all weights are one block with a matrix of curvatures

	// By place: the weight as this worker last followed it, of the places that
	// its examples have values of. Margins are of these.
	seen []value
	// By place: the weights that this worker changes, which it knows first.
	own []weight
	// By place that it changes: how many workers have values of it.
	sharers []int32

	margin   []float64 // by example
	features []int32   // by example: of the blocks that may be under way with the turn's
	slope    []float64 // by example that the turn's block has values of
	curve    []float64 // likewise: the parabola's, times features
	met      []int     // by example: the turn that slope and curve are of
	turn     int       // numbers all turns

	ks    []godwit.Key // of the gradients that were pushed
	grads []float32
	done  []int32 // places whose gradients were complete
	set   []godwit.Key
	to    []float32

	outcome read            // of the block after the last one followed
	sums    read            // of the first block that is not changed
	pass    int             // that is under way; 0: none was begun
	early   int             // reads in a row that came too early
	under   []godwit.Handle // pushes and sets of the pass
}

// A weight is what its row says: the value and whether it is left out, the pass that changed it last, and what it
// was before that.
type weight struct {
	value
	pass   int // 0: none
	before value
}

type value struct {
	x   float32
	out bool // left out, and x is 0
}

// The floats of rows. So that a run can go on in the middle of a pass, from the rows alone, weights have what they were
// before: margins contain the outcome of the blocks up to some delay before the turn, and rows may have that of later ones.
const (
	weightDim   = 3 // value, pass, value before; pass is negative if the weight is left out, and the value before is -0 if it was
	gradientDim = 3 // gradient, curvature, how many workers pushed them; then the row of the matrix, if there is one
)

func (w *weight) take(row []float32) {
	*w = weight{valueOf(row), passOf(row), value{row[2], row[2] == 0 && math.Signbit(float64(row[2]))}}
}

// valueOf is what a row says that a weight is.
func valueOf(row []float32) value { return value{row[0], math.Signbit(float64(row[1]))} }

// passOf is the pass that changed a weight's row.
func passOf(row []float32) int { return int(max(row[1], -row[1])) }

// at returns the weight as it was at the begin of a pass.
func (w *weight) at(pass int) value {
	if w.pass == pass {
		return w.before
	}
	return w.value
}

func (w *weight) row(to []float32) []float32 {
	pass, before := float32(w.pass), w.before.x
	if w.out {
		pass = -pass
	}
	switch {
	case w.before.out:
		before = float32(math.Copysign(0, -1))
	case before == 0:
		before = 0 // and not -0
	}
	return append(to, w.x, pass, before)
}

// A read is what is being asked for of a block.
type read struct {
	block  int
	places []int32 // that are still waited for
	ks     []godwit.Key
	vals   []float32
	h      godwit.Handle // 0: nothing is on its way
}

func newBlockTrainer(t *Blocks, w godwit.Worker, k keys, part train.Partition) (*blockTrainer, error) {
	c := newColumns(t.model, t.data.Train, part)
	n, p := len(c.labels), t.places()
	tr := &blockTrainer{
		task: t, w: w, keys: k, part: part, cols: c,
		seen: make([]value, p), own: make([]weight, p), sharers: t.sharers(part.Count),
		margin: make([]float64, n), features: make([]int32, n), slope: make([]float64, n), curve: make([]float64, n), met: make([]int, n),
	}
	if t.whole {
		tr.m = newMatrix(t.model, t.data.Train, part)
	}
	return tr, tr.announce()
}

// announce declares the intent for the rows of which this worker is the only reader or
// the only writer, so that they move to its node. No other worker declares one, so that
// they stay there, and other workers' pushes and pulls reach them by one message.
// Replicas would be refreshed only by the server's sync rounds.
func (t *blockTrainer) announce() error {
	var ks []godwit.Key
	for b := range t.task.blocks() {
		from, to := t.share(b)
		for p := from; p < to; p++ {
			ks = append(ks, t.weightKey(int32(p)), t.gradientKey(int32(p)))
		}
	}
	now := t.w.Clock()
	err := t.w.Intent(ks, now, now+godwit.Clock(t.part.Epochs*t.task.blocks()))
	if errors.Is(err, godwit.ErrFull) {
		return nil // too many to announce: they are reached where they are
	}
	return err
}

// Steps is one a block.
func (t *blockTrainer) Steps(int, int) int { return t.task.blocks() }

// Load fills b with a turn. There is nothing to announce.
func (t *blockTrainer) Load(b *train.Batch[Turn], at train.At) {
	b.Data = Turn{at.Epoch, at.Step, t.task.cfg.KKT == 0 || (at.Epoch-1)%t.task.cfg.Recheck == 0}
}

// has reports whether the worker's examples have values of a place.
func (t *blockTrainer) has(p int) bool { return t.cols.starts[p] < t.cols.starts[p+1] }

// share returns the places from … to-1 of a block whose weights the worker
// changes. Workers take turns with what cannot be divided evenly.
func (t *blockTrainer) share(block int) (from, to int) {
	first, n := t.task.bounds[block], t.task.bounds[block+1]-t.task.bounds[block]
	if t.task.whole { // its weights change together
		if t.part.Index > 0 {
			return first, first
		}
		return first, first + n
	}
	i := (t.part.Index + block) % t.part.Count
	return first + n*i/t.part.Count, first + n*(i+1)/t.part.Count
}

// active appends the places of a block that this worker has values of and that
// are not left out.
func (t *blockTrainer) active(ps []int32, block int, all bool) []int32 {
	for p := t.task.bounds[block]; p < t.task.bounds[block+1]; p++ {
		if t.has(p) && (all || !t.seen[p].out) {
			ps = append(ps, int32(p))
		}
	}
	return ps
}

func (t *blockTrainer) weightKey(p int32) godwit.Key {
	if int(p) == len(t.task.used) {
		return t.keys.bias
	}
	return t.keys.weight + godwit.Key(t.task.used[p])
}

// gradientKey is that of the place's feature; the bias has the last row.
func (t *blockTrainer) gradientKey(p int32) godwit.Key {
	if int(p) == len(t.task.used) {
		return t.keys.gradient + godwit.Key(t.task.data.Train.Width)
	}
	return t.keys.gradient + godwit.Key(t.task.used[p])
}

// Step makes a turn. The first turn of a pass returns the loss, which is the objective
// at the start of the pass.
func (t *blockTrainer) Step(ctx context.Context, b *train.Batch[Turn]) (loss train.Loss, err error) {
	d := b.Data
	d.all = d.all || t.task.whole
	delay, last := t.task.cfg.Delay, t.task.blocks()-1
	t.turn++
	if t.pass != d.pass {
		if err := t.begin(ctx, d); err != nil {
			return loss, err
		}
	}
	if d.block == 0 {
		loss = t.objective()
	}
	if known := d.block - delay - 1; known >= 0 {
		t.count(known, d.all, -1)
		if err := t.follow(ctx, known, d.all); err != nil {
			return loss, err
		}
	}
	if next := d.block + delay; next <= last {
		t.count(next, d.all, 1)
	}
	if delay > 1 && d.block >= delay {
		// The next turn needs this; by now it has most likely arrived.
		if err := t.expect(ctx, d.block-delay, d.block-delay, d.all); err != nil {
			return loss, err
		}
	}
	if err := t.pushGradients(ctx, d); err != nil {
		return loss, err
	}
	if err := t.update(ctx, d, d.block-delay); err != nil {
		return loss, err
	}
	if d.block == last {
		err = t.end(ctx, d)
	}
	return loss, err
}

// begin begins a pass, or goes on with one that an earlier run had begun: all workers had made the turns on the blocks before.
// Margins are computed anew, so that they follow from rows.
func (t *blockTrainer) begin(ctx context.Context, d Turn) error {
	first := t.pass == 0
	t.pass = d.pass
	var rows map[int32][]float32
	if first {
		var err error
		if rows, err = t.first(ctx, d); err != nil {
			return err
		}
	}
	clear(t.margin)
	for p := range t.seen {
		t.add(p, float64(t.seen[p].x))
	}
	known := max(0, d.block-t.task.cfg.Delay-1) // blocks before it are followed
	for p := range t.task.bounds[known] {
		if row, ok := rows[int32(p)]; ok && t.has(p) && passOf(row) == d.pass {
			t.followed(int32(p), row)
		}
	}
	if err := t.overdue(ctx, d); err != nil {
		return err
	}
	t.outcome.block = -1
	t.prepare(&t.sums, d.block, d.all)
	if t.task.whole {
		return nil
	}
	clear(t.features)
	for b := known; b < min(d.block+t.task.cfg.Delay, t.task.blocks()); b++ {
		t.count(b, d.all, 1)
	}
	return nil
}

// first reads all weights that the worker follows or changes, and returns their rows. At the begin of a pass none of them can
// have been changed in it. So rows that say so are of an earlier run, and who changes them has them say nothing.
func (t *blockTrainer) first(ctx context.Context, d Turn) (map[int32][]float32, error) {
	var ps []int32
	var ks []godwit.Key
	for b := range t.task.blocks() {
		from, to := t.share(b)
		for p := t.task.bounds[b]; p < t.task.bounds[b+1]; p++ {
			if t.has(p) || p >= from && p < to {
				ps, ks = append(ps, int32(p)), append(ks, t.weightKey(int32(p)))
			}
		}
	}
	vals := make([]float32, weightDim*len(ks))
	rows := make(map[int32][]float32, len(ps))
	for {
		if err := t.w.Pull(ctx, ks, vals); err != nil {
			return nil, err
		}
		var stale []int32
		for i, p := range ps {
			rows[p] = vals[weightDim*i : weightDim*(i+1)]
			t.own[p].take(rows[p])
			t.seen[p] = t.own[p].at(t.pass)
			if w := &t.own[p]; d.block == 0 && w.pass >= d.pass {
				w.pass, w.before, t.seen[p] = 0, w.value, w.value
				stale = append(stale, p)
			}
		}
		if len(stale) == 0 {
			return rows, nil
		}
		if err := t.forget(ctx, stale); err != nil {
			return nil, err
		}
	}
}

// forget clears the passes of the rows of places of this worker's share, and waits a little for others to do likewise.
func (t *blockTrainer) forget(ctx context.Context, ps []int32) error {
	t.set, t.to = t.set[:0], t.to[:0]
	for b := range t.task.blocks() {
		from, to := t.share(b)
		for _, p := range ps {
			if int(p) >= from && int(p) < to {
				t.set, t.to = append(t.set, t.weightKey(p)), t.own[p].row(t.to)
			}
		}
	}
	if err := t.w.Set(ctx, t.set, t.to); err != nil {
		return err
	}
	time.Sleep(nap)
	return t.w.WaitSync(ctx)
}

// overdue changes the weights of this worker's share of the blocks before a turn's whose gradients all workers of an earlier run
// had pushed, and none had used.
func (t *blockTrainer) overdue(ctx context.Context, d Turn) error {
	r := &t.sums
	r.places, r.ks = r.places[:0], r.ks[:0]
	for b := range d.block {
		from, to := t.share(b)
		for p := int32(from); p < int32(to); p++ {
			if w := &t.own[p]; w.pass != d.pass && (d.all || !w.out) {
				r.places, r.ks = append(r.places, p), append(r.ks, t.gradientKey(p))
			}
		}
	}
	if len(r.ks) == 0 {
		return nil
	}
	r.vals = buffer.Sized(r.vals, gradientDim*len(r.ks))
	if err := t.w.Pull(ctx, r.ks, r.vals); err != nil {
		return err
	}
	for i, p := range r.places {
		sum := r.vals[gradientDim*i : gradientDim*(i+1)]
		if sum[2] == 0 {
			return fmt.Errorf("linear: the run cannot go on at block %d of pass %d: nobody has pushed a gradient of weight %d, of an earlier block", d.block, d.pass, t.weightKey(p)-t.keys.weight)
		}
		t.change(p, sum)
	}
	return t.publish(ctx, r.places)
}

// end ends a pass: all weights are changed, and all workers know them.
func (t *blockTrainer) end(ctx context.Context, d Turn) error {
	if err := t.update(ctx, d, d.block); err != nil {
		return err
	}
	from := max(0, d.block-t.task.cfg.Delay)
	if t.outcome.block == from { // asked for by itself
		if err := t.follow(ctx, from, d.all); err != nil {
			return err
		}
		from++
	}
	t.outcome.block = -1
	if err := t.expect(ctx, from, d.block, d.all); err != nil {
		return err
	}
	if err := t.follow(ctx, from, d.all); err != nil {
		return err
	}
	err := t.w.Wait(ctx, t.under...)
	t.under = t.under[:0]
	return err
}

// count adds a block's features of each example to those that are under way, or
// takes them off. It is asked the latter before the block's outcome is known,
// which may leave out others.
func (t *blockTrainer) count(block int, all bool, by int32) {
	for p := t.task.bounds[block]; p < t.task.bounds[block+1]; p++ {
		if all || !t.seen[p].out {
			rows, _ := t.cols.place(p)
			for _, e := range rows {
				t.features[e] += by
			}
		}
	}
}

// expect asks for the outcome of the blocks from … to.
func (t *blockTrainer) expect(ctx context.Context, from, to int, all bool) (err error) {
	r := &t.outcome
	r.block, r.places, r.ks = from, r.places[:0], r.ks[:0]
	for b := from; b <= to; b++ {
		r.places = t.active(r.places, b, all)
	}
	for _, p := range r.places {
		r.ks = append(r.ks, t.weightKey(p))
	}
	return t.ask(ctx, r, weightDim)
}

// ask asks for what a read waits for.
func (t *blockTrainer) ask(ctx context.Context, r *read, dim int) (err error) {
	r.vals = buffer.Sized(r.vals, dim*len(r.ks))
	r.h, err = t.w.PullAsync(ctx, r.ks, r.vals)
	return err
}

// follow waits for a block's outcome, or what was asked for with it, and brings
// the margins up to date.
func (t *blockTrainer) follow(ctx context.Context, block int, all bool) error {
	r := &t.outcome
	if r.block != block {
		if err := t.expect(ctx, block, block, all); err != nil {
			return err
		}
	}
	for {
		if err := t.w.Wait(ctx, r.h); err != nil {
			return err
		}
		left := 0
		for i, p := range r.places {
			row := r.vals[weightDim*i : weightDim*(i+1)]
			if passOf(row) != t.pass {
				r.places[left], r.ks[left] = p, r.ks[i]
				left++
				continue
			}
			t.followed(p, row)
		}
		if r.places, r.ks = r.places[:left], r.ks[:left]; left == 0 {
			t.early = 0
			return nil
		}
		if err := t.pause(ctx, r, weightDim); err != nil {
			return err
		}
		if err := t.ask(ctx, r, weightDim); err != nil {
			return err
		}
	}
}

// pause waits a little after a read that came too early. A read from another node takes
// time anyway. A local row gets its updates from other nodes by the next exchange, for
// which pause waits, or from other workers of this process, to which it yields the
// processor.
func (t *blockTrainer) pause(ctx context.Context, r *read, dim int) error {
	if !t.w.PullIfLocal(r.ks[0], r.vals[:dim]) {
		return nil
	}
	if t.early++; t.early > yields {
		time.Sleep(nap)
	} else {
		runtime.Gosched()
	}
	return t.w.WaitSync(ctx)
}

// A worker whose read came too early yields so many times before it sleeps.
const (
	yields = 4
	nap    = 20 * time.Microsecond
)

// followed takes a weight's row.
func (t *blockTrainer) followed(p int32, row []float32) {
	before := t.seen[p].x
	t.seen[p] = valueOf(row)
	t.add(int(p), float64(row[0])-float64(before))
}

// add adds to the margins what a weight has changed by.
func (t *blockTrainer) add(p int, by float64) {
	if by != 0 {
		rows, xs := t.cols.place(p)
		for k, e := range rows {
			t.margin[e] += float64(xs[k]) * by
		}
	}
}

// objective is the loss of the worker's examples and the penalty of the weights
// that it changes.
func (t *blockTrainer) objective() train.Loss {
	l := train.Loss{Examples: int64(len(t.margin))}
	for e, m := range t.margin {
		loss, _ := logLoss(t.cols.labels[e], float32(m))
		l.Sum += loss
	}
	for b := range t.task.blocks() {
		from, to := t.share(b)
		for p := from; p < min(to, len(t.task.used)); p++ {
			if w := t.own[p].x; w != 0 {
				x := math.Abs(float64(w))
				l.Sum += float64(t.task.cfg.L1)*x + float64(t.task.cfg.L2)/2*x*x
			}
		}
	}
	return l
}

// pushGradients computes the gradient and the curvature of each place of the
// block that is not left out, and pushes them.
func (t *blockTrainer) pushGradients(ctx context.Context, d Turn) error {
	t.ks, t.grads = t.ks[:0], t.grads[:0]
	if t.task.whole {
		t.pushMatrix()
		return t.track(t.w.PushAsync(ctx, t.ks, t.grads))
	}
	for p := t.task.bounds[d.block]; p < t.task.bounds[d.block+1]; p++ {
		if !t.has(p) || !d.all && t.seen[p].out {
			continue
		}
		var g, u float64
		rows, xs := t.cols.place(p)
		for k, e := range rows {
			if t.met[e] != t.turn {
				t.derivatives(e)
			}
			x := float64(xs[k])
			g += t.slope[e] * x
			u += t.curve[e] * x * x
		}
		t.ks = append(t.ks, t.gradientKey(int32(p)))
		t.grads = append(t.grads, float32(g), float32(u), 1)
	}
	return t.track(t.w.PushAsync(ctx, t.ks, t.grads))
}

// derivatives computes the first and second derivative of an example's loss.
func (t *blockTrainer) derivatives(e int32) {
	m, positive := t.margin[e], t.cols.labels[e]
	p, _ := wrong(toward(positive, m))
	t.slope[e] = -toward(positive, p)
	t.curve[e] = parabola(m) * float64(t.features[e])
	t.met[e] = t.turn
}

// track keeps an operation that has to be waited for at the end of the pass.
func (t *blockTrainer) track(h godwit.Handle, err error) error {
	if h != 0 {
		t.under = append(t.under, h)
	}
	return err
}

// prepare has a read look at the gradients of this worker's share of a block.
func (t *blockTrainer) prepare(r *read, block int, all bool) {
	r.block, r.places, r.ks, r.h = block, r.places[:0], r.ks[:0], 0
	from, to := t.share(block)
	for p := int32(from); p < int32(to); p++ {
		if all || !t.own[p].out {
			r.places, r.ks = append(r.places, p), append(r.ks, t.gradientKey(p))
		}
	}
}

// update changes the weights of this worker's share of the blocks up to the
// turn's, in order, as far as the gradients of all workers are there. It waits
// for those of the blocks up to must.
func (t *blockTrainer) update(ctx context.Context, d Turn, must int) error {
	r := &t.sums
	for r.block <= d.block {
		if r.h == 0 {
			if err := t.ask(ctx, r, t.task.gradientDim()); err != nil {
				return err
			}
			if r.h != 0 && r.block > must {
				return nil // the answer is there by the next turn
			}
		}
		if err := t.w.Wait(ctx, r.h); err != nil {
			return err
		}
		r.h = 0
		if err := t.updateComplete(ctx, r); err != nil {
			return err
		}
		switch {
		case len(r.places) == 0 && r.block+1 < t.task.blocks():
			t.early = 0
			t.prepare(r, r.block+1, d.all)
		case len(r.places) == 0:
			r.block++
		case r.block > must:
			return t.ask(ctx, r, t.task.gradientDim())
		default:
			if err := t.pause(ctx, r, t.task.gradientDim()); err != nil {
				return err
			}
		}
	}
	return nil
}

// updateComplete takes the weights whose gradients are complete to their minima,
// and clears the gradients for the next pass.
func (t *blockTrainer) updateComplete(ctx context.Context, r *read) error {
	if t.task.whole {
		return t.updateWhole(ctx, r)
	}
	done, left := t.done[:0], 0
	for i, p := range r.places {
		sum := r.vals[gradientDim*i : gradientDim*(i+1)]
		if sum[2] != float32(t.sharers[p]) {
			r.places[left], r.ks[left] = p, r.ks[i]
			left++
			continue
		}
		t.change(p, sum)
		done = append(done, p)
	}
	r.places, r.ks = r.places[:left], r.ks[:left]
	t.done = done
	return t.publish(ctx, done)
}

// change takes a weight to its minimum, by its sums.
func (t *blockTrainer) change(p int32, sum []float32) {
	w := &t.own[p]
	w.before, w.pass = w.value, t.pass
	w.x, w.out = t.minimum(p, w.x, sum[0], sum[1])
}

// publish clears the gradients of places and then tells their weights: whoever
// has seen a weight may push the next gradient.
func (t *blockTrainer) publish(ctx context.Context, ps []int32) error {
	t.set, t.to = t.set[:0], t.to[:0]
	for _, p := range ps {
		t.set = append(t.set, t.gradientKey(p))
	}
	t.to = append(t.to, make([]float32, len(ps)*t.task.gradientDim())...)
	if err := t.w.Set(ctx, t.set, t.to); err != nil {
		return err
	}
	t.set, t.to = t.set[:0], t.to[:0]
	for _, p := range ps {
		t.set, t.to = append(t.set, t.weightKey(p)), t.own[p].row(t.to)
	}
	return t.track(t.w.SetAsync(ctx, t.set, t.to))
}

// stretch divides curvatures: see [Blocks].
const stretch = 1.8

// minimum returns the weight to go to, and whether to leave it out from now on.
func (t *blockTrainer) minimum(p int32, w, g, u float32) (to float32, left bool) {
	l1, l2 := t.task.cfg.L1, t.task.cfg.L2
	if int(p) == len(t.task.used) { // the bias has no penalty
		l1, l2 = 0, 0
	}
	if u /= stretch; u+l2 <= 0 {
		return w, false
	}
	x := float64(u)*float64(w) - float64(g)
	if over := math.Abs(x) - float64(l1); over > 0 {
		to = float32(math.Copysign(over, x) / (float64(u) + float64(l2)))
	}
	still := math.Abs(float64(g)) < float64(t.task.cfg.KKT)*float64(l1)
	return to, w == 0 && to == 0 && still
}
