package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-ps/godwit/coord"
)

// MaxConfiguration bounds a run's configuration, in bytes.
const MaxConfiguration = 1 << 20

// Configure stores the configuration of a run, so that a node that knows only
// the endpoints and the run can join it. It replaces an earlier one of that
// name, and stays until [Forget].
func Configure(ctx context.Context, a Access, run string, blob []byte) error {
	if len(blob) == 0 || len(blob) > MaxConfiguration {
		return fmt.Errorf("coord: run %q: a configuration of %d bytes, want 1 … %d", run, len(blob), MaxConfiguration)
	}
	return a.with(ctx, run, func(cl *clientv3.Client) error {
		return retry(ctx, func(ctx context.Context) error {
			_, err := cl.Put(ctx, keysOf(run).config(), string(blob))
			return err
		})
	})
}

// Configuration returns the configuration of a run, and waits for it within ctx.
func Configuration(ctx context.Context, a Access, run string) ([]byte, error) {
	var blob []byte
	err := a.with(ctx, run, func(cl *clientv3.Client) (err error) {
		blob, err = configuration(ctx, cl, keysOf(run).config())
		return err
	})
	return blob, err
}

func configuration(ctx context.Context, cl *clientv3.Client, key string) ([]byte, error) {
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
	w := &watcher{cl: cl, prefix: key, rev: r.Header.Revision + 1}
	defer w.close()
	for {
		evs, err := w.next(ctx)
		if err != nil {
			return nil, fmt.Errorf("nobody has stored a configuration: %w", err)
		}
		for _, ev := range evs {
			if ev.Type == clientv3.EventTypePut && string(ev.Kv.Key) == key {
				return ev.Kv.Value, nil
			}
		}
	}
}

// Forget removes the configuration of a run. Whoever called Configure calls it
// when the run is over, so that nodes of the next run of that name wait for
// the next configuration. A run without one is no error.
func Forget(ctx context.Context, a Access, run string) error {
	return a.with(ctx, run, func(cl *clientv3.Client) error {
		return retry(ctx, func(ctx context.Context) error {
			_, err := cl.Delete(ctx, keysOf(run).config())
			return err
		})
	})
}

// with calls f with a client for a single use.
func (a Access) with(ctx context.Context, run string, f func(*clientv3.Client) error) error {
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
		return fmt.Errorf("coord: run %q: configuration: %w", run, err)
	}
	return nil
}
