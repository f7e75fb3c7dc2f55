package job

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/etcd"
	"github.com/godwit-ps/godwit/train/task"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// ErrInterrupted is returned when an end was asked for before training began,
// so that there is nothing to keep.
var ErrInterrupted = errors.New("interrupted before training began")

// A Joiner is another node of a run, as [Join] starts it.
type Joiner struct {
	Place
	// Etcd holds the endpoints, host:port, of the run's coordinator.
	Etcd []string
	// Run is the name of the run.
	Run string
	// Wait is how long the run's description is waited for; 0 is a minute.
	Wait time.Duration
}

// Join makes this process a node of a run that [Lead] has begun or begins
// elsewhere, and returns the result.
func Join(ctx context.Context, j Joiner) (*Result, error) {
	begin := time.Now()
	t, err := j.TLS.config()
	if err != nil {
		return nil, err
	}
	spec, err := j.spec(ctx, t)
	if err != nil {
		return nil, err
	}
	loaded, err := spec.load(j.Data)
	if err != nil && spec.Data != "" && j.Data == "" {
		return nil, fmt.Errorf("%w (so the data lies where the run was begun; if it lies elsewhere on this machine, say where: --data)", err)
	}
	if err != nil {
		return nil, err
	}
	return remote(ctx, &spec, &j.Place, j.Etcd, t, j.Run, begin, loaded)
}

// spec reads the run's description.
func (j *Joiner) spec(ctx context.Context, t *tls.Config) (Spec, error) {
	wait := j.Wait
	if wait == 0 {
		wait = coord.DefaultJoin
	}
	ctx, cancel := j.untilStop(ctx)
	defer cancel(nil)
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	blob, err := etcd.Configuration(ctx, j.Etcd, t, j.Run)
	if errors.Is(context.Cause(ctx), ErrInterrupted) {
		return Spec{}, ErrInterrupted
	}
	if err != nil {
		return Spec{}, err
	}
	return Decode(blob)
}

// untilStop returns a context that also ends, with ErrInterrupted, when Stop is
// closed.
func (p *Place) untilStop(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { // ends with ctx, which the caller cancels
		select {
		case <-p.Stop:
			cancel(ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// remote joins a run of several nodes and plays this node's part.
func remote(ctx context.Context, spec *Spec, place *Place, endpoints []string, t *tls.Config, run string, begin time.Time, loaded task.Task) (*Result, error) {
	if len(endpoints) == 0 {
		return nil, errors.New("job: no etcd to join by")
	}
	addr, err := place.listenAddr(endpoints[0])
	if err != nil {
		return nil, err
	}
	nw := tcp.Network{TLS: t}
	l, err := nw.Listen(addr)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	if addr, err = place.advertised(l.Addr()); err != nil {
		return nil, err
	}
	s, err := join(ctx, spec, place, endpoints, t, run, addr, loaded)
	if err != nil {
		return nil, err
	}
	r, err := newPart(spec, place, run, begin, loaded, s).play(ctx, nw, l)
	if cerr := s.Close(context.WithoutCancel(ctx)); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// join waits until all nodes are there.
func join(ctx context.Context, spec *Spec, place *Place, endpoints []string, t *tls.Config, run, addr string, loaded task.Task) (coord.Session, error) {
	blob, err := spec.Encode()
	if err != nil {
		return nil, err
	}
	ctx, cancel := place.untilStop(ctx)
	defer cancel(nil)
	s, err := etcd.Join(ctx, endpoints, t, coord.Config{
		Run: run, Nodes: spec.Nodes, Addr: addr, TTL: spec.TTL, Join: spec.Join,
		Fingerprint: fmt.Sprintf("%x", sha256.Sum256(append(blob, loaded.Fingerprint()...)))[:24],
	})
	if err != nil && errors.Is(context.Cause(ctx), ErrInterrupted) {
		return nil, ErrInterrupted
	}
	return s, err
}
