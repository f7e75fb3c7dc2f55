package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	cmem "github.com/godwit-ps/godwit/coord/mem"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/virtual"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// A duel times two programs in turns, so that both meet the same machine, and
// reports the medians and the median of the ratios.
type duel struct {
	subject, baseline       []float64
	subjectCPU, baselineCPU []float64 // of all goroutines
}

func (d *duel) turn(subject, baseline func()) {
	t0, u0 := time.Now(), used()
	subject()
	t1, u1 := time.Now(), used()
	baseline()
	d.subject = append(d.subject, float64(t1.Sub(t0)))
	d.baseline = append(d.baseline, float64(time.Since(t1)))
	d.subjectCPU = append(d.subjectCPU, float64(u1-u0))
	d.baselineCPU = append(d.baselineCPU, float64(used()-u1))
}

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	return s[len(s)/2]
}

// report says nanoseconds for each of n units of a turn.
func (d *duel) report(b *testing.B, n int, unit string) {
	ratios := make([]float64, len(d.subject))
	for i := range ratios {
		ratios[i] = d.subject[i] / d.baseline[i]
	}
	slices.Sort(ratios)
	b.ReportMetric(median(d.subject)/float64(n), "ns/"+unit)
	b.ReportMetric(median(d.baseline)/float64(n), "baseline-ns/"+unit)
	b.ReportMetric(median(d.subjectCPU)/float64(n), "cpu-ns/"+unit)
	b.ReportMetric(median(d.baselineCPU)/float64(n), "baseline-cpu-ns/"+unit)
	b.ReportMetric(median(ratios), "x-baseline")
	b.ReportMetric(ratios[len(ratios)/4], "x-quartile1")
	b.ReportMetric(ratios[3*len(ratios)/4], "x-quartile3")
	b.ReportMetric(0, "ns/op") // a turn, which says nothing
}

// rawTCP is a plain connection of this machine to an echo that reads messages
// of ask bytes and answers each with reply bytes.
func rawTCP(b *testing.B, ask, reply int) net.Conn {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	b.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in, out := make([]byte, ask), make([]byte, reply)
		for {
			if _, err := io.ReadFull(c, in); err != nil {
				return
			}
			if _, err := c.Write(out); err != nil {
				return
			}
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	must(b, err)
	b.Cleanup(func() { c.Close() })
	return c
}

// BenchmarkRemoteOneKey is a synchronous pull of one key of another node over
// TCP of this machine, against a plain exchange of as many bytes.
func BenchmarkRemoteOneKey(b *testing.B) {
	for _, dim := range []int{10, 100} {
		b.Run(fmt.Sprintf("floats=%d", dim), func(b *testing.B) {
			c := clusterOver(b, 2, Config{Model: model(b, 1000, dim), Policy: placement.Static, Workers: 1}, overTCP)
			w := c.Nodes[0].Worker(0)
			ctx := context.Background()
			there := homedAt(b, c.Nodes[0], 1, 100)
			dst := make([]float32, dim)
			raw := rawTCP(b, 32, 32+4*dim)
			in, out := make([]byte, 32+4*dim), make([]byte, 32)
			const n = 200
			var d duel
			for b.Loop() {
				d.turn(func() {
					for i := range n {
						if err := w.Pull(ctx, there[i%100:][:1], dst); err != nil {
							b.Fatal(err)
						}
					}
				}, func() {
					for range n {
						if _, err := raw.Write(out); err != nil {
							b.Fatal(err)
						}
						if _, err := io.ReadFull(raw, in); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			d.report(b, n, "pull")
		})
	}
}

// BenchmarkIntent is the time from the announcement of one key of another node
// until it can be accessed here, on a system that does nothing else, against a
// plain exchange of as many bytes. The key comes from its home; or two nodes
// announce it in turns, of which one is its home.
func BenchmarkIntent(b *testing.B) {
	const dim, keys = 100, 100_000
	for _, way := range []string{"from its home", "in turns"} {
		b.Run(way, func(b *testing.B) {
			c := clusterOver(b, 2, Config{Model: model(b, keys, dim), Workers: 1}, overTCP)
			there := homedAt(b, c.Nodes[0], 1, 20_000)
			dst := make([]float32, dim)
			raw := rawTCP(b, 32, 32+4*dim)
			in, out := make([]byte, 32+4*dim), make([]byte, 32)
			next := 0
			ctx := context.Background()
			var d duel
			for b.Loop() {
				k, n := there[next%len(there):][:1], c.Nodes[0]
				if way == "in turns" {
					k, n = there[next/2%100:][:1], c.Nodes[next%2]
				}
				w := n.Worker(0)
				next++
				time.Sleep(2 * time.Millisecond) // what came before is over, and the rounds rest
				d.turn(func() {
					must(b, w.Intent(k, w.Clock(), w.Clock()+1))
					for n.rows.Holding(k[0]).State == "absent" {
						runtime.Gosched() // the planner has not asked for it yet
					}
					must(b, w.Pull(ctx, k, dst)) // waits here; who asks again and again keeps the processor from the readers
				}, func() {
					_, err := raw.Write(out)
					must(b, err)
					_, err = io.ReadFull(raw, in)
					must(b, err)
				})
				w.Advance()
			}
			d.report(b, 1, "intent")
		})
	}
}

// frameEcho is a connection of package transport/tcp to an echo that answers
// each frame with one of reply bytes.
func frameEcho(b *testing.B, reply int) transport.Conn {
	ctx := background(b)
	l, err := tcp.Network{}.Listen("127.0.0.1:0")
	must(b, err)
	b.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept(ctx, wire.Hello{Run: "echo", From: 1}, secret)
		if err != nil {
			return
		}
		defer c.Close()
		out := frameSized(reply)
		for {
			if _, err = c.ReadFrame(); err != nil {
				return
			}
			if err := c.WriteFrame(out); err != nil {
				return
			}
		}
	}()
	c, err := tcp.Network{}.Dial(ctx, l.Addr(), wire.Hello{Run: "echo", From: 0, To: 1}, secret)
	must(b, err)
	b.Cleanup(func() { c.Close() })
	return c
}

func frameSized(n int) []byte {
	f := make([]byte, n)
	f[0], f[1], f[2], f[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	return f
}

// BenchmarkRemoteStream is calls of 100 keys of 100 floats, 16 outstanding, to
// another node over TCP of this machine, against frames of the same sizes
// that are echoed by the same transport.
func BenchmarkRemoteStream(b *testing.B) {
	const dim, per, calls, depth = 100, 100, 400, 16
	for _, op := range []string{"pull", "push"} {
		b.Run(op, func(b *testing.B) {
			c := clusterOver(b, 2, Config{Model: model(b, 20_000, dim), Policy: placement.Static, Workers: 1}, overTCP)
			w := c.Nodes[0].Worker(0)
			ctx := context.Background()
			there := homedAt(b, c.Nodes[0], 1, 8000)
			bufs := make([][]float32, depth)
			for i := range bufs {
				bufs[i] = make([]float32, per*dim)
			}
			ask, reply := 800, 800
			if op == "push" {
				ask += 4 * per * dim
			} else {
				reply += 4 * per * dim
			}
			echo := frameEcho(b, reply)
			out := frameSized(ask)
			run := func(send, wait func(i int)) {
				for i := range calls {
					if i >= depth {
						wait(i - depth)
					}
					send(i)
				}
				for i := calls - depth; i < calls; i++ {
					wait(i)
				}
			}
			hs := make([]godwit.Handle, calls)
			var d duel
			for b.Loop() {
				d.turn(func() {
					run(func(i int) {
						keys := there[i*per%(len(there)-per):][:per]
						var err error
						if op == "push" {
							hs[i], err = w.PushAsync(ctx, keys, bufs[i%depth])
						} else {
							hs[i], err = w.PullAsync(ctx, keys, bufs[i%depth])
						}
						must(b, err)
					}, func(i int) { must(b, w.Wait(ctx, hs[i])) })
				}, func() {
					run(func(int) { must(b, echo.WriteFrame(out)) }, func(int) {
						_, err := echo.ReadFrame()
						must(b, err)
					})
				})
			}
			d.report(b, calls*per, "key")
			b.ReportMetric(4*dim*per*calls/median(d.subject), "GB/s")
			b.ReportMetric(4*dim*per*calls/median(d.baseline), "baseline-GB/s")
		})
	}
}

// imagined is two nodes that hand each other frames directly: what a worker
// asks for has been answered when its requests are flushed.
func imagined(b *testing.B, cfg Config) (nodes [2]*Node) {
	var bufs [2][]byte
	var busy [2]sync.Mutex // workers, planners and heartbeats send
	nodes = pair(b, cfg, func(from, to godwit.NodeID) {
		busy[from].Lock()
		defer busy[from].Unlock()
		if nodes[from] == nil || nodes[to] == nil {
			return // they start; what is queued goes with what follows
		}
		n, peer := simulated{nodes[from]}, simulated{nodes[to]}
		if bufs[from] = n.Frame(to, bufs[from]); len(bufs[from]) > 0 {
			_, err := peer.Handle(from, bufs[from], false)
			must(b, err)
		}
	})
	return nodes
}

// pair is two virtual nodes.
func pair(b *testing.B, cfg Config, flush func(from, to godwit.NodeID)) (nodes [2]*Node) {
	ctx := background(b)
	hub, err := cmem.New(coord.Config{Run: "bench", Nodes: 2})
	must(b, err)
	var wg sync.WaitGroup
	for range nodes {
		wg.Go(func() {
			cfg := cfg
			session, err := hub.Join(ctx, "imagined")
			if err != nil {
				b.Error(err)
				return
			}
			cfg.Session = session
			self := session.Self()
			cfg.Virtual = &virtual.Options{World: host.Real(), Flush: func(to godwit.NodeID) { flush(self, to) }}
			n, err := Start(ctx, cfg)
			if err != nil {
				b.Error(err)
				return
			}
			nodes[n.self] = n
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
	b.Cleanup(func() { closeAll(b, &Cluster{Nodes: nodes[:], Hub: hub}) })
	return nodes
}

// BenchmarkRemotePath is calls of 100 keys of 100 floats to another node
// without the network between: what the nodes themselves add to it. It reports
// processor time.
func BenchmarkRemotePath(b *testing.B) {
	const dim, per = 100, 100
	for _, op := range []string{"pull", "push"} {
		b.Run(op, func(b *testing.B) {
			nodes := imagined(b, Config{Model: model(b, 20_000, dim), Policy: placement.Static, Workers: 1})
			w := nodes[0].Worker(0)
			there := homedAt(b, nodes[0], 1, 8000)
			ctx := context.Background()
			buf := make([]float32, per*dim)
			next := 0
			before := used()
			for b.Loop() {
				for range 100 {
					keys := there[next : next+per]
					next = (next + per) % len(there)
					if op == "pull" {
						must(b, w.Pull(ctx, keys, buf))
					} else {
						must(b, w.Push(ctx, keys, buf))
					}
				}
			}
			b.ReportMetric(float64(used()-before)/float64(b.N*100*per), "cpu-ns/key")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkMoves is Localize of 10,000 keys of 100 floats back and forth
// between two nodes over TCP of this machine.
func BenchmarkMoves(b *testing.B) {
	const keys, dim = 10_000, 100
	c := clusterOver(b, 2, Config{Model: model(b, keys, dim), Policy: placement.RelocateAll, Workers: 1}, overTCP)
	ctx := context.Background()
	all := make([]godwit.Key, keys)
	for i := range all {
		all[i] = godwit.Key(i)
	}
	must(b, c.Nodes[1].Worker(0).Localize(ctx, all))
	to := 0
	before := used()
	for b.Loop() {
		must(b, c.Nodes[to].Worker(0).Localize(ctx, all))
		to = 1 - to
	}
	b.ReportMetric(float64(keys*b.N)/b.Elapsed().Seconds(), "moves/s")
	b.ReportMetric(float64(used()-before)/float64(keys*b.N), "cpu-ns/move")
}

// replicated is two nodes over TCP that both want all keys, until all are at
// both.
func replicated(b *testing.B, keys, dim int) (*Cluster, []godwit.Key) {
	c := clusterOver(b, 2, Config{Model: model(b, uint64(keys), dim), Workers: 1}, overTCP)
	ctx := background(b)
	all := make([]godwit.Key, keys)
	for i := range all {
		all[i] = godwit.Key(i)
	}
	for _, n := range c.Nodes {
		must(b, n.Worker(0).Intent(homedAt(b, n, n.self, keys/3), 0, godwit.Forever))
		must(b, n.Worker(0).WaitSync(ctx))
	}
	for _, n := range c.Nodes {
		must(b, n.Worker(0).Intent(all, 0, godwit.Forever))
	}
	eventually(b, "all keys are at both nodes", func() bool { s := sum(c); return s.Owned+s.Replicas == 2*keys })
	return c, all
}

// BenchmarkRound is what a sync of 100 written replicas costs, from the push
// until the owner's answer is here: the time of its rounds must not depend on
// how many more replicas there are. And the same with WaitSync, which looks
// at all of them.
func BenchmarkRound(b *testing.B) {
	for _, keys := range []int{10_000, 100_000} {
		c, all := replicated(b, keys, 16)
		n := c.Nodes[0]
		w := n.Worker(0)
		var mine []godwit.Key // replicas of node 0
		for _, k := range all {
			if n.place(k) == protocol.AtReplica && len(mine) < 100 {
				mine = append(mine, k)
			}
		}
		ctx := context.Background()
		push := make([]float32, 16*len(mine))
		for i := range push {
			push[i] = 1
		}
		owner := c.Nodes[1].Worker(0)
		got := make([]float32, len(push))
		total := float32(0)
		for what, sync := range map[string]func(){
			"rounds": func() {
				for got[len(got)-1] != total { // at the owner
					must(b, owner.Pull(ctx, mine, got))
					runtime.Gosched()
				}
			},
			"wait-sync": func() { must(b, w.WaitSync(ctx)) },
		} {
			b.Run(fmt.Sprintf("dirty=100/replicas=%d/%s", keys, what), func(b *testing.B) {
				before := sum(c)
				for b.Loop() {
					must(b, w.Push(ctx, mine, push))
					total++
					sync()
				}
				after := sum(c)
				b.ReportMetric(float64(after.RoundTime-before.RoundTime)/float64(after.Rounds-before.Rounds), "ns/round")
				b.ReportMetric(float64(after.Rounds-before.Rounds)/float64(b.N), "rounds/op")
				b.ReportMetric(float64(after.SentBytes-before.SentBytes)/float64(b.N), "B/op")
			})
		}
	}
}

// BenchmarkMemory is the bytes of a key over its value (or its two copies), of
// a node that owns it, replicates it, or has nothing to do with it.
func BenchmarkMemory(b *testing.B) {
	const keys, dim = 1_000_000, 16
	once := func(b *testing.B) { // metrics count from here on
		for b.Loop() {
		}
		b.ReportMetric(0, "ns/op")
	}
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	all := make([]godwit.Key, keys)
	for i := range all {
		all[i] = godwit.Key(i)
	}
	b.Run("owned", func(b *testing.B) {
		once(b)
		before := heap()
		c := local(b, 1, Config{Model: model(b, keys, dim), Workers: 1})
		empty := heap() - before
		buf := make([]float32, keys*dim)
		must(b, c.Nodes[0].Worker(0).Pull(context.Background(), all, buf))
		buf = nil
		full := heap() - before + float64(c.Nodes[0].arena.Bytes())
		b.ReportMetric(empty/keys, "B/absent-key")
		b.ReportMetric((full-empty)/keys-4*dim, "B/owned-key")
		b.ReportMetric(32, "aim-owned")
		b.ReportMetric(1, "aim-absent")
		runtime.KeepAlive(c)
	})
	b.Run("replicated", func(b *testing.B) {
		once(b)
		const keys = keys / 5
		before := heap()
		c, _ := replicated(b, keys, dim)
		s := sum(c)
		both := heap() - before
		for _, n := range c.Nodes {
			both += float64(n.arena.Bytes())
		}
		// Owned rows cost what they cost above (here taken as the aim).
		b.ReportMetric((both-float64(s.Owned)*(32+4*dim))/float64(s.Replicas)-4*dim, "B/replica-over-one-copy")
		b.ReportMetric((both-float64(s.Owned)*(32+4*dim))/float64(s.Replicas)-8*dim, "B/replica-over-two-copies")
		runtime.KeepAlive(c)
	})
}

// BenchmarkFilteredPush pushes 64 keys of 32 floats to another node, through
// filters and through none.
func BenchmarkFilteredPush(b *testing.B) {
	for _, fs := range [][]godwit.Filter{nil, {filter.BF16{Forget: true}}, {filter.BF16{}}, {filter.FixedPoint(1)}, {filter.FixedPoint(1), filter.Sparse{}}, {filter.Compress{Method: filter.S2}}} {
		name := "none"
		for i, f := range fs {
			if i == 0 {
				name = ""
			}
			name += f.Name()
		}
		b.Run(name, func(b *testing.B) {
			m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 10_000, Dim: 32, Filters: fs})
			if err != nil {
				b.Fatal(err)
			}
			c := local(b, 2, Config{Model: m, Policy: placement.Static, Workers: 1})
			w := c.Nodes[0].Worker(0)
			var keys []godwit.Key
			for k := godwit.Key(0); len(keys) < 64; k++ {
				if c.Nodes[0].proto.Homes.Home(k) != 0 {
					keys = append(keys, k)
				}
			}
			push := make([]float32, 64*32)
			for i := range push {
				push[i] = float32(i%100) / 99
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := w.Push(b.Context(), keys, push); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(c.Nodes[0].Stats().SentBytes)/float64(b.N)/64, "B/key")
		})
	}
}
