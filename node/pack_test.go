package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/transport"
)

// framed makes a frame of pushes of values.
func framed(n int, value func(i int) float32) []byte {
	var e wire.Encoder
	e.Reset(nil, 1)
	for i := range n {
		e.Append(&wire.Record{Kind: wire.Push, Key: godwit.Key(i), Index: uint32(i), Vals: []float32{value(i), value(i), value(i), value(i)}})
	}
	return e.Frame()
}

func TestFramesThatDoNotCompressAreTriedLessAndLess(t *testing.T) {
	var p packer
	p.set(filter.Compress{Method: filter.S2}, wire.TakesS2)
	rng := rand.New(rand.NewPCG(*seed, 0))
	noise := framed(10_000, func(int) float32 { return rng.Float32() })
	zeros := framed(10_000, func(int) float32 { return 0 })
	if b := p.pack(zeros); b == nil || len(b) > len(zeros)/10 {
		t.Fatalf("zeros: %d bytes became %d", len(zeros), len(b))
	}
	for range 1000 {
		if p.pack(noise) != nil {
			t.Fatal("noise was compressed")
		}
	}
	if p.pause != maxPaused {
		t.Errorf("after noise, %d frames are let pass", p.pause)
	}
	passed := 0
	for p.pack(zeros) == nil {
		if passed++; passed > maxPaused {
			t.Fatal("zeros are not tried again")
		}
	}
	for range 10 {
		if p.pack(zeros) == nil {
			t.Fatal("after a frame that paid, the next is not compressed")
		}
	}
	if p.pack(framed(1, func(int) float32 { return 0 })) != nil {
		t.Error("a few bytes were compressed")
	}
}

func TestTablesMayNotDifferInCompression(t *testing.T) {
	m, err := godwit.NewModel(
		godwit.Table{Name: "a", Rows: 1, Dim: 1, Filters: []godwit.Filter{filter.Compress{Method: filter.S2}}},
		godwit.Table{Name: "b", Rows: 1, Dim: 1, Filters: []godwit.Filter{filter.Compress{Method: filter.Zstd}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := packing(m); err == nil || !strings.Contains(err.Error(), `s2, table "b" by zstd`) {
		t.Errorf("the error is %v", err)
	}
}

// modest is a network over which a node says that it takes less than it does.
type modest struct {
	transport.Network
	takes wire.Takes
}

func (m modest) Dial(ctx context.Context, addr string, h wire.Hello, secret []byte) (transport.Conn, error) {
	h.Takes &= m.takes
	return m.Network.Dial(ctx, addr, h, secret)
}

func (m modest) Listen(addr string) (transport.Listener, error) { return m.Network.Listen(addr) }

type modestListener struct {
	transport.Listener
	takes wire.Takes
}

func (m modestListener) Accept(ctx context.Context, h wire.Hello, secret []byte) (transport.Conn, error) {
	h.Takes &= m.takes
	return m.Listener.Accept(ctx, h, secret)
}

// Compression and codings change what travels and not what is computed; a node
// that does not take them gets the plain thing.
func TestNodesAreSentWhatTheyTake(t *testing.T) {
	const rows = 400
	for _, method := range []filter.Method{filter.S2, filter.Zstd} {
		sent := map[wire.Takes]uint64{}
		for _, takes := range []wire.Takes{0, wire.TakesCodings, ^wire.Takes(0)} {
			m := filtered(t, rows, filter.Sparse{}, filter.Compress{Method: method})
			c := clusterOver(t, 2, Config{Model: m, Policy: placement.Static, Workers: 1}, func(i int) (transport.Network, transport.Listener, error) {
				n, l, err := overTCP(i)
				return modest{n, takes}, modestListener{l, takes}, err
			})
			each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
				keys, vals := make([]godwit.Key, rows), make([]float32, 2*rows)
				for i := range keys {
					keys[i] = godwit.Key(i)
				}
				for range 20 {
					clear(vals)
					for i := range vals[:rows/8] {
						vals[i*16] = float32(i % 5)
					}
					if err := w.Push(ctx, keys, vals); err != nil {
						return err
					}
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				if err := w.Pull(ctx, keys, vals); err != nil {
					return err
				}
				for i, x := range vals {
					want := float32(0)
					if i%16 == 0 {
						want = float32(2 * 20 * (i / 16 % 5))
					}
					if x != want {
						return fmt.Errorf("float %d is %v, want %v", i, x, want)
					}
				}
				return nil
			})
			var s Stats
			for _, n := range c.Nodes {
				s.Add(n.Stats())
			}
			sent[takes] = s.SentBytes
			if packed := s.SentBytes < s.PlainBytes; packed != (takes&wire.TakesS2 != 0) {
				t.Errorf("%s, a node that takes %b: %d of %d bytes were sent", method, takes, s.SentBytes, s.PlainBytes)
			}
		}
		if a, b, c := sent[0], sent[wire.TakesCodings], sent[^wire.Takes(0)]; a < 2*b || b < c+c/4 {
			t.Errorf("%s: %d bytes plain, %d sparse, %d compressed", method, a, b, c)
		}
	}
}
