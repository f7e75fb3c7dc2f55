package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
)

// A collective is a barrier or an exchange, by its name.
type collective struct {
	kind Kind
	name string
}

func (p collective) String() string { return fmt.Sprintf("%v %q", p.kind, p.name) }

// A use is one use of a collective, by number.
type use struct {
	collective
	gen uint64
}

// A progress is how far this node is with a collective.
type progress struct {
	gen  uint64 // the use that this node is in or comes to next, from 1
	busy bool   // a call waits
}

// A gathering is one use of a collective, as far as it is known.
type gathering struct {
	payloads [][]byte // by id; nil: has not arrived
	missing  int
	settled  chan struct{} // closed when all arrived or someone missing left
}

// Barrier implements coord.Session.
func (l *Ledger) Barrier(ctx context.Context, name string) error {
	_, err := l.gather(ctx, collective{Barrier, name}, nil)
	return err
}

// Exchange implements coord.Session.
func (l *Ledger) Exchange(ctx context.Context, name string, payload []byte) ([][]byte, error) {
	if len(payload) > coord.MaxPayload {
		return nil, fmt.Errorf("exchange %q: a payload of %d bytes, want at most %d: send less, or over the data plane", name, len(payload), coord.MaxPayload)
	}
	return l.gather(ctx, collective{Exchange, name}, payload)
}

// gather announces that this node has arrived and waits for the others.
func (l *Ledger) gather(ctx context.Context, p collective, payload []byte) ([][]byte, error) {
	if p.name == "" || len(p.name) > coord.MaxName || !utf8.ValidString(p.name) {
		return nil, fmt.Errorf("%v: the name has %d bytes, want 1 … %d bytes of valid UTF-8", p, len(p.name), coord.MaxName)
	}
	g, gen, err := l.enter(p)
	if err != nil {
		return nil, err
	}
	if !l.arrived(g) {
		err := l.publish(ctx, Message{Kind: p.kind, Name: p.name, Gen: gen, Payload: payload})
		if err != nil {
			return l.exit(p, g, l.orEnd(err))
		}
	}
	select {
	case <-g.settled:
		return l.exit(p, g, coord.ErrLeft)
	case <-l.done:
		return l.exit(p, g, l.Err())
	case <-ctx.Done():
		return l.exit(p, g, context.Cause(ctx))
	}
}

// enter takes this node's turn at the collective.
func (l *Ledger) enter(p collective) (*gathering, uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, 0, fmt.Errorf("%v: %w", p, l.err)
	}
	t := l.collectives[p]
	if t == nil {
		t = &progress{gen: 1}
		l.collectives[p] = t
	}
	if t.busy {
		return nil, 0, fmt.Errorf("%v: another call of this node waits for it: give concurrent calls different names", p)
	}
	t.busy = true
	return l.gatheringLocked(use{p, t.gen}), t.gen, nil
}

// exit gives the turn back: with the result if all arrived, and otherwise with
// the reason and the names of those who did not.
func (l *Ledger) exit(p collective, g *gathering, reason error) ([][]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.collectives[p]
	t.busy = false
	if g.missing == 0 {
		delete(l.open, use{p, t.gen})
		t.gen++
		return g.payloads, nil
	}
	if l.err != nil {
		// Where several reasons came at once, the end of the run is the one that
		// lasts. A lost member would pass for one that left, too.
		reason = l.err
	}
	if errors.Is(reason, coord.ErrLeft) {
		return nil, fmt.Errorf("%v: %s did not arrive: %w", p, l.namesLocked(func(id int) bool { return g.payloads[id] == nil && l.gone[id] }), reason)
	}
	return nil, fmt.Errorf("%v: %s did not arrive: %w", p, l.namesLocked(func(id int) bool { return g.payloads[id] == nil }), reason)
}

func (l *Ledger) arrived(g *gathering) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return g.payloads[l.self] != nil
}

func (l *Ledger) gatheringLocked(p use) *gathering {
	g := l.open[p]
	if g == nil {
		g = &gathering{payloads: make([][]byte, len(l.members)), missing: len(l.members), settled: make(chan struct{})}
		l.open[p] = g
		l.settleLocked(g)
	}
	return g
}

func (l *Ledger) arriveLocked(from godwit.NodeID, w Message) {
	p := collective{w.Kind, w.Name}
	if t := l.collectives[p]; t != nil && w.Gen < t.gen {
		return // sent twice: the first was counted, and all arrived
	}
	g := l.gatheringLocked(use{p, w.Gen})
	if g.payloads[from] != nil {
		return // sent twice
	}
	// A copy, because the result belongs to the caller and the message may be
	// shared with other sessions of this process; and never nil.
	g.payloads[from] = append([]byte{}, w.Payload...)
	g.missing--
	l.settleLocked(g)
}

func (l *Ledger) leaveLocked(id godwit.NodeID) {
	l.gone[id] = true
	for _, g := range l.open {
		l.settleLocked(g)
	}
}

// settleLocked ends the wait for g if there is nothing more to wait for.
func (l *Ledger) settleLocked(g *gathering) {
	if closed(g.settled) {
		return
	}
	settled := g.missing == 0
	for id, gone := range l.gone {
		settled = settled || gone && g.payloads[id] == nil
	}
	if settled {
		close(g.settled)
	}
}

// namesLocked lists the members that fit, a few of them by name.
func (l *Ledger) namesLocked(fit func(id int) bool) string {
	const few = 8
	var names []string
	n := 0
	for id, m := range l.members {
		if fit(id) {
			if n++; n <= few {
				names = append(names, m.String())
			}
		}
	}
	s := strings.Join(names, ", ")
	if n > few {
		s += fmt.Sprintf(" and %d more", n-few)
	}
	return s
}
