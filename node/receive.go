package node

import (
	"errors"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/packing"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
)

// inbound is what is needed to take the frames of one peer, of one goroutine.
type inbound struct {
	from   godwit.NodeID
	link   *life
	out    link.Sender
	d      wire.Decoder
	plain  []byte               // memory of a frame that came compressed
	recs   [ahead]wire.Record   // some records of the frame
	rows   [ahead]*store.Header // where the rows of requests among them seem to be
	reply  wire.Record          // scratch
	floats []float32            // scratch, for answers that are no value as it is kept
	table  *table               // of the last request or reply
	count  int                  // records taken

	leads, nleads uint64 // lead times of keys that arrived with the frame: sum, number

	known wire.Known    // lists of keys that the peer may refer to
	waits bool          // d waits for a list,
	came  chan struct{} // … which closes this when it comes,
	held  [][]byte      // … and so do the frames behind its frame
	bytes int           // of these
}

func (n *Node) inbound(from godwit.NodeID) *inbound {
	in := &inbound{from: from, link: &n.pulse.links[from], out: n.links.Sender(), table: &n.tables[0]}
	in.d.Lists = &in.known
	return in
}

// frame hands a frame of the peer to the shards. What follows is in in.out.
func (n *Node) frame(in *inbound, frame []byte) (err error) {
	n.received.Add(uint64(len(frame)))
	if wire.IsHeartbeat(frame) {
		return n.pulse.beat(in.from, frame)
	}
	add(&in.link.arrived, uint64(len(frame)))
	switch {
	case wire.Asks(frame):
		err = n.tell(in, frame)
	case wire.Answers(frame):
		err = n.learn(in, frame)
	case wire.IsGoodbye(frame):
		err = n.parted(in.from, frame)
	case wire.IsSuspicions(frame):
		err = n.pulse.accused(in.from, frame)
	case in.waits:
		err = in.hold(frame)
	default:
		err = n.begin(in, frame)
	}
	if err == nil && n.pacer.waiting.Load() > 0 {
		n.pacer.bell.Ring()
	}
	if err == nil && n.bound.settling() {
		n.bound.stir()
	}
	return err
}

// unpacked returns a frame that arrived as it was.
func (in *inbound) unpacked(frame []byte) ([]byte, error) {
	if wire.Compression(frame) == 0 {
		return frame, nil
	}
	f, err := packing.Unpacked(in.plain, frame)
	if err == nil {
		in.plain = f
	}
	return f, err
}

// begin takes a frame of records.
func (n *Node) begin(in *inbound, frame []byte) error {
	frame, err := in.unpacked(frame)
	if err == nil {
		err = in.d.Reset(frame)
	}
	if err == nil {
		err = n.goOn(in)
	}
	return err
}

// goOn takes what is left of the frame that in.d was reset to.
func (n *Node) goOn(in *inbound) error {
	in.out.Keep()
	err := n.take(in, in.from)
	in.out.Release()
	if in.nleads > 0 {
		n.planner.leads.Add(in.leads)
		n.planner.nleads.Add(in.nleads)
		in.leads, in.nleads = 0, 0
	}
	if e, ok := err.(*wire.UnknownListError); ok {
		n.lacks(in, e)
		return nil
	}
	return err
}

// take steps through the records that are left of a frame.
func (n *Node) take(in *inbound, from godwit.NodeID) (err error) {
	for {
		recs, end := in.some()
		in.count += len(recs)
		n.find(in, recs)
		for i := 0; i < len(recs) && err == nil; i++ {
			switch r := &recs[i]; {
			case isReply(r):
				first := i
				for i+1 < len(recs) && isReply(&recs[i+1]) && recs[i+1].Op == r.Op {
					i++
				}
				err = n.replied(in, from, recs[first:i+1])
			case n.serve(in, r, in.rows[i]):
			case isCommon(r):
				first := i
				for i+1 < min(len(recs), first+maxSteps) && isCommon(&recs[i+1]) && n.shard(recs[i+1].Key) == n.shard(r.Key) {
					i++
				}
				err = n.steps(in, from, recs[first:i+1], in.rows[first:])
			default:
				err = n.step(in, from, r)
			}
		}
		if n.starved.Load() {
			return n.Err()
		}
		if to := in.out.Flooded; to != godwit.NoNode && err == nil {
			err = &floodError{to, n.links.Limits.Owed}
		}
		switch {
		case err != nil:
			return err
		case end != nil || len(recs) < len(in.recs):
			return end
		}
	}
}

// A floodError says which node asked for more than it may.
type floodError struct {
	peer godwit.NodeID
	most int
}

func (e *floodError) Error() string {
	return fmt.Sprintf("more than %d MiB of answers wait here to be read by node %d, which must not ask for so much", e.most>>20, e.peer)
}

// broke ends the run because of what a peer sent, or had another one send.
func (n *Node) broke(peer godwit.NodeID, err error) {
	if n.starved.Load() {
		return // it is not to blame
	}
	var f *floodError
	if errors.As(err, &f) {
		peer = f.peer
	}
	n.end(peer, brokeProtocol, err)
}

// some decodes records, fewer than fit in in.recs if they are the last: so many
// that the rows of the last can be on their way to the processor's cache while
// the first are stepped.
func (in *inbound) some() ([]wire.Record, error) {
	n, err := in.d.Fill(in.recs[:])
	return in.recs[:n], err
}

// find looks for the rows that records will need, and has them fetched into the
// processor's cache.
func (n *Node) find(in *inbound, recs []wire.Record) {
	far := n.large && len(recs) >= 4
	if far {
		for i := range recs {
			if needsRow(&recs[i]) && n.model.Has(recs[i].Key) {
				n.shard(recs[i].Key).PrefetchIndex(recs[i].Key)
			}
		}
	}
	for i := range recs {
		r := &recs[i]
		in.rows[i] = nil
		switch {
		case !needsRow(r) || !n.model.Has(r.Key):
		case far:
			in.rows[i] = n.shard(r.Key).PrefetchRow(r.Key)
		case r.Kind <= wire.Push:
			in.rows[i] = n.shard(r.Key).Look(r.Key)
		}
	}
}

func needsRow(r *wire.Record) bool {
	switch r.Kind {
	case wire.PullReply, wire.Done, wire.Scan, wire.InUse, wire.Scanned, wire.Settled, wire.Rebound:
		return false
	}
	return true
}

func isReply(r *wire.Record) bool { return r.Kind == wire.PullReply || r.Kind == wire.Done }

// fits reports whether the model has the key of a pull, push or reply, with
// values of that length.
func (n *Node) fits(in *inbound, r *wire.Record) bool {
	if !in.table.has(r.Key) {
		t := n.table(r.Key)
		if t == nil {
			return false
		}
		in.table = t
	}
	switch r.Kind {
	case wire.Push, wire.PullReply:
		return len(r.Vals) == in.table.dim
	}
	return true
}

// serve carries out a request of another node, if it is a common one and the
// row that was found is what it is about. Everything else is for step.
func (n *Node) serve(in *inbound, r *wire.Record, h *store.Header) bool {
	if r.Kind > wire.Push || h == nil || r.Op == 0 || r.Origin == n.self || int(r.Origin) >= n.links.Nodes() || r.Hops > commonHops || !n.fits(in, r) {
		return false
	}
	s := n.shard(r.Key)
	s.lockFor(&in.out)
	value, ok := in.table.update.Serve(h, r, &in.floats)
	if ok {
		a := &in.reply
		a.Kind, a.Key, a.Op, a.Index, a.Vals, a.Coding = wire.Done, r.Key, r.Op, r.Index, value, wire.Raw
		if r.Kind == wire.Pull {
			a.Kind = wire.PullReply
			if u := in.table.update; u.Rounds() {
				in.floats = u.Round(a, r, in.floats, &s.Stats)
			}
		}
		in.out.Send(r.Origin, a)
	}
	s.Unlock()
	return ok
}

// commonHops is how often a request is sent on usually: from who asks to the
// home or where a hint leads.
const commonHops = 1

// replied takes replies to one operation.
func (n *Node) replied(in *inbound, from godwit.NodeID, rs []wire.Record) (err error) {
	done := 0
	for ; done < len(rs) && err == nil; done++ {
		r := &rs[done]
		if !n.fits(in, r) {
			err = n.step(in, from, r)
			break
		}
		s := n.shard(r.Key)
		s.lockFor(&in.out)
		s.Replied(from, r.Key)
		s.Unlock()
	}
	if done > 0 {
		n.complete(from, rs[:done]...)
	}
	return err
}

// isCommon reports whether a record is for a shard alone.
func isCommon(r *wire.Record) bool { return r.Kind <= wire.Drained && !isReply(r) }

// maxSteps is how many records of a shard are taken under one lock: few enough
// for those who wait for it to go on looking.
const maxSteps = 4

// steps has a shard take common records, of rows that seem to be its own. What
// it has beside these went from the cache since it took the records before of
// their keys: that is fetched first.
func (n *Node) steps(in *inbound, from godwit.NodeID, recs []wire.Record, rows []*store.Header) error {
	for i := range recs {
		if err := n.plausible(&recs[i]); err != nil {
			return err
		}
	}
	return n.locked(in, recs[0].Key, func(s *shard) (err error) {
		for i := 0; i < len(recs) && len(recs) > 1; i++ {
			if rows[i] != nil {
				s.PrefetchSide(rows[i], recs[i].Key)
			}
		}
		for i := 0; i < len(recs) && err == nil; i++ {
			err = s.Step(&in.out, from, &recs[i])
		}
		return err
	})
}

// locked does something to a key's shard under its lock.
func (n *Node) locked(in *inbound, k godwit.Key, do func(*shard) error) error {
	s := n.shard(k)
	s.lockFor(&in.out)
	defer s.Unlock()
	nanos, actions := s.Stats.LeadNanos, s.Stats.LeadActions
	err := do(s)
	if a := s.Stats.LeadActions - actions; a > 0 {
		in.leads += s.Stats.LeadNanos - nanos
		in.nleads += a
	}
	s.noteWork(n, k)
	return err
}

// step has a shard take one record.
func (n *Node) step(in *inbound, from godwit.NodeID, r *wire.Record) error {
	switch r.Kind {
	case wire.SyncMark, wire.SyncAck:
		n.pacer.marked(from, r)
		return nil
	case wire.Scan:
		return n.scan(in, from, r)
	case wire.InUse, wire.Scanned:
		in.out.LetGo() // a scan has a lock of its own, under which it sends
		return n.scanned(from, r)
	case wire.Settled, wire.Rebound:
		in.out.LetGo() // what is told has a lock of its own
		return n.told(in, from, r)
	}
	if err := n.plausible(r); err != nil {
		return err
	}
	var out protocol.Out = &in.out
	if r.Kind == wire.PullAfter {
		var err error
		if out, err = n.pullAfter(in, r); out == nil {
			return err
		}
	}
	return n.locked(in, r.Key, func(s *shard) error { return s.Step(out, from, r) })
}

// plausible refuses a record that does not fit the run.
func (n *Node) plausible(r *wire.Record) error {
	if int(r.Origin) >= n.links.Nodes() {
		return fmt.Errorf("%v of key %d for node %d, the run has %d nodes", r.Kind, r.Key, r.Origin, n.links.Nodes())
	}
	if r.Hops == 255 {
		return fmt.Errorf("%v of key %d for node %d went round in circles: nodes disagree on who owns the key", r.Kind, r.Key, r.Origin)
	}
	for i := range r.Holders {
		if h := r.Holders[i].Node; int(h) >= n.links.Nodes() {
			return fmt.Errorf("%v of key %d with holder %d, the run has %d nodes", r.Kind, r.Key, h, n.links.Nodes())
		}
	}
	return nil
}
