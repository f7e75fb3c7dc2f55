package schedule

// A Chunk is what a worker trains next.
type Chunk struct {
	Epoch int // from 1 on
	Chunk int // its number in the epoch, from 0 on
	Skip  int // its first steps, which are done already
	// Parts is, in a run without chunks, of how many parts of the data it is one; else 0.
	Parts int
	// Nodes is how many nodes the run had that divided the data into Parts; 0 says nothing.
	Nodes int
	// Stages is, if an epoch of a run without chunks has stages, how many; else 0. Chunk is then Parts times
	// the stage, from 0 on, and the part.
	Stages int
}

// Stage returns the stage of the epoch that a chunk is of; 0 where there are none.
func (c Chunk) Stage() int {
	if c.Stages == 0 {
		return 0
	}
	return c.Chunk / c.Parts
}

// Part returns which of Parts parts of the data a chunk is of.
func (c Chunk) Part() int {
	if c.Stages == 0 {
		return c.Chunk
	}
	return c.Chunk % c.Parts
}

// A Stock is what a node has leased, and how its workers divide it. It belongs to one
// goroutine.
type Stock struct {
	leases   []Lease
	held     []int // by worker: chunks that it has taken and not finished
	ahead    []int // by worker: chunks that it should know ahead of their training
	out      int   // chunks that are leased and not finished
	finished []Chunk
	mark     int // what was out after the last answer
	asked    bool
}

// NewStock returns the stock of a node with so many workers: nothing.
func NewStock(workers int) *Stock {
	return &Stock{held: make([]int, workers), ahead: make([]int, workers)}
}

// Add takes what was leased. A stock that begins with leases ([Pool.Begin]) asks for others when half of them is finished.
func (s *Stock) Add(ls []Lease) {
	s.asked = s.asked || len(ls) > 0
	for _, l := range ls {
		s.leases = append(s.leases, l)
		s.out += l.To - l.From
	}
	s.mark = s.out
}

// Take gives a worker its next chunk, in the order of the leases. A worker that still has
// work is given no more than half of its fair share, or a second chunk, or as many chunks ahead as
// it should know, which is its fair share at the most.
func (s *Stock) Take(worker, ahead int) (c Chunk, ok bool) {
	s.ahead[worker] = ahead
	held, fair := s.held[worker], s.out/len(s.held)
	if len(s.leases) == 0 || len(s.held) > 1 && held >= max(2, fair/2, min(ahead, fair)) {
		return c, false
	}
	l := &s.leases[0]
	c = Chunk{Epoch: l.Epoch, Chunk: l.From, Skip: l.Skip}
	l.From, l.Skip = l.From+1, 0
	if l.From == l.To {
		s.leases = s.leases[1:]
	}
	s.held[worker]++
	return c, true
}

// Finish takes note that a worker has trained a chunk.
func (s *Stock) Finish(worker int, c Chunk) {
	s.held[worker]--
	s.out--
	s.finished = append(s.finished, c)
}

// Due reports whether it is time to ask the leader: half of what was leased is finished, or
// nothing was leased yet.
func (s *Stock) Due() bool { return !s.asked || 2*len(s.finished) >= max(1, s.mark) }

// Report returns what the leader is to be told, when it is asked, and forgets it.
func (s *Stock) Report(idle int) Report {
	r := Report{Idle: idle}
	for _, n := range s.ahead {
		r.Ahead += n
	}
	by := map[int][]int{}
	var epochs []int
	for _, c := range s.finished {
		if by[c.Epoch] == nil {
			epochs = append(epochs, c.Epoch)
		}
		by[c.Epoch] = append(by[c.Epoch], c.Chunk)
	}
	for _, e := range epochs {
		for _, run := range Runs(by[e]) {
			r.Finished = append(r.Finished, Lease{Epoch: e, Run: run})
		}
	}
	s.finished, s.asked = s.finished[:0], true
	return r
}
