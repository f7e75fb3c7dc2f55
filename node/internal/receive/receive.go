package receive

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/packing"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/ask"
	"github.com/godwit-ps/godwit/node/internal/cut"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/liveness"
	"github.com/godwit-ps/godwit/node/internal/operation"
	"github.com/godwit-ps/godwit/node/internal/round"
	"github.com/godwit-ps/godwit/node/internal/run"
	"github.com/godwit-ps/godwit/node/internal/scan"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/staleness"
	"github.com/godwit-ps/godwit/transport"
)

// A Receiver is the rooms of a node that take what peers send.
type Receiver struct {
	Config
	bytes  atomic.Uint64 // that came
	lacked atomic.Uint64 // lists of keys that had to be asked for
}

// A Config says which these are.
type Config struct {
	Host      *host.Host
	Links     *link.Links
	Rows      *shards.Set
	Ops       *operation.Tables
	Bound     *staleness.Bound // nil: no table has bounded staleness
	Sync      *round.WaitSync
	Echoes    *round.Echoes
	Questions *scan.Questions
	Answers   *scan.Answers
	Cuts      *cut.Cuts
	Asks      *ask.Asks
	Pulse     *liveness.Pulse
	Run       *run.Run

	// Leads hears for how long keys were on their way that have come: the sum in
	// nanoseconds, and how many keys.
	Leads func(nanos, keys uint64)
}

// New returns what takes the frames of all peers.
func New(c Config) *Receiver { return &Receiver{Config: c} }

// Bytes returns how many bytes came.
func (r *Receiver) Bytes() uint64 { return r.bytes.Load() }

// Lacked returns how many lists of keys had to be asked for.
func (r *Receiver) Lacked() uint64 { return r.lacked.Load() }

// An Inbound takes the frames of one peer. It belongs to one goroutine.
type Inbound struct {
	r     *Receiver
	from  godwit.NodeID
	out   link.Sender
	d     wire.Decoder
	plain []byte                    // memory of a frame that came compressed
	recs  [shards.Batch]wire.Record // some records of the frame
	batch wire.Batch                // some that came as arrays
	rows  shards.Server             // what they ask for is done by it
	count int                       // records taken
	known wire.Known                // lists of keys that the peer may refer to
	lack  lack                      // … and one that it referred to, and is not known
}

// Inbound returns what takes the frames of a peer.
func (r *Receiver) Inbound(from godwit.NodeID) *Inbound {
	in := &Inbound{r: r, from: from, out: r.Links.Drains()}
	in.rows = r.Rows.Server(from, &in.out)
	in.d.Lists = &in.known
	return in
}

// Serve takes what comes over the connection to the peer, until it ends.
func (in *Inbound) Serve(c transport.Conn) error {
	answered := 0 // records whose answers left
	joined := 0   // frames since
	return transport.Serve(c, func(frame []byte) bool {
		defer in.r.Host.Panicking() // a worker may be who takes the frame
		if err := in.Frame(frame); err != nil {
			in.broke(err)
			return false
		}
		if joined++; joined == maxJoined || in.count-answered >= maxAnswers || !c.Ready() { // else there will be more to send with it
			in.out.Drain(false)
			joined, answered = 0, in.count
		}
		return true
	})
}

// maxJoined is after how many frames of a peer the answers leave, and maxAnswers
// after how many records, though more frames are there already: others can go
// on with some while the rest is handled.
const (
	maxJoined  = 16
	maxAnswers = 1024
)

// Handle takes a frame of a peer of a simulated node, and returns how many records it had.
// If the next frame is there already, what follows from this one may wait for it. An
// error ends the run.
func (in *Inbound) Handle(frame []byte, more bool) (records int, err error) {
	before := in.count
	err = in.Frame(frame)
	if !more {
		in.out.Drain(false)
	}
	if err != nil {
		in.broke(err)
	}
	return in.count - before, err
}

// Flush sends what follows from the frames that were taken.
func (in *Inbound) Flush() { in.out.Drain(false) }

// Forget forgets the lists of keys that the peer may refer to.
func (in *Inbound) Forget() { in.known.Forget() }

// Waiting returns how many frames wait for a list of keys.
func (in *Inbound) Waiting() int {
	if !in.lack.waits {
		return 0
	}
	return 1 + len(in.lack.held)
}

// Frame takes a frame of the peer. What follows is in the sender, for Flush to send.
func (in *Inbound) Frame(frame []byte) (err error) {
	in.r.bytes.Add(uint64(len(frame)))
	if wire.IsHeartbeat(frame) {
		return in.r.Pulse.Heartbeat(in.from, frame)
	}
	in.r.Pulse.Arrived(in.from, len(frame))
	switch {
	case wire.Asks(frame):
		err = in.tell(frame)
	case wire.Answers(frame):
		err = in.learn(frame)
	case wire.IsGoodbye(frame):
		err = in.r.Run.Goodbye(in.from, frame)
	case wire.IsSuspicions(frame):
		err = in.r.Pulse.Suspicions(in.from, frame)
	case wire.IsAsk(frame):
		if err = in.r.Asks.Came(in.from, frame); err == nil {
			in.out.Touch(in.from)
			err = in.flooded()
		}
	case in.lack.waits:
		err = in.hold(frame)
	default:
		err = in.begin(frame)
	}
	if err != nil {
		return err
	}
	in.r.Sync.Stir()
	if in.r.Bound.Settling() {
		in.r.Bound.Stir()
	}
	return nil
}

// unpacked returns a frame that arrived as it was.
func (in *Inbound) unpacked(frame []byte) ([]byte, error) {
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
func (in *Inbound) begin(frame []byte) error {
	frame, err := in.unpacked(frame)
	if err == nil {
		err = in.d.Reset(frame)
	}
	if err == nil {
		err = in.goOn()
	}
	return err
}

// goOn takes what is left of the frame that in.d was reset to.
func (in *Inbound) goOn() error {
	in.out.Keep()
	err := in.take()
	in.out.Release()
	if nanos, keys := in.rows.Leads(); keys > 0 {
		in.r.Leads(nanos, keys)
	}
	if e, ok := err.(*wire.UnknownListError); ok {
		in.lacks(e)
		return nil
	}
	return err
}

// take takes the records that are left of a frame, some at a time.
func (in *Inbound) take() error {
	for {
		n, end := in.d.Batch(&in.batch)
		var err error
		if n > 0 {
			err = in.takeBatch()
		} else if end == nil {
			n, end = in.d.Fill(in.recs[:])
			err = in.records(in.recs[:n])
		}
		in.count += n
		in.out.Drain(true)
		if over := in.r.Host.Err(); over != nil || in.r.Rows.Starved() {
			return over
		}
		if to := in.out.Flooded; to != godwit.NoNode && err == nil {
			err = &floodError{to, in.r.Links.Limits.Owed}
		}
		if err != nil {
			return err
		}
		if end != nil || n == 0 {
			return end
		}
	}
}

// takeBatch takes the records of in.batch.
func (in *Inbound) takeBatch() (err error) {
	b := &in.batch
	switch {
	case b.Kind == wire.PullReply, b.Kind == wire.Done:
		return in.repliedBatch(b)
	case b.Kind > wire.Push:
		for i := range b.Keys {
			b.Record(i, &in.recs[i])
		}
		return in.records(in.recs[:len(b.Keys)])
	}
	in.rows.FindBatch(b)
	for i := 0; err == nil; i++ {
		if i = in.rows.ServeBatch(b, i); i == len(b.Keys) {
			break
		}
		b.Record(i, &in.recs[0])
		err = in.step(&in.recs[0])
	}
	return err
}

// records takes some records: so many at the most that the rows of the last can be on
// their way to the processor's cache while the first are stepped.
func (in *Inbound) records(recs []wire.Record) (err error) {
	in.rows.Find(recs)
	for i := 0; i < len(recs) && err == nil; i++ {
		switch r := &recs[i]; {
		case isReply(r):
			first := i
			for i+1 < len(recs) && isReply(&recs[i+1]) && recs[i+1].Op == r.Op {
				i++
			}
			err = in.replied(recs[first : i+1])
		case in.rows.Serve(i, r):
		case isCommon(r):
			first := i
			for i+1 < min(len(recs), first+shards.MaxSteps) && isCommon(&recs[i+1]) && in.r.Rows.SameShard(recs[i+1].Key, r.Key) {
				i++
			}
			err = in.steps(first, recs[first:i+1])
		default:
			err = in.step(r)
		}
	}
	return err
}

// A floodError says which node asked for more than it may.
type floodError struct {
	peer godwit.NodeID
	most int
}

func (e *floodError) Error() string {
	return fmt.Sprintf("more than %d MiB of answers wait here to be read by node %d, which must not ask for so much", e.most>>20, e.peer)
}

// flooded returns an error if more answers wait for the peer than it may ask for. Those in a frame of their own are seen by no sender.
func (in *Inbound) flooded() error {
	if l := in.r.Links.Limits.Owed; in.r.Links.To(in.from).Owes(l) {
		return &floodError{in.from, l}
	}
	return nil
}

// broke ends the run because of what a peer sent, or had another one send.
func (in *Inbound) broke(err error) {
	if in.r.Rows.Starved() || err == in.r.Host.Err() {
		return // it is not to blame
	}
	peer := in.from
	var f *floodError
	if errors.As(err, &f) {
		peer = f.peer
	}
	in.r.Run.Broke(peer, err)
}

func isReply(r *wire.Record) bool { return r.Kind == wire.PullReply || r.Kind == wire.Done }

// replied takes replies to one operation.
func (in *Inbound) replied(rs []wire.Record) (err error) {
	done := in.rows.Replied(rs)
	if done < len(rs) {
		err = in.step(&rs[done])
	}
	if done > 0 {
		in.r.Ops.Complete(in.from, rs[:done]...)
	}
	return err
}

// repliedBatch is replied of a batch.
func (in *Inbound) repliedBatch(b *wire.Batch) (err error) {
	done := in.rows.RepliedBatch(b)
	if done < len(b.Keys) {
		b.Record(done, &in.recs[0])
		err = in.step(&in.recs[0])
	}
	if done > 0 {
		in.r.Ops.CompleteBatch(in.from, b, done)
	}
	return err
}

// isCommon reports whether a record is for a shard alone.
func isCommon(r *wire.Record) bool {
	return r.Kind <= wire.Drained && !isReply(r) || wire.Wish <= r.Kind && r.Kind <= wire.BidReply
}

// step takes one record of any kind but a reply that fits the model.
func (in *Inbound) step(r *wire.Record) error {
	switch r.Kind {
	case wire.SyncMark:
		in.r.Sync.Marked(in.from, r.Op)
		return nil
	case wire.SyncAck:
		in.r.Bound.Acknowledged(r.Op)
		in.r.Sync.Acknowledged(r.Op)
		return nil
	case wire.RoundMark:
		in.r.Echoes.Marked(in.from, r.Op)
		return nil
	case wire.RoundDone:
		in.r.Echoes.Answered(in.from, r.Op)
		return nil
	case wire.Scan:
		return in.r.Answers.Asked(&in.out, in.from, r)
	case wire.InUse, wire.Scanned:
		in.out.LetGo() // a scan has a lock of its own, under which it sends
		return in.r.Questions.Answered(in.from, r)
	case wire.Cut:
		in.out.LetGo() // as below
		return in.r.Cuts.Told(in.from, r)
	case wire.Settled, wire.Rebound:
		in.out.LetGo() // what is told has a lock of its own
		return in.r.Bound.Told(&in.out, in.from, r)
	}
	if err := in.plausible(r); err != nil {
		return err
	}
	if r.Kind != wire.PullAfter {
		return in.rows.Step(&in.out, r)
	}
	out, err := in.r.Bound.PullAfter(&in.out, r)
	if out == nil {
		return err
	}
	return in.rows.Step(out, r)
}

// steps has a shard take records of keys of its own.
func (in *Inbound) steps(first int, recs []wire.Record) error {
	for i := range recs {
		if err := in.plausible(&recs[i]); err != nil {
			return err
		}
	}
	return in.rows.Steps(first, recs)
}

// plausible refuses a record that does not fit the run.
func (in *Inbound) plausible(r *wire.Record) error {
	nodes := in.r.Links.Nodes()
	if int(r.Origin) >= nodes {
		return fmt.Errorf("%v of key %d for node %d, the run has %d nodes", r.Kind, r.Key, r.Origin, nodes)
	}
	if r.Hops == 255 {
		return fmt.Errorf("%v of key %d for node %d went round in circles: nodes disagree on who owns the key", r.Kind, r.Key, r.Origin)
	}
	for i := range r.Holders {
		if h := r.Holders[i].Node; int(h) >= nodes {
			return fmt.Errorf("%v of key %d with holder %d, the run has %d nodes", r.Kind, r.Key, h, nodes)
		}
	}
	return nil
}
