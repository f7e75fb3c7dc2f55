package ahead

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/protocol/intent"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/operation"
	"github.com/godwit-ps/godwit/node/internal/planner"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// An Asker is the worker that a [Fetcher] fetches for.
type Asker interface {
	// AskAhead begins a pull of keys into values, and does not wait.
	// If whole is set, values are rows. It reports whether all keys were sent for; others wait until they come to this node.
	AskAhead(keys []godwit.Key, values []float32, whole bool) (h godwit.Handle, sent bool, err error)
	// Arrived waits for such a pull, and reports whether it is over. If ctx ends before, it is given up, with an error, unless
	// it is to be kept.
	Arrived(ctx context.Context, h godwit.Handle, keep bool) (over bool, err error)
	// Forsake gives one up: when it returns, its values are not written any more.
	Forsake(h godwit.Handle)
}

// A Config says whose Fetcher it is. The fields are those of the worker or its node.
type Config struct {
	Host    *host.Host
	Rows    *shards.Set
	Ops     *operation.Table
	Intents *planner.Announcer
	Clock   *tick.Clock
	Model   *godwit.Model
	Bounded bool  // a table bounds its staleness
	Long    int64 // nanoseconds of a step from which on values are fetched ahead
	Depth   int   // for how many steps they are at first, with those of keys that steps before use; 0: for one, without these
}

// relaxed reports whether reads of a key may lag.
func (c *Config) relaxed(k godwit.Key) bool {
	i, _ := c.Model.Locate(k)
	return c.Model.Table(i).Relaxed
}

// A Start says how workers begin to fetch ahead.
type Start struct {
	Long  time.Duration // of a step, from which on values are fetched ahead; 0: LongStep
	Depth int           // as in Config
}

// A Fetcher fetches values ahead for one worker, under a policy that does so
// ([placement.AheadPolicy]): what the worker announced for a step, and is elsewhere, it asks for
// when the step before begins. So the worker waits for no message, and reads a main copy as of the
// step before or later. It belongs to the worker's goroutine. The zero Fetcher fetches nothing.
type Fetcher struct {
	Config
	asker   Asker
	pace    pace         // of its steps, without what it waits
	work    pace         // … and without what it does for keys that are elsewhere: where keys are must not decide how they are got
	verdict              // … by both
	awaits  godwit.Clock // Await was called last
	waits   bool         // the last pull did: one that does not would ask again for what has not come
	returns returns
	waited  int64       // nanoseconds that the worker has waited for values in its step
	asking  int64       // … and that fetch took in all
	near    intent.Plan // steps that are near, and whose values are to be fetched
	values  Buffer
	fetched atomic.Uint64
	asked   []godwit.Key // scratch
	lacking []godwit.Key // …
	away    []bool       // scratch, of the keys of a step
	left    []uint64     // …
	how     []int        // …
	offs    []int        // …
	row     []float32    // …
}

// Begin has the fetcher fetch for a worker. Until it has seen how long steps take, it takes them
// for long ones: copies that were set up for the first steps of a run would be old, when rows
// change most.
func (f *Fetcher) Begin(c Config, a Asker) {
	if c.Long == 0 {
		c.Long = int64(LongStep)
	}
	f.Config, f.asker = c, a
	f.returns.relaxed = f.relaxed
	p := paceOf(0, c.Long, true)
	f.long = p.Fetches()
	c.Intents.Steps(p)
	if c.Depth > 0 {
		f.values.Own, f.values.Depth = true, godwit.Clock(c.Depth-1)
	}
}

// on reports whether the worker's policy has values fetched ahead.
func (f *Fetcher) on() bool { return f.asker != nil }

// Any reports whether anything is fetched ahead.
func (f *Fetcher) Any() bool { return f.values.Any() }

// Fetched returns how many keys were fetched. Any goroutine may call it.
func (f *Fetcher) Fetched() uint64 { return f.fetched.Load() }

// Advanced is told that the worker's clock has advanced, for how many nanoseconds the worker
// has waited so far, and how many more its calls have taken for keys that were elsewhere. It asks for the values of the steps that are near, and gives up those of
// steps that are over. Of the step that begins it asks for what was not fetched, or may not be used: all at once, so that the
// step's pulls wait for one round trip together.
func (f *Fetcher) Advanced(waited, asking int64) {
	if !f.on() {
		return
	}
	now := f.Host.Now()
	f.pace.stepped(now, waited)
	if f.work.stepped(now, waited+asking+f.asking) {
		f.Intents.Steps(f.judge(f.pace.length, f.work.length, &f.returns, f.Config.Long))
	}
	clock := f.Clock.Now()
	f.values.Stepped(f.pace.length, f.waited)
	f.waited = 0
	f.values.Over(clock, f.over)
	for _, s := range f.Intents.TakeDue() {
		f.near.Add(s.Keys, s.At, s.At+1)
	}
	if f.long && f.waits {
		f.lacking = f.values.Lacking(clock, f.lacking[:0])
		f.fetch(f.lacking, clock, true)
	}
	if f.long && f.values.Own {
		for at := clock + 1; at <= clock+f.values.Depth; at++ {
			f.lacking = f.values.Lacking(at, f.lacking[:0])
			f.fetch(f.lacking, at, true)
		}
	}
	f.fetchNear(clock)
	if !f.long { // those that were handed over when steps were taken for long ones
		f.near.Due(clock, godwit.Forever, func(keys []godwit.Key, at godwit.Clock) {
			f.Intents.Return(planner.Step{Keys: keys, At: at})
		})
	}
	f.Intents.Near(f.near.Keys())
}

// fewKeys is of how many keys intents for one step may be together that are fetched as one.
const fewKeys = 256

// fetchNear asks for the values of the steps that are near at a clock. Intents of few keys for the same step are fetched together: a program may
// announce each key by itself, and each operation costs something, and what it fetches is searched for each key that is pulled.
func (f *Fetcher) fetchNear(clock godwit.Clock) {
	var few planner.Step
	alone := true // few is of one intent
	flush := func() {
		if !alone { // a key may be in several intents, and is fetched once
			slices.Sort(few.Keys)
			few.Keys = slices.Compact(few.Keys)
		}
		f.fetch(few.Keys, few.At, false)
	}
	f.near.Due(clock, f.values.Depth+1, func(keys []godwit.Key, at godwit.Clock) {
		switch {
		case at <= clock:
		case at == few.At && len(few.Keys)+len(keys) <= fewKeys:
			few.Keys, alone = append(few.Keys, keys...), false
		default:
			flush()
			few, alone = planner.Step{Keys: keys, At: at}, true
		}
	})
	flush()
}

// WaitedForValues is told that the worker waited for values since a time.
func (f *Fetcher) WaitedForValues(since int64) {
	if f.on() {
		f.waited += f.Host.Now() - since
	}
}

// Await waits for what is on its way for the present step, and returns whether it has come before ctx ended.
func (f *Fetcher) Await(ctx context.Context) (came bool, err error) {
	if !f.on() {
		return true, nil
	}
	clock := f.Clock.Now()
	f.awaits = clock
	for _, s := range f.values.steps {
		if s.At > clock || s.Handle == 0 {
			continue
		}
		late := !f.complete(s.Handle)
		if came, err = f.asker.Arrived(ctx, s.Handle, true); !came {
			return false, nil
		}
		s.Handle = 0
		s.Came(late, f.Host.Now())
		if err != nil {
			s.Fail()
			return true, err
		}
	}
	return true, nil
}

// Waited is told that the program has waited for an operation of its own. What was asked for when a step began may be of before
// that operation.
func (f *Fetcher) Waited() {
	if f.Any() {
		f.values.Overtaken()
	}
}

// Announced takes what the worker announces of keys for one step that comes next, and fetches their
// values at once. It parts the others into those whose values may be fetched when their step is near, and
// those that the planner has to ask for: announced for several steps at once, or of
// tables with bounded staleness, of which what was read earlier may be too old.
func (f *Fetcher) Announced(keys []godwit.Key, start, end godwit.Clock) (step, other []godwit.Key) {
	if !f.on() || end != start+1 {
		return nil, keys
	}
	step = keys
	if f.Bounded {
		step, other = f.eventual(keys)
	}
	if len(step) == 0 {
		return step, other
	}
	clock := f.Clock.Now()
	step, other = f.sample(step, other, start, clock)
	if f.long && start > clock && start <= clock+1+f.values.Depth && len(step) > 0 && f.values.Room() {
		f.Intents.Fetched(step)
		f.fetch(step, start, false)
		step = nil
	}
	return step, other
}

// sample sees whether keys of the sample are still here that came. Where steps are fetched only because they use their keys once,
// the planner is to ask for the sample, so that it comes: it returns the other keys, and with others the sample.
func (f *Fetcher) sample(step, others []godwit.Key, at, clock godwit.Clock) (rest, other []godwit.Key) {
	trial := f.long && f.returns.fleeting && f.work.length > 0 && f.work.length < f.Config.Long
	f.lacking = f.returns.announced(step, at, clock, trial || !f.long, f.lacking[:0])
	f.away = f.away[:0]
	for _, k := range f.lacking {
		f.away = append(f.away, f.Rows.Gone(k))
	}
	f.returns.judge(f.away)
	if !trial {
		return step, others
	}
	f.asked = f.asked[:0]
	for _, k := range step {
		if onTrial(k) {
			others = append(others, k)
		} else {
			f.asked = append(f.asked, k)
		}
	}
	return f.asked, others
}

// eventual parts keys into those of tables without and with bounded staleness.
func (f *Fetcher) eventual(keys []godwit.Key) (eventual, bounded []godwit.Key) {
	for _, k := range keys {
		if i, _ := f.Model.Locate(k); f.Model.Table(i).Staleness == godwit.Eventual {
			eventual = append(eventual, k)
		} else {
			bounded = append(bounded, k)
		}
	}
	return eventual, bounded
}

// over ends the fetching of a step.
func (f *Fetcher) over(s *Step) {
	if s.Handle != 0 {
		f.asker.Forsake(s.Handle)
		s.Handle = 0
	}
}

// fetch asks for the values of keys that are elsewhere, as far as there is room. The others are
// asked for when they are pulled. For the step that has begun it may ask for any, as its pulls may.
func (f *Fetcher) fetch(keys []godwit.Key, at godwit.Clock, again bool) {
	if len(keys) == 0 || f.Host.Err() != nil || !f.Ops.Free() {
		return
	}
	began := f.Host.Now()
	defer func() { f.asking += f.Host.Now() - began }()
	now := at == f.Clock.Now()
	busy := f.values.UnderWay(f.complete)
	f.away, f.left, f.how = slices.Grow(f.away[:0], len(keys))[:len(keys)], slices.Grow(f.left[:0], len(keys))[:len(keys)], slices.Grow(f.how[:0], len(keys))[:len(keys)]
	f.Rows.Away(keys, f.away, f.left)
	room := f.Ops.Room - f.Ops.UnderWay()
	t := f.Rows.First()
	var any [4]bool
	for i, k := range keys {
		f.how[i] = here
		if !f.away[i] {
			continue
		}
		if !t.Has(k) {
			t = f.Rows.Table(k)
		}
		how, floats := value, t.Dim
		switch {
		case now:
		case busy(k), f.values.Own && !t.Single: // what a filter holds back, another worker may push at any time
			how = not
		case f.values.UsedBefore(k, at):
			if how = not; f.values.Own {
				how, floats = row, t.Floats
			}
		}
		if how != not && f.values.Has(k, at, how == row) {
			continue // the worker has announced it for this step before
		}
		if how != not {
			if room -= link.CostOf(floats); room < 0 {
				how = not
			}
		}
		if how == not && again {
			continue
		}
		f.how[i], any[how] = how, true
	}
	if any[value] || any[not] {
		f.ask(f.values.Begin(at, false), keys, now)
	}
	if any[row] && f.Ops.Free() {
		f.ask(f.values.Begin(at, true), keys, now)
	}
}

// How a key is fetched.
const (
	here = iota // it need not be
	not         // it cannot be
	value
	row // with its state, as the worker pushes to it meanwhile
)

// ask has a step that begins asked for.
func (f *Fetcher) ask(s *Step, keys []godwit.Key, now bool) {
	s.now, s.firm = now, f.values.InOrder()
	t := f.Rows.First()
	for i, k := range keys {
		if how := f.how[i]; how == here || s.whole != (how == row) {
			continue
		}
		if !t.Has(k) {
			t = f.Rows.Table(k)
		}
		floats := t.Dim
		if s.whole {
			floats = t.Floats
		}
		s.Add(k, floats, f.left[i], f.how[i] != not)
	}
	s.Ready()
	if len(s.Asked) == 0 {
		return
	}
	if f.values.Own {
		f.values.Replaced(s)
	}
	h, sent, err := f.asker.AskAhead(s.Asked, s.Values, s.whole)
	if err != nil {
		s.Fail() // the run is over: the worker's next call says so
		return
	}
	s.Handle, s.asked = h, f.Host.Now()
	if f.values.Own && !sent {
		s.Unordered()
	}
	if !s.now {
		f.fetched.Store(f.fetched.Load() + uint64(len(s.Asked)))
	}
}

// Direct reports whether what the worker asks for and pushes has to keep its order.
func (f *Fetcher) Direct() bool { return f.values.Own }

// Pushed notes that the worker pushes vectors: those of missed positions of a call.
func (f *Fetcher) Pushed(keys []godwit.Key, miss []int, vals []float32) {
	if !f.Any() {
		return
	}
	f.asked, f.offs = f.asked[:0], f.offs[:0]
	for m := 0; m < len(miss); m += 2 {
		if k := keys[miss[m]]; f.values.Changes(k) {
			f.asked, f.offs = append(f.asked, k), append(f.offs, miss[m+1])
		}
	}
	if len(f.asked) == 0 {
		return
	}
	if f.values.Noted() > f.Ops.Room { // a step that pushes without end: its values are asked for again
		for _, k := range f.asked {
			f.values.Forget(k)
		}
		return
	}
	s, t := f.values.Push(), f.Rows.First()
	before := len(s.keys)
	for _, k := range f.asked {
		if !t.Has(k) {
			t = f.Rows.Table(k)
		}
		s.Add(k, t.Dim, 0, true)
	}
	s.Ready()
	for i := range f.asked {
		copy(s.Value(before+i), vals[f.offs[i]:])
	}
}

// complete reports whether an operation is over.
func (f *Fetcher) complete(h godwit.Handle) bool {
	o, _ := f.Ops.Get(h)
	return o == nil || len(o.Done) > 0
}

// Took counts keys that were served by what was fetched.
type Took struct {
	Ahead uint64 // for which the worker waited for nobody,
	Late  uint64 // … or for what was on its way,
	Now   uint64 // and those that were asked for when the step had begun
}

// Take serves missed positions of a pull, pairs of position and offset in buf, by what was fetched. A
// call that does not wait takes only what has come. Take returns the positions that are left, in
// the same memory.
func (f *Fetcher) Take(ctx context.Context, keys []godwit.Key, buf []float32, miss []int, wait bool) (left []int, took Took, err error) {
	clock := f.Clock.Now()
	f.waits = wait || f.awaits == clock
	left = miss[:0]
	var u user
	late := uint64(0)
	for m := 0; m < len(miss); m += 2 {
		i, off := miss[m], miss[m+1]
		s, j := f.values.Find(keys[i], clock)
		if s != nil && s.Handle != 0 {
			waited, err := f.arrived(ctx, s, wait)
			if err != nil {
				return left, took, err
			}
			late += waited
		}
		if s == nil || s.Handle != 0 || !u.may(f.Rows, s, j, keys[i]) {
			left = append(left, i, off)
			continue
		}
		f.read(s, j, keys[i], buf[off:])
		if s.now {
			took.Now++
		} else {
			took.Ahead++
		}
	}
	took.Late = min(late, took.Ahead)
	took.Ahead -= took.Late
	return left, took, nil
}

// read writes what the worker is to read of a key to dst.
func (f *Fetcher) read(s *Step, i int, k godwit.Key, dst []float32) {
	if !s.whole {
		copy(dst, s.Value(i))
		return
	}
	t := f.Rows.Table(k)
	f.row = append(f.row[:0], s.Value(i)...)
	f.values.Pushes(s, k, func(push []float32) { t.Push(f.row, push) })
	t.Read(dst[:t.Dim], f.row)
}

// A user says what values may be used in one call. It asks once a shard whether any row has left: a worker reads no rows in
// the middle of a call that leave afterwards. Only where one has, it asks for each key.
type user struct {
	of   godwit.Key // of the shard,
	left uint64     // … from which so many rows have left
	any  bool
}

// may reports whether no row of a key has left this node, or moved here, since its value was asked for.
func (u *user) may(rows *shards.Set, s *Step, i int, k godwit.Key) bool {
	if !u.any || !rows.SameShard(k, u.of) {
		*u = user{of: k, left: rows.Left(k), any: true}
	}
	left := s.Left(i)
	return u.left == left || !rows.LeftSince(k, left)
}

// arrived waits for the values of a step, if it may. It returns how many keys were late.
func (f *Fetcher) arrived(ctx context.Context, s *Step, wait bool) (late uint64, err error) {
	here := f.complete(s.Handle)
	if !here && !wait {
		return 0, nil
	}
	if !s.now && !here {
		late = uint64(len(s.Asked))
	}
	h := s.Handle
	s.Handle = 0
	defer func() { s.Came(!here, f.Host.Now()) }()
	if _, err = f.asker.Arrived(ctx, h, false); err != nil {
		s.Fail()
	}
	return late, err
}

// Synced is told that all pushes of the worker have reached the main copies. Values that were fetched before may lack what filters
// held back of them, which another worker has sent.
func (f *Fetcher) Synced() {
	if f.Any() {
		f.values.ForgetEach(func(k godwit.Key) bool { return !f.Rows.Table(k).Single })
	}
}

// Forget has no value used that was fetched of keys that the worker sends another request for:
// missed positions of a call.
func (f *Fetcher) Forget(keys []godwit.Key, miss []int) {
	if !f.Any() {
		return
	}
	for m := 0; m < len(miss); m += 2 {
		f.values.Forget(keys[miss[m]])
	}
}

// Begun is told that the worker is about to send a request for missed positions of a call; vals are those of a push.
func (f *Fetcher) Begun(keys []godwit.Key, miss []int, vals []float32, push bool) {
	if push && f.Direct() {
		f.Pushed(keys, miss, vals)
	} else {
		f.Forget(keys, miss)
	}
}

// Issued is told that it was sent, that some of it waits here for its keys, and whether the worker waits for it.
func (f *Fetcher) Issued(h godwit.Handle, keys []godwit.Key, miss []int, push, waits, waited bool) {
	ordered := push && f.Direct() && !waits
	if push && f.Direct() && !ordered {
		f.Forget(keys, miss)
	}
	if !waited {
		f.under(h, keys, miss, ordered)
	}
}

// under notes a request of the worker that is not waited for: of missed positions of a call.
func (f *Fetcher) under(h godwit.Handle, keys []godwit.Key, miss []int, ordered bool) {
	if !f.on() {
		return
	}
	f.asked = f.asked[:0]
	for m := 0; m < len(miss); m += 2 {
		f.asked = append(f.asked, keys[miss[m]])
	}
	f.values.Under(h, f.asked, ordered, f.complete)
}

// Crossed is told that the worker has crossed a barrier: nothing is used that was fetched before.
func (f *Fetcher) Crossed() {
	if f.on() {
		f.Intents.Crossed(f.Clock.Now())
	}
	f.values.Over(godwit.Forever, f.over)
}
