package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/packing"
	"github.com/godwit-ps/godwit/internal/preempt"
	"github.com/godwit-ps/godwit/internal/wire"
)

// A Network says how long frames take. Every node has one interface, which
// sends one frame after the other and, independently, receives one after the
// other; between interfaces every pair of nodes has a way of its own. Nothing
// is lost but by a [Cut]: what a network loses, a transport sends again, which is a
// delay.
type Network struct {
	// Bandwidth is what an interface carries in each direction, in bits a
	// second; 0 is any.
	Bandwidth float64
	// Frame is how long an interface is taken by a frame beside its bytes, in
	// each direction: system calls and interrupts.
	Frame time.Duration
	// Latency is the way between two interfaces, and Jitter the most that is
	// added to it, for each frame anew. Frames of one connection stay in order.
	Latency, Jitter time.Duration
	// Far, if set, is further latency of the way from one node to another.
	Far func(from, to int) time.Duration
	// Spike is the share of frames, 0 … 1, that are held up: a loss that was mended,
	// a switch that was full.
	Spike float64
	// SpikeDelay is by how much at the most.
	SpikeDelay time.Duration
	// Partitions hold up what would cross them until they are over.
	Partitions []Partition
	// Cuts are for good.
	Cuts []Cut
}

// A Partition cuts some nodes off from all others for a while, counted from
// the start of the cluster.
type Partition struct {
	From, To time.Duration // From … To; To is not below From
	Nodes    []int         // numbers of the nodes that are cut off; they reach each other
}

// A Cut ends the way from one node to another at a time, counted from the start of
// the cluster. What is sent from then on never arrives. The way back, and those to
// the coordinator, stay.
type Cut struct {
	At       time.Duration // since the start
	From, To int           // numbers of two different nodes
}

// Networks that are known by name. The latencies are those of one switch with
// kernel TCP.
var networks = map[string]Network{
	"1g":   {Bandwidth: 1e9, Frame: 2 * time.Microsecond, Latency: 50 * time.Microsecond, Jitter: 10 * time.Microsecond},
	"10g":  {Bandwidth: 10e9, Frame: 2 * time.Microsecond, Latency: 25 * time.Microsecond, Jitter: 5 * time.Microsecond},
	"100g": {Bandwidth: 100e9, Frame: time.Microsecond, Latency: 10 * time.Microsecond, Jitter: 2 * time.Microsecond},
	"bad":  {Bandwidth: 1e9, Frame: 2 * time.Microsecond, Latency: 100 * time.Microsecond, Jitter: 500 * time.Microsecond, Spike: 0.01, SpikeDelay: 20 * time.Millisecond},
}

// NetworkNamed returns a network: "1g", "10g" and "100g" are clusters at one
// switch, "bad" has jitter far above its latency, and spikes.
func NetworkNamed(name string) (Network, error) {
	if n, ok := networks[name]; ok {
		return n, nil
	}
	return Network{}, fmt.Errorf("sim: no network %q, there are %s", name, strings.Join(NetworkNames(), ", "))
}

// NetworkNames lists the networks that have a name.
func NetworkNames() []string {
	var names []string
	for n := range networks {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

func (n *Network) check(nodes int) error {
	switch {
	case !(n.Bandwidth >= 0) || !finite(n.Bandwidth):
		return fmt.Errorf("sim: a bandwidth of %v bits a second, want a finite number, 0 (any) or more", n.Bandwidth)
	case n.Latency < 0 || n.Jitter < 0 || n.Frame < 0 || n.SpikeDelay < 0:
		return fmt.Errorf("sim: a network faster than time: latency %v, jitter %v, frame %v, spikes %v", n.Latency, n.Jitter, n.Frame, n.SpikeDelay)
	case !(n.Spike >= 0 && n.Spike <= 1):
		return fmt.Errorf("sim: a share of %v of frames with a spike, want 0 … 1", n.Spike)
	}
	for _, p := range n.Partitions {
		if p.To < p.From {
			return fmt.Errorf("sim: a partition from %v to %v ends before it begins", p.From, p.To)
		}
		for _, id := range p.Nodes {
			if id < 0 || id >= nodes {
				return fmt.Errorf("sim: a partition cuts off node %d, the run has %d nodes", id, nodes)
			}
		}
	}
	for _, x := range n.Cuts {
		if min(x.From, x.To) < 0 || max(x.From, x.To) >= nodes || x.From == x.To {
			return fmt.Errorf("sim: a cut of the way from node %d to node %d, the run has %d nodes", x.From, x.To, nodes)
		}
	}
	return nil
}

// lost reports whether a frame that leaves now never arrives.
func (n *Network) lost(now int64, from, to int) bool {
	for _, x := range n.Cuts {
		if x.From == from && x.To == to && now >= int64(x.At) {
			return true
		}
	}
	return false
}

// overhead is what a packet of a TCP connection has beside its payload, in
// bytes on the wire, and packet the payload.
const (
	overhead = 78
	packet   = 1448
)

// takes returns how long an interface is taken by a frame.
func (n *Network) takes(bytes int) int64 {
	t := int64(n.Frame)
	if n.Bandwidth > 0 {
		bytes += overhead * (1 + (bytes-1)/packet)
		t += int64(float64(8*bytes) / n.Bandwidth * 1e9)
	}
	return t
}

// way returns when a frame that leaves now gets to the other interface.
func (n *Network) way(rng *rand.Rand, now int64, from, to int) int64 {
	at := now + int64(n.Latency)
	if n.Jitter > 0 {
		at += rng.Int64N(int64(n.Jitter) + 1)
	}
	if n.Far != nil {
		at += int64(n.Far(from, to))
	}
	if n.Spike > 0 && rng.Float64() < n.Spike {
		at += rng.Int64N(int64(n.SpikeDelay) + 1)
	}
	for _, p := range n.Partitions {
		if now >= int64(p.From) && now < int64(p.To) && p.cuts(from, to) {
			at += int64(p.To) - now
		}
	}
	return at
}

func (p *Partition) cuts(from, to int) bool {
	a, b := false, false
	for _, id := range p.Nodes {
		a, b = a || id == from, b || id == to
	}
	return a != b
}

// A frame is on its way.
type frame struct {
	from, to godwit.NodeID
	bytes    []byte
}

// flush is told by a node that frames for a peer wait. They are sent as a node's connections send them: each has one frame under way, until that has left
// the interface.
func (c *Cluster) flush(h *host, to godwit.NodeID) {
	preempt.Hold() // the network is not a part of the node
	defer preempt.Release()
	if !h.sending[to] {
		h.sending[to] = true
		c.send(h, to)
	}
}

// send takes the next frame for a peer, which costs the node processor time, and hands it to the interface.
func (c *Cluster) send(h *host, to godwit.NodeID) {
	for {
		f := c.frame()
		f.bytes = h.virtual.Frame(to, f.bytes)
		if len(f.bytes) == 0 {
			h.sending[to] = false
			c.free = append(c.free, f)
			return
		}
		f.from, f.to = h.id, to
		if at := c.sent(h, f); at > c.now {
			c.queue.push(event{at: at, kind: leaves, host: h.id, frame: f})
			return
		}
		if !c.leave(h, f) {
			return
		}
	}
}

// leave takes a frame that the node has handed to its interface, which sends one after the other. It reports whether the frame has left at
// once.
func (c *Cluster) leave(h *host, f *frame) bool {
	h.outFree = max(h.outFree, c.now) + c.cfg.Network.takes(len(f.bytes))
	to := f.to
	if c.cfg.Network.lost(h.outFree, int(h.id), int(to)) {
		c.free = append(c.free, f)
	} else {
		at := max(c.cfg.Network.way(c.rng, h.outFree, int(h.id), int(to)), h.last[to])
		h.last[to] = at
		c.queue.push(event{at: at, kind: arrives, host: to, frame: f})
	}
	if h.outFree > c.now {
		c.queue.push(event{at: h.outFree, kind: sends, host: h.id, peer: to})
		return false
	}
	return true
}

// sent returns when the node has handed a frame to its interface.
func (c *Cluster) sent(h *host, f *frame) int64 {
	k := &c.cfg.Compute
	cost := int64(k.Send) + int64(k.FrameByte*float64(len(f.bytes)))
	if cost == 0 {
		return c.now
	}
	return h.serve(c.now, cost)
}

func (c *Cluster) frame() *frame {
	if n := len(c.free); n > 0 {
		f := c.free[n-1]
		c.free = c.free[:n-1]
		return f
	}
	return &frame{}
}

// arrive takes a frame from the network to the interface.
func (c *Cluster) arrive(h *host, f *frame) error {
	h.inFree = max(h.inFree, c.now) + c.cfg.Network.takes(len(f.bytes))
	if h.inFree > c.now {
		c.queue.push(event{at: h.inFree, kind: comes, host: h.id, frame: f})
		return nil
	}
	return c.come(h, f)
}

// come takes a frame that the interface has.
func (c *Cluster) come(h *host, f *frame) error {
	in := &h.in[f.from]
	*in = append(*in, f)
	if len(*in) > 1 {
		return nil // the server has the first of them
	}
	return c.serve(h, in)
}

// serve has a core of the server take the frames of a peer that have come, each when the one before has been handled.
func (c *Cluster) serve(h *host, in *[]*frame) error {
	for len(*in) > 0 {
		f := (*in)[0]
		cost := int64(c.cfg.Compute.Frame) + int64(c.cfg.Compute.FrameByte*float64(len(f.bytes)))
		if c.cfg.Compute.Record > 0 {
			n, err := c.records(h, f)
			if err != nil {
				return err
			}
			cost += int64(n) * int64(c.cfg.Compute.Record)
		}
		if cost > 0 {
			c.queue.push(event{at: h.serve(c.now, cost), kind: handles, host: h.id, frame: f})
			return nil
		}
		if err := c.handle(h, f); err != nil {
			return err
		}
	}
	return nil
}

// handled gives a frame to its node that the server has worked on, and goes on with the next one.
func (c *Cluster) handled(h *host, f *frame) error {
	in := &h.in[f.from] // what is handled may be another frame soon
	if err := c.handle(h, f); err != nil {
		return err
	}
	return c.serve(h, in)
}

// read begins to read a frame's records. Lists are those that its sender refers
// to, to one who has read all frames before.
func (c *Cluster) read(frame []byte, lists *wire.Known) error {
	if wire.Compression(frame) != 0 {
		var err error
		if c.plain, err = packing.Unpacked(c.plain, frame); err != nil {
			return err
		}
		frame = c.plain
	}
	c.count.Lists = lists
	return c.count.Reset(frame)
}

// records counts the records of a frame that arrives at a host.
func (c *Cluster) records(h *host, f *frame) (int, error) {
	if !wire.IsData(f.bytes) {
		return 0, nil
	}
	if err := c.read(f.bytes, &h.listed[f.from]); err != nil {
		return 0, err
	}
	var r wire.Record
	for {
		if ok, err := c.count.Next(&r); err != nil || !ok {
			return c.count.Records(), err
		}
	}
}

// handle gives a frame to its node.
func (c *Cluster) handle(h *host, f *frame) error {
	c.mix(h, f)
	in := &h.in[f.from]
	*in = slices.Delete(*in, 0, 1)
	n, err := h.virtual.Handle(f.from, f.bytes, len(*in) > 0)
	c.messages += uint64(n)
	c.frames++
	c.bytes += uint64(len(f.bytes))
	if err != nil {
		return fmt.Errorf("sim: node %d takes a frame of node %d: %w", h.id, f.from, err)
	}
	if c.cfg.Watch {
		if err := c.watch(h, f); err != nil {
			return err
		}
	}
	c.free = append(c.free, f)
	c.settle(h)
	return nil
}
