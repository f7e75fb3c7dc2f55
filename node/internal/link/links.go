package link

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// Links are the ways from a node to all others, and what it asked them for.
type Links struct {
	Self   godwit.NodeID
	Limits host.Limits

	// Answered takes the replies of this node to its own workers, which need no
	// link. It is set once, before the first record is sent.
	Answered func(from godwit.NodeID, rs ...wire.Record)

	// Strains, if set, answers Strained and Crowded. It is set before the first record is sent.
	Strains func() bool

	host    *host.Host
	peers   []*Link // by node id; nil for this node
	asking  *asking
	rounds  *host.Bell // rings when there is room for what asking had none for
	view    godwit.View
	packing filter.Compress
	buffers buffers
}

// New returns the links of node self of a run of so many nodes, none of which is
// connected. Frames are compressed by a method where that pays. The bell is that of
// the sync rounds.
func New(h *host.Host, self godwit.NodeID, nodes int, view godwit.View, limits host.Limits, by filter.Compress, rounds *host.Bell) *Links {
	return &Links{Self: self, Limits: limits, host: h, peers: make([]*Link, nodes), asking: newAsking(limits.Rows, nodes), rounds: rounds, view: view, packing: by}
}

// Connect gives the way to a peer its connection.
func (ls *Links) Connect(peer godwit.NodeID, c transport.Conn) {
	takes := c.Peer().Features
	l := ls.connect(peer, takes)
	l.conn = c
	l.shared, _ = c.(transport.InlineReader)
	l.pacer, _ = c.(transport.Pacer)
}

// Imagine makes the way to a peer of a simulated node: flushed is told that there is
// something to Take.
func (ls *Links) Imagine(peer godwit.NodeID, flushed func()) {
	ls.connect(peer, ^wire.Features(0)).flushed = flushed
}

func (ls *Links) connect(peer godwit.NodeID, takes wire.Features) *Link {
	l := &Link{queue: queue{view: ls.view, buffers: &ls.buffers, full: ls.Limits.Frame}, wake: make(chan struct{}, 1), host: ls.host}
	l.w.packer.Set(ls.packing, takes)
	l.enc.Plain = takes&wire.SupportsCodings == 0
	if takes&wire.SupportsLists != 0 {
		l.enc.Lists = &wire.Sent{}
	}
	l.enc.Reset(nil, ls.view)
	ls.peers[peer] = l
	return l
}

// Nodes returns the number of nodes of the run.
func (ls *Links) Nodes() int { return len(ls.peers) }

// Alone reports whether there is no other node.
func (ls *Links) Alone() bool { return len(ls.peers) == 1 }

// To returns the way to a peer, nil if that is this node.
func (ls *Links) To(peer godwit.NodeID) *Link { return ls.peers[peer] }

// All yields the ways to all peers.
func (ls *Links) All(yield func(godwit.NodeID, *Link) bool) {
	for i, l := range ls.peers {
		if l != nil && !yield(godwit.NodeID(i), l) {
			return
		}
	}
}

// Due reports whether keys can be asked for that there was no room for before, once
// each time that this came to be.
func (ls *Links) Due() bool { return ls.asking.due.Swap(false) }

// Asked returns the bytes of rows that were asked for because of intents and have not
// come.
func (ls *Links) Asked() int64 { return ls.asking.all.Load() }

// Slowest returns the peer that has taken least of what it was sent, NoNode if
// nothing is queued.
func (ls *Links) Slowest() godwit.NodeID {
	peer, most := godwit.NoNode, 0
	for id, l := range ls.All {
		l.mu.Lock()
		if l.queued > most {
			peer, most = id, l.queued
		}
		l.mu.Unlock()
	}
	return peer
}

// Close ends all connections.
func (ls *Links) Close() {
	for _, l := range ls.All {
		if l.conn != nil {
			l.conn.Close()
		}
	}
}
