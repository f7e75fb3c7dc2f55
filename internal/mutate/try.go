package main

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"time"
)

// A result is what became of a mutant.
type result struct {
	Name, From, To string
	Killed         bool
	By             string  // the test that failed
	Reached        int     // by how many units
	Tried          int     // units that ran with it
	Seconds        float64 // that took
}

// A trial is how mutants are tried.
type trial struct {
	bins   []*binary
	budget time.Duration // of a mutant, as the units take without one
}

// quick is a unit that runs together with others.
const quick = 0.3

// order puts the units that reach a mutant in the order in which they are tried:
// quick ones of a binary together, and those of the mutant's own package as if they
// took a quarter of their time. Commands (storms) are there whatever the budget is.
func (t *trial) order(s *site) (groups [][]*unit, reached int) {
	var all [][]*unit
	for _, b := range t.bins {
		var together []*unit
		for _, u := range b.units {
			if _, yes := slices.BinarySearch(u.Reached, s.id); !yes || u.Fails {
				continue
			}
			reached++
			if u.Seconds > quick || b.command {
				all = append(all, []*unit{u})
				continue
			}
			if together = append(together, u); seconds(together) > 10*quick {
				all, together = append(all, together), nil
			}
		}
		if len(together) > 0 {
			all = append(all, together)
		}
	}
	weight := func(g []*unit) float64 {
		if g[0].of.pkg == s.Pkg {
			return seconds(g) / 4
		}
		return seconds(g)
	}
	slices.SortStableFunc(all, func(a, b []*unit) int { return cmp.Compare(weight(a), weight(b)) })
	left := t.budget.Seconds()
	for _, g := range all {
		if left -= seconds(g); left >= 0 || g[0].of.command {
			groups = append(groups, g)
		}
	}
	return groups, reached
}

func seconds(us []*unit) (s float64) {
	for _, u := range us {
		s += u.Seconds
	}
	return s
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// try runs the tests that reach a mutant until one notices it: fails twice. Tests that
// do not end have noticed it if they end without it.
func (t *trial) try(ctx context.Context, s *site) (result, error) {
	r := result{Name: s.Name(), From: s.From, To: s.To}
	begin := time.Now()
	groups, reached := t.order(s)
	r.Reached = reached
	for _, g := range groups {
		b := g[0].of
		limit := 10*time.Second + time.Duration(5*seconds(g)*float64(time.Second))
		text, err := b.run(ctx, g, s.id, "", limit)
		for again := 0; errors.Is(err, errEndless) && again < 3; again++ {
			if _, without := b.run(ctx, g, 0, "", limit); without == nil {
				break
			}
			text, err = b.run(ctx, g, s.id, "", limit) // a busy machine
		}
		if err != nil && !errors.Is(err, errEndless) {
			text, err = b.run(ctx, g, s.id, "", limit) // once may be chance: not every test is the same each time
		}
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		r.Tried += len(g)
		if err != nil {
			r.Killed, r.By = true, b.pkg+"."+g[0].Name
			if m := failed.FindStringSubmatch(text); m != nil {
				r.By = b.pkg + "." + m[1]
			}
			if errors.Is(err, errEndless) {
				r.By += " (does not end)"
			}
			break
		}
	}
	r.Seconds = time.Since(begin).Seconds()
	return r, nil
}
