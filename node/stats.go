package node

import (
	"time"

	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/node/internal/worker"
)

// Stats is what a node did so far and what it holds. Sums of several nodes'
// Stats mean the same for the run.
type Stats struct {
	// Keys of pulls and pushes by where they were served.
	Local   uint64 `json:"local"`   // at the main copy of this node
	Replica uint64 `json:"replica"` // at a replica of this node
	Ahead   uint64 `json:"ahead"`   // elsewhere, by values that had been fetched ahead
	Queued  uint64 `json:"queued"`  // after waiting for the key, or its value, on its way
	Remote  uint64 `json:"remote"`  // by messages
	Fetched uint64 `json:"fetched"` // keys that were fetched ahead

	// Sampled says how many of these were read for samples, and how; the rest
	// are direct accesses.
	Sampled Sampled `json:"sampled"`

	Calls     uint64 `json:"calls"`      // pulls and pushes
	SlowCalls uint64 `json:"slow_calls"` // … that could not be served at once
	// Waited is how long workers waited in calls of any kind: for what is
	// elsewhere, for each other, for the end of what they had begun.
	Waited time.Duration `json:"waited_ns"`

	// Blocked calls waited for a table's bound: for other workers that are behind
	// (Table.Staleness) or for own pushes (Table.Window); or for rounds of other nodes (Worker.BoundAge).
	Blocked     uint64        `json:"blocked"`
	BlockedTime time.Duration `json:"blocked_ns"` // summed over workers
	Parked      uint64        `json:"parked"`     // requests of PullAfter that waited at this node

	Moves     uint64  `json:"moves"`     // keys that moved to this node
	Copies    uint64  `json:"copies"`    // replicas set up here
	Drops     uint64  `json:"drops"`     // … and dropped
	Deltas    uint64  `json:"deltas"`    // replica updates sent
	Clipped   uint64  `json:"clipped"`   // … that the policy shortened
	Refreshes uint64  `json:"refreshes"` // replica values sent
	Forwards  uint64  `json:"forwards"`  // requests passed on for other nodes
	MaxHops   uint8   `json:"max_hops"`  // the most a request was sent on
	Learned   uint64  `json:"learned"`   // keys and copies that nodes asked for because of accesses that were not announced, or not in time
	Late      uint64  `json:"late"`      // accesses that were announced and found the key on its way
	LeadMs    float64 `json:"lead_ms"`   // mean time from asking for a key to its arrival
	Leads     uint64  `json:"leads"`     // how many keys LeadMs is the mean of

	// What left through filters took.
	FilterIn  uint64 `json:"filter_in"`  // bytes of values before
	FilterOut uint64 `json:"filter_out"` // … and after
	HeldBack  uint64 `json:"held_back"`  // positions of pushes that were not sent
	Leftovers uint64 `json:"leftovers"`  // vectors that WaitSync pushed of what was left

	// Lists of keys, which both ends of a connection remember.
	ListHits   uint64 `json:"list_hits"`   // lists that were sent as their hash
	ListSaved  uint64 `json:"list_saved"`  // the bytes that this took off
	ListMisses uint64 `json:"list_misses"` // lists that this node had to ask for, because it did not know them

	SentBytes     uint64        `json:"sent_bytes"`     // to other nodes
	PlainBytes    uint64        `json:"plain_bytes"`    // what SentBytes were before frames were compressed
	ReceivedBytes uint64        `json:"received_bytes"` // from other nodes
	Frames        uint64        `json:"frames"`         // sent
	Rounds        uint64        `json:"rounds"`         // sync rounds
	RoundTime     time.Duration `json:"round_time_ns"`  // processor time of rounds and of acting on intents
	Helped        uint64        `json:"helped"`         // parts of these that other goroutines took, as processors were free

	Hot      int `json:"hot"`      // keys that the policy "nonuniform" replicates everywhere
	Owned    int `json:"owned"`    // keys
	Replicas int `json:"replicas"` // keys
	Bytes    int `json:"bytes"`    // of values, index, and what is known of keys

	Window int64 `json:"window"` // the widest window of a worker, in clocks
}

// Sampled counts what samplers did.
type Sampled struct {
	Local   uint64 `json:"local"`   // as in Stats
	Replica uint64 `json:"replica"` // as in Stats
	Ahead   uint64 `json:"ahead"`   // as in Stats
	Queued  uint64 `json:"queued"`  // as in Stats
	Remote  uint64 `json:"remote"`  // as in Stats

	Draws      uint64 `json:"draws"`      // from target distributions, with those that were not taken
	PutOff     uint64 `json:"put_off"`    // keys that were not local when their turn came, by the scheme "postpone"
	Repurposed uint64 `json:"repurposed"` // samples from keys accessed directly, by the scheme "repurpose"
}

// Accesses returns the keys of all samples that were pulled.
func (s Sampled) Accesses() uint64 { return s.Local + s.Replica + s.Ahead + s.Queued + s.Remote }

// Accesses returns the keys of all pulls and pushes.
func (s *Stats) Accesses() uint64 { return s.Local + s.Replica + s.Ahead + s.Queued + s.Remote }

// NoMessage returns the share of accesses that needed no message and no
// waiting; 1 if there were none.
func (s *Stats) NoMessage() float64 {
	if s.Accesses() == 0 {
		return 1
	}
	return float64(s.Local+s.Replica) / float64(s.Accesses())
}

// Add adds another node's stats.
func (s *Stats) Add(o Stats) {
	if n := s.Leads + o.Leads; n > 0 {
		s.LeadMs = (s.LeadMs*float64(s.Leads) + o.LeadMs*float64(o.Leads)) / float64(n)
		s.Leads = n
	} else {
		s.LeadMs = max(s.LeadMs, o.LeadMs)
	}
	with := o.counters()
	for i, c := range s.counters() {
		*c += *with[i]
	}
	s.RoundTime += o.RoundTime
	s.Waited += o.Waited
	s.BlockedTime += o.BlockedTime
	s.MaxHops = max(s.MaxHops, o.MaxHops)
	s.Hot = max(s.Hot, o.Hot)
	s.Owned += o.Owned
	s.Replicas += o.Replicas
	s.Bytes += o.Bytes
	s.Window = max(s.Window, o.Window)
}

// Sub returns what was done since an earlier stock of the same nodes. What they
// hold, the means and the maxima are those of s.
func (s Stats) Sub(before Stats) Stats {
	done := before.counters()
	for i, c := range s.counters() {
		*c -= *done[i]
	}
	s.RoundTime -= before.RoundTime
	s.Waited -= before.Waited
	s.BlockedTime -= before.BlockedTime
	return s
}

// counters are what only grows, other than Leads, which belongs to its mean.
func (s *Stats) counters() []*uint64 {
	return []*uint64{
		&s.Local, &s.Replica, &s.Ahead, &s.Queued, &s.Remote, &s.Fetched, &s.Calls, &s.SlowCalls, &s.Moves, &s.Copies, &s.Drops, &s.Deltas, &s.Clipped,
		&s.Refreshes, &s.Forwards, &s.Learned, &s.Late, &s.SentBytes, &s.PlainBytes, &s.ReceivedBytes, &s.Frames, &s.Rounds, &s.Helped, &s.Blocked, &s.Parked,
		&s.ListHits, &s.ListSaved, &s.ListMisses,
		&s.Sampled.Local, &s.Sampled.Replica, &s.Sampled.Ahead, &s.Sampled.Queued, &s.Sampled.Remote,
		&s.FilterIn, &s.FilterOut, &s.HeldBack, &s.Leftovers,
		&s.Sampled.Draws, &s.Sampled.PutOff, &s.Sampled.Repurposed,
	}
}

// Stats takes stock. It may be called at any time before Close.
func (n *Node) Stats() Stats {
	s := Stats{Hot: n.hot.Len(), ReceivedBytes: n.receiver.Bytes(), ListMisses: n.receiver.Lacked(),
		Rounds: n.loop.Rounds(), RoundTime: n.budget.Spent(), Helped: n.loop.Helped() + n.planner.Helped()}
	s.Parked = n.bound.Parked()
	s.work(n.workers.Counts())
	s.hold(n.rows.Totals())
	s.Bytes += n.proto.Bytes() + n.hot.Bytes()
	for _, l := range n.links.All {
		c := l.Counts()
		s.SentBytes += c.Bytes
		s.PlainBytes += c.Plain
		s.Frames += c.Frames
		s.ListHits += c.Lists
		s.ListSaved += c.Saved
	}
	return s
}

// work adds what the workers did.
func (s *Stats) work(c worker.Counts) {
	d, x := c.Direct, c.Sampled
	s.Local, s.Replica, s.Ahead, s.Queued, s.Remote = d.Local+x.Local, d.Replica+x.Replica, d.Ahead+x.Ahead, d.Queued+x.Queued, d.Remote+x.Remote
	s.Fetched = c.Fetched
	s.Sampled = Sampled{Local: x.Local, Replica: x.Replica, Ahead: x.Ahead, Queued: x.Queued, Remote: x.Remote, Draws: c.Samples.Draws, PutOff: c.Samples.PutOff, Repurposed: c.Samples.Repurposed}
	s.Calls, s.SlowCalls, s.Waited = c.Calls, c.Slow, c.Waited
	s.Blocked, s.BlockedTime = c.Blocked, c.BlockedTime
	s.Late, s.Window = c.Late, c.Window
	s.FilterIn, s.FilterOut, s.HeldBack, s.Leftovers = c.Filters.In, c.Filters.Out, c.Filters.Dropped, c.Filters.Pushed
	if d.Remote > 0 {
		s.MaxHops = shards.UsualHops // and more where the shards say so
	}
}

// hold adds what the shards did and hold.
func (s *Stats) hold(t shards.Totals) {
	s.Owned, s.Replicas, s.Bytes = t.Owned, t.Replicas, t.Memory.Bytes()
	s.Moves, s.Copies, s.Drops = t.MovesIn, t.Copies, t.Drops
	s.Deltas, s.Clipped, s.Refreshes = t.Deltas, t.Clipped, t.Refreshes
	s.FilterIn += t.RoundedIn
	s.FilterOut += t.RoundedOut
	s.Forwards, s.Learned = t.Forwards, t.Learned
	s.MaxHops = max(s.MaxHops, t.MaxHops)
	if s.Leads = t.LeadActions; s.Leads > 0 {
		s.LeadMs = float64(t.LeadNanos) / float64(s.Leads) / 1e6
	}
}
