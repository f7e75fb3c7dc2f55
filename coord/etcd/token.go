package etcd

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// tokenKey is the name of the token in the head of every call. It is not one that
// etcd itself reads, so an etcd with or without users takes no notice of it.
const tokenKey = "godwit-token"

// Bounds on the length of the token of an embedded server, in bytes. Nothing limits
// how often it can be guessed.
const (
	minToken = 16
	maxToken = 256
)

// CheckToken says what is wrong with the token of an [Access].
func CheckToken(token string) error {
	if len(token) > maxToken {
		return fmt.Errorf("a token of %d bytes, want at most %d", len(token), maxToken)
	}
	if user, password, ok := strings.Cut(token, ":"); ok {
		if user == "" || password == "" {
			return errors.New("a token with a colon is user:password, and this one has only one of them")
		}
		return nil
	}
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return fmt.Errorf("%q is in the token, want printable characters of ASCII without blanks", r)
		}
	}
	return nil
}

// CheckOwnToken says what is wrong with the token of an [Embedded] server.
func CheckOwnToken(token string) error {
	switch {
	case strings.Contains(token, ":"):
		return errors.New("a token with a colon is a user and password, and this server has no users: give a token without, or none for a new one")
	case len(token) < minToken:
		return fmt.Errorf("a token of %d bytes can be guessed, want at least %d, or none for a new one", len(token), minToken)
	}
	return CheckToken(token)
}

// bearer gives a token with every call.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{tokenKey: string(b)}, nil
}

// RequireTransportSecurity is false: a run without TLS has a token as well.
func (bearer) RequireTransportSecurity() bool { return false }

// admission makes a server refuse all calls that do not give the token.
func admission(token string) []grpc.ServerOption {
	admit := func(ctx context.Context) error {
		md, _ := metadata.FromIncomingContext(ctx)
		given := md.Get(tokenKey)
		switch {
		case len(given) == 0:
			return status.Error(codes.Unauthenticated, "it wants the token of its run, and was given none")
		case len(given) > 1 || subtle.ConstantTimeCompare([]byte(given[0]), []byte(token)) != 1:
			return status.Error(codes.Unauthenticated, "it wants the token of its run, and was given another")
		}
		return nil
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if err := admit(ctx); err != nil {
				return nil, err
			}
			return handle(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if err := admit(s.Context()); err != nil {
				return err
			}
			return handle(srv, s)
		}),
	}
}

// refusal says why etcd does not let this node in; empty: that is not the error.
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
