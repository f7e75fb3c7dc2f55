package train

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/schedule"
)

// A record is what one worker has trained, chunk by chunk, of its current epoch and the one
// before. The worker writes it; a cut may read it from another goroutine, while the worker
// waits.
type record struct {
	mu     sync.Mutex
	epoch  int           // the current one
	epochs []epochRecord // those of which it has trained something
	held   []heldStep    // steps whose updates the trainer still has
}

type heldStep struct {
	chunk schedule.Chunk
	step  int
	last  bool
	loss  Loss
}

type epochRecord struct {
	epoch  int
	parts  int // as schedule.Epoch has it, and
	nodes  int
	stages int
	done   []int
	under  schedule.Under // Steps 0: none
	loss   Loss
}

// begin takes note that an epoch begins: all before it are finished, at all nodes. What the
// worker has trained of the last one is kept, since others may have crossed into a cut in it.
func (r *record) begin(epoch int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epoch = epoch
	for len(r.epochs) > 0 && r.epochs[0].epoch < epoch-1 {
		r.epochs = r.epochs[1:]
	}
}

// trained takes note of a step, and that the updates of so many of the last steps are still
// to be pushed.
func (r *record) trained(s heldStep, held int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = append(r.held, s)
	r.push(len(r.held) - held)
}

// flushed takes note that all updates are pushed.
func (r *record) flushed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.push(len(r.held))
}

// push takes note that the updates of the first n steps that were held are pushed.
func (r *record) push(n int) {
	for _, s := range r.held[:max(n, 0)] {
		r.add(s.chunk, s.step, s.last, s.loss)
	}
	r.held = r.held[:copy(r.held, r.held[max(n, 0):])]
}

// add adds a step, which may be the last of its chunk.
func (r *record) add(at schedule.Chunk, step int, last bool, l Loss) {
	if n := len(r.epochs); n == 0 || r.epochs[n-1].epoch != at.Epoch {
		r.epochs = append(r.epochs, epochRecord{epoch: at.Epoch, parts: at.Parts, nodes: at.Nodes, stages: at.Stages})
	}
	e := &r.epochs[len(r.epochs)-1]
	e.loss.Sum += l.Sum
	e.loss.Examples += l.Examples
	if e.under = (schedule.Under{Chunk: at.Chunk, Steps: step + 1}); last {
		e.done, e.under = append(e.done, at.Chunk), schedule.Under{}
	}
}

// position returns what the worker has trained, of epochs of so many chunks; 0: the run has none.
func (r *record) position(chunks int) (p schedule.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.First = r.epoch
	for _, x := range r.epochs {
		e := schedule.Epoch{Epoch: x.epoch, Chunks: chunks, Parts: x.parts, Nodes: x.nodes, Stages: x.stages, Done: schedule.Runs(append([]int(nil), x.done...)), LossBits: math.Float64bits(x.loss.Sum), Examples: x.loss.Examples}
		if x.under.Steps > 0 {
			e.Under = []schedule.Under{x.under}
		}
		p.Epochs = append(p.Epochs, e)
	}
	return p
}

// CheckState returns why no run of a task can go on from a state, of all nodes, that is within an epoch; nil: one can. Workers of a
// [Lockstep] without stages must have made equally many steps. At a cut that all cross into at one clock they have, unless it was asked for
// between two epochs.
func CheckState(task any, s *State) error {
	if !EvenSteps(task) {
		return nil
	}
	for _, e := range s.Position.Epochs {
		if _, _, even := evenly(&e); !even {
			return fmt.Errorf("%w of epoch %d, and they wait for each other within it", ErrUneven, e.Epoch)
		}
	}
	return nil
}

// EvenSteps reports whether a task, of whatever batches, is a [Lockstep] without stages.
func EvenSteps(task any) bool { return InLockstep(task) && StagesOf(task, 1) == 0 }

// ErrUneven is returned for a state from which no run can go on: see [CheckState].
var ErrUneven = errors.New("the workers had made different numbers of steps")

// evenly returns how many steps of an epoch all parts have, or that it is finished, if they are even.
func evenly(e *schedule.Epoch) (steps int, done, even bool) {
	switch {
	case len(e.Done) > 0:
		return 0, true, len(e.Done) == 1 && e.Done[0] == schedule.Run{To: e.Parts}
	case len(e.Under) > 0:
		steps = e.Under[0].Steps
	}
	for _, u := range e.Under {
		if u.Steps != steps {
			return 0, false, false
		}
	}
	return steps, false, len(e.Under) == 0 || len(e.Under) == e.Parts
}

// among divides a position that is even among so many workers of so many nodes.
func among(p schedule.Position, workers, nodes int) schedule.Position {
	p.Epochs = slices.Clone(p.Epochs)
	for i := range p.Epochs {
		e := &p.Epochs[i]
		steps, done, _ := evenly(e)
		e.Parts, e.Nodes, e.Done, e.Under = workers, nodes, nil, nil
		if done {
			e.Done = []schedule.Run{{To: workers}}
		}
		for w := 0; steps > 0 && w < workers; w++ {
			e.Under = append(e.Under, schedule.Under{Chunk: w, Steps: steps})
		}
	}
	return p
}

// past are the states of a run behind its last epochs. The run's goroutine adds, and a cut reads.
type past struct {
	mu     sync.Mutex
	states []*State // two at most: workers cross into a cut in one epoch or the next
}

func (p *past) add(s *State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states = append(p.states, s)
	p.states = p.states[max(0, len(p.states)-2):]
}

// replace puts a state in the place of the one behind as many epochs.
func (p *past) replace(now *State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.states {
		if s.Epochs == now.Epochs {
			p.states[i] = now
		}
	}
}

// before returns the state before an epoch.
func (p *past) before(epoch int) (*State, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.states {
		if s.Epochs == epoch-1 {
			return s, nil
		}
	}
	return nil, fmt.Errorf("train: a cut in epoch %d, which the run has left", epoch)
}

// cuts gathers the positions of a node's workers at cuts, until all have crossed into one.
type cuts struct {
	tell func(cut uint64, s *State, err error)
	base schedule.Position // where the run began; of node 0
	past *past

	mu      sync.Mutex
	workers int
	crossed map[uint64][]schedule.Position
}

// cross takes note that a worker has crossed into a cut.
func (c *cuts) cross(cut uint64, p schedule.Position) {
	c.mu.Lock()
	all := append(c.crossed[cut], p)
	c.crossed[cut] = all
	if len(all) == c.workers {
		delete(c.crossed, cut)
	}
	c.mu.Unlock()
	if len(all) == c.workers {
		s, err := c.past.at(append(all, c.base))
		if err != nil {
			err = fmt.Errorf("train: cut %d: %w", cut, err)
		}
		c.tell(cut, s, err)
	}
}

// at returns the state of which workers' positions are those of this node.
func (p *past) at(all []schedule.Position) (*State, error) {
	merged, err := schedule.Merge(all...)
	if err != nil {
		return nil, err
	}
	s, err := p.before(merged.First)
	if err != nil {
		return nil, err
	}
	at := *s
	at.Position, at.End = merged, ""
	return &at, nil
}

// watch has the positions at cuts told.
func (r *run[D]) watch() {
	if r.env.OnCut == nil {
		return
	}
	c := &cuts{tell: r.env.OnCut, base: r.base(), past: &r.past, workers: len(r.pipes), crossed: map[uint64][]schedule.Position{}}
	for _, p := range r.pipes {
		if w, ok := p.w.(godwit.Cutter); ok {
			w.OnCut(func(cut uint64) { c.cross(cut, p.rec.position(p.chunks)) })
		}
	}
}

// base is what was trained before the run began, which is node 0's to say.
func (r *run[D]) base() schedule.Position {
	if r.env.Node == 0 {
		return schedule.Position{Epochs: r.at.Epochs}
	}
	return schedule.Position{}
}

// here returns what this node has trained of the run, while its workers do nothing.
func (r *run[D]) here() (*State, error) {
	all := []schedule.Position{r.base()}
	for _, p := range r.pipes {
		all = append(all, p.rec.position(p.chunks))
	}
	return r.past.at(all)
}

// unwatch ends that.
func (r *run[D]) unwatch() {
	for _, p := range r.pipes {
		if w, ok := p.w.(godwit.Cutter); ok && r.env.OnCut != nil {
			w.OnCut(nil)
		}
	}
}
