package shards

import (
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/hint"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/latch"
	"github.com/godwit-ps/godwit/node/internal/link"
)

// A Set is all rows of a node, in shards. Any goroutine may use it.
type Set struct {
	proto   *protocol.Config
	shards  []shard
	guards  []guard // of the shards
	mask    godwit.Key
	tables  []Table
	large   bool        // the model is larger than what a processor's cache has of it
	starved atomic.Bool // there is no more memory, or room, for rows

	work   []atomic.Uint64 // one bit a shard that has something for a round
	rounds *host.Bell      // rings when there is some
}

// A shard is the protocol's shard with its lock. Two of them make a cache line.
type shard struct {
	*guard
	*store.Finder
	*protocol.Shard
	starved *atomic.Bool // the set's
}

// A guard is what the users of a shard write. It has a cache line of its own, as
// every push writes it: where the shard and its rows are, which every access
// reads, shall stay in the caches of all processors.
type guard struct {
	latch.Latch
	noted  bool // has a bit in Set.work
	closed bool // the memory of the rows is gone
	_      [50]byte
}

// cacheBytes is about half of the second-level cache of a processor: data have the rest, and workers take rows that they write from
// each other's caches.
const cacheBytes = 1 << 19

// New returns the rows of a node whose model is of so many bytes, if every key is in
// use. The bell is that of the sync rounds.
func New(cfg *protocol.Config, bytes float64, alloc store.Alloc, rounds *host.Bell) (*Set, error) {
	s := &Set{proto: cfg, shards: make([]shard, 1<<cfg.Shift), tables: tablesOf(cfg), large: bytes > cacheBytes, rounds: rounds}
	s.mask = godwit.Key(len(s.shards) - 1)
	s.work = make([]atomic.Uint64, (len(s.shards)+63)/64)
	s.guards = make([]guard, len(s.shards))
	for i := range s.shards {
		x := &s.shards[i]
		x.guard, x.starved = &s.guards[i], &s.starved
		var err error
		if x.Shard, err = protocol.NewShard(cfg, alloc); err != nil {
			return nil, err
		}
		x.Finder = x.Shard.Finder()
	}
	return s, nil
}

// Starve has no rows be made any more: the system has no more memory for them.
func (s *Set) Starve() { s.starved.Store(true) }

// Starved reports whether Starve was called.
func (s *Set) Starved() bool { return s.starved.Load() }

// Close lets nobody come to the rows any more, whose memory may then go.
func (s *Set) Close() {
	for i := range s.shards {
		x := &s.shards[i]
		x.Lock()
		x.closed = true // for a worker that did not stop in time
		x.Unlock()
	}
}

func (s *Set) shard(k godwit.Key) *shard { return &s.shards[k&s.mask] }

// homedElsewhere reports whether a key has its home at another node.
func (s *Set) homedElsewhere(k godwit.Key) bool { return !s.proto.HomedHere(k) }

// over reports whether no row may be made any more. The lock is held.
func (x *shard) over() bool { return x.closed || x.starved.Load() }

// prefetch has the processor fetch the guard, to write it.
func (g *guard) prefetch() { hint.Write(unsafe.Pointer(g), 1) }

// lockFor locks the shard for a sender, who lets go of the queue that it keeps where
// the shard is taken.
func (x *shard) lockFor(out *link.Sender) {
	if !out.Kept() || !x.TryLock() {
		out.LetGo()
		x.Lock()
	}
}

// noteWork tells the rounds if the shard of a key has work for them. Its lock is held.
func (s *Set) noteWork(x *shard, k godwit.Key) {
	if !x.noted && x.Work() {
		x.noted = true
		i := k & s.mask
		s.work[i/64].Or(1 << (i % 64))
		s.rounds.Ring()
	}
}

// Resume has a request go on that waited for something else than its key.
func (s *Set) Resume(out protocol.Out, r *wire.Record) {
	s.With(r.Key, func(x *protocol.Shard) { x.Resume(out, r) })
}

// Want begins an intent of this node for each of some keys, Unwant ends it.
func (s *Set) Want(out *link.Sender, keys []godwit.Key) { s.each(out, keys, (*protocol.Shard).Want) }

// Moves reports whether intents move keys here, away from nodes that want them, too.
func (s *Set) Moves() bool { return s.proto.Moves() }

// WantAgain notes that there are more intents for keys that are wanted.
func (s *Set) WantAgain(out *link.Sender, keys []godwit.Key) {
	s.each(out, keys, (*protocol.Shard).WantAgain)
}

// Unwant ends what Want began.
func (s *Set) Unwant(out *link.Sender, keys []godwit.Key) {
	s.each(out, keys, (*protocol.Shard).Unwant)
}

// UnwantOwned ends what Want began for those keys whose main copies are here. It returns the others, in the same memory.
func (s *Set) UnwantOwned(out *link.Sender, keys []godwit.Key) (others []godwit.Key) {
	return slices.DeleteFunc(keys, func(k godwit.Key) (ended bool) {
		s.With(k, func(x *protocol.Shard) { ended = x.UnwantOwned(out, k) })
		return ended
	})
}

// Used reports whether anybody has accessed a key, and known whether this node knows that: its home does, and who has a row of it.
// No row is made. If the rows are gone, the key counts as used.
func (s *Set) Used(k godwit.Key) (used, known bool) {
	used, known = true, true
	s.With(k, func(x *protocol.Shard) { used, known = x.Touched(k) })
	return used, known
}

// Gone reports whether a key is elsewhere, or an idle replica: one that stays as long as others hardly change it.
func (s *Set) Gone(k godwit.Key) (gone bool) {
	s.With(k, func(x *protocol.Shard) { gone = x.Asks(k) || x.Idle(k) })
	return gone
}

// Hold asks for a replica of a key that stays for the rest of the run.
func (s *Set) Hold(out *link.Sender, k godwit.Key) (ok bool) {
	return s.With(k, func(x *protocol.Shard) { x.Hold(out, k) })
}

// each does something for each key, under one lock for several that follow each other in a shard.
func (s *Set) each(out *link.Sender, keys []godwit.Key, do func(*protocol.Shard, protocol.Out, godwit.Key)) {
	for n := 0; len(keys) > 0; keys = keys[n:] {
		n = s.together(keys)
		if !s.With(keys[0], func(x *protocol.Shard) {
			for _, k := range keys[:n] {
				do(x, out, k)
			}
		}) {
			return
		}
	}
}

// together returns how many of the first keys are of one shard, maxLocked at the most.
func (s *Set) together(keys []godwit.Key) (n int) {
	for n = 1; n < min(len(keys), maxLocked) && s.SameShard(keys[n], keys[0]); {
		n++
	}
	return n
}

// Believed returns the node that a request for a key would go to; false if that is
// this one, or the rows are gone.
func (s *Set) Believed(k godwit.Key) (to godwit.NodeID, ok bool) {
	to = godwit.NoNode
	s.With(k, func(x *protocol.Shard) { to, ok = x.Believed(k) })
	return to, ok && to != s.proto.Self
}
