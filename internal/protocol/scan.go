package protocol

import (
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
)

// A key is in use from its first access on. That access comes to the key's home, which
// makes the row ([Shard.find]). The home's set of keys in use does not depend on where
// rows are later. So scans, which ask the homes, neither miss a key nor see it twice
// because it moves.

// scanKeys is the number of keys that one answer to a scan names at most: large enough
// that questions cost little, small enough that nobody must hold much of it or wait long
// for the home. Keys between them that are not in use cost next to nothing
// ([store.KeySet]).
const scanKeys = 4096

// Used calls do with keys in first … end-1 that are homed here and in use, in
// order, and returns the key before which it has come, which is past first. Any
// goroutine may ask at any time.
func (c *Config) Used(first, end godwit.Key, do func(godwit.Key)) (next godwit.Key) {
	for range scanKeys {
		k, ok := c.used.Next(first, end)
		if !ok {
			return end
		}
		do(k)
		first = k + 1
	}
	return first
}

// UsedLen counts the keys that are homed here and in use. Any goroutine may ask at
// any time; it takes some nanoseconds a key.
func (c *Config) UsedLen() int { return c.used.Len() }

// Scan answers a scan's question.
func (c *Config) Scan(out Out, from godwit.NodeID, r *wire.Record) error {
	end := godwit.Key(r.Seq)
	if r.Key >= end || uint64(end) > c.Model.Keys() {
		return fmt.Errorf("protocol: node %d scans the keys from %d up to %d, the model has keys 0 … %d", from, r.Key, end, c.Model.Keys()-1)
	}
	a := wire.Record{Kind: wire.InUse, Op: r.Op}
	next := c.Used(r.Key, end, func(k godwit.Key) {
		a.Key = k
		out.Send(from, &a)
	})
	a.Kind, a.Key = wire.Scanned, next
	out.Send(from, &a)
	return nil
}

// A Scan is one home's part of a scan that somebody makes here: it asks for the
// keys from first to end-1, an answer at a time.
type Scan struct {
	home      godwit.NodeID
	op        uint64
	next, end godwit.Key // what was not asked for, or is being answered
	waits     bool       // for an answer
	keys      []godwit.Key
	coming    []godwit.Key // of the answer that is under way
}

// NewScan begins a scan of the keys that are homed at a node. Op is to be
// different for every one of this node's scans.
func NewScan(home godwit.NodeID, op uint64, first, end godwit.Key) *Scan {
	return &Scan{home: home, op: op, next: first, end: end}
}

// Ask sends the next question, and reports false if there is none left. The
// answers to those before must have been taken.
func (s *Scan) Ask(out Out) bool {
	if s.next >= s.end {
		return false
	}
	s.waits = true
	out.Send(s.home, &wire.Record{Kind: wire.Scan, Op: s.op, Key: s.next, Seq: uint64(s.end)})
	return true
}

// Take takes a record of the answer, and reports whether it was the last. An
// error means that the home does not keep to the protocol.
func (s *Scan) Take(c *Config, from godwit.NodeID, r *wire.Record) (last bool, err error) {
	least := s.next
	if n := len(s.coming); n > 0 {
		least = s.coming[n-1] + 1
	}
	switch {
	case from != s.home || !s.waits:
		return false, fmt.Errorf("protocol: node %d answers a scan of key %d that it was not asked for", from, r.Key)
	case r.Key < least || r.Key > s.end || r.Kind == wire.InUse && (r.Key == s.end || len(s.coming) == scanKeys || c.Homes.Home(r.Key) != from):
		return false, fmt.Errorf("protocol: node %d answers a scan of its keys %d … %d by %v of key %d after %d keys", from, s.next, s.end-1, r.Kind, r.Key, len(s.coming))
	case r.Kind == wire.InUse:
		s.coming = append(s.coming, r.Key)
		return false, nil
	case r.Key == s.next:
		return false, fmt.Errorf("protocol: node %d does not get on with a scan of its keys %d … %d", from, s.next, s.end-1)
	}
	s.next, s.waits = r.Key, false
	return true, nil
}

// Keys returns the keys of the answer that was taken, in their order, and frees
// the memory of those that it returned before.
func (s *Scan) Keys() []godwit.Key {
	s.keys, s.coming = s.coming, s.keys[:0]
	return s.keys
}
