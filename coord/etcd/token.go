package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-ps/godwit/coord/etcd/internal/token"
)

// CheckToken returns an error if an [Access] cannot have that token: it is at most 256
// printable characters of ASCII without blanks, or user:password. An empty one is
// valid.
func CheckToken(s string) error {
	user, password, ok := strings.Cut(s, ":")
	switch {
	case ok && (user == "" || password == ""):
		return errors.New("a token with a colon is user:password, and this one has only one of them")
	case ok && len(s) <= token.Max:
		return nil
	}
	return token.Check(s)
}

// bearer gives a token with every call.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{token.Key: string(b)}, nil
}

// RequireTransportSecurity is false: a run without TLS has a token as well.
func (bearer) RequireTransportSecurity() bool { return false }

// refusal returns why etcd refuses this node, empty if err is another error.
func refusal(err error) string {
	switch err := rpctypes.Error(err); {
	case errors.Is(err, rpctypes.ErrUserEmpty):
		return "it has users, and was given no user and password"
	case errors.Is(err, rpctypes.ErrAuthFailed):
		return "it does not know this user with this password"
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fmt.Sprintf("this user may not read and write the keys that begin with %q", root)
	case status.Code(err) == codes.Unauthenticated:
		return status.Convert(err).Message()
	}
	return ""
}
