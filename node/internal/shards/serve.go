package shards

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
)

// A Server does to the rows what the records of one peer ask for. It belongs to who
// reads the peer's frames. What it answers is in its sender, for others to send.
type Server struct {
	set    *Set
	from   godwit.NodeID
	out    *link.Sender
	group  store.Group          // where the rows of a batch of requests seem to be
	rows   [Batch]*store.Header // … and those of single records
	keys   [Batch]godwit.Key    // scratch
	at     [Batch]int           // scratch
	asks   wire.Record          // scratch, for a request of a batch
	floats []float32            // scratch, for answers that are no value as it is kept
	answer wire.Group           // answers that are not sent yet
	made   [maxLocked][]float32 // scratch, for those of them that are no values as they are kept
	table  *Table               // of the last request or reply

	leads, nleads uint64 // lead times of keys that have come: sum in nanoseconds, number
}

// Server returns what serves a peer, and answers by a sender.
func (s *Set) Server(from godwit.NodeID, out *link.Sender) Server {
	return Server{set: s, from: from, out: out, table: &s.tables[0]}
}

// Batch is how many records Find takes at the most: so many that trips to memory overlap, and
// few enough for their rows to stay in the processor's cache until they are taken.
const Batch = wire.MaxBatch

const _ = uint(store.GroupKeys - Batch) // they are looked up as one group

// MaxSteps is how many records of a shard are taken under one lock: few enough for those
// who wait for it to go on looking.
const MaxSteps = 4

const _ = uint(wire.MaxGroup - maxLocked) // their answers are one group

// maxLocked is how many requests or replies of a batch are taken under one lock. They take
// less time than other records.
const maxLocked = 16

// UsualHops is how often a request is sent on usually: from who asks to the home or where
// a hint leads.
const UsualHops = 1

// Leads returns the lead times of keys that have come since the last call: their sum in
// nanoseconds, and how many.
func (v *Server) Leads() (nanos, keys uint64) {
	nanos, keys = v.leads, v.nleads
	v.leads, v.nleads = 0, 0
	return nanos, keys
}

// Find looks for the rows that records will need, Batch of them at the most, and has them
// fetched into the processor's cache: all of them before the first is taken. What the
// processor has begun to fetch it ends before it takes a lock, so that between locks no two
// fetches would overlap.
func (v *Server) Find(recs []wire.Record) {
	clear(v.rows[:len(recs)])
	g, n := &v.group, 0
	for i := range recs {
		if r := &recs[i]; v.needsRow(r) {
			v.keys[n], v.at[n], g.Finders[n] = r.Key, i, v.set.shard(r.Key).Finder
			n++
		}
	}
	far := v.set.large && n >= 4
	if far {
		g.PrefetchIndex(v.keys[:n])
	}
	g.Look(v.keys[:n])
	for j, h := range g.Rows[:n] {
		i := v.at[j]
		if v.rows[i] = h; far {
			v.fetch(&recs[i], h)
		}
	}
}

// fetch has what a record needs of its row fetched, which is most likely of the table of the
// last request.
func (v *Server) fetch(r *wire.Record, h *store.Header) {
	switch r.Kind {
	case wire.Pull:
		store.Prefetch(h, v.table.Dim)
	case wire.Localize, wire.Interest:
		store.Prefetch(h, v.table.Floats)
	case wire.Push, wire.Set, wire.Delta, wire.End, wire.Refresh, wire.Transfer:
		store.PrefetchToWrite(h, v.table.Floats)
	default: // only the header
		store.PrefetchToWrite(h, 0)
	}
	if r.Kind == wire.Claim || r.Kind == wire.Release || r.Kind == wire.Dropped {
		v.set.shard(r.Key).PrefetchRemove(r.Key)
	}
}

// needsRow reports whether what a record is about may have a row.
func (v *Server) needsRow(r *wire.Record) bool {
	switch r.Kind {
	case wire.PullReply, wire.Done, wire.SyncMark, wire.SyncAck, wire.Scan, wire.InUse, wire.Scanned, wire.Settled, wire.Rebound, wire.Cut, wire.RoundMark, wire.RoundDone:
		return false
	}
	return v.set.proto.Model.Has(r.Key)
}

// fits reports whether the model has the key of a pull, push or reply, with values of
// that length.
func (v *Server) fits(r *wire.Record) bool {
	if !v.table.Has(r.Key) {
		t := v.set.Table(r.Key)
		if t == nil {
			return false
		}
		v.table = t
	}
	switch r.Kind {
	case wire.Push:
		return len(r.Vals) == v.table.Dim
	case wire.PullReply:
		return len(r.Vals) == v.table.Dim || len(r.Vals) == v.table.Floats
	}
	return true
}

// Serve carries out the request of another node at a position of what Find took, if it is
// a common one and the row that was found is what it is about. Everything else is for
// Steps.
func (v *Server) Serve(i int, r *wire.Record) bool {
	h := v.rows[i]
	if h == nil || !v.common(r) || !v.fits(r) {
		return false
	}
	x := v.set.shard(r.Key)
	x.lockFor(v.out)
	ok := v.one(x, h, r)
	x.Unlock()
	return ok
}

// common reports whether the request is one that Serve and ServeBatch may carry out.
func (v *Server) common(r *wire.Record) bool {
	c := v.set.proto
	return r.Kind <= wire.Push && r.Op != 0 && r.Origin != c.Self && int(r.Origin) < c.Nodes && r.Hops <= UsualHops
}

// one carries out a common request that fits the model, if the row is what it is
// about. The shard is locked.
func (v *Server) one(x *shard, h *store.Header, r *wire.Record) bool {
	value, ok := v.table.update.Serve(h, r, &v.floats)
	if ok {
		v.reply(x, r, value)
	}
	return ok
}

// reply answers a request, with a value if it is a Pull.
func (v *Server) reply(x *shard, r *wire.Record, value []float32) {
	a := &v.answer.Head
	a.Kind, a.Key, a.Op, a.Index, a.Vals, a.Coding = answerTo(r.Kind), r.Key, r.Op, r.Index, value, wire.Raw
	if r.Kind == wire.Pull {
		v.floats = v.table.update.Brief(v.out, a, r, v.floats, &x.Stats)
	}
	v.out.Send(r.Origin, a)
	a.Coding, a.Step = wire.Raw, 0
}

// answerTo returns the kind of the answer to a common request.
func answerTo(k wire.Kind) wire.Kind {
	if k == wire.Pull {
		return wire.PullReply
	}
	return wire.Done
}

// FindBatch looks for the rows that the requests of a batch need, and has them fetched: all
// of them before the first is served. What the processor has begun to fetch it ends
// before it takes a lock, so that between locks no two fetches would overlap.
func (v *Server) FindBatch(b *wire.Batch) {
	s := v.set
	if !s.large {
		for i, k := range b.Keys {
			v.group.Rows[i] = s.shard(k).Look(k)
		}
		return
	}
	g := &v.group
	for i, k := range b.Keys {
		g.Finders[i] = s.shard(k).Finder
	}
	g.PrefetchIndex(b.Keys)
	g.Look(b.Keys)
	// They are most likely of the table of the batch before. Rows that are pushed to are no more asked for to be written than others: who reads ahead of
	// 64 writes waits for a cache that is too small, and nobody else has most of these lines.
	store.PrefetchEach(g.Rows[:len(b.Keys)], v.table.Width(b.Kind != wire.Pull))
}

// ServeBatch is Serve of the requests of a batch from a position on, in their order. It
// returns the position of the first that is for Steps, or the end. FindBatch took the batch.
func (v *Server) ServeBatch(b *wire.Batch, i int) int {
	r := &v.asks
	r.Kind, r.Op, r.Origin, r.Hops, r.Rough, r.Whole, r.Odd = b.Kind, b.Op, b.Origin, b.Hops, b.Rough, b.Whole, b.Odd
	if !v.common(r) {
		return i
	}
	for ok := true; ok && i < len(b.Keys); {
		x := v.set.shard(b.Keys[i])
		x.lockFor(v.out)
		i, ok = v.answers(x, b, i)
		x.Unlock()
	}
	return i
}

// answers carries out the requests of a batch from a position on, up to the end, the
// first of another shard, or the first that is no common one, for which it returns false. The
// shard is locked.
func (v *Server) answers(x *shard, b *wire.Batch, first int) (end int, ok bool) {
	r, g := &v.asks, &v.answer
	g.Head.Kind, g.Head.Op = answerTo(r.Kind), r.Op
	last := first + v.set.together(b.Keys[first:])
	rough := r.Rough && v.out.Strained(r.Origin)
	for end = first; end < last; end++ {
		r.Key, r.Index = b.Keys[end], b.Indexes[end]
		if b.Floats > 0 {
			r.Vals = b.Vals(end)
		}
		h := v.group.Rows[end]
		if h == nil || (end == first || !v.table.Has(r.Key)) && !v.fits(r) {
			break
		}
		value, served := v.table.update.Serve(h, r, &v.made[end-first])
		if !served {
			break
		}
		if r.Kind == wire.Pull && v.table.update.Briefs(rough) {
			v.out.SendGroup(r.Origin, g)
			v.reply(x, r, value)
			continue
		}
		if !g.Takes(len(value)) {
			v.out.SendGroup(r.Origin, g)
		}
		g.Add(r.Key, r.Index, value)
	}
	v.out.SendGroup(r.Origin, g)
	return end, end == last
}

// RepliedBatch is Replied of a batch.
func (v *Server) RepliedBatch(b *wire.Batch) (fit int) {
	r := &v.asks
	r.Kind, r.Vals = b.Kind, nil
	if b.Floats > 0 {
		r.Vals = b.Vals(0) // all are as long
	}
	for known, home := 0, false; fit < len(b.Keys); { // up to known, keys are of one table; if home, all have theirs at the peer
		if r.Key = b.Keys[fit]; fit == known {
			if !v.fits(r) {
				return fit
			}
			known += v.table.Run(b.Keys[fit:])
			home = v.set.proto.Homes.AllAt(v.from, b.Keys[fit:known])
		}
		x := v.set.shard(b.Keys[fit])
		x.lockFor(v.out)
		n := v.set.together(b.Keys[fit:known])
		x.RepliedEach(v.from, b.Keys[fit:][:n], home)
		fit += n
		x.Unlock()
	}
	return fit
}

// Replied has the shards learn from replies where their keys are. It returns how many
// replies fit the model, up to the first that does not.
func (v *Server) Replied(rs []wire.Record) (fit int) {
	for fit < len(rs) && v.fits(&rs[fit]) {
		x := v.set.shard(rs[fit].Key)
		x.lockFor(v.out)
		x.Replied(v.from, rs[fit].Key)
		x.Unlock()
		fit++
	}
	return fit
}

// SameShard reports whether two keys are of one shard.
func (s *Set) SameShard(a, b godwit.Key) bool { return (a^b)&s.mask == 0 }

// Steps has a shard take records, MaxSteps of them at the most. Their keys are all of that
// shard, the nodes that they name are of the run, and the first of them was at a position of
// what Find took. What the shard knows of their keys beside the rows is fetched into the
// processor's cache first.
func (v *Server) Steps(first int, recs []wire.Record) error {
	x := v.lock(recs[0].Key)
	defer v.unlock(x, recs[0].Key)
	rows := v.rows[first:]
	for i := 0; i < len(recs) && len(recs) > 1; i++ {
		if rows[i] != nil {
			x.PrefetchSide(rows[i], recs[i].Key)
		}
	}
	var err error
	for i := 0; i < len(recs) && err == nil; i++ {
		err = x.Step(v.out, v.from, &recs[i])
	}
	return err
}

// Step has a shard take one record. The nodes that it names are of the run. What is sent for
// it goes to out.
func (v *Server) Step(out protocol.Out, r *wire.Record) error {
	x := v.lock(r.Key)
	defer v.unlock(x, r.Key)
	return x.Step(out, v.from, r)
}

// lock locks a key's shard, and begins to count lead times. Callers defer unlock: in a
// simulation with rules switched off a step may panic, and the simulation goes on to end.
func (v *Server) lock(k godwit.Key) *shard {
	x := v.set.shard(k)
	x.lockFor(v.out)
	v.leads -= x.Stats.LeadNanos
	v.nleads -= x.Stats.LeadActions
	return x
}

// unlock ends what lock began, and tells the rounds of work that the records made.
func (v *Server) unlock(x *shard, k godwit.Key) {
	v.leads += x.Stats.LeadNanos
	v.nleads += x.Stats.LeadActions
	v.set.noteWork(x, k)
	x.Unlock()
}
