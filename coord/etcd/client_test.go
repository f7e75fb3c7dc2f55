package etcd

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A server may notice that a deadline is over before its client does. The error is
// then the caller's own, as if the client had noticed.
func TestADeadlineThatTheServerNoticesIsTheCallers(t *testing.T) {
	cause := errors.New("the caller's reason")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Millisecond, cause)
	defer cancel()
	err := retry(ctx, func(ctx context.Context) error {
		for !over(ctx) {
			time.Sleep(time.Millisecond)
		}
		return status.Error(codes.DeadlineExceeded, "too late")
	})
	if err != cause {
		t.Errorf("got %v, want %v", err, cause)
	}
}

// Who waits for an etcd, or has lost one, looks for it again and again within a second or so. By default, the fourth time is after
// more than four seconds, and the next ones are later and later.
func TestAnEtcdThatComesBackIsFoundSoon(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cl, err := Access{Endpoints: []string{l.Addr().String()}}.dial(ctx) // without probes
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	asked := make(chan error, 1)
	go func() {
		asked <- retry(ctx, func(ctx context.Context) error { _, err := cl.Get(ctx, root); return err })
	}()
	began := time.Now()
	for range 4 {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	if took := time.Since(began); took > 3500*time.Millisecond {
		t.Errorf("it was looked for four times within %v", took)
	}
	cancel()
	if err := <-asked; err == nil {
		t.Error("there was no etcd")
	}
}
