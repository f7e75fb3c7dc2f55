package capi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
)

// This file is calls that all workers of the run make together, such as barriers. A process that closes its cluster tells the others
// how many it has made: those that wait for one more from it would wait for ever, since the process waits for them to close, too.

// meetings is what a cluster knows of such calls. Its zero value is ready for use.
type meetings struct {
	mu      sync.Mutex
	waiting map[*meeting]bool
	gone    []parting // of each other process that closes: with the fewest calls that it told
	told    bool      // this process has told its own
}

// A meeting is a call that all workers make, under way at a worker of this process.
type meeting struct {
	what   string
	number uint64 // of this call among those of its kind: one more than the worker has returned from
	cancel context.CancelCauseFunc
}

// A parting is what a process tells the others when it closes its cluster, and again when it has given up one of these calls since.
type parting struct {
	Node  int               `json:"node"`
	Calls map[string]uint64 `json:"calls"` // by kind: that each of its workers has made
}

// without ends the call if it waits for one that a process will not make.
func (m *meeting) without(p parting) {
	if m.number > p.Calls[m.what] {
		m.cancel(fmt.Errorf("rank %d has closed its cluster, and all ranks have to make this call: %w", p.Node, coord.ErrLeft))
	}
}

// all makes a call that all workers of the run make, in a goroutine. It fails with coord.ErrLeft if another process closes its cluster without having made it.
// The caller is in the worker, which the goroutine leaves.
func (w *Worker) all(what string, wait time.Duration, call func(context.Context) error) (uint64, error) {
	all := &w.cluster.meetings
	all.mu.Lock()
	made := w.calls[what]
	if what == saving { // one that has failed here may have ended well elsewhere
		w.calls[what]++ // before the caller can close the cluster
	} else {
		w.calls[what] = w.met[what] + 1
	}
	all.mu.Unlock()
	return w.beside(what, wait, nil, func(ctx context.Context) error {
		ctx, leave := w.meet(ctx, what)
		err := call(ctx)
		said := err
		if err != nil && ctx.Err() != nil {
			said = fmt.Errorf("%s: %s: %w", w.name, what, context.Cause(ctx))
		}
		leave(err)
		if what == syncAll && notMet(err) { // the others wait for it as before
			all.mu.Lock()
			w.calls[what] = made
			told := all.told
			all.mu.Unlock()
			if told {
				w.cluster.tellParting()
			}
		}
		return said
	})
}

// meet notes a call. Leave counts how it ended: a call that was given up is made again under its number.
func (w *Worker) meet(ctx context.Context, what string) (of context.Context, leave func(error)) {
	all := &w.cluster.meetings
	of, cancel := context.WithCancelCause(ctx)
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.waiting == nil {
		all.waiting = map[*meeting]bool{}
	}
	m := &meeting{what, w.met[what] + 1, cancel}
	all.waiting[m] = true
	for _, p := range all.gone {
		m.without(p)
	}
	return of, func(err error) {
		all.mu.Lock()
		defer all.mu.Unlock()
		delete(all.waiting, m)
		if err == nil {
			w.met[what]++
		}
		cancel(nil)
	}
}

// notMet reports whether a SyncAll failed before its worker had come to where all meet.
func notMet(err error) bool {
	var op *godwit.OpError
	return errors.As(err, &op) && op.Op == "sync-all"
}

// part tells the other processes that this one closes its cluster. It returns when they know, or cannot.
func (c *Cluster) part(ctx context.Context) {
	for _, wait := range c.tellParting() {
		_ = wait(ctx) // who does not hear of it waits, as for a process that is slow
	}
}

// tellParting sends the other processes what this one has made. The functions that it returns wait until they know.
func (c *Cluster) tellParting() (waits []func(context.Context) error) {
	b, err := json.Marshal(parting{Node: c.rank, Calls: c.calls()})
	if err != nil {
		return nil
	}
	for id := range c.nodes {
		if c.node(id) == nil {
			waits = append(waits, c.here[0].Ask(godwit.NodeID(id), append([]byte{askPart}, b...), func([]byte) {}))
		}
	}
	return waits
}

// calls returns how often each worker of this process has made the calls that all make, to be told.
func (c *Cluster) calls() map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.meetings.mu.Lock()
	defer c.meetings.mu.Unlock()
	c.meetings.told = true
	least := map[string]uint64{}
	for _, what := range []string{barrier, syncAll} {
		for i, w := range c.made {
			n := uint64(0)
			if w != nil {
				n = w.calls[what]
			}
			if i == 0 || n < least[what] {
				least[what] = n
			}
		}
	}
	if w := c.made[0]; w != nil { // which alone saves
		least[saving] = w.calls[saving]
	}
	return least
}

// without returns the processes that have closed their cluster.
func (m *meetings) without() (ranks []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ranks = []int{}
	for _, p := range m.gone {
		ranks = append(ranks, p.Node)
	}
	return ranks
}

// parted takes what another process tells when it closes.
func (c *Cluster) parted(b []byte) []byte {
	var p parting
	if json.Unmarshal(b, &p) != nil {
		return nil
	}
	all := &c.meetings
	all.mu.Lock()
	defer all.mu.Unlock()
	if i := slices.IndexFunc(all.gone, func(o parting) bool { return o.Node == p.Node }); i >= 0 {
		o := all.gone[i]
		for what, n := range o.Calls {
			o.Calls[what] = min(n, p.Calls[what]) // what is told later may come first
		}
		p = o
	} else if len(all.gone) < c.nodes {
		all.gone = append(all.gone, p)
	}
	for m := range all.waiting {
		m.without(p)
	}
	return []byte{1}
}
