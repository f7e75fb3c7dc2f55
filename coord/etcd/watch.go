package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-ps/godwit/coord"
)

// A watcher follows all keys with a prefix, revision by revision, without a gap
// over lost connections. It belongs to one goroutine.
type watcher struct {
	cl     *clientv3.Client
	prefix string
	rev    int64 // the next revision to come
	c      clientv3.WatchChan
	stop   context.CancelFunc
}

// next waits for events. The error is that of ctx, or that history was lost.
func (w *watcher) next(ctx context.Context) ([]*clientv3.Event, error) {
	for {
		w.start(ctx)
		select {
		case r, ok := <-w.c:
			if ok && len(r.Events) > 0 {
				w.rev = r.Events[len(r.Events)-1].Kv.ModRevision + 1
				return r.Events, nil
			}
			if r.CompactRevision > 0 {
				return nil, fmt.Errorf("%w: etcd has discarded revision %d, which this node had not seen yet", coord.ErrCoordinator, w.rev)
			}
			if !ok || r.Err() != nil {
				// No leader, say. Whether this lasts too long is for the lease
				// to decide.
				w.close()
				pause(ctx, 50*time.Millisecond)
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// start begins to watch if it does not. The watch ends with the ctx of the call
// that began it, or by close.
func (w *watcher) start(ctx context.Context) {
	if w.c != nil {
		return
	}
	ctx, w.stop = context.WithCancel(clientv3.WithRequireLeader(ctx))
	w.c = w.cl.Watch(ctx, w.prefix, clientv3.WithPrefix(), clientv3.WithRev(w.rev))
}

func (w *watcher) close() {
	if w.c != nil {
		w.stop()
		w.c = nil
	}
}
