package node

import (
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/histogram"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/watch"
	"github.com/godwit-ps/godwit/telemetry"
)

// Snapshot says more of the node than Stats, for those who watch it. It may be called at any time
// before Close.
func (n *Node) Snapshot() telemetry.Snapshot {
	did, seen := n.workers.Counts(), n.workers.Watch.Counts()
	s := telemetry.Snapshot{Node: n.self, Announced: n.planner.Held(), Asked: n.links.Asked(), Open: did.Open,
		Latency: tell(n.ops.Latency(godwit.NoNode)), Waste: wasteOf(&seen)}
	s.Clocks.Furthest = n.workers.Clocks.Furthest()
	s.Clocks.Sum, s.Clocks.Slowest = n.workers.Clocks.Sum()
	s.Intents.N, s.Intents.Keys, s.Intents.Ahead = n.planner.Said()
	for c, w := range did.Waits {
		s.Waits = append(s.Waits, telemetry.Wait{For: watch.Cause(c).String(), N: w.N, Time: time.Duration(w.Nanos)})
	}
	for i, t := range did.Tables {
		s.Tables = append(s.Tables, telemetry.Table{Name: n.cfg.Model.Table(i).Name, Main: t.Local, Replica: t.Replica, Missing: t.Elsewhere,
			Moves: t.Moves, Copies: t.Copies, Drops: t.Drops, Refreshes: t.Refreshes})
	}
	totals := n.rows.Totals()
	memory := totals.Memory
	s.Leads = tell(totals.Leads)
	s.Memory = []telemetry.Memory{{For: "rows", Bytes: memory.Rows}, {For: "sides", Bytes: memory.Sides}, {For: "hints", Bytes: memory.Hints},
		{For: "homes", Bytes: n.proto.Bytes() + n.hot.Bytes()}}
	var kinds [wire.Kinds]uint64
	for id, l := range n.links.All {
		c := l.Counts()
		s.Peers = append(s.Peers, telemetry.Peer{Node: id, Latency: tell(n.ops.Latency(id)), Last: tell(n.ops.LatencyLast(id)), Bytes: c.Bytes, Frames: c.Frames, Plain: c.Plain, Queued: c.Queued})
		for k, bytes := range c.Kinds {
			kinds[k] += bytes
		}
	}
	for k, bytes := range kinds {
		if k > 0 {
			s.Sent = append(s.Sent, telemetry.Sent{Record: wire.Kind(k).String(), Bytes: bytes})
		}
	}
	return s
}

func wasteOf(c *watch.Counts) telemetry.Waste {
	return telemetry.Waste{Accesses: c.Accesses, Refreshes: c.Refreshes, Unread: c.Unread, Drops: c.Drops, DroppedUnread: c.DroppedUnread,
		Intents: c.Intents, Unused: c.Unused, Touches: tell(c.Touches), Age: tell(c.AgeMicros), AgeClocks: tell(c.AgeInClock)}
}

func tell(c histogram.Counts) telemetry.Histogram {
	return telemetry.Histogram{Of: c.Of[:], Sum: c.Sum}
}
