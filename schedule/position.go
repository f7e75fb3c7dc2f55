package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// A Run is the chunks From … To-1 of an epoch.
type Run struct {
	From int `json:"from"` // the first
	To   int `json:"to"`   // behind the last
}

// A Position says what of a run is trained, as of one node or, when merged, of all. The
// zero Position is the begin of a run.
type Position struct {
	// First is the epoch that is under way, with all before it finished; 0 says nothing.
	First int `json:"first"`
	// Epochs are those of which something is trained: First, and the next one where a worker
	// had begun it. A position of some workers or nodes has the epoch before First, too,
	// which others may not have finished.
	Epochs []Epoch `json:"epochs"`
}

// An Epoch is what is trained of an epoch.
type Epoch struct {
	Epoch int     `json:"epoch"`           // from 1 on
	Done  []Run   `json:"done,omitempty"`  // chunks that are finished, in order
	Under []Under `json:"under,omitempty"` // chunks of which some steps are done
	// Chunks is how many chunks the epoch has, in a run with chunks; 0: the position is of a program that divided an epoch into 1,024 at
	// the most.
	Chunks int `json:"chunks,omitempty"`
	// Parts is, in a run without chunks, of how many workers' parts of the data its chunks are; 0 says
	// nothing.
	Parts int `json:"parts,omitempty"`
	// Nodes is how many nodes the run had that divided the data into Parts, on which the steps of a part may depend; 0 says nothing.
	Nodes int `json:"nodes,omitempty"`
	// Stages is how many stages the epoch has, of Parts chunks each, as [Chunk] numbers them; 0: none.
	Stages int `json:"stages,omitempty"`
	// LossBits is the sum of the losses of what is trained, as the bits of a float64, which
	// JSON keeps, and Examples how many examples that are.
	LossBits uint64 `json:"loss_bits"`
	Examples int64  `json:"examples"` // that are trained
}

// An Under is a chunk that is under way.
type Under struct {
	Chunk int `json:"chunk"` // its number, from 0 on
	Steps int `json:"steps"` // that are done, at least 1
}

// Loss is the sum of losses.
func (e *Epoch) Loss() float64 { return math.Float64frombits(e.LossBits) }

// Check returns what is wrong with a position in a run with so many chunks an epoch.
func (p Position) Check(chunks int) error {
	if p.First < 0 || len(p.Epochs) > 0 && (p.First == 0 || p.Epochs[0].Epoch < p.First-1 || p.Epochs[len(p.Epochs)-1].Epoch > p.First+1) {
		return fmt.Errorf("epoch %d is under way, and others than it and its neighbours are named", p.First)
	}
	for i, e := range p.Epochs {
		if i > 0 && e.Epoch <= p.Epochs[i-1].Epoch {
			return fmt.Errorf("epoch %d is in a wrong place", e.Epoch)
		}
		if e.Examples < 0 || e.Parts < 0 || e.Nodes < 0 || e.Stages < 0 || e.Stages > math.MaxInt/max(e.Parts, 1) || e.Stages+e.Nodes > 0 && e.Parts == 0 {
			return fmt.Errorf("epoch %d has %d examples, %d parts of %d nodes, and %d stages", e.Epoch, e.Examples, e.Parts, e.Nodes, e.Stages)
		}
		most := chunks
		if e.Parts > 0 {
			most = e.Parts * max(e.Stages, 1)
		}
		if err := e.check(most); err != nil {
			return fmt.Errorf("epoch %d: %w", e.Epoch, err)
		}
	}
	return nil
}

// CheckDivision returns why a run with so many chunks an epoch cannot go on at the position: what is trained of an epoch was divided into another
// number of them.
func (p Position) CheckDivision(chunks int) error {
	for _, e := range p.Epochs {
		if of := cmp.Or(e.Chunks, min(chunks, formerChunks)); of != chunks && len(e.Done)+len(e.Under) > 0 {
			return fmt.Errorf("epoch %d was divided into %d chunks, and is now divided into %d: go on with the program that began it, or from the end of an epoch", e.Epoch, of, chunks)
		}
	}
	return nil
}

func (e *Epoch) check(chunks int) error {
	at := 0
	for _, r := range e.Done {
		if r.From < at || r.From >= r.To || r.To > chunks {
			return fmt.Errorf("chunks %d … %d are finished, of %d in order", r.From, r.To-1, chunks)
		}
		at = r.To
	}
	at = 0
	for _, u := range e.Under {
		if u.Chunk < at || u.Chunk >= chunks || u.Steps < 1 || contains(e.Done, u.Chunk) {
			return fmt.Errorf("chunk %d has %d steps done, of %d chunks in order", u.Chunk, u.Steps, chunks)
		}
		at = u.Chunk + 1
	}
	return nil
}

// Has reports whether a chunk is finished.
func (e *Epoch) Has(chunk int) bool { return contains(e.Done, chunk) }

// Stage returns the first stage of which not all chunks are finished, chunks without steps included, which never are.
func (e *Epoch) Stage() int {
	if len(e.Done) == 0 || e.Done[0].From > 0 || e.Stages == 0 {
		return 0
	}
	return e.Done[0].To / e.Parts
}

// Steps returns how many steps are done of a chunk that is under way; 0 of others.
func (e *Epoch) Steps(chunk int) int {
	for _, u := range e.Under {
		if u.Chunk == chunk {
			return u.Steps
		}
	}
	return 0
}

func contains(runs []Run, chunk int) bool {
	return slices.ContainsFunc(runs, func(r Run) bool { return r.From <= chunk && chunk < r.To })
}

// Merge puts together what several say of one moment of a run: what each worker or node has
// trained, and where the run began, whose First is to be 0. The least of the others' First counts. Of a chunk that is under way the most steps count. A
// chunk that two have finished is an error: no chunk is trained by two.
func Merge(ps ...Position) (Position, error) {
	by := map[int]*Epoch{}
	for _, p := range ps {
		for i := range p.Epochs {
			e := &p.Epochs[i]
			to := by[e.Epoch]
			if to == nil {
				to = &Epoch{Epoch: e.Epoch, Parts: e.Parts, Nodes: e.Nodes, Stages: e.Stages}
				by[e.Epoch] = to
			}
			if to.Parts != e.Parts || to.Nodes != e.Nodes || to.Stages != e.Stages {
				return Position{}, fmt.Errorf("schedule: the positions do not go together: epoch %d is divided into %d parts of %d nodes, in %d stages, and into %d of %d in %d",
					e.Epoch, to.Parts, to.Nodes, to.Stages, e.Parts, e.Nodes, e.Stages)
			}
			to.Chunks = max(to.Chunks, e.Chunks)
			to.Done, to.Under = append(to.Done, e.Done...), append(to.Under, e.Under...)
			to.LossBits = math.Float64bits(to.Loss() + e.Loss())
			to.Examples += e.Examples
		}
	}
	var m Position
	for _, p := range ps {
		if p.First > 0 && (m.First == 0 || p.First < m.First) {
			m.First = p.First
		}
	}
	for _, e := range by {
		if e.Epoch >= m.First-1 {
			e.tidy()
			m.Epochs = append(m.Epochs, *e)
		}
	}
	slices.SortFunc(m.Epochs, func(a, b Epoch) int { return a.Epoch - b.Epoch })
	if err := m.Check(math.MaxInt); err != nil {
		return Position{}, errors.Join(errors.New("schedule: the positions do not go together"), err)
	}
	return m, nil
}

// tidy brings what several have said of an epoch in order.
func (e *Epoch) tidy() {
	e.Done = joined(e.Done)
	steps := map[int]int{}
	for _, u := range e.Under {
		if !contains(e.Done, u.Chunk) {
			steps[u.Chunk] = max(steps[u.Chunk], u.Steps)
		}
	}
	e.Under = nil
	for c, n := range steps {
		e.Under = append(e.Under, Under{c, n})
	}
	slices.SortFunc(e.Under, func(a, b Under) int { return a.Chunk - b.Chunk })
}

// joined sorts runs and joins those that follow each other.
func joined(runs []Run) []Run {
	slices.SortFunc(runs, func(a, b Run) int { return a.From - b.From })
	var all []Run
	for _, r := range runs {
		if n := len(all); n > 0 && all[n-1].To == r.From {
			all[n-1].To = r.To
		} else {
			all = append(all, r)
		}
	}
	return all
}

// Runs returns chunks as runs, in order. The chunks are sorted in place.
func Runs(chunks []int) []Run {
	var rs []Run
	slices.Sort(chunks)
	for _, c := range chunks {
		if n := len(rs); n > 0 && rs[n-1].To == c {
			rs[n-1].To++
		} else {
			rs = append(rs, Run{c, c + 1})
		}
	}
	return rs
}

// Whole returns the position of all nodes without what is before First, which is finished.
func (p Position) Whole() Position {
	p.Epochs = slices.DeleteFunc(slices.Clone(p.Epochs), func(e Epoch) bool { return e.Epoch < p.First })
	return p
}

// Of returns what is trained of an epoch.
func (p Position) Of(epoch int) Epoch {
	for _, e := range p.Epochs {
		if e.Epoch == epoch {
			return e
		}
	}
	return Epoch{Epoch: epoch}
}
