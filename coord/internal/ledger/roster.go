package ledger

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
)

// A Registration is what a node stores at the coordinator under its id while the run
// is not sealed yet.
type Registration struct {
	Addr        string `json:"addr"`                  // coord.Config.Addr
	Fingerprint string `json:"fingerprint,omitempty"` // coord.Config.Fingerprint
	Nodes       int    `json:"nodes"`                 // coord.Config.Nodes
	Share       []byte `json:"share"`                 // this node's part of the run's secret: random bytes
	Incarnation uint64 `json:"-"`                     // grows from one registration to the next
}

// NewRegistration is that of a node with this configuration. It has a share of its own.
func NewRegistration(c coord.Config) Registration {
	share := make([]byte, coord.SecretSize)
	_, _ = rand.Read(share) // never fails
	return Registration{Addr: c.Addr, Fingerprint: c.Fingerprint, Nodes: c.Nodes, Share: share}
}

// A Roster is who has arrived so far, by id. The zero value is not usable; a
// Roster belongs to one goroutine.
type Roster struct {
	cfg        coord.Config
	registered map[godwit.NodeID]Registration
	gone       []string // addresses of those that arrived and went again
}

// NewRoster returns an empty roster for a node that joins with c.
func NewRoster(c coord.Config) *Roster {
	return &Roster{cfg: c, registered: map[godwit.NodeID]Registration{}}
}

// Put notes who registered as id.
func (r *Roster) Put(id godwit.NodeID, s Registration) {
	r.registered[id] = s
	r.gone = slices.DeleteFunc(r.gone, func(a string) bool { return a == s.Addr })
}

// Remove notes that the id is free.
func (r *Roster) Remove(id godwit.NodeID) {
	s, ok := r.registered[id]
	if !ok {
		return
	}
	delete(r.registered, id)
	if !slices.Contains(r.gone, s.Addr) {
		r.gone = append(r.gone, s.Addr)
	}
}

// Free is the lowest free id, and false if there is none.
func (r *Roster) Free() (godwit.NodeID, bool) {
	for id := range godwit.NodeID(r.cfg.Nodes) {
		if _, ok := r.registered[id]; !ok {
			return id, true
		}
	}
	return godwit.NoNode, false
}

// Members lists who is registered, by id.
func (r *Roster) Members() []coord.Member {
	ms := make([]coord.Member, 0, len(r.registered))
	for id, s := range r.registered {
		ms = append(ms, coord.Member{ID: id, Addr: s.Addr, Incarnation: s.Incarnation})
	}
	slices.SortFunc(ms, func(a, b coord.Member) int { return int(a.ID) - int(b.ID) })
	return ms
}

// Secret is that of the run if it is sealed with who is registered now. It is a hash of
// the shares of all, so each member alone makes it a new one.
func (r *Roster) Secret() []byte {
	h := sha256.New()
	text := func(b []byte) { // each with its length: no two lists read the same
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		_, _ = h.Write(b)
	}
	text([]byte("godwit run secret 1"))
	text([]byte(r.cfg.Run))
	for _, m := range r.Members() {
		text(r.registered[m.ID].Share)
	}
	return h.Sum(nil)
}

// Mismatch is the error of node self if another one differs from it.
func (r *Roster) Mismatch(self godwit.NodeID) error {
	me := r.registered[self]
	for _, m := range r.Members() {
		s := r.registered[m.ID]
		switch {
		case s.Fingerprint != me.Fingerprint:
			what, mine, theirs := firstDifference(me.Fingerprint, s.Fingerprint)
			return r.mismatch(self, m, what, strconv.Quote(mine), strconv.Quote(theirs))
		case s.Nodes != me.Nodes:
			return r.mismatch(self, m, "number of nodes", strconv.Itoa(me.Nodes), strconv.Itoa(s.Nodes))
		}
	}
	return nil
}

func (r *Roster) mismatch(self godwit.NodeID, other coord.Member, what, mine, theirs string) error {
	me := coord.Member{ID: self, Addr: r.registered[self].Addr}
	return fmt.Errorf("coord: run %q: %w: the %s of this one, %v, is %.300s, and of %v it is %.300s: start all nodes with the same %s",
		r.cfg.Run, coord.ErrMismatch, what, me, mine, other, theirs, what)
}

// firstDifference returns the name of the first line in which two fingerprints
// differ, and its values; else the fingerprints.
func firstDifference(mine, theirs string) (what, a, b string) {
	as, bs := strings.Split(mine, "\n"), strings.Split(theirs, "\n")
	for i := range min(len(as), len(bs)) {
		name, a, ok := strings.Cut(as[i], ": ")
		other, b, _ := strings.Cut(bs[i], ": ")
		if ok && name == other && a != b {
			return name, a, b
		}
	}
	return "configuration and build", mine, theirs
}

// Missing is the error of a node that waited in vain.
func (r *Roster) Missing(within string, cause error) error {
	gone := ""
	if len(r.gone) > 0 {
		gone = fmt.Sprintf(" (and gone again: %s)", strings.Join(r.gone, ", "))
	}
	return fmt.Errorf("coord: run %q: %w: %d of %d%s: %s%s: %w",
		r.cfg.Run, coord.ErrMissing, len(r.registered), r.cfg.Nodes, within, r.names(), gone, cause)
}

// Complete is the error of a node that finds no free id.
func (r *Roster) Complete() error {
	return fmt.Errorf("coord: run %q: %w: no place for %s beside the %d that it has: %s: let that run end, or use another name",
		r.cfg.Run, coord.ErrComplete, r.cfg.Addr, len(r.registered), r.names())
}

func (r *Roster) names() string {
	if len(r.registered) == 0 {
		return "none"
	}
	var names []string
	for _, m := range r.Members() {
		names = append(names, m.String())
	}
	return strings.Join(names, ", ")
}
