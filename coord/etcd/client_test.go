package etcd

import (
	"context"
	"errors"
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
