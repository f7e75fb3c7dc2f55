package node

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/receive"
	"github.com/godwit-ps/godwit/placement"
)

// say has a node send a frame that it would not send by itself.
func say(from *Node, to godwit.NodeID, frame []byte) {
	l := from.links.To(to)
	l.Push(frame)
	l.Flush()
}

func frameOf(recs ...wire.Record) []byte {
	var e wire.Encoder
	e.Reset(nil, 1)
	for i := range recs {
		e.Append(&recs[i])
	}
	return e.Frame()
}

func TestAPeerThatBreaksTheProtocolEndsTheRunWithAReason(t *testing.T) {
	const keys, dim = 40, 2
	vals := func(n int) []float32 { return make([]float32, n) }
	garbage := frameOf(wire.Record{Kind: wire.Push, Key: 1, Vals: vals(dim)})
	garbage = append(garbage, 0xff, 0xff, 0xff)
	binary.LittleEndian.PutUint32(garbage, uint32(len(garbage)))
	alien := frameOf(wire.Record{Kind: wire.SyncMark, Op: 1})
	alien[4] = '!'
	homed := homedAt(t, local(t, 2, Config{Model: model(t, keys, dim), Workers: 1}).Nodes[0], 0, 1)[0]
	for what, x := range map[string]struct {
		frame []byte
		says  string
	}{
		"a tick, where none counts":          {frameOf(wire.Record{Kind: wire.Settled, Op: 5}), "no table of this run"},
		"a bound, where there is none":       {frameOf(wire.Record{Kind: wire.Rebound, Op: 5, Seq: 1}), "no table of this run"},
		"a pull after a tick likewise":       {frameOf(wire.Record{Kind: wire.PullAfter, Key: 3, Origin: 1, Op: 1, Seq: 5}), "no table with bounded staleness"},
		"a pull of a key out of range":       {frameOf(wire.Record{Kind: wire.Pull, Key: keys, Origin: 1, Op: 1}), "key 40"},
		"a push of a key far out of range":   {frameOf(wire.Record{Kind: wire.Push, Key: 1 << 60, Origin: 1, Op: 1, Vals: vals(dim)}), "keys 0 … 39"},
		"a push of too few floats":           {frameOf(wire.Record{Kind: wire.Push, Key: 3, Origin: 1, Op: 1, Vals: vals(1)}), "1 floats, want 2"},
		"a set of too many floats":           {frameOf(wire.Record{Kind: wire.Set, Key: 3, Origin: 1, Op: 1, Vals: vals(99)}), "99 floats, want 2"},
		"a reply without floats":             {frameOf(wire.Record{Kind: wire.PullReply, Key: 3, Op: 1}), "0 floats, want 2"},
		"a transfer of too many floats":      {frameOf(wire.Record{Kind: wire.Transfer, Key: 3, Epoch: 9, Vals: vals(5)}), "5 floats, want 2"},
		"a request for a node out of range":  {frameOf(wire.Record{Kind: wire.Pull, Key: 3, Origin: 7, Op: 1}), "node 7"},
		"a holder out of range":              {frameOf(wire.Record{Kind: wire.Transfer, Key: 3, Epoch: 9, Vals: vals(dim), Holders: []wire.Holder{{Node: 700}}}), "holder 700"},
		"a claim for somebody else":          {frameOf(wire.Record{Kind: wire.Claim, Key: 3, Epoch: 9, Origin: 0}), "claims key 3"},
		"a claim of what was not given":      {frameOf(wire.Record{Kind: wire.Claim, Key: homed, Epoch: 9, Origin: 1}), "not handed over"},
		"a release by who is not the home":   {frameOf(wire.Record{Kind: wire.Release, Key: homed, Epoch: 9, Origin: 1}), "its home is node 0"},
		"a request that goes in circles":     {frameOf(wire.Record{Kind: wire.Pull, Key: 3, Origin: 1, Op: 1, Hops: 255}), "circles"},
		"a scan beyond the last key":         {frameOf(wire.Record{Kind: wire.Scan, Key: 3, Op: 1, Seq: keys + 1}), "up to 41"},
		"a scan of nothing":                  {frameOf(wire.Record{Kind: wire.Scan, Key: 3, Op: 1, Seq: 3}), "from 3 up to 3"},
		"no stage of a cut":                  {frameOf(wire.Record{Kind: wire.Cut, Op: 1}), "stage 0 of cut 1"},
		"an unknown stage of a cut":          {frameOf(wire.Record{Kind: wire.Cut, Op: 1, Key: 5}), "stage 5 of cut 1"},
		"the end of a cut that never began":  {frameOf(wire.Record{Kind: wire.Cut, Op: 3, Key: 4}), "stage 4 of cut 3"},
		"a stage of a cut left out":          {frameOf(wire.Record{Kind: wire.Cut, Op: 1, Key: 1}, wire.Record{Kind: wire.Cut, Op: 1, Key: 3}), "stage 3 of cut 1"},
		"a cut saved by all but this node":   {frameOf(wire.Record{Kind: wire.Cut, Op: 1, Key: 1}, wire.Record{Kind: wire.Cut, Op: 1, Key: 2}, wire.Record{Kind: wire.Cut, Op: 1, Key: 3}), "this node is at stage"},
		"two cuts at once":                   {frameOf(wire.Record{Kind: wire.Cut, Op: 1, Key: 1}, wire.Record{Kind: wire.Cut, Op: 2, Key: 1}), "stage 1 of cut 2"},
		"a stage of a cut again":             {frameOf(wire.Record{Kind: wire.Cut, Op: 1, Key: 1}, wire.Record{Kind: wire.Cut, Op: 1, Key: 1}), "after stage 1 of cut 1"},
		"cut 0":                              {frameOf(wire.Record{Kind: wire.Cut, Key: 1}), "stage 1 of cut 0"},
		"a cut after which none can be":      {frameOf(wire.Record{Kind: wire.Cut, Op: 1 << 63, Key: 1}), "stage 1 of cut 9223372036854775808"},
		"a cut of unknown rows":              {frameOf(wire.Record{Kind: wire.Cut, Op: 1, Key: 1, Seq: 8}), "cut 1 (8)"},
		"a cut at a tick, where none counts": {frameOf(wire.Record{Kind: wire.Cut, Op: 1, Key: 1, Version: 5}), "far from"},
		"bytes that are no record":           {garbage, ""},
		"bytes of something else":            {alien, "not a frame"},
		"a goodbye in the middle":            {wire.Goodbye(1), "before this node had come to the end"},
		"more arrived than was sent":         {wire.Heartbeat{Arrived: 1 << 40}.Frame(), "have arrived, of"},
		"a suspicion of nobody":              {wire.Suspicions(nil), "want 8 a node"},
		"a suspicion of itself":              {wire.Suspicions([]godwit.NodeID{1}), "suspects node 1 of 2"},
		"a suspicion of a stranger":          {wire.Suspicions([]godwit.NodeID{7}), "suspects node 7 of 2"},
	} {
		t.Run(what, func(t *testing.T) {
			c := local(t, 2, Config{Model: model(t, keys, dim), Workers: 1})
			say(c.Nodes[1], 0, x.frame)
			for _, n := range c.Nodes {
				select {
				case <-n.Done():
				case <-time.After(patience):
					t.Fatalf("node %d goes on", n.self)
				}
			}
			err := c.Nodes[0].Err()
			if !errors.Is(err, godwit.ErrPeerLost) || !strings.Contains(err.Error(), "node 1") || !strings.Contains(err.Error(), x.says) {
				t.Errorf("the run ended with %q, want one that blames node 1 and says %q", err, x.says)
			}
			t.Log(err)
		})
	}
}

// Replies to nothing, marks of nobody and words on copies that do not exist
// come when an operation was given up or a key has moved on. They change nothing.
func TestRecordsThatComeTooLateAreIgnored(t *testing.T) {
	const dim = 2
	ctx := background(t)
	c := local(t, 2, Config{Model: model(t, 40, dim), Workers: 1})
	var recs []wire.Record
	for _, k := range []godwit.Key{homedAt(t, c.Nodes[0], 0, 1)[0], homedAt(t, c.Nodes[0], 1, 1)[0]} {
		for _, op := range []uint64{0, 1, 1 << 16, 1 << 47, 1 << 48, 1<<64 - 1} {
			recs = append(recs,
				wire.Record{Kind: wire.PullReply, Key: k, Op: op, Index: 1 << 31, Vals: []float32{7, 7}},
				wire.Record{Kind: wire.Done, Key: k, Op: op},
				wire.Record{Kind: wire.SyncAck, Op: op})
		}
		recs = append(recs,
			wire.Record{Kind: wire.Delta, Key: k, Origin: 1, Seq: 9, Hops: 1, Vals: []float32{7, 7}},
			wire.Record{Kind: wire.Refresh, Key: k, Epoch: 9, Version: 9, Seq: 9, Vals: []float32{7, 7}},
			wire.Record{Kind: wire.Ack, Key: k, Version: 9, Seq: 9},
			wire.Record{Kind: wire.Dropped, Key: k, Seq: 9},
			wire.Record{Kind: wire.Refuse, Key: k},
			wire.Record{Kind: wire.Drained, Key: k, Epoch: 9})
	}
	recs = append(recs, wire.Record{Kind: wire.Release, Key: homedAt(t, c.Nodes[0], 1, 1)[0], Epoch: 9, Origin: 1})
	say(c.Nodes[1], 0, frameOf(recs...))
	must(t, c.Nodes[1].Worker(0).WaitSync(ctx))
	all := make([]godwit.Key, 40)
	for i := range all {
		all[i] = godwit.Key(i)
	}
	for _, n := range c.Nodes {
		dst := make([]float32, 40*dim)
		must(t, n.Worker(0).Pull(ctx, all, dst))
		for i, v := range dst {
			if v != 0 {
				t.Errorf("node %d reads %v at %d", n.self, v, i)
			}
		}
	}
}

// forge makes records of arbitrary bytes: of any kind and content that the
// wire carries, most of them not far from sensible.
func forge(b []byte, m *godwit.Model) []wire.Record {
	next := func() byte {
		if len(b) == 0 {
			return 0
		}
		x := b[0]
		b = b[1:]
		return x
	}
	var recs []wire.Record
	for len(b) > 0 {
		r := wire.Record{Kind: wire.Kind(next()%uint8(wire.Kinds-1)) + 1}
		r.Key = godwit.Key(next()) % godwit.Key(m.Keys())
		flags := next()
		r.Origin = godwit.NodeID(flags & 3)
		r.Coming = flags&4 != 0
		r.Hops = flags >> 3 & 3
		r.Op = uint64(flags>>5) << 16 * 7
		small := next()
		r.Epoch = godwit.Epoch(small & 3)
		r.Version = godwit.Version(small >> 2 & 3)
		r.Seq = uint64(small >> 4 & 3)
		r.Index = uint32(small >> 6)
		switch lens := next(); {
		case lens == 255: // wrong, whatever the kind
			r.Vals = make([]float32, 77)
		case r.Kind == wire.Push || r.Kind == wire.Set || r.Kind == wire.PullReply:
			r.Vals = make([]float32, m.Dim(r.Key))
		case r.Kind == wire.Delta || r.Kind == wire.Refresh || r.Kind == wire.Transfer || r.Kind == wire.End && lens&1 != 0:
			r.Vals = make([]float32, m.RowLen(r.Key))
		}
		if r.Kind == wire.Transfer {
			for n := next() & 3; n > 0; n-- {
				x := next()
				r.Holders = append(r.Holders, wire.Holder{Node: godwit.NodeID(x & 3), Seq: uint64(x >> 2 & 3), Version: godwit.Version(x >> 4)})
			}
		}
		recs = append(recs, r)
	}
	return recs
}

// lonely is a session of a node whose peers never say anything by themselves.
type lonely struct {
	coord.Session
	nodes int
}

func (lonely) Self() godwit.NodeID  { return 0 }
func (lonely) View() godwit.View    { return 1 }
func (lonely) Lease() time.Duration { return coord.DefaultTTL }
func (lonely) Secret() []byte       { return make([]byte, coord.SecretSize) }

func (l lonely) Members() []coord.Member {
	ms := make([]coord.Member, l.nodes)
	for i := range ms {
		ms[i] = coord.Member{ID: godwit.NodeID(i), Addr: "?"}
	}
	return ms
}

// FuzzTake has a node take forged records from its peers, between accesses of
// its own worker and rounds. It may refuse them; it must not panic or hang.
func FuzzTake(f *testing.F) {
	for k := byte(0); k < byte(wire.Kinds-1); k++ {
		f.Add(byte(0), []byte{k, 3, 0, 0, 0, 0, 0, 3, 1, 2, 1, 3, 2, 1})
		f.Add(byte(1), []byte{k, 3, 5, 1, 1, k, 3, 2, 1, 1, 13, 3, 1, 1, 1, 2, 1, 5})
	}
	f.Fuzz(take)
}

func take(t *testing.T, variant byte, b []byte) {
	if len(b) > 1<<10 {
		return
	}
	names := placement.Names()
	m := modelOf(t, godwit.Table{Name: "a", Rows: 13, Dim: 2, Hot: first}, godwit.Table{Name: "b", Rows: 6, Dim: 3, Staleness: godwit.Within(1000)})
	p, _ := placement.ByName(names[int(variant>>1)%len(names)])
	n := quietNode(t, Config{Model: m, Policy: p, Workers: 1, NoHints: variant&1 != 0, Session: lonely{nodes: 3}})
	w := n.Worker(0)
	hasty, cancel := context.WithCancel(context.Background())
	cancel() // a forged bound may be one that nobody ever reaches
	ins := []*receive.Inbound{n.receiver.Inbound(1), n.receiver.Inbound(2)}
	for i, r := range forge(b, m) {
		if err := ins[i%2].Frame(frameOf(r)); err != nil {
			continue // a real node's run would be over
		}
		k := []godwit.Key{r.Key}
		buf := make([]float32, m.Dim(r.Key))
		switch i % 7 {
		case 1:
			_, _ = w.PullAsync(hasty, k, buf)
		case 2:
			_, _ = w.PushAsync(context.Background(), k, buf)
		case 3:
			_ = w.Intent(k, w.Clock(), w.Clock()+2)
		case 4:
			w.Advance()
			n.loop.Sync.Begin(0)
		case 5:
			_, _ = w.LocalizeAsync(context.Background(), k)
		case 6:
			_, _ = w.SetAsync(context.Background(), k, buf)
		}
		n.loop.Round()
	}
	n.Stats()
}

// quietNode is a node without goroutines, whose queues nobody empties.
func quietNode(t testing.TB, cfg Config) *Node {
	n := &Node{cfg: cfg, host: host.New(host.Real()), budget: host.NewBudget(cfg.Workers, 1)}
	must(t, n.build())
	for _, m := range cfg.Session.Members() {
		if m.ID != cfg.Session.Self() {
			n.links.Imagine(m.ID, func() {})
		}
	}
	t.Cleanup(func() {
		n.host.Halt()
		n.host.Join()
		must(t, n.arena.Free())
	})
	return n
}

// Nodes of a cluster that take forged records, while workers work, may fail;
// they do not panic, and they end.
func TestForgedRecordsAmongTrueOnesEndInAnOrderlyWay(t *testing.T) {
	for i := range 30 * *scale {
		m := lengths(t)
		c := local(t, 3, Config{Model: m, Workers: 2, Policy: placement.Adaptive})
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
		var wg sync.WaitGroup
		for _, n := range c.Nodes {
			for _, w := range n.Workers() {
				wg.Go(func() {
					rng := rngOf(w.ID())
					for ctx.Err() == nil && n.Err() == nil {
						keys := some(rng, m, 10)
						buf := valuesOf(m, keys)
						_ = w.Intent(keys, w.Clock(), w.Clock()+3)
						_ = w.Push(ctx, keys, buf)
						_ = w.Pull(ctx, keys, buf)
						w.Advance()
					}
				})
			}
		}
		rng := rand.New(rand.NewPCG(*seed, uint64(i)))
		for ctx.Err() == nil {
			b := make([]byte, rng.IntN(40))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			if recs := forge(b, m); len(recs) > 0 {
				say(c.Nodes[1], godwit.NodeID(2*rng.IntN(2)), frameOf(recs...))
			}
			time.Sleep(100 * time.Microsecond)
		}
		wg.Wait()
		cancel()
		c.Hub.Kill(1)
		ctx, cancel = context.WithTimeout(context.Background(), patience)
		if err := c.Close(ctx); ctx.Err() != nil {
			t.Fatalf("-seed %d: the nodes do not end: %v", *seed, err)
		}
		cancel()
	}
}
