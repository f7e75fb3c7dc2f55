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

func TestAListenerOnAllAddressesIsReachedOnThisMachine(t *testing.T) {
	for ip, want := range map[string]string{"0.0.0.0": "127.0.0.1:7", "::": "127.0.0.1:7", "10.1.2.3": "10.1.2.3:7", "127.0.0.1": "127.0.0.1:7"} {
		if got := reachable(&net.TCPAddr{IP: net.ParseIP(ip), Port: 7}); got != want {
			t.Errorf("%s: %s, want %s", ip, got, want)
		}
	}
	if got := reachable(&net.UnixAddr{Name: "/a/socket", Net: "unix"}); got != "/a/socket" {
		t.Errorf("a socket that is a file: %s", got)
	}
}
