package cut

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/operation"
	"github.com/godwit-ps/godwit/node/internal/round"
	"github.com/godwit-ps/godwit/node/internal/tick"
)

// A stage is how far a node has come with a cut.
type stage uint64

const (
	asked   stage = iota + 1 // its workers are to cross
	settled                  // they have, and all that they changed before is in main copies, somewhere
	saved                    // all nodes had settled, and it has handed over what was to be saved at it
	ended                    // all nodes had saved, and it has handed over the rest
)

// A Config says what the cuts of a node are part of.
type Config struct {
	Host  *host.Host
	Links *link.Links
	Rows  Rows
	Ops   *operation.Tables
	Sync  *round.WaitSync
	// Bounded says that a table bounds staleness: workers cross at one tick. OneClock says that none does, and they do
	// all the same: who else has ticks follow clocks is the bound.
	Bounded, OneClock bool
}

// Cuts are those of a node, one after the other. Any goroutine may ask for one; Run makes them.
type Cuts struct {
	Config
	// PushAside pushes what filters had left of pushes when workers crossed, and waits.
	PushAside func(ctx context.Context) error

	parties []*Party
	gates
	room
	teller
	asked   atomic.Uint64 // how many cuts workers are to cross into
	number  atomic.Uint64 // of the cut under way, or the last one
	longest atomic.Int64  // nanoseconds that a worker took to cross
	wake    chan struct{} // holds a token when Run is to look
	gone    chan struct{} // closed when Run has returned
	kept    uint64        // copies of rows that cuts before this one kept
	changed bool          // the cut under way is of the changed rows only. Run writes it under the lock

	mu    preempt.Mutex
	stage stage
	peers []progress
	heard progress // the one with the largest number that a peer told first
	owes  bool     // the last cut was given up: the next one must be of all rows
	call  *call    // waits for the next cut or the one under way; nil: nobody does
	fault error    // why the cut under way is given up; nil: it is not
}

// A gates is where workers cross. The gate is over what parties are, too.
type gates struct {
	gate    preempt.Mutex
	meeting meeting
}

// A teller is what tells peers how far this node has come.
type teller struct {
	reach    tick.Tick     // of Run: what it told of this node's workers
	telling  preempt.Mutex // over what follows
	out      link.Sender
	tells    bool  // whether peers are to hear while rows are handed over whether workers are to wait,
	toldFull bool  // what they heard of that last
	toldAt   int64 // … and when
}

// What Seq of a wire.Cut says.
const (
	gaveUp    = 1 << 0
	ofChanged = 1 << 1
	isFull    = 1 << 2
)

// progress is how far a peer has come.
type progress struct {
	number  uint64
	stage   stage
	reach   tick.Tick // which its workers do not come to before all know where to cross; 0: any
	changed bool      // the cut is of the changed rows only
	gave    bool      // it gave the cut up
	full    bool      // its copies take much: workers are to wait
}

// before reports whether the peer has yet to come to a stage of a cut.
func (p *progress) before(number uint64, s stage) bool {
	return p.number < number || p.number == number && p.stage < s
}

// goesOn reports whether a peer may come to a stage of a cut next. Numbers are bounded so that there is always a
// next one.
func (p *progress) goesOn(number uint64, s stage) bool {
	if number == p.number {
		return s == p.stage+1 && s <= ended
	}
	return p.number < number && number <= maxNumber && p.stage == ended && s == asked
}

const maxNumber = 1 << 62

var (
	errOther = errors.New("another node asks for a cut of another number")
	errKinds = errors.New("not all nodes ask for the same rows: all, or the changed ones")
	errOwes  = errors.New("the cut before was given up: which rows were saved is not known, and the next cut must be of all")
)

// A call is one of Make.
type call struct {
	ctx     context.Context
	number  uint64
	changed bool
	sink    func(table int, rows []uint64, floats []float32) error
	stats   Stats
	err     error // set before done is closed
	done    chan struct{}
}

// Stats are what a cut was at a node.
type Stats struct {
	Rows, Bytes uint64        // handed over
	Kept        uint64        // rows of which a copy was made
	Longest     time.Duration // that a worker took to cross
}

// New returns the cuts of a node, which Run makes.
func New(c Config) *Cuts {
	x := &Cuts{Config: c, wake: make(chan struct{}, 1), gone: make(chan struct{}), teller: teller{out: c.Links.Sender()}, stage: ended, peers: make([]progress, c.Links.Nodes())}
	for i := range x.peers {
		x.peers[i].stage = ended
	}
	x.Rows.Hurry = func() bool { return x.full.Load() > 0 || x.resting() }
	return x
}

// resting reports whether all workers of the node are at rest: handing rows over holds up none of them.
func (c *Cuts) resting() bool {
	c.gate.Lock()
	defer c.gate.Unlock()
	for _, p := range c.parties {
		if p.parked != atRest {
			return false
		}
	}
	return true
}

// Join makes a worker one that crosses into cuts, by a function. At first it is at rest. It must not be
// called when Run is.
func (c *Cuts) Join(p *Party, id godwit.WorkerID, clock *tick.Clock, cross func()) {
	p.cuts, p.id, p.clock, p.cross, p.parked = c, id, clock, cross, atRest
	c.parties = append(c.parties, p)
}

func (c *Cuts) waited(nanos int64) {
	for {
		most := c.longest.Load()
		if nanos <= most || c.longest.CompareAndSwap(most, nanos) {
			return
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Make makes the cut of a number, of the changed rows or of all, or joins that which another node has
// asked for. It hands what is to be saved here to sink, by the goroutine of Run. It waits for a call of sink that is under way
// also where the context or the run has ended meanwhile.
func (c *Cuts) Make(ctx context.Context, number uint64, changed bool, sink func(table int, rows []uint64, floats []float32) error) (Stats, error) {
	x := &call{ctx: ctx, number: number, changed: changed, sink: sink, done: make(chan struct{})}
	c.mu.Lock()
	last := c.number.Load()
	switch {
	case c.call != nil:
		c.mu.Unlock()
		return Stats{}, fmt.Errorf("cut %d was asked for at this node and has not ended", c.call.number)
	case number < last || number == last && c.stage == ended || number == 0 || number > maxNumber:
		c.mu.Unlock()
		return Stats{}, fmt.Errorf("the last cut had the number %d, each must have a greater one, up to %d", last, uint64(maxNumber))
	}
	c.call = x
	c.compare()
	c.mu.Unlock()
	signal(c.wake)
	if c.Host.Wait(x.done, ctx.Done(), c.Host.Done()) != 0 {
		signal(c.wake) // Run ends the call, so that sink is not in use any more
		if c.Host.Wait(x.done, c.gone, nil) == 1 {
			return Stats{}, c.Host.Err()
		}
	}
	return x.stats, x.err
}

// Told takes a peer's word how far it has come.
func (c *Cuts) Told(from godwit.NodeID, r *wire.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, s := &c.peers[from], stage(r.Key)
	again := r.Op == p.number && s == p.stage && s != ended && (p.full || r.Seq&isFull != 0)
	if !again && !p.goesOn(r.Op, s) || r.Seq&^(gaveUp|ofChanged|isFull) != 0 {
		return fmt.Errorf("node %d says that it has come to stage %d of cut %d (%d), after stage %d of cut %d", from, s, r.Op, r.Seq, p.stage, p.number)
	}
	if s > settled && !c.Rows.Proto.BrokenCut.SealEarly && (r.Op != c.number.Load() || c.stage < s-1) {
		return fmt.Errorf("node %d says that it has come to stage %d of cut %d, this node is at stage %d of cut %d", from, s, r.Op, c.stage, c.number.Load())
	}
	reach := tick.Tick(r.Version)
	if !c.reachable(reach) {
		return fmt.Errorf("node %d says of cut %d that its workers are near to %v, which workers here are far from", from, r.Op, reach)
	}
	if p.number == r.Op {
		reach = p.reach
	}
	*p = progress{r.Op, s, reach, r.Seq&ofChanged != 0, r.Seq&gaveUp != 0 || p.gave && p.number == r.Op, p.full}
	c.hears(p, r.Seq&isFull != 0)
	if r.Op > c.heard.number {
		c.heard = *p
	}
	c.compare()
	signal(c.wake)
	return nil
}

// Short gives the cut under way up, because too many rows changed before they were saved.
func (c *Cuts) Short() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveUp(errShort)
}

var errShort = errors.New("too many rows were changed before they were saved: copies may take a tenth of them, or 64 MiB")

// compare gives the cut under way up if a peer did, or another kind of cut was asked for. The
// lock is held.
func (c *Cuts) compare() {
	for i, p := range c.peers {
		switch {
		case p.number != c.number.Load():
		case c.stage == ended:
			c.owes = c.owes || p.gave
		case p.gave:
			c.giveUp(fmt.Errorf("node %d gave the cut up", i))
		case p.changed != c.changed:
			c.giveUp(errKinds)
		}
	}
	if x := c.current(); x != nil && c.stage != ended && x.changed != c.changed {
		c.giveUp(errKinds)
	}
}

// giveUp notes why the cut under way is given up. The lock is held.
func (c *Cuts) giveUp(why error) {
	if c.fault == nil {
		c.fault = why
		c.handing.Store(false) // nobody waits any more
	}
}

// Run makes cuts until the node stops.
func (c *Cuts) Run() {
	defer close(c.gone)
	for c.Host.Wait(c.wake, c.Host.Stop(), nil) == 0 {
		for c.next() {
			if !c.make() {
				return
			}
		}
	}
}

// next reports whether a cut is to be made, and its number is the one under way then.
func (c *Cuts) next() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.heard.number
	if c.call != nil {
		if n <= c.number.Load() {
			n = c.call.number
		} else if n != c.call.number {
			c.over(errOther)
		}
	}
	return n > c.number.Load()
}

// make makes the next cut. It reports false if the node stops.
func (c *Cuts) make() bool {
	if !c.until(func() bool { return c.all(ended) }) {
		return false
	}
	if !c.begin() {
		return true
	}
	old := c.asked.Load()%2 == 0 // of the side from before
	if !c.until(func() bool { c.meet(); return c.crossed() == nil }) || !c.settle(old) {
		return false
	}
	c.tell(settled)
	if !c.Rows.Proto.BrokenCut.SealEarly && !c.until(func() bool { return c.all(settled) }) {
		return false
	}
	c.Rows.Set.WithEach(func(s *protocol.Shard) { s.SealCut(c.changed) })
	if !c.until(c.joined) {
		return false
	}
	c.handsOver(!c.gaveUp())
	defer c.handsOver(false)
	c.hand(c.Rows.save)
	c.Rows.Set.WithEach((*protocol.Shard).SavedCut)
	c.tell(saved)
	if !c.until(func() bool { return c.all(saved) }) {
		return false
	}
	if !c.Rows.Proto.BrokenCut.SaveOnce {
		c.hand(c.Rows.saveRest)
	}
	var kept uint64
	c.Rows.Set.WithEach(func(s *protocol.Shard) {
		s.EndCut()
		kept += s.Stats.Kept
	})
	c.end(kept)
	c.tell(ended)
	return true
}

// begin begins the cut that the call or a peer asked for, and reports whether there is still one.
func (c *Cuts) begin() bool {
	c.mu.Lock()
	n, changed := c.heard.number, c.heard.changed
	if n <= c.number.Load() {
		if c.call == nil {
			c.mu.Unlock()
			return false
		}
		n, changed = c.call.number, c.call.changed
	}
	c.number.Store(n)
	c.stage, c.fault, c.changed = asked, nil, changed
	if changed && c.owes {
		c.giveUp(errOwes)
	}
	c.compare()
	c.mu.Unlock()
	c.longest.Store(0)
	c.reach = c.ask()
	c.tell(asked)
	return true
}

// end ends the cut at this node, and the call.
func (c *Cuts) end(kept uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stage = ended
	if err := c.Host.Err(); err != nil {
		c.giveUp(err) // the rows may be gone
	}
	c.owes = c.fault != nil
	if c.current() != nil {
		c.call.stats.Kept, c.call.stats.Longest = kept-c.kept, time.Duration(c.longest.Load())
		c.over(c.fault)
	}
	c.kept = kept
}

// over ends the call. The lock is held.
func (c *Cuts) over(err error) {
	x := c.call
	c.call = nil
	x.err = err
	close(x.done)
}

// pause is for how long Run waits until it looks again while a cut is under way.
const (
	firstPause = 50 * time.Microsecond
	lastPause  = 2 * time.Millisecond
)

// until waits for a condition, and reports false if the node stops.
func (c *Cuts) until(ok func() bool) bool {
	for d := firstPause; ; d = min(2*d, lastPause) {
		c.look()
		if ok() {
			return true
		}
		if c.Host.Sleep(d, nil, c.Host.Stop()) == 1 {
			return false
		}
	}
}

// look ends a call whose context or run has ended, or that waits for a cut that was given up.
func (c *Cuts) look() {
	late := c.crossed()
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.call; x != nil && (x.ctx.Err() != nil || c.Host.Err() != nil) {
		err := c.Host.Err()
		if err == nil {
			err = c.behind(context.Cause(x.ctx), late)
		}
		if c.current() == x {
			c.giveUp(err)
		} else {
			c.over(err)
		}
	}
	if c.fault != nil && c.current() != nil {
		c.over(c.fault)
	}
}

// current returns the call that waits for the cut under way, nil if there is none. The lock is
// held.
func (c *Cuts) current() *call {
	if c.call != nil && c.call.number == c.number.Load() {
		return c.call
	}
	return nil
}

// behind makes the error of a call that ended before its cut. late is a worker that has not
// crossed, if there is one.
func (c *Cuts) behind(cause error, late *Party) error {
	if c.stage == asked && late != nil {
		return fmt.Errorf("waiting for %v to come to a step boundary: %w", late.id, cause)
	}
	for peer := range c.Links.All {
		if c.peers[peer].before(c.number.Load(), c.stage) {
			return fmt.Errorf("waiting for node %d: %w", peer, cause)
		}
	}
	return fmt.Errorf("before it was made: %w", cause)
}

// all reports whether all peers have come to a stage of the cut under way.
func (c *Cuts) all(s stage) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for peer := range c.Links.All {
		if c.peers[peer].before(c.number.Load(), s) {
			return false
		}
	}
	return true
}

// crossed returns a worker that has not crossed into the cut under way, nil if all have.
func (c *Cuts) crossed() *Party {
	for _, p := range c.parties {
		if !p.over() {
			return p
		}
	}
	return nil
}

// settle waits until all that workers changed before they crossed is in main copies.
func (c *Cuts) settle(old bool) bool {
	if err := c.PushAside(c.Host.Life()); err != nil {
		c.mu.Lock()
		c.giveUp(err) // it stays set aside, for the next WaitSync
		c.mu.Unlock()
	}
	if !c.until(func() bool { return c.Ops.Changing(old) == 0 }) {
		return false
	}
	if c.Links.Alone() {
		return true
	}
	synced := c.Sync.Begin(round.Node)
	return c.until(func() bool {
		select {
		case <-synced:
			return true
		default:
			return false
		}
	})
}

// joined reports whether somebody takes what is to be saved, or nobody will.
func (c *Cuts) joined() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current() != nil || c.fault != nil
}

// hand has rows handed to the call's sink, or, where the cut is given up, to nobody.
func (c *Cuts) hand(save func(Sink)) {
	if c.gaveUp() {
		c.Rows.Set.WithEach((*protocol.Shard).GiveUpCut) // so that nothing counts as saved
	}
	c.tellMeanwhile(true)
	defer c.tellMeanwhile(false)
	save(func(table int, rows []uint64, floats []float32) {
		c.look()
		c.mu.Lock()
		x := c.current()
		c.mu.Unlock()
		if x == nil {
			return
		}
		x.stats.Rows += uint64(len(rows))
		x.stats.Bytes += 4 * uint64(len(floats))
		if err := x.sink(table, rows, floats); err != nil {
			c.mu.Lock()
			c.giveUp(err)
			c.mu.Unlock()
		}
		c.tookAt.Store(c.Host.Now())
	})
	c.look()
	if c.gaveUp() {
		c.Rows.Set.WithEach((*protocol.Shard).GiveUpCut)
	}
}

// gaveUp reports whether the cut under way is given up.
func (c *Cuts) gaveUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault != nil
}

// tell tells all peers how far this node has come.
func (c *Cuts) tell(s stage) {
	c.telling.Lock()
	defer c.telling.Unlock()
	c.say(s)
}

// say is tell of who has the lock telling.
func (c *Cuts) say(s stage) {
	c.mu.Lock()
	if s != ended {
		c.stage = s
	}
	r := wire.Record{Kind: wire.Cut, Op: c.number.Load(), Key: godwit.Key(s), Version: godwit.Version(c.reach)}
	if c.fault != nil {
		r.Seq = gaveUp
	}
	if c.changed {
		r.Seq |= ofChanged
	}
	if c.toldFull && s != ended {
		r.Seq |= isFull
	}
	c.mu.Unlock()
	for peer := range c.Links.All {
		c.out.Send(peer, &r)
	}
	c.out.Flush()
}
