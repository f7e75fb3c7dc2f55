package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// inlineCount is TCP that counts how often a worker read a connection in the place of its reader.
type inlineCount struct {
	tcp.Network
	reads *atomic.Int64
}

func (s inlineCount) place(i int) (transport.Network, transport.Listener, error) {
	_, l, err := overTCP(i)
	return s, inlineListener{l, s}, err
}

func (s inlineCount) Dial(ctx context.Context, addr string, h wire.Hello, secret []byte) (transport.Conn, error) {
	c, err := s.Network.Dial(ctx, addr, h, secret)
	return s.counted(c), err
}

type inlineListener struct {
	transport.Listener
	s inlineCount
}

func (l inlineListener) Accept(ctx context.Context, h wire.Hello, secret []byte) (transport.Conn, error) {
	c, err := l.Listener.Accept(ctx, h, secret)
	return l.s.counted(c), err
}

func (s inlineCount) counted(c transport.Conn) transport.Conn {
	if c, ok := c.(transport.InlineReader); ok {
		return inlineConn{c, s.reads}
	}
	return c
}

type inlineConn struct {
	transport.InlineReader
	reads *atomic.Int64
}

func (c inlineConn) ReadInline(send func(), done <-chan struct{}, most time.Duration) {
	c.reads.Add(1)
	c.InlineReader.ReadInline(send, done, most)
}

// Workers of all nodes push, one call after the other, keys that move and are
// copied meanwhile; now and then they give a call up. All that they did not give
// up arrives once.
func TestWorkersThatReadConnectionsLoseNothing(t *testing.T) {
	t.Logf("-seed %d", *seed)
	const rows, calls, dim = 200, 300, 3
	s := inlineCount{reads: new(atomic.Int64)}
	c := clusterOver(t, 3, Config{Model: model(t, rows, dim), Workers: 2}, s.place)
	var pushed atomic.Int64
	each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
		ones, zeros, got := make([]float32, 4*dim), make([]float32, 4*dim), make([]float32, 4*dim)
		for i := range ones {
			ones[i] = 1
		}
		for range calls {
			keys := some(rng, w.Model(), 4)
			n := len(keys) * dim
			if err := announce(w, rng, keys); err != nil {
				return err
			}
			w.Advance()
			switch rng.IntN(4) {
			case 0:
				if err := w.Pull(ctx, keys, got[:n]); err != nil {
					return err
				}
			case 1:
				soon, giveUp := context.WithTimeout(ctx, time.Duration(rng.IntN(300_000)))
				err := w.Push(soon, keys, zeros[:n])
				giveUp()
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					return err
				}
			default:
				if err := w.Push(ctx, keys, ones[:n]); err != nil {
					return err
				}
				pushed.Add(int64(n))
			}
		}
		return everywhere(ctx, w)
	})
	each(t, c, func(ctx context.Context, w godwit.Worker, _ *rand.Rand) error {
		var total float64
		got := make([]float32, dim)
		for k := range godwit.Key(rows) {
			if err := w.Pull(ctx, []godwit.Key{k}, got); err != nil {
				return err
			}
			for _, v := range got {
				total += float64(v)
			}
		}
		if total != float64(pushed.Load()) {
			return fmt.Errorf("the values add up to %v, %d were pushed", total, pushed.Load())
		}
		return nil
	})
	if s.reads.Load() == 0 {
		t.Error("no worker read a connection")
	}
}
