package server

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/godwit-ps/godwit/coord/etcd/internal/token"
)

// minToken is the shortest token, in bytes. Nothing limits how often one can be
// guessed.
const minToken = 16

// CheckToken returns an error if a server cannot have that token ([Config].Token): it
// is 16 … 256 printable characters of ASCII without blanks and colons.
func CheckToken(s string) error {
	switch {
	case strings.Contains(s, ":"):
		return errors.New("a token with a colon is a user and password, and this server has no users: give a token without, or none for a new one")
	case len(s) < minToken:
		return fmt.Errorf("a token of %d bytes can be guessed, want at least %d, or none for a new one", len(s), minToken)
	}
	return token.Check(s)
}

// admission makes a server refuse all calls that do not give its token, and all once its life has ended; calls under way that
// are streams end with it.
func admission(life context.Context, own string) []grpc.ServerOption {
	admit := func(ctx context.Context) error {
		md, _ := metadata.FromIncomingContext(ctx)
		given := md.Get(token.Key)
		switch {
		case len(given) == 0:
			return status.Error(codes.Unauthenticated, "it wants the token of its run, and was given none")
		case len(given) > 1 || subtle.ConstantTimeCompare([]byte(given[0]), []byte(own)) != 1:
			return status.Error(codes.Unauthenticated, "it wants the token of its run, and was given another")
		case life.Err() != nil:
			return status.Error(codes.Unavailable, "the server is closing")
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
			ctx, cancel := context.WithCancel(s.Context())
			defer cancel()
			defer context.AfterFunc(life, cancel)()
			return handle(srv, within{s, ctx})
		}),
	}
}

// A within is a stream with a context of its own.
type within struct {
	grpc.ServerStream
	ctx context.Context
}

func (w within) Context() context.Context { return w.ctx }
