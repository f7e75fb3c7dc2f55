package protocol

import (
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/histogram"
	"github.com/godwit-ps/godwit/internal/protocol/directory"
	"github.com/godwit-ps/godwit/internal/protocol/intent"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// Out takes a shard's effects. Send hands over one record for a node; the record and its
// slices are only valid during the call. Records that one node sends to another must
// arrive in the order of Send. A record for the shard's own node is the reply to a request
// of one of its workers.
type Out interface {
	Send(to godwit.NodeID, r *wire.Record)
	// Room reports whether the queue to a node takes more copies now. A shard asks before it
	// sends refreshes, which can wait.
	Room(to godwit.NodeID) bool
	// Rooms reports whether there is a node to which copies may go now.
	Rooms() bool
	// Takes reports whether so little is queued for a node that a row may go there for which
	// it did not ask just now. A shard asks before it moves a key, because a move may send
	// such rows.
	Takes(to godwit.NodeID) bool
	// Strained reports whether bytes are what bounds the way to a node: values that may be
	// rounded (godwit.GradientRule) go in fewer then.
	Strained(to godwit.NodeID) bool
	// Crowded reports whether copies are, or were a moment ago, more than the way to a node
	// takes: refreshes and updates that may be rounded go in fewer bytes then.
	Crowded(to godwit.NodeID) bool
	// Rests reports whether the workers of a node read nothing before they ask for all that is new: refreshes of its
	// replicas can wait until then.
	Rests(to godwit.NodeID) bool
	// Ask reports whether this node may ask a node for one more row of so many floats, and
	// counts the row until Got. Rows that were asked for are bounded, because answers are not.
	// A node may always be asked for a first row.
	Ask(to godwit.NodeID, floats int) bool
	Got(to godwit.NodeID, floats int)
	// Now is the time in nanoseconds, for lead times.
	Now() int64
}

// Config is what all shards of a node share.
type Config struct {
	Self   godwit.NodeID
	Model  *godwit.Model
	Seed   uint64 // of the run, for initial values
	Policy placement.Policy
	Homes  *directory.Homes
	Nodes  int  // of the run; 0: not known
	Hints  bool // keep location hints
	Shift  uint // log2 of the number of shards; shard i has the keys k with k mod 2^Shift = i

	// Hot reports whether a key is in the task's hot set; nil is never.
	Hot func(godwit.Key) bool
	// SettingUp reports whether the workers of this node still set their model
	// up; nil is never.
	SettingUp func() bool
	// Misplaced is called, under the shard's lock, when the policy would move a key to a node
	// that the run does not have; the key stays. It may be nil.
	Misplaced func(error)
	// RowsFull is called, under a shard's lock, when a shard has nearly as many rows of so many floats
	// as fit in one. It may be nil.
	RowsFull func(rows, floats int)
	// SidesFull is called, under a shard's lock, when nearly as many keys of a shard as may be are copied: here, or from here to other nodes.
	// It may be nil.
	SidesFull func(keys int)
	// CutShort is called, under a shard's lock, when the shard gives the cut under way up, because
	// too many rows changed before they were saved. It may be nil.
	CutShort func()
	// CutFull is called, under a shard's lock, when its copies for a cut take half of what they may, and when
	// they take much less again. It may be nil.
	CutFull func(full bool)
	// Kept is how many bytes of copies for a cut all shards together may keep in any case; 0: 64 MiB.
	Kept int
	// Idle is how many bytes of idle replicas all shards together may have in any case; 0: 64 MiB; less: no replica is idle.
	Idle int
	// Observe is told, under the shard's lock, of each change of a key's state
	// (docs/life-of-a-key.md). It may be nil.
	Observe func(k godwit.Key, from, to string)
	// Tell is told, under the shard's lock, what becomes of keys. It may be nil.
	Tell func(Event)
	// Decided is told, under the shard's lock, what was decided about keys, and from what. It may be nil.
	Decided func(Decision)
	// Broken switches single rules of the protocol off: tests show with it that they would
	// notice.
	Broken Broken
	// BrokenCut does so with rules of cuts.
	BrokenCut BrokenCut

	classes []int           // class of each table
	rowLens []int           // row length of each class
	updates []Update        // of each table
	mergers []godwit.Merger // of each table; nil: copies meet by adding differences
	queries bool            // a table has a query function
	homed   int             // about how many keys of a shard are homed here
	used    *store.KeySet   // keys that are homed here and in use
	bounded []bool          // of each table: its staleness is bounded
	relaxed []bool          // of each table: nodes may have copies that nobody announced
	sync    placement.Sync
	ahead   bool // the policy has values fetched ahead: copies stay where no intent wants them, and are rounded where bytes bound the network
}

// IndexBytes returns how many bytes a shard asks its Alloc for in one piece for its index. Prepare comes before it.
func (c *Config) IndexBytes() int { return store.IndexBytes(c.homed) }

// Prepare completes the configuration. It must be called once before the first
// NewShard.
func (c *Config) Prepare() error {
	c.sync, c.ahead = placement.SyncOf(c.Policy), placement.FetchesAhead(c.Policy)
	c.homed = int(min(c.Homes.Keys(c.Self), c.Model.Keys())>>c.Shift) + 1
	c.used = store.NewKeySet(c.Model.Keys())
	class := map[int]int{}
	for i := range c.Model.Tables() {
		l := c.Model.TableRowLen(i)
		if _, ok := class[l]; !ok {
			class[l] = len(c.rowLens)
			c.rowLens = append(c.rowLens, l)
		}
		c.classes = append(c.classes, class[l])
		c.updates = append(c.updates, newUpdate(c.Model, i, c.Seed))
		m, _ := c.Model.Table(i).Rule.(godwit.Merger)
		c.mergers = append(c.mergers, m)
		c.bounded = append(c.bounded, c.Model.Table(i).Staleness != godwit.Eventual)
		c.relaxed = append(c.relaxed, c.Model.Table(i).Relaxed)
		c.queries = c.queries || c.updates[i].query != nil
	}
	if len(c.rowLens) > store.MaxClasses {
		return fmt.Errorf("protocol: tables have %d different row lengths, at most %d are supported", len(c.rowLens), store.MaxClasses)
	}
	return nil
}

// RowLengths returns how many different lengths rows have.
func (c *Config) RowLengths() int { return len(c.rowLens) }

// isBounded reports whether the key's table bounds staleness.
func (c *Config) isBounded(k godwit.Key) bool {
	i, _ := c.Model.Locate(k)
	return c.bounded[i]
}

// HomedHere reports whether a key has its home at this node.
func (c *Config) HomedHere(k godwit.Key) bool { return c.Homes.Home(k) == c.Self }

func (c *Config) hot(k godwit.Key) bool { return c.Hot != nil && c.Hot(k) }

// hintHops is the number of hops after which a request follows no hints any more, but goes
// to the home.
const hintHops = 2

// A Shard is one node's part of the protocol for one part of the keys: what is
// here, what is on its way, and what must happen next. See the package comment.
type Shard struct {
	cfg *Config
	st  *store.Store
	dir *directory.Directory

	sides     pool[side]        // of rows, by the number in Header.Meta
	holders   pool[holder]      // of main copies
	waiters   pool[waiter]      // of sides: requests that wait
	vectors   vectors           // values of waiters
	dirty     []godwit.Key      // replicas that are dirty and not held back, and some that were: see RoundUp
	leaving   []godwit.Key      // replicas that are to drain when requests of this node are answered, and some that were: see drain
	parked    [2][]godwit.Key   // main copies of which holders that rest lack something, and some that were; those of tables with a bound second
	roughs    []godwit.Key      // main copies of which a holder has a rounded row, and some that were
	changed   []godwit.Key      // main copies whose holders lack something, and some that were
	listing   uint8             // 0 and 1 in turn, by passes over unsettled
	unsettled []godwit.Key      // replicas with updates to send or under way, and some that had
	due       []godwit.Key      // placeholders that were not asked for yet: there was no room for the answer
	behind    []godwit.NodeID   // scratch: nodes of which no more rows can be asked for
	seq       uint64            // the last sequence number given to a replica's update
	slots     [64]counts        // by the key's slot
	rec       wire.Record       // scratch for records to send
	direct    bool              // the request that is being taken follows no hints
	records   []*wire.Record    // scratch for requests that waited: those that are not in use
	others    []godwit.NodeID   // scratch for a situation
	placing   Placing           // … for decisions
	wishing   Wishing           // …
	ending    intent.Worth      // …
	travels   []wire.Holder     // scratch for a Transfer
	learner   intent.Learner    // of intents that nobody announces
	diff      []float32         // scratch for a difference
	before    []float32         // scratch for a difference from before a cut
	cut       cut               // what is known of the cut under way
	held      [draining + 1]int // how many keys are in each state; that of absent means nothing
	idle      int               // how many replicas are idle

	departures departures

	Stats Stats
}

// Stats counts what happened in a shard. The counters only grow.
type Stats struct {
	MovesOut, MovesIn      uint64
	Copies, Drops          uint64 // replicas set up and dropped here
	Refused                uint64
	Deltas, Refreshes      uint64 // sent
	Acks                   uint64 // sent
	Clipped                uint64 // updates that were shortened
	RoundedIn, RoundedOut  uint64 // bytes of vectors that were rounded one by one, before and after
	Forwards               uint64 // requests passed on for other nodes
	Waited                 uint64 // requests that waited for a key on its way to this node
	MaxHops                uint8
	Learned                uint64           // keys and copies that this node asked for because of unannounced accesses
	Late                   uint64           // local accesses that found an announced key still on its way
	LeadNanos, LeadActions uint64           // summed time from asking for a key to its arrival, and how many
	Leads                  histogram.Counts // … by order of magnitude, in microseconds
	Kept                   uint64           // rows of which copies were kept for a cut
	Stale                  uint64           // records ignored because a newer state was known
}

// maxTraces bounds what all shards of a node know of keys that nobody announced: traces of 32 bytes,
// 8 MiB.
const maxTraces = 1 << 18

// NewShard returns a shard that holds nothing yet.
func NewShard(cfg *Config, alloc store.Alloc) (*Shard, error) {
	st, err := store.New(cfg.rowLens, alloc)
	if err != nil {
		return nil, err
	}
	st.Full = cfg.RowsFull
	st.Expect(cfg.homed)
	return &Shard{
		cfg: cfg, st: st, dir: directory.New(cfg.Homes, cfg.Self, cfg.Shift, cfg.Hints),
		learner: intent.Learner{Most: max(maxTraces>>cfg.Shift, 16)},
	}, nil
}

// Broken switches single rules of the protocol off, so that tests can show that
// they would notice.
type Broken struct {
	HintsForEver   bool // routing: requests go after hints as often as there are any
	KeepQuestion   bool // routing: a node that waits for a key keeps its own question for it
	DropAtSend     bool // M1: the old owner keeps no frozen copy
	ServeFrozen    bool // M1: the frozen copy goes on serving
	IgnoreEpochs   bool // M2: the home takes any claim
	AnyRelease     bool // M2: the release of an older move counts
	AnyDrained     bool // M2: the end of an older move counts
	ServeTentative bool // M3: a new owner serves other nodes before the old one passed everything on
	AnyOrder       bool // M3: what came over the old owner has no precedence
	OvertakeOwn    bool // M3: a new owner's workers overtake what they asked for before
	MoveTentative  bool // M4: a key moves on before the old owner passed everything on
	TakeTwice      bool // R1: updates of replicas are not recognised when they come again
	EndAny         bool // R1: the end of a former replica ends its successor, too
	ManyInFlight   bool // a replica sends an update while another is in flight
	ForgetFlight   bool // R2: a refresh that does not contain the update in flight undoes it
	ForgetUnsent   bool // R2: a refresh undoes the updates that were not sent yet
	TakeStale      bool // R3: a refresh may be older than the copy
	TakeFormer     bool // R3: a refresh for a former replica counts
	KeepVersions   bool // R3: a new owner believes what the old one knew of the holders' copies
	NoFreshen      bool // R4: a remote answer may overtake the refresh of the asker's replica
	DropEarly      bool // R5: a replica goes when its last update is sent, not when it is taken
	WriteDraining  bool // R5: a draining replica takes writes
	MoveBehind     bool // R6: a key moves although its holders lack something
	LooseSet       bool // R7: a Set leaves a replica as if there were none
	AddPacked      bool // R8: what was packed is added, whatever the rule says
	FlushAtSend    bool // WaitSync: updates that were sent count as taken
	CopyStrict     bool // learned intents: nodes have copies of tables that are not relaxed
}

func (s *Shard) class(k godwit.Key) int { t, _ := s.cfg.Model.Locate(k); return s.cfg.classes[t] }

// find returns the row of a key. The home makes the row of a key that nobody has touched:
// every node would make the same, so no value travels.
func (s *Shard) find(k godwit.Key) (store.Ref, bool) {
	r, ok := s.st.Find(k)
	if !ok && s.cfg.HomedHere(k) {
		if _, away := s.dir.Away(k); !away {
			return s.create(k), true
		}
	}
	return r, ok
}

// next returns the node to which a record for the owner of a key goes that is not here.
func (s *Shard) next(k godwit.Key, hops uint8) godwit.NodeID {
	home := s.cfg.Homes.Home(k)
	if home == s.cfg.Self {
		o, ok := s.dir.Away(k)
		if !ok {
			panic(fmt.Sprintf("protocol: node %d is home of key %d, has no row and no other owner of it", s.cfg.Self, k))
		}
		return o.Node
	}
	return s.nextFrom(home, k, hops)
}

// nextFrom is next of a key that has its home at another node.
func (s *Shard) nextFrom(home godwit.NodeID, k godwit.Key, hops uint8) godwit.NodeID {
	if hops < hintHops || s.cfg.Broken.HintsForEver {
		if n, ok := s.dir.Hint(k); ok {
			return n
		}
	}
	return home
}

// slot is the index of a key in the shard's small tables. Several keys share one.
func slot(k godwit.Key, shift uint) uint64 { return uint64(k) >> shift & 63 }

// counts are of the keys of a slot.
type counts struct {
	remote    uint32 // requests of this node's workers that are on the network
	strangers uint32 // rows here of keys whose homes are elsewhere: where there are none, no search is needed to know that a key is not here
}

func (s *Shard) countsOf(k godwit.Key) *counts { return &s.slots[slot(k, s.cfg.Shift)] }

// remoteOf counts the requests of this node's workers that are on the network, for the
// keys of a slot.
func (s *Shard) remoteOf(k godwit.Key) *uint32 { return &s.countsOf(k).remote }

// insert makes a row for a key that is not here, and remove takes it away. Rows that the home of a key makes are made otherwise.
func (s *Shard) insert(k godwit.Key) store.Ref {
	if !s.cfg.HomedHere(k) {
		s.countsOf(k).strangers++
	}
	return s.st.Insert(k, s.class(k))
}

func (s *Shard) remove(k godwit.Key) {
	if !s.cfg.HomedHere(k) {
		s.countsOf(k).strangers--
	}
	s.st.Remove(k)
}

// Len returns how many keys have a row here, and how many of them this node
// owns (or is about to) and replicates.
func (s *Shard) Len() (rows, owned, replicas int) {
	for st := fresh; st <= draining; st++ {
		replicas += s.held[st]
	}
	return s.st.Len(), s.held[owner] + s.held[tentative], replicas
}

// A Memory says what the memory of a shard is for, in bytes.
type Memory struct {
	Rows  int // values, their state, and the index
	Sides int // what is known of replicas, holders, requests that wait and copies for a cut, and lists of keys with work to do
	Hints int // where keys are, and what was learned of accesses that nobody announced
}

// Add adds the memory of another shard.
func (m *Memory) Add(o Memory) {
	m.Rows += o.Rows
	m.Sides += o.Sides
	m.Hints += o.Hints
}

// Bytes is the memory for all that.
func (m Memory) Bytes() int { return m.Rows + m.Sides + m.Hints }

// Memory returns about how much memory the shard takes, by what it is for.
func (s *Shard) Memory() Memory {
	lists := 8 * (cap(s.dirty) + cap(s.leaving) + cap(s.changed) + cap(s.parked[0]) + cap(s.parked[1]) + cap(s.roughs) + cap(s.unsettled))
	return Memory{Rows: s.st.Bytes(), Sides: s.sides.bytes() + s.holders.bytes() + s.waiters.bytes() + s.cut.bytes() + lists, Hints: s.dir.Bytes() + s.learner.Bytes()}
}

// Bytes returns the memory of what a node knows of all keys together: their homes, and
// which are in use.
func (c *Config) Bytes() int { return c.Homes.Bytes() + c.used.Bytes() }

// Believed returns the node that a request for a key would be sent to, if it is
// not here.
func (s *Shard) Believed(k godwit.Key) (godwit.NodeID, bool) {
	if _, ok := s.st.Find(k); ok {
		return s.cfg.Self, false
	}
	if _, away := s.dir.Away(k); !away && s.cfg.HomedHere(k) {
		return s.cfg.Self, false
	}
	return s.next(k, 0), true
}
