package sampling

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
)

// A Scheme says when the keys of a sample are drawn, and which draws it takes.
// The schemes are [Independent], [Prepared] and [Local].
type Scheme interface {
	// Name is how a command line calls the scheme.
	Name() string
	// check looks at the scheme's parameters.
	check() error
	// prepare does what can be done for all of b, which is new, ahead of time.
	prepare(s *Sampler, a Access, b *sample, start, end godwit.Clock) error
	// pull draws len(keys) more samples of b, which has that many left, and
	// reads their values.
	pull(ctx context.Context, s *Sampler, a Access, b *sample, keys []godwit.Key, dst []float32) error
}

// SchemeNamed returns the scheme of a name, with its default parameters.
func SchemeNamed(name string) (Scheme, error) {
	for _, s := range []Scheme{Independent{}, Prepared{}, Local{}} {
		if s.Name() == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("sampling: no scheme is called %q, want independent, prepared or local", name)
}
