package round

import (
	"slices"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/shards"
)

// WaitSync is the calls of that name of a node's workers, those of SyncAll, and what other nodes ask for
// theirs. First this node's updates go out and are acknowledged, then every peer sends
// what is new and says so. Between the two halves of a SyncAll all workers of the run meet. As long as all workers of a node are in the first
// half or on their way to meet, the node rests: peers send it no refreshes. Any goroutine may begin a call; the rounds move them on.
//
// A call whose caller has given up goes on. It is the one that the caller's next call begins anew: so each caller has one, however often it
// gives up while a peer does not answer, and each peer is asked by as many.
type WaitSync struct {
	ids   *atomic.Uint64
	links *link.Links
	rows  *shards.Set
	bell  *host.Bell

	waiting  atomic.Int32 // calls that are not done
	flushing atomic.Int32 // … of which updates are on their way

	mu    preempt.Mutex
	calls []*call
	last  [2][]*call // of each caller, the first halves and the others; nil: it made none
	marks []mark     // peers that want to hear when they have everything
	met   []bool     // by worker: its SyncAll was given up when all had met
	rests []bool     // workers that are in the first half of a SyncAll, or wait to meet
	more  bool       // one more is, since the last round
	news  bool       // all are, and the peers do not know it
}

// Node is the caller of what no worker calls.
const Node = -1

// A call is one WaitSync of this node, or half a SyncAll.
type call struct {
	id      uint64
	first   bool         // it is the first half of a SyncAll
	again   bool         // its caller has begun it anew: it starts again where it would end
	over    bool         // done is closed
	flush   shards.Flush // nil: not begun
	asked   bool
	missing int // peers that have not answered
	done    chan struct{}
}

type mark struct {
	from godwit.NodeID
	op   uint64
}

func newWaitSync(c *Config) *WaitSync {
	workers := len(c.Clocks)
	y := &WaitSync{ids: c.IDs, links: c.Links, rows: c.Rows, bell: c.Bell, met: make([]bool, workers), rests: make([]bool, workers)}
	for half := range y.last {
		y.last[half] = make([]*call, workers-Node)
	}
	return y
}

// Begin begins a WaitSync of a caller, a worker or [Node], and returns what is closed at its end. A caller waits for one at a time.
func (y *WaitSync) Begin(caller int) <-chan struct{} {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.hurry()
	return y.add(caller, false)
}

// All is a worker's SyncAll. It calls wait with what errors call each half and with what begins it, and meet in between. If one of them returns an error,
// so does All; the worker's next call goes on where that was.
func (y *WaitSync) All(worker int, wait func(half string, begin func() <-chan struct{}) error, meet func() error) error {
	if !y.met[worker] {
		err := wait("sync-all", func() <-chan struct{} { return y.rest(worker) })
		if err == nil {
			err = meet()
		}
		y.goesOn(worker)
		if err != nil {
			y.Begin(worker) // copies are to be as fresh as ever, and nobody waits for that
			return err
		}
	}
	begun := false
	err := wait("wait-sync", func() <-chan struct{} {
		begun = true
		return y.Begin(worker)
	})
	if !begun {
		y.Begin(worker) // as above: the peers take the node to rest until they hear of it
	}
	y.met[worker] = err != nil
	return err
}

// rest begins the first half of a worker's SyncAll.
func (y *WaitSync) rest(worker int) <-chan struct{} {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.rests[worker], y.more = true, true
	y.news = !slices.Contains(y.rests, false)
	y.hurry()
	return y.add(worker, true)
}

// goesOn notes that a worker rests no longer.
func (y *WaitSync) goesOn(worker int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.rests[worker], y.news = false, false
}

// add adds a call, which is over if there is no other node, or begins the caller's last one anew.
func (y *WaitSync) add(caller int, first bool) <-chan struct{} {
	last := &y.last[1][caller-Node]
	if first {
		last = &y.last[0][caller-Node]
	}
	if d := *last; d != nil && !d.over {
		d.again = true
		return d.done
	}
	d := &call{first: first, done: make(chan struct{})}
	if *last = d; !first {
		d.id = y.ids.Add(1)
	}
	if d.over = y.links.Alone(); d.over {
		close(d.done)
		return d.done
	}
	y.calls = append(y.calls, d)
	y.waiting.Add(1)
	y.flushing.Add(1)
	return d.done
}

// hurry has a round begin.
func (y *WaitSync) hurry() {
	y.bell.Ring()
	y.bell.Hurry()
}

// Waiting reports whether a call of this node goes on.
func (y *WaitSync) Waiting() bool { return y.waiting.Load() > 0 }

// Stir has a round look at the calls, if updates of some are on their way: a frame came, which may say that they have arrived. It comes at
// once if all workers of the node wait, so that processors are free.
func (y *WaitSync) Stir() {
	if y.flushing.Load() == 0 {
		return
	}
	y.bell.Ring()
	if int(y.waiting.Load()) >= len(y.rests) {
		y.bell.Hurry()
	}
}

// Open returns how many calls go on here, and how many nodes wait to hear that they have
// everything.
func (y *WaitSync) Open() (calls, nodes int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return max(len(y.calls), int(y.waiting.Load())), len(y.marks)
}

// Marked takes a peer's SyncMark.
func (y *WaitSync) Marked(from godwit.NodeID, op uint64) {
	y.links.To(from).Rest(op == 0)
	if op == 0 {
		return
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.marks = append(y.marks, mark{from, op})
	y.hurry()
}

// Acknowledged takes a peer's SyncAck.
func (y *WaitSync) Acknowledged(op uint64) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, d := range y.calls {
		if d.id == op && d.asked {
			if d.missing--; d.missing == 0 {
				y.end(d)
			}
			return
		}
	}
}

// end ends a call, or starts it again.
func (y *WaitSync) end(d *call) {
	d.flush = nil
	if d.again {
		d.again, d.asked = false, false
		y.flushing.Add(1)
		y.hurry()
		return
	}
	d.over = true
	i := slices.Index(y.calls, d)
	y.calls = slices.Delete(y.calls, i, i+1)
	y.waiting.Add(-1)
	close(d.done)
}

// take returns the peers that want to hear when they have everything, at the begin of a round. If the node rests, it tells them. Most
// workers are through at the same time, so the round after one came to rest sends updates only, and no refreshes: the others, and those of other
// nodes, may come as well.
func (y *WaitSync) take(out *link.Sender) (marks []mark, up bool) {
	y.mu.Lock()
	marks, up = y.marks, y.more && len(y.marks) == 0
	news := y.news
	y.marks, y.news, y.more = nil, false, false
	y.mu.Unlock()
	if news {
		y.mark(out, 0)
		out.Flush()
	}
	return marks, up
}

// answer tells the peers of marks that they have everything. If something had to stay, they
// go on waiting.
func (y *WaitSync) answer(out *link.Sender, marks []mark, held bool) {
	if !held {
		for _, m := range marks {
			out.Send(m.from, &wire.Record{Kind: wire.SyncAck, Op: m.op})
		}
		return
	}
	y.mu.Lock()
	y.marks = append(y.marks, marks...)
	y.mu.Unlock()
}

// goOn moves the calls on. It returns how many updates of replicas it looked at.
func (y *WaitSync) goOn(out *link.Sender) (looks int) {
	if !y.Waiting() {
		return 0
	}
	var flush shards.Flush // of the calls that begin in this round: a node's workers mostly wait at the same time
	for _, d := range y.unasked() {
		if d.flush == nil {
			if flush == nil {
				flush = y.rows.BeginFlush()
				looks = flush.Len()
			}
			d.flush = flush
		}
		if !d.flush.Arrived() {
			continue
		}
		y.mu.Lock()
		y.flushing.Add(-1)
		if d.asked, d.missing = true, y.links.Nodes()-1; d.first {
			y.end(d)
		}
		y.mu.Unlock()
		if !d.first {
			y.mark(out, d.id)
		}
	}
	return looks
}

// unasked returns the calls of which updates are on their way, or about to be: those of all that was begun by now.
func (y *WaitSync) unasked() []*call {
	y.mu.Lock()
	defer y.mu.Unlock()
	calls := slices.DeleteFunc(slices.Clone(y.calls), func(d *call) bool { return d.asked })
	for _, d := range calls {
		d.again = d.again && d.flush != nil
	}
	return calls
}

// mark sends all peers a SyncMark.
func (y *WaitSync) mark(out *link.Sender, op uint64) {
	for peer := range y.links.All {
		out.Send(peer, &wire.Record{Kind: wire.SyncMark, Op: op})
	}
}
