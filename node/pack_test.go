package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/transport"
)

// modest is a network over which a node says that it takes less than it does.
type modest struct {
	transport.Network
	takes wire.Features
}

func (m modest) Dial(ctx context.Context, addr string, h wire.Hello, secret []byte) (transport.Conn, error) {
	h.Features &= m.takes
	return m.Network.Dial(ctx, addr, h, secret)
}

func (m modest) Listen(addr string) (transport.Listener, error) { return m.Network.Listen(addr) }

type modestListener struct {
	transport.Listener
	takes wire.Features
}

func (m modestListener) Accept(ctx context.Context, h wire.Hello, secret []byte) (transport.Conn, error) {
	h.Features &= m.takes
	return m.Listener.Accept(ctx, h, secret)
}

// Compression and codings change what travels and not what is computed; a node
// that does not take them gets the plain thing.
func TestNodesAreSentWhatTheyTake(t *testing.T) {
	const rows = 400
	for _, method := range []filter.Method{filter.S2, filter.Zstd} {
		sent := map[wire.Features]uint64{}
		for _, takes := range []wire.Features{0, wire.SupportsCodings, ^wire.Features(0)} {
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
			if packed := s.SentBytes < s.PlainBytes; packed != (takes&wire.SupportsS2 != 0) {
				t.Errorf("%s, a node that takes %b: %d of %d bytes were sent", method, takes, s.SentBytes, s.PlainBytes)
			}
		}
		if a, b, c := sent[0], sent[wire.SupportsCodings], sent[^wire.Features(0)]; a < 2*b || b < c+c/4 {
			t.Errorf("%s: %d bytes plain, %d sparse, %d compressed", method, a, b, c)
		}
	}
}
