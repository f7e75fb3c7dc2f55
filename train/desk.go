package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/godwit-ps/godwit/schedule"
)

// A desk hands chunks to the workers of a node, and leases them from the leader, which is
// node 0. Any goroutine may use it.
type desk struct {
	env  *Env
	plan schedule.Plan

	mu    sync.Mutex
	stock *schedule.Stock
	pool  *schedule.Pool              // at node 0, else nil
	wait  func(context.Context) error // for the answer that is under way; nil if none is
	over  bool                        // nothing is left for this node
	err   error                       // of an answer
}

// An answer is what the leader says to a [schedule.Report].
type answer struct {
	Leases []schedule.Lease `json:"leases,omitempty"`
	Last   bool             `json:"last,omitempty"` // nothing else of the run is left for who asked
	Err    string           `json:"err,omitempty"`
}

// newDesk returns the desk of a node. At node 0 it answers the others from then on.
func newDesk(env *Env, p schedule.Plan) *desk {
	pool := schedule.NewPool(p)
	d := &desk{env: env, plan: p, stock: schedule.NewStock(len(env.Workers))}
	d.stock.Add(pool.Begin()[env.Node])
	if env.Node != 0 {
		return d
	}
	d.pool = pool
	if env.Serve != nil {
		env.Serve(d.serve)
	}
	return d
}

// noDesk answers questions where nothing is leased, so nobody asks: questions that are not of training need not wait for its end.
func noDesk(int, []byte) []byte {
	b, _ := json.Marshal(answer{Err: "nothing is leased in this training"}) // a struct of strings
	return b
}

// take gives a worker its next chunk. If it must have one, take waits until there is one, or
// none is left for it in the run.
func (d *desk) take(ctx context.Context, worker, ahead int, must bool) (c schedule.Chunk, ok bool, err error) {
	for {
		c, wait, ok, err := d.next(worker, ahead, must)
		if wait == nil {
			return c, ok, err
		}
		if err := wait(ctx); err != nil {
			return c, false, fmt.Errorf("train: node %d waits for work from node 0: %w", d.env.Node, err)
		}
	}
}

// next takes a chunk from the stock, or returns how to wait for one.
func (d *desk) next(worker, ahead int, must bool) (c schedule.Chunk, wait func(context.Context) error, ok bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stock.Due() {
		d.ask(0)
	}
	for d.err == nil {
		if c, ok = d.stock.Take(worker, ahead); ok || !must || d.over {
			return c, nil, ok, nil
		}
		if d.ask(1); d.wait != nil {
			return c, d.wait, false, nil
		}
	}
	return c, nil, false, d.err
}

// ask reports to the leader and asks it for chunks, unless an answer is under way. The lock
// is held.
func (d *desk) ask(idle int) {
	if d.wait != nil || d.over || d.err != nil {
		return
	}
	r := d.stock.Report(idle)
	if d.pool != nil {
		ls, last, err := d.pool.Ask(0, r)
		d.leased(ls, last, err)
		return
	}
	question, err := json.Marshal(r)
	if err != nil {
		d.err = err
		return
	}
	d.wait = d.env.Ask(question, func(text []byte) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.wait = nil
		var a answer
		err := json.Unmarshal(text, &a)
		if err == nil && a.Err != "" {
			err = errors.New(a.Err)
		}
		d.leased(a.Leases, a.Last, err)
	})
}

// leased takes the leader's answer. The lock is held.
func (d *desk) leased(ls []schedule.Lease, last bool, err error) {
	if err != nil {
		d.err = fmt.Errorf("train: node 0 has no work for node %d: %w", d.env.Node, err)
		return
	}
	d.over = last
	d.stock.Add(ls)
}

// serve answers a node.
func (d *desk) serve(node int, question []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	var r schedule.Report
	var a answer
	err := json.Unmarshal(question, &r)
	if err == nil {
		a.Leases, a.Last, err = d.pool.Ask(node, r)
	}
	if err != nil {
		a.Err = err.Error()
	}
	text, err := json.Marshal(a)
	if err != nil {
		return []byte(`{"err":"the answer cannot be written"}`)
	}
	return text
}

// finish takes note that a worker has trained a chunk.
func (d *desk) finish(worker int, c schedule.Chunk) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stock.Finish(worker, c)
}

// close ends the desk when all nodes are through with the run: no question of it comes any
// more.
func (d *desk) close(ctx context.Context) error {
	if d.env.nodes() == 1 {
		return nil
	}
	d.mu.Lock()
	wait := d.wait
	d.over = true
	d.mu.Unlock()
	if wait != nil {
		if err := wait(ctx); err != nil {
			return err
		}
	}
	if _, err := d.env.Gather(ctx, "train end", nil); err != nil {
		return err
	}
	if d.env.Serve != nil {
		d.env.Serve(nil)
	}
	return nil
}
