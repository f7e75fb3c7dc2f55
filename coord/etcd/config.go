package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-ps/godwit/coord"
)

// Configure implements [coord.Coordinator].
func (a Access) Configure(ctx context.Context, run string, blob []byte) error {
	if len(blob) == 0 || len(blob) > coord.MaxConfiguration {
		return fmt.Errorf("coord: run %q: a configuration of %d bytes, want 1 … %d", run, len(blob), coord.MaxConfiguration)
	}
	return a.with(ctx, run, "configuration", func(cl *clientv3.Client) error {
		return retry(ctx, func(ctx context.Context) error {
			_, err := cl.Put(ctx, keysOf(run).config(), string(blob))
			return err
		})
	})
}

// Configuration implements [coord.Coordinator].
func (a Access) Configuration(ctx context.Context, run string) ([]byte, error) {
	var blob []byte
	err := a.with(ctx, run, "configuration", func(cl *clientv3.Client) (err error) {
		blob, err = configuration(ctx, cl, keysOf(run).config())
		return err
	})
	return blob, err
}

// configurationInterval is how often a configuration is looked for.
const configurationInterval = 200 * time.Millisecond

// configuration waits for a configuration. It reads again and again and does not watch: the coordinator that answers may be that of a run that
// is ending, and the next one at its address counts revisions from the beginning. A watch would also hold up the end of that server.
func configuration(ctx context.Context, cl *clientv3.Client, key string) ([]byte, error) {
	for {
		var r *clientv3.GetResponse
		err := retry(ctx, func(ctx context.Context) (err error) {
			r, err = cl.Get(ctx, key)
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(r.Kvs) > 0 {
			return r.Kvs[0].Value, nil
		}
		if !pause(ctx, configurationInterval) {
			return nil, fmt.Errorf("nobody has stored a configuration: %w", context.Cause(ctx))
		}
	}
}

// Forget implements [coord.Coordinator].
func (a Access) Forget(ctx context.Context, run string) error {
	return a.with(ctx, run, "configuration", func(cl *clientv3.Client) error {
		return retry(ctx, func(ctx context.Context) error {
			_, err := cl.Delete(ctx, keysOf(run).config())
			return err
		})
	})
}

// Drain implements [coord.Coordinator].
func (a Access) Drain(ctx context.Context, run string) error {
	return a.with(ctx, run, "drain", func(cl *clientv3.Client) error { return drain(ctx, cl, keysOf(run).nodes()) })
}

// drain waits until there is no key below nodes.
func drain(ctx context.Context, cl *clientv3.Client, nodes string) error {
	var r *clientv3.GetResponse
	err := retry(ctx, func(ctx context.Context) (err error) {
		r, err = cl.Get(ctx, nodes, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		return err
	})
	if err != nil {
		return err
	}
	left := map[string]bool{}
	for _, kv := range r.Kvs {
		left[string(kv.Key)] = true
	}
	w := &watcher{cl: cl, prefix: nodes, rev: r.Header.Revision + 1}
	defer w.close()
	for len(left) > 0 {
		evs, err := w.next(ctx)
		if err != nil {
			return fmt.Errorf("%d nodes have not left: %w", len(left), err)
		}
		for _, ev := range evs {
			if ev.Type == clientv3.EventTypeDelete {
				delete(left, string(ev.Kv.Key))
			} else {
				left[string(ev.Kv.Key)] = true
			}
		}
	}
	return nil
}

// with calls f with a client for a single use, for a purpose that errors name.
func (a Access) with(ctx context.Context, run, purpose string, f func(*clientv3.Client) error) error {
	if err := coord.CheckRun(run); err != nil {
		return err
	}
	cl, err := a.connect(ctx)
	if err == nil {
		defer cl.Close()
		if err = f(cl); err != nil {
			err = unreachable(a.Endpoints, err)
		}
	}
	if err != nil {
		return fmt.Errorf("coord: run %q: %s: %w", run, purpose, err)
	}
	return nil
}
