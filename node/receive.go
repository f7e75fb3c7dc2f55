package node

import (
	"errors"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/packing"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/shards"
)

// inbound is what is needed to take the frames of one peer, of one goroutine.
type inbound struct {
	from  godwit.NodeID
	out   link.Sender
	d     wire.Decoder
	plain []byte                    // memory of a frame that came compressed
	recs  [shards.Batch]wire.Record // some records of the frame
	rows  shards.Server             // what they ask for is done by it
	count int                       // records taken

	known wire.Known    // lists of keys that the peer may refer to
	waits bool          // d waits for a list,
	came  chan struct{} // … which closes this when it comes,
	held  [][]byte      // … and so do the frames behind its frame
	bytes int           // of these
}

func (n *Node) inbound(from godwit.NodeID) *inbound {
	in := &inbound{from: from, out: n.links.Sender()}
	in.rows = n.rows.Server(from, &in.out)
	in.d.Lists = &in.known
	return in
}

// frame hands a frame of the peer to the shards. What follows is in in.out.
func (n *Node) frame(in *inbound, frame []byte) (err error) {
	n.received.Add(uint64(len(frame)))
	if wire.IsHeartbeat(frame) {
		return n.pulse.Heartbeat(in.from, frame)
	}
	n.pulse.Arrived(in.from, len(frame))
	switch {
	case wire.Asks(frame):
		err = n.tell(in, frame)
	case wire.Answers(frame):
		err = n.learn(in, frame)
	case wire.IsGoodbye(frame):
		err = n.run.Farewell(in.from, frame)
	case wire.IsSuspicions(frame):
		err = n.pulse.Suspicions(in.from, frame)
	case in.waits:
		err = in.hold(frame)
	default:
		err = n.begin(in, frame)
	}
	if err == nil && n.loop.Sync.Waiting() {
		n.bell.Ring()
	}
	if err == nil && n.bound.Settling() {
		n.bound.Stir()
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
	if nanos, keys := in.rows.Leads(); keys > 0 {
		n.planner.leads.Add(nanos)
		n.planner.nleads.Add(keys)
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
		in.rows.Find(recs)
		for i := 0; i < len(recs) && err == nil; i++ {
			switch r := &recs[i]; {
			case isReply(r):
				first := i
				for i+1 < len(recs) && isReply(&recs[i+1]) && recs[i+1].Op == r.Op {
					i++
				}
				err = n.replied(in, from, recs[first:i+1])
			case in.rows.Serve(i, r):
			case isCommon(r):
				first := i
				for i+1 < min(len(recs), first+shards.MaxSteps) && isCommon(&recs[i+1]) && n.rows.SameShard(recs[i+1].Key, r.Key) {
					i++
				}
				err = in.rows.Steps(first, recs[first:i+1])
			default:
				err = n.step(in, from, r)
			}
		}
		if n.rows.Starved() {
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
	if n.rows.Starved() {
		return // it is not to blame
	}
	var f *floodError
	if errors.As(err, &f) {
		peer = f.peer
	}
	n.run.Broke(peer, err)
}

// some decodes records, fewer than fit in in.recs if they are the last: so many
// that the rows of the last can be on their way to the processor's cache while
// the first are stepped.
func (in *inbound) some() ([]wire.Record, error) {
	n, err := in.d.Fill(in.recs[:])
	return in.recs[:n], err
}

func isReply(r *wire.Record) bool { return r.Kind == wire.PullReply || r.Kind == wire.Done }

// replied takes replies to one operation.
func (n *Node) replied(in *inbound, from godwit.NodeID, rs []wire.Record) (err error) {
	done := in.rows.Replied(rs)
	if done < len(rs) {
		err = n.step(in, from, &rs[done])
	}
	if done > 0 {
		n.ops.Complete(from, rs[:done]...)
	}
	return err
}

// isCommon reports whether a record is for a shard alone.
func isCommon(r *wire.Record) bool { return r.Kind <= wire.Drained && !isReply(r) }

// step has a shard take one record.
func (n *Node) step(in *inbound, from godwit.NodeID, r *wire.Record) error {
	switch r.Kind {
	case wire.SyncMark:
		n.loop.Sync.Marked(from, r.Op)
		return nil
	case wire.SyncAck:
		n.bound.Acknowledged(r.Op)
		n.loop.Sync.Acknowledged(r.Op)
		return nil
	case wire.Scan:
		return n.answers.Asked(&in.out, from, r)
	case wire.InUse, wire.Scanned:
		in.out.LetGo() // a scan has a lock of its own, under which it sends
		return n.questions.Answered(from, r)
	case wire.Settled, wire.Rebound:
		in.out.LetGo() // what is told has a lock of its own
		return n.bound.Told(&in.out, from, r)
	}
	if r.Kind != wire.PullAfter {
		return in.rows.Step(&in.out, r)
	}
	if err := in.rows.Plausible(r); err != nil {
		return err
	}
	out, err := n.bound.PullAfter(&in.out, r)
	if out == nil {
		return err
	}
	return in.rows.Step(out, r)
}
