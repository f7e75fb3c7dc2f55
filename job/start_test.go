package job

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/coord"
	cmem "github.com/godwit-ps/godwit/coord/mem"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
	tmem "github.com/godwit-ps/godwit/transport/mem"
)

// A holding network connects, and does not let the dialer know.
type holding struct {
	*tmem.Switch
	connected chan struct{}
}

func (h holding) Dial(ctx context.Context, addr string, hello wire.Hello, secret []byte) (transport.Conn, error) {
	c, err := h.Switch.Dial(ctx, addr, hello, secret)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	close(h.connected)
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// An interrupt ends all nodes as interrupted, also one that has all its connections
// and waits for those who have not.
func TestAnInterruptBeforeAllHaveMetIsNoLoss(t *testing.T) {
	for stopped := range 2 {
		spec := tiny(2)
		loaded, err := spec.load(t.Context(), &NodeConfig{})
		if err != nil {
			t.Fatal(err)
		}
		hub, err := cmem.New(coord.Config{Run: "test", Nodes: 2})
		if err != nil {
			t.Fatal(err)
		}
		ctx := timeout(t)
		nw := holding{&tmem.Switch{}, make(chan struct{})}
		stop := make(chan struct{})
		ended := make(chan error, 2)
		for i := range 2 {
			l, err := nw.Listen(fmt.Sprint("node-", i))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			go func() {
				s, err := hub.Join(ctx, l.Addr())
				if err == nil {
					cfg := NodeConfig{Stop: make(chan struct{})}
					if int(s.Self()) == stopped {
						cfg.Stop = stop
					}
					_, err = newPart(&spec, &cfg, "test", time.Now(), loaded, s).execute(ctx, nw, l)
					err = errors.Join(err, s.Close(ctx))
				}
				ended <- err
			}()
		}
		<-nw.connected
		time.Sleep(50 * time.Millisecond) // for node 0 to come to where it waits
		close(stop)
		for range 2 {
			if err := <-ended; !errors.Is(err, ErrInterrupted) {
				t.Errorf("node %d interrupted: a node ended with %v, want %v", stopped, err, ErrInterrupted)
			}
		}
	}
}
