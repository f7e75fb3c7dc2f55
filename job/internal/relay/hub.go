package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/godwit-ps/godwit/node"
)

// A Hub is at the node that has the checkpoints.
type Hub struct {
	widths []int // floats of a row of each table

	mu      sync.Mutex
	intake  *intake
	outlets map[int]*outlet // by node
}

// An intake takes the rows of other nodes at a cut.
type intake struct {
	cut   uint64
	queue chan parcel
	kept  map[int]bool // nodes for whose next parcel room is kept
	over  bool         // no more rows are taken
}

// A parcel is what a node brings: rows, or, where these are nil, its end.
type parcel struct {
	node int
	rows *rows
	err  error
}

// An outlet has rows for another node.
type outlet struct {
	ready chan []byte // answers; closed when there are no more
	err   error       // set before ready is closed
}

// queued is how many messages may wait for who takes them, or for a node to ask for them.
const queued = 4

// NewHub returns a hub of a model whose tables' rows have so many floats.
func NewHub(widths []int) *Hub { return &Hub{widths: widths, outlets: map[int]*outlet{}} }

// Answer answers a question of another node. It does not wait.
func (h *Hub) Answer(from int, q []byte) []byte {
	k, cut, rest, err := parseQuestion(q)
	if err == nil && k == rowsNext {
		return h.give(from)
	}
	var p parcel
	switch {
	case err != nil:
	case k == rowsCome:
		p.rows, err = parseRows(rest, h.widths)
	case k == rowsFail:
		p.err = errors.New(string(rest))
	}
	if err != nil {
		return append([]byte{bad}, err.Error()...)
	}
	p.node = from
	return []byte{h.put(cut, p, k == roomNext)}
}

// put takes what a node brings, or only keeps room for it.
func (h *Hub) put(cut uint64, p parcel, keep bool) byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	in := h.intake
	switch {
	case in == nil || in.cut < cut:
		return wait
	case in.cut > cut || in.over:
		return over
	case !in.kept[p.node] && len(in.queue)+len(in.kept) >= queued:
		return wait
	case keep:
		in.kept[p.node] = true
	default:
		delete(in.kept, p.node)
		in.queue <- p // does not wait: there is room, and only this function fills it
	}
	return done
}

// Take hands the rows of a number of other nodes, of one cut, to sink, and returns when each node has said that it has no more.
// Cuts have growing numbers. End is to be called then, or in its place.
func (h *Hub) Take(ctx context.Context, cut uint64, others int, sink node.Sink) error {
	in := &intake{cut: cut, queue: make(chan parcel, queued), kept: map[int]bool{}}
	h.mu.Lock()
	h.intake = in
	h.mu.Unlock()
	for others > 0 {
		select {
		case p := <-in.queue:
			switch {
			case p.err != nil:
				return fmt.Errorf("node %d: %w", p.node, p.err)
			case p.rows == nil:
				others--
			default:
				if err := sink(p.rows.table, p.rows.rows, p.rows.floats); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// End says that no rows of a cut are taken any more: nodes that bring some hear of it.
func (h *Hub) End(cut uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.intake = &intake{cut: cut, over: true}
}

// Give has rows given to another node, as it asks for them. Fill hands them to a sink. Give returns when the last ones
// were asked for, or an error was.
func (h *Hub) Give(ctx context.Context, to int, fill func(node.Sink) error) error {
	o := &outlet{ready: make(chan []byte, queued)}
	h.mu.Lock()
	h.outlets[to] = o
	h.mu.Unlock()
	o.err = fill(func(table int, rs []uint64, floats []float32) error {
		return split(table, rs, floats, h.widths[table], func(r *rows) error {
			select {
			case o.ready <- r.append([]byte{done}):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
	close(o.ready)
	return o.err
}

func (h *Hub) give(to int) []byte {
	h.mu.Lock()
	o := h.outlets[to]
	h.mu.Unlock()
	if o == nil {
		return []byte{wait}
	}
	select {
	case b, ok := <-o.ready:
		switch {
		case ok:
			return b
		case o.err != nil:
			return append([]byte{bad}, o.err.Error()...)
		}
		return []byte{over}
	default:
		return []byte{wait}
	}
}

// split calls do with rows that fit into messages.
func split(table int, rs []uint64, floats []float32, width int, do func(*rows) error) error {
	n := most(width)
	if n == 0 {
		return fmt.Errorf("relay: a row of table %d has %d floats, more than a message between nodes takes: checkpoints must be in a folder or bucket that all nodes see (--checkpoint)", table, width)
	}
	for len(rs) > 0 {
		n = min(n, len(rs))
		if err := do(&rows{table, rs[:n], floats[:n*width]}); err != nil {
			return err
		}
		rs, floats = rs[n:], floats[n*width:]
	}
	return nil
}
