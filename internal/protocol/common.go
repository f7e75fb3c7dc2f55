package protocol

import (
	"unsafe"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/hint"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
)

// This file has short ways for the commonest requests between nodes, without the cases
// that only other requests need. Each does exactly what Request or Step would do, or does
// nothing and says so.

// Pass is Request for a Pull or a Push of an operation whose key is not here and has its home at
// another node. The caller sends the request to the node that Pass returns, with Hops 1, before it
// releases the shard's lock. For any other key Pass does nothing, and reports false.
// If direct is set, that is the key's home, whatever hints say: what a worker asks of a key so keeps its order.
func (s *Shard) Pass(k godwit.Key, direct bool) (to godwit.NodeID, ok bool) {
	home := s.cfg.Homes.Home(k)
	if home == s.cfg.Self {
		return 0, false
	}
	c := s.countsOf(k)
	if c.strangers > 0 {
		if _, here := s.st.Find(k); here {
			return 0, false
		}
	}
	c.remote++
	hops := uint8(0)
	if direct {
		hops = hintHops
	}
	return s.nextFrom(home, k, hops), true
}

// Serve is Step for another node's Pull or Push that fits the model, if the row that was
// found for the key is its main copy and has no side. The caller sends the reply before it
// releases the shard's lock: for a Pull with the value that Serve returns, which is in the
// row or in scratch.
func (u *Update) Serve(h *store.Header, r *wire.Record, scratch *[]float32) (value []float32, ok bool) {
	if h == nil || h.Key != r.Key || stateOf(h) != owner || hasSide(h) {
		return nil, false
	}
	if r.Kind == wire.Push {
		return nil, u.Push(h, r.Key, r.Vals, MarkOf(r.Odd)) == AtOwner
	}
	return u.asked(h, r, scratch), true
}

// PrefetchSide prefetches the side record of the row that seems to be a key's own.
// The shard's lock must be held.
func (s *Shard) PrefetchSide(h *store.Header, k godwit.Key) {
	if h.Key == k && hasSide(h) {
		hint.Write(unsafe.Pointer(s.side(h)), unsafe.Sizeof(side{}))
	}
}
