package sampling

import (
	"context"
	"fmt"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/named"
)

// A Scheme says where the keys of a sample come from, when they are drawn, and
// which of them are taken. A scheme promises a [Level]; [Schemes] lists all.
type Scheme interface {
	// Name is how a command line calls the scheme; [SchemeNamed] reads it back.
	// Parameters that differ from their defaults are part of it.
	Name() string
	// Level is what the scheme promises of its samples.
	Level() Level
	// check returns what is wrong with the scheme's parameters.
	check() error
	// prepare does what can be done for all of b, which is new, ahead of time.
	prepare(s *Sampler, a Access, b *sample, start, end godwit.Clock) error
	// pull takes len(keys) more samples of b, which has that many left, and
	// reads their values.
	pull(ctx context.Context, s *Sampler, a Access, b *sample, keys []godwit.Key, dst []float32) error
}

// kinds are the schemes by name, each made from the parameters of its name, in
// the order of falling promises and then of rising effort.
var kinds = []struct {
	name string
	make func(p *named.Params) Scheme
}{
	{"independent", func(*named.Params) Scheme { return Independent{} }},
	{"prepared", func(*named.Params) Scheme { return Prepared{} }},
	{"reuse", func(p *named.Params) Scheme { return Reuse{Pool: p.Int("pool"), Uses: p.Int("uses")} }},
	{"postpone", func(p *named.Params) Scheme {
		return Reuse{Pool: p.Int("pool"), Uses: p.Int("uses"), Postpone: true}
	}},
	{"local", func(p *named.Params) Scheme { return Local{Tries: p.Int("tries")} }},
	{"repurpose", func(p *named.Params) Scheme { return Repurpose{Keys: p.Int("keys")} }},
}

// Schemes returns every scheme with its default parameters, those that promise
// most first.
func Schemes() []Scheme {
	all := make([]Scheme, len(kinds))
	for i, k := range kinds {
		all[i] = k.make(&named.Params{})
	}
	return all
}

// SchemeNamed returns the scheme that a text asks for: a scheme's name, with
// parameters in brackets if they differ from the defaults, such as "reuse" or
// "reuse(pool=1000,uses=64)"; or the name of a [Level], for the scheme that
// the system takes for it.
func SchemeNamed(text string) (Scheme, error) {
	for _, l := range Levels() {
		if l.String() == text {
			return l.Scheme(), nil
		}
	}
	name, p, err := named.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("sampling: scheme %q: %w", text, err)
	}
	for _, k := range kinds {
		if k.name != name {
			continue
		}
		s := k.make(p)
		if err = p.End(); err == nil {
			err = s.check()
		}
		if err != nil {
			return nil, fmt.Errorf("sampling: scheme %q: %w", text, err)
		}
		return s, nil
	}
	return nil, fmt.Errorf("sampling: there is no scheme or level %q, want a scheme (%s) or a level (%s)", name, names(Schemes(), Scheme.Name), names(Levels(), Level.String))
}

func names[T any](all []T, name func(T) string) string {
	ns := make([]string, len(all))
	for i, x := range all {
		ns[i] = name(x)
	}
	return strings.Join(ns, ", ")
}
