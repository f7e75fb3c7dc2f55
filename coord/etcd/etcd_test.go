package etcd

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/coordtest"
)

// ttl is how long a busy machine may starve a node of a test until it is lost.
const ttl = time.Minute

// brief is the TTL of nodes that tests lose.
const brief = 8 * time.Second

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
// lease stays until it expires. For the others, that is when it is revoked.
func crash(t *testing.T, e *Embedded, s *session) {
	s.end(godwit.ErrClosed)
	s.work.Wait()
	var expiry sync.WaitGroup
	expiry.Go(func() {
		time.Sleep(time.Second)
		cl := v3client.New(e.etcd.Server)
		defer cl.Close()
		if _, err := cl.Revoke(context.Background(), s.lease.id); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(expiry.Wait)
}

func TestEtcdConforms(t *testing.T) {
	e := server(t)
	coordtest.Run(t, func(t *testing.T) coordtest.Harness {
		return coordtest.Harness{
			TTL:  ttl,
			Loss: limit,
			Join: func(ctx context.Context, cfg coord.Config) (coord.Session, error) {
				return Join(ctx, e.Access(), cfg)
			},
			Kill: func(s coord.Session) { crash(t, e, s.(*session)) },
		}
	})
}
