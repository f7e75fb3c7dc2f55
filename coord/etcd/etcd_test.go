package etcd

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/coordtest"
)

// ttl is how long a busy machine may starve a node of a test until it is lost;
// some tests wait for that.
const ttl = 4 * time.Second

// limit is when what should happen soon is held to hang.
const limit = 4 * time.Minute

func server(t *testing.T) *Embedded {
	t.Helper()
	begin := time.Now()
	e, err := StartEmbedded(t.Context(), EmbeddedConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("embedded etcd ready after %v", time.Since(begin).Round(time.Millisecond))
	t.Cleanup(func() {
		begin := time.Now()
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		t.Logf("embedded etcd closed after %v", time.Since(begin).Round(time.Millisecond))
	})
	return e
}

// crash ends a session as a killed process does: it says nothing more, and its
// lease stays until it expires.
func crash(s *session) {
	s.end(godwit.ErrClosed)
	s.work.Wait()
}

func TestEtcdConforms(t *testing.T) {
	e := server(t)
	coordtest.Run(t, func(t *testing.T) coordtest.Harness {
		return coordtest.Harness{
			TTL:  ttl,
			Loss: limit,
			Join: func(ctx context.Context, cfg coord.Config) (coord.Session, error) {
				return Join(ctx, e.Endpoints(), nil, cfg)
			},
			Kill: func(s coord.Session) { crash(s.(*session)) },
		}
	})
}
