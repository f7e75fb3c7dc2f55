package schedule

import "fmt"

// A Plan is what all nodes of a run know of its work.
type Plan struct {
	Chunks  int   // of an epoch
	Epochs  int   // the last one
	Workers []int // of each node, at least 1
	// At is where the run begins.
	At Position
}

// A Lease is chunks of an epoch that a node has to train.
type Lease struct {
	Epoch int `json:"epoch"` // from 1 on
	Run
	Skip int `json:"skip,omitempty"` // steps of the first chunk that are done already
}

// A Report is what a node tells the leader when it asks for work.
type Report struct {
	Finished []Lease `json:"finished,omitempty"` // since the last report; Skip does not count
	Idle     int     `json:"idle,omitempty"`     // workers that have nothing to do
	Ahead    int     `json:"ahead,omitempty"`    // chunks that its workers together should know ahead of their training
}

// A Pool is the leader's account of what is leased and finished. It belongs to one goroutine.
type Pool struct {
	plan   Plan
	all    int        // workers
	epochs []*account // that are open, in order; at least one
	pace   []float64  // by node: how fast it was in the last epoch, in workers of mean speed
}

// States of a chunk that are no node's number.
const (
	free     = -1
	finished = -2
)

// An account is of an epoch.
type account struct {
	epoch  int
	holder []int32     // by chunk: the node that has leased it, or free, or finished
	skip   map[int]int // steps of chunks that are done already
	free   [][]Run     // by node: what is left of its range, in order
	left   int         // chunks that are free
	out    []int       // by node: chunks that it has leased and not finished
	done   []int       // by node: chunks that it has finished
	gone   []bool      // by node: it gets no more chunks of this epoch
	ready  int         // chunks that are finished
	pace   []float64   // by node: what it counted when the epoch began
}

// NewPool begins a run, or goes on with one.
func NewPool(p Plan) *Pool {
	q := &Pool{plan: p, pace: make([]float64, len(p.Workers))}
	for i, n := range p.Workers {
		q.all += n
		q.pace[i] = float64(n)
	}
	first := max(1, p.At.First)
	q.open(p.At.Of(first))
	if next := p.At.Of(first + 1); len(next.Done)+len(next.Under) > 0 {
		q.open(next)
	}
	return q
}

// open begins an epoch, of which something may be trained.
func (p *Pool) open(e Epoch) {
	nodes := len(p.plan.Workers)
	a := &account{epoch: e.Epoch, holder: make([]int32, p.plan.Chunks), free: make([][]Run, nodes), out: make([]int, nodes), done: make([]int, nodes), gone: make([]bool, nodes),
		skip: map[int]int{}}
	for _, x := range p.pace {
		a.pace = append(a.pace, 1+x*float64(p.plan.Chunks)/float64(8*p.all))
	}
	for _, r := range e.Done {
		for c := r.From; c < r.To; c++ {
			a.holder[c] = finished
			a.ready++
		}
	}
	for _, u := range e.Under {
		a.skip[u.Chunk] = u.Steps
	}
	for node := range nodes {
		from, to := Range(p.plan.Chunks, node, nodes)
		for c := from; c < to; c++ {
			if a.holder[c] != finished {
				a.holder[c] = free
				a.put(node, c)
			}
		}
	}
	p.epochs = append(p.epochs, a)
}

// put adds a chunk to what is free of a node's range, behind what is there.
func (a *account) put(node, chunk int) {
	a.left++
	fs := a.free[node]
	if n := len(fs); n > 0 && fs[n-1].To == chunk {
		fs[n-1].To++
		return
	}
	a.free[node] = append(fs, Run{chunk, chunk + 1})
}

// Begin leases to each node what it begins with (L8), and returns it by node. It comes before the first Ask.
func (p *Pool) Begin() [][]Lease {
	a, begun := p.epochs[0], make([][]Lease, len(p.plan.Workers))
	want := make([]int, len(begun))
	for node := range begun {
		want[node] = p.allowance(a, node, Report{}) / 2 // how fast it is shows then
	}
	for node := range begun {
		begun[node] = p.leases(a, node, want[node])
	}
	return begun
}

// Ask takes a node's report and leases it what it is to train next, which may be nothing. Where it says that these
// are the last, nothing else of the run is left for the node, and it need not ask again; of a node that said that it is idle, no leases
// are the last. A report of what the node has not leased is an error.
func (p *Pool) Ask(node int, r Report) (ls []Lease, last bool, err error) {
	for _, l := range r.Finished {
		if err := p.finish(node, l); err != nil {
			return nil, false, err
		}
	}
	p.close()
	for i := 0; ; i++ {
		if i == len(p.epochs) {
			next := p.epochs[0].epoch + i
			if next > p.plan.Epochs || p.plan.Chunks == 0 {
				return nil, true, nil
			}
			p.open(Epoch{Epoch: next})
		}
		a := p.epochs[i]
		if a.gone[node] = a.gone[node] || a.left == 0 || p.slow(a, node); a.gone[node] {
			continue // L6
		}
		ls := p.leases(a, node, p.allowance(a, node, r)-a.out[node])
		return ls, a.left == 0 && a.epoch == p.plan.Epochs, nil
	}
}

// leases takes out so many chunks for a node, or what there is.
func (p *Pool) leases(a *account, node, want int) (ls []Lease) {
	for want > 0 && a.left > 0 {
		l := p.lease(a, node, want)
		ls, want = append(ls, l), want-(l.To-l.From)
	}
	return ls
}

// close forgets epochs that are finished, all but the last.
func (p *Pool) close() {
	for len(p.epochs) > 1 && p.epochs[0].ready == p.plan.Chunks {
		p.epochs = p.epochs[1:]
	}
}

// finish takes note of finished chunks.
func (p *Pool) finish(node int, l Lease) error {
	i := l.Epoch - p.epochs[0].epoch
	if i < 0 || i >= len(p.epochs) || l.From < 0 || l.To > p.plan.Chunks {
		return fmt.Errorf("schedule: node %d finished chunks %d … %d of epoch %d, which it has not leased", node, l.From, l.To-1, l.Epoch)
	}
	a := p.epochs[i]
	for c := l.From; c < l.To; c++ {
		if a.holder[c] != int32(node) {
			return fmt.Errorf("schedule: node %d finished chunk %d of epoch %d, which it has not leased", node, c, l.Epoch)
		}
		a.holder[c] = finished
		a.out[node]--
		a.done[node]++
		a.ready++
	}
	if a.ready == p.plan.Chunks {
		p.learn(a)
	}
	return nil
}

// learn takes over how fast the nodes were in an epoch, for the next one. A node that
// finished nothing, perhaps for want of chunks, counts a little.
func (p *Pool) learn(a *account) {
	all := 0
	for _, d := range a.done {
		all += d
	}
	for n, d := range a.done {
		p.pace[n] = max(float64(p.all)*float64(d)/float64(max(all, 1)), float64(p.plan.Workers[n])/8)
	}
}

// aheadShare is which part of its share of an epoch a node may have leased so that its workers know their steps ahead. The last
// part of an epoch is divided so, when it is known how fast the nodes are.
const aheadShare = 4

// speed is what a node counts among the others. Nodes tell late what they have finished, so
// half of what they have leased counts too.
func (a *account) speed(node int) float64 {
	return a.pace[node] + float64(a.done[node]) + float64(a.out[node])/2
}

// allowance is how many chunks of an epoch a node that reports may have leased (L4).
func (p *Pool) allowance(a *account, node int, r Report) int {
	if p.all == 1 {
		return p.plan.Chunks
	}
	speeds, open := 0.0, a.left
	for n := range p.plan.Workers {
		speeds += a.speed(n)
		open += a.out[n]
	}
	fair := float64(open) * a.speed(node) / speeds
	least := 2 * p.plan.Workers[node]
	if a.left < p.all {
		least = p.plan.Workers[node]
	}
	// A node asks again when half is finished.
	ahead := min(2*r.Ahead, int(3*fair/4), p.plan.Chunks*p.plan.Workers[node]/(aheadShare*p.all))
	return max(int(fair/2), ahead, least, a.out[node]+r.Idle)
}

// slow reports whether the other nodes that are at work in the epoch would be through with
// all that is free before a worker of the node were with one chunk more (L5). If no other node is
// at work, they never would be.
func (p *Pool) slow(a *account, node int) bool {
	mine := float64(p.plan.Workers[node]) / a.speed(node)
	speeds, work, least := 0.0, float64(a.left), mine
	for n, workers := range p.plan.Workers {
		if n == node || a.gone[n] || a.out[n] == 0 {
			continue
		}
		speeds += a.speed(n)
		work += float64(a.out[n])
		least = min(least, float64(workers)/a.speed(n))
	}
	return mine > work/speeds+least
}

// lease takes up to n free chunks out for a node, at least one: the first of its own (L2), or
// the last of another (L3).
func (p *Pool) lease(a *account, node, n int) Lease {
	own := node
	if len(a.free[node]) == 0 {
		own = p.behind(a)
	}
	fs := a.free[own]
	var r Run
	if own == node {
		r = Run{fs[0].From, min(fs[0].To, fs[0].From+n)}
		r = a.unskipped(r, false)
		if fs[0].From = r.To; r.To == fs[0].To {
			a.free[own] = fs[1:]
		}
	} else {
		last := &fs[len(fs)-1]
		r = Run{max(last.From, last.To-min(n, max(1, (last.To-last.From)/2))), last.To}
		r = a.unskipped(r, true)
		if last.To = r.From; r.From == last.From {
			a.free[own] = fs[:len(fs)-1]
		}
	}
	for c := r.From; c < r.To; c++ {
		a.holder[c] = int32(node)
	}
	a.left -= r.To - r.From
	a.out[node] += r.To - r.From
	return Lease{Epoch: a.epoch, Run: r, Skip: a.skip[r.From]}
}

// unskipped shortens a run so that none but its first chunk is one that is under way.
func (a *account) unskipped(r Run, last bool) Run {
	if len(a.skip) == 0 {
		return r
	}
	if last {
		for c := r.To - 1; c > r.From; c-- {
			if a.skip[c] > 0 {
				return Run{c, r.To}
			}
		}
		return r
	}
	for c := r.From + 1; c < r.To; c++ {
		if a.skip[c] > 0 {
			return Run{r.From, c}
		}
	}
	return r
}

// behind is the node that would be the last to finish its range.
func (p *Pool) behind(a *account) int {
	most, at := -1.0, -1
	for n := range a.free {
		left := 0
		for _, r := range a.free[n] {
			left += r.To - r.From
		}
		if left == 0 {
			continue
		}
		if t := float64(left) / a.speed(n); t > most {
			most, at = t, n
		}
	}
	return at
}
