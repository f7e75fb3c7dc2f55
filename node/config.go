package node

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/data/setting"
	"github.com/godwit-ps/godwit/internal/fingerprint"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/protocol/directory"
	"github.com/godwit-ps/godwit/internal/virtual"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/telemetry/flight"
	"github.com/godwit-ps/godwit/telemetry/trace"
	"github.com/godwit-ps/godwit/transport"
)

// A Config says what a node is part of. Model, Policy, Seed, Samplers, OneClock and
// NoHints are the same on all nodes of a run.
type Config struct {
	Model    *godwit.Model    // what is trained; it must be there
	Policy   placement.Policy // nil is placement.Adaptive
	Seed     uint64           // of initial values and samplers
	Samplers []sampling.Spec  // by their index in PrepareSample
	NoHints  bool             // do without location hints (for comparison)

	// Eager has intents acted on as soon as they are signalled, however early
	// that is (for comparison).
	Eager bool

	// OneClock has all workers cross into a cut at one clock, as where a table bounds staleness: for programs whose workers
	// wait for each other by what they read, each making equally many steps between two barriers.
	OneClock bool

	// Workers is the number of workers of this node, at least 1.
	Workers int

	// Session is this node's membership of the run. The node does not close it.
	Session coord.Session
	// Network connects the node to the others. A run of one node needs none.
	Network transport.Network
	// Listener is where the others connect to this node, at the address that Session
	// told them. The node does not close it. A run of one node needs none.
	Listener transport.Listener
	// Run names the run in the handshake between nodes.
	Run string

	// Trace writes what becomes of keys that it traces; nil: none. Its times count from about the
	// start of the node. The node does not close it.
	Trace *trace.Writer

	// Flight writes down what the process did in its last seconds when a call's wait ended by the deadline
	// of its context, or the run because a node was lost; nil: nothing is recorded. The errors say
	// where. The node does not close it.
	Flight *flight.Recorder

	// Virtual, if set, makes the node one of a simulation.
	Virtual *virtual.Options
}

// Fingerprint stands for all that the nodes of a run must have in common, as [coord.Config].Fingerprint: by its lines, the error of
// nodes that differ says in what.
func (c *Config) Fingerprint() string {
	var l fingerprint.Lines
	m := c.Model
	var tables, samplers []string
	for i := range m.Tables() {
		tables = append(tables, m.Table(i).Name)
	}
	for _, s := range c.Samplers {
		samplers = append(samplers, s.Name)
	}
	l.Add("list of tables", "%s", strings.Join(tables, ", "))
	l.Add("list of samplers", "%s", strings.Join(samplers, ", "))
	l.Add("policy", "%s", c.policy().Name())
	l.Add("seed", "%d", c.Seed)
	for i := range m.Tables() {
		l.Add("table "+m.Table(i).Name, "%s", describe(m.Table(i)))
	}
	for _, s := range c.Samplers {
		l.Add("sampler "+s.Name, "%s", s.Fingerprint())
	}
	return l.End(c.short())
}

// describe tells people of a table.
func describe(t *godwit.Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows of %d floats, rule %s, first values %s", t.Rows, t.Dim, t.Rule.Name(), t.Init.Name())
	for i, f := range t.Filters {
		fmt.Fprintf(&b, ", filter %d %s", i, f.Name())
	}
	fmt.Fprintf(&b, ", staleness %v", t.Staleness)
	if t.Counts {
		b.WriteString(", counts")
	}
	if t.Relaxed {
		b.WriteString(", relaxed")
	}
	return b.String()
}

func (c *Config) policy() placement.Policy {
	if c.Policy == nil {
		return placement.Adaptive
	}
	return c.Policy
}

// short is the fingerprint as it fits into the first words over a connection.
func (c *Config) short() string {
	f := fmt.Sprintf("%s/%s/%d", c.Model.Fingerprint(), c.policy().Name(), c.Seed)
	if c.NoHints {
		f += "/no-hints"
	}
	if c.OneClock {
		f += "/one-clock"
	}
	for _, s := range c.Samplers {
		f += "/" + s.Fingerprint()
	}
	if len(f) > 128 {
		return fmt.Sprintf("%s…%x", f[:100], fnv(f))
	}
	return f
}

func fnv(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

func (c *Config) check() error {
	switch {
	case c.Model == nil:
		return setting.Bad("node.Config", "Model", "nil", "a model")
	case c.Workers < 1 || c.Workers > MaxWorkers:
		return setting.Outside("node.Config", "Workers", c.Workers, 1, MaxWorkers)
	case c.Session == nil:
		return setting.Bad("node.Config", "Session", "nil", "that of a run: join one first")
	case c.Virtual == nil && len(c.Session.Members()) > 1 && (c.Network == nil || c.Listener == nil):
		return setting.Bad("node.Config", "Network", "or Listener nil", "both, in a run of several nodes")
	case len(c.Samplers) > 1<<(64-sampling.IDBits-1):
		return setting.Bad("node.Config", "Samplers", len(c.Samplers), fmt.Sprintf("at most %d of them", 1<<(64-sampling.IDBits-1)))
	}
	for i, s := range c.Samplers {
		if slices.ContainsFunc(c.Samplers[:i], func(other sampling.Spec) bool { return other.Name == s.Name }) {
			return setting.Bad("node.Config", "Samplers", fmt.Sprintf("two that are called %q", s.Name), "names of their own, or both draw the same")
		}
	}
	return nil
}

// limits returns the limits of the node's queues.
func (c *Config) limits() host.Limits {
	l := host.Usual
	if c.Virtual != nil && c.Virtual.Limits != (host.Limits{}) {
		l = c.Virtual.Limits
	}
	if c.Model.Bounded() {
		l.Owed += l.Ahead * int(link.CostOf(longest(c.Model))) // nobody waits for room to ask ahead
	}
	return l
}

// longest returns the floats of the longest rows of a model.
func longest(m *godwit.Model) (floats int) {
	for i := range m.Tables() {
		floats = max(floats, m.TableRowLen(i))
	}
	return floats
}

// MaxWorkers bounds the number of workers of a node.
const MaxWorkers = 1 << 12

// bytesOf returns the bytes of all rows of a model, if every key is in use.
func bytesOf(m *godwit.Model) (n float64) {
	for i := range m.Tables() {
		n += float64(m.Table(i).Rows) * 4 * float64(m.TableRowLen(i))
	}
	return n
}

// shift returns how many shards a model gets at a node of so many workers, as a power of two's
// exponent. More shards than that make workers meet at locks no less, and cost a trip to memory
// each: a call of many keys finds fewer of them in the same shard. There are about 64 a worker; at
// most one for 64 keys, and at least one for 2¹⁷ keys, so that no index takes long to grow; and
// between 16 and 512. The stores of 512 shards have room for 17 billion rows of one length, or
// 500 million of each of 32.
func shift(keys uint64, workers int) uint {
	shards := max(min(64*uint64(workers), keys/64), keys>>17)
	return uint(min(max(bits.Len64(shards), 5), 10) - 1)
}

// world returns the world that the node lives in.
func (c *Config) world() host.World {
	if c.Virtual != nil {
		return c.Virtual.World
	}
	return host.Real()
}

// brokenBound returns the rules of bounded staleness that are off.
func (c *Config) brokenBound() virtual.BrokenBound {
	if c.Virtual != nil {
		return c.Virtual.BrokenBound
	}
	return virtual.BrokenBound{}
}

// barriers returns how many barriers the workers count as behind them at the start.
func (c *Config) barriers() uint64 {
	if c.Virtual != nil {
		return c.Virtual.Barriers
	}
	return 0
}

// longStep is from which length of their steps on workers fetch ahead; 0: as they see fit.
func (c *Config) longStep() time.Duration {
	if c.Virtual != nil {
		return c.Virtual.LongStep
	}
	return 0
}

// depth is for how many steps ahead workers fetch at first; 0: as they see fit.
func (c *Config) depth() int {
	if c.Virtual != nil {
		return c.Virtual.Depth
	}
	return 0
}

func (c *Config) protocol() (*protocol.Config, error) {
	var ids []godwit.NodeID
	for _, m := range c.Session.Members() {
		ids = append(ids, m.ID)
	}
	p := &protocol.Config{
		Self: c.Session.Self(), Model: c.Model, Seed: c.Seed, Policy: c.policy(), Homes: directory.NewHomes(c.Model.Keys(), ids), Nodes: len(c.Session.Members()),
		Hints: !c.NoHints, Shift: shift(c.Model.Keys(), c.Workers),
	}
	if c.Virtual != nil {
		p.Broken, p.BrokenCut, p.Kept, p.Idle = c.Virtual.Broken, c.Virtual.BrokenCut, c.Virtual.Limits.Kept, c.Virtual.Limits.Idle
	}
	return p, p.Prepare()
}
