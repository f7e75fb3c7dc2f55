package etcd

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/etcd/server"
	"github.com/godwit-ps/godwit/internal/coordtest"
)

// ttl is how long a busy machine may starve a node of a test until it is lost.
const ttl = time.Minute

// brief is the TTL of nodes that tests lose.
const brief = 8 * time.Second

// limit is when what should happen soon is held to hang.
const limit = 4 * time.Minute

// An ownServer is one of package server.
type ownServer struct{ *server.Server }

// Access is the way in, without TLS.
func (s ownServer) Access() Access { return Access{Endpoints: s.Endpoints(), Token: s.Token()} }

func startServer(ctx context.Context, cfg server.Config) (*ownServer, error) {
	s, err := server.Start(ctx, cfg)
	return &ownServer{s}, err
}

func serve(t *testing.T) *ownServer {
	t.Helper()
	begin := time.Now()
	e, err := startServer(t.Context(), server.Config{})
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
func crash(t *testing.T, e *ownServer, s *session) {
	s.end(godwit.ErrClosed)
	s.work.Wait()
	var expiry sync.WaitGroup
	expiry.Go(func() {
		time.Sleep(time.Second)
		cl, err := e.Access().connect(context.Background())
		if err != nil {
			t.Error(err)
			return
		}
		defer cl.Close()
		if _, err := cl.Revoke(context.Background(), s.lease.id); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(expiry.Wait)
}

func TestEtcdConforms(t *testing.T) {
	t.Parallel()
	e := serve(t)
	coordtest.Run(t, func(t *testing.T) coordtest.Harness {
		return coordtest.Harness{
			TTL:  ttl,
			Loss: limit,
			Join: func(ctx context.Context, cfg coord.Config) (coord.Session, error) {
				return e.Access().Join(ctx, cfg)
			},
			Kill: func(s coord.Session) { crash(t, e, s.(*session)) },
		}
	})
}
