// Package linear judges small histories of reads, pushes and sets by search:
// whether there is an order of the operations on a key that respects real time
// and explains every read. It is the slow, obvious twin of package history, and
// uses porcupine (Horn and Kroening, FORTE 2015; Lowe, CCPE 2017). The search is
// quick while few operations overlap: up to eight clients a key.
package linear

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/godwit-ps/godwit"
)

// A Kind of operation.
type Kind uint8

const (
	Read Kind = iota
	Push      // adds a vector
	Set       // overwrites
)

var names = [...]string{"reads", "pushes", "sets"}

func (k Kind) String() string { return names[k] }

// An Op is one operation of one client on one key, from its call to its return.
type Op struct {
	Client, Node int
	Kind         Kind
	Key          godwit.Key
	Vals         []float32 // pushed or set, or what the read returned

	call, end int64 // end 0: has not returned
}

func (o *Op) String() string {
	return fmt.Sprintf("[%d, %d] client %d at node %d %v %v", o.call, o.end, o.Client, o.Node, o.Kind, o.Vals)
}

// A History collects operations. Clients may call it concurrently; each waits
// for an operation before it begins the next on the same key.
type History struct {
	mu  sync.Mutex
	now int64
	ops []*Op
}

// Begin notes that a client calls an operation. Vals is kept; it is nil for a
// read.
func (h *History) Begin(client, node int, kind Kind, k godwit.Key, vals []float32) *Op {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	o := &Op{Client: client, Node: node, Kind: kind, Key: k, Vals: vals, call: h.now}
	h.ops = append(h.ops, o)
	return o
}

// End notes that the operation returned, a read with vals, which is kept.
func (h *History) End(o *Op, vals []float32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	o.end = h.now
	if o.Kind == Read {
		o.Vals = vals
	}
}

// Len returns the number of operations.
func (h *History) Len() int { return len(h.ops) }

// patience is how long the search may take for one key.
const patience = 20 * time.Second

// Atomic reports whether each key is an atomic register with an update rule:
// there is one order of all operations that respects real time, in which every
// read returns, bit for bit, what the rule made of the last set and the pushes
// since then, from zero on.
func (h *History) Atomic(rule godwit.Rule) error {
	for k, ops := range h.byKey() {
		dim := len(ops[0].Vals)
		first := make([]float32, dim+rule.StateLen(dim))
		rule.InitState(first[dim:])
		if err := search(ops, first, func(row []float32, o *Op) ([]float32, bool) {
			switch o.Kind {
			case Push:
				row = slices.Clone(row)
				rule.Apply(row[:dim], row[dim:], o.Vals)
				return row, true
			case Set:
				return append(slices.Clone(o.Vals), first[dim:]...), true
			}
			return row, slices.Equal(row[:dim], o.Vals)
		}); err != nil {
			return fmt.Errorf("key %d is not atomic: %w", k, err)
		}
	}
	return nil
}

// InOrder reports whether a replicated key is to each node what it should be.
// For each client there is an order of its own operations in which every read
// contains exactly its pushes before it, and of others' pushes no less than the
// read before it; and no read contains less than another client of the node
// pushed or read before it began, or a push that had not begun. Client c pushes
// 1 at coordinate c, and nobody sets.
//
// There need not be one order for a whole node: a read that was sent before the
// node's replica was set up, and is answered late, may contain another node's
// push and lack one that was made at the replica meanwhile, while a read at the
// replica finds it the other way round. Both overlap.
func (h *History) InOrder() error {
	for k, all := range h.byKey() {
		for _, o := range all {
			if err := begun(o, all); err != nil {
				return fmt.Errorf("key %d: %w", k, err)
			}
		}
		for _, ops := range by(all, func(o *Op) int { return o.Client }) {
			if err := search(ops, make([]float32, len(ops[0].Vals)), session); err != nil {
				return fmt.Errorf("key %d of client %d: %w", k, ops[0].Client, err)
			}
		}
		for _, ops := range by(all, func(o *Op) int { return o.Node }) {
			if err := forward(ops); err != nil {
				return fmt.Errorf("key %d at node %d: %w", k, ops[0].Node, err)
			}
		}
	}
	return nil
}

// session takes an operation of the client whose row this is.
func session(row []float32, o *Op) ([]float32, bool) {
	switch o.Kind {
	case Push:
		row = slices.Clone(row)
		row[o.Client]++
		return row, true
	case Set:
		return row, false
	}
	for i, had := range row {
		if v := o.Vals[i]; v < had || i == o.Client && v != had {
			return row, false
		}
	}
	return o.Vals, true
}

// forward reports a read of a node that contains less than was pushed or read
// there before.
func forward(ops []*Op) error {
	for _, r := range ops {
		if r.Kind != Read {
			continue
		}
		least, pushed := make([]float32, len(r.Vals)), make([]float32, len(r.Vals))
		for _, o := range ops {
			switch {
			case o.end == 0 || o.end > r.call:
			case o.Kind == Push:
				pushed[o.Client]++
			default:
				for i, v := range o.Vals {
					least[i] = max(least[i], v)
				}
			}
		}
		for i, v := range r.Vals {
			if least[i] = max(least[i], pushed[i]); v < least[i] {
				return fmt.Errorf("%v, after %v:\n%s", r, least, list(ops))
			}
		}
	}
	return nil
}

// begun reports a read that contains more pushes of a client than it had begun.
func begun(o *Op, all []*Op) error {
	if o.Kind != Read {
		return nil
	}
	for c, v := range o.Vals {
		n := 0
		for _, p := range all {
			if p.Kind == Push && p.Client == c && p.call < o.end {
				n++
			}
		}
		if int(v) > n {
			return fmt.Errorf("%v, when client %d had begun %d pushes", o, c, n)
		}
	}
	return nil
}

// byKey returns the operations that may have had an effect.
func (h *History) byKey() map[godwit.Key][]*Op {
	m := map[godwit.Key][]*Op{}
	for _, o := range h.ops {
		if o.end > 0 || o.Kind != Read {
			m[o.Key] = append(m[o.Key], o)
		}
	}
	return m
}

func by(ops []*Op, number func(*Op) int) map[int][]*Op {
	m := map[int][]*Op{}
	for _, o := range ops {
		m[number(o)] = append(m[number(o)], o)
	}
	return m
}

// search looks for an order in which step, from the first row on, takes every
// operation.
func search(ops []*Op, first []float32, step func(row []float32, o *Op) ([]float32, bool)) error {
	model := porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, _ any) (bool, any) {
			next, ok := step(state.([]float32), input.(*Op))
			return ok, next
		},
		Equal: func(a, b any) bool { return slices.Equal(a.([]float32), b.([]float32)) },
	}
	var history []porcupine.Operation
	for _, o := range ops {
		end := o.end
		if end == 0 {
			end = math.MaxInt64
		}
		history = append(history, porcupine.Operation{ClientId: o.Client, Input: o, Call: o.call, Return: end})
	}
	switch porcupine.CheckOperationsTimeout(model, history, patience) {
	case porcupine.Illegal:
		return fmt.Errorf("no order explains\n%s", list(ops))
	case porcupine.Unknown:
		return fmt.Errorf("%d operations were too many to find out in %v", len(ops), patience)
	}
	return nil
}

func list(ops []*Op) string {
	const most = 100
	var b strings.Builder
	for i, o := range ops {
		if i == most {
			fmt.Fprintf(&b, "\t… and %d more\n", len(ops)-most)
			break
		}
		fmt.Fprintf(&b, "\t%v\n", o)
	}
	return b.String()
}
