package experiment

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	// never is the time of a run to a target that it will not reach.
	never = time.Duration(math.MaxInt64)
	// hidden is that to one of which there is no sign yet: the time so far is added.
	hidden = never / 2
)

// A rung of a search trains its settings for so many epochs at the most. The better
// half of them goes on to the next rung.
type rung struct{ settings, epochs int }

// ladder plans the search for the best of so many settings by successive halving
// (Jamieson, Talwalkar, AISTATS 2016): many settings for an epoch, half of them for
// two, and so on, but none for more than most, which the last two are trained for. It leaves
// settings out, the last ones, until the search trains no more epochs than the budget,
// but no fewer than one for each of two. For one setting there is nothing to search.
func ladder(settings, budget, most int) []rung {
	for n := settings; n > 2; n-- {
		if rungs, epochs := climb(n, most); epochs <= budget {
			return rungs
		}
	}
	if settings < 2 {
		return nil
	}
	return []rung{{2, max(1, min(most, budget/2))}}
}

// climb is a ladder of all of so many settings, and how many epochs it trains.
func climb(n, most int) (rungs []rung, epochs int) {
	for each := 1; n > 2; each = min(2*each, most) {
		rungs, epochs = append(rungs, rung{n, each}), epochs+n*each
		n = (n + 1) / 2
	}
	return append(rungs, rung{n, most}), epochs + n*most
}

// halve searches the best of so many settings: measure trains some of them for a
// number of epochs, and returns for each how long it would take to the target. Of
// equal ones the first counts. tried is how many were trained.
func halve(settings, budget, most int, measure func(settings []int, epochs int) ([]time.Duration, error)) (best, tried int, err error) {
	rungs := ladder(settings, budget, most)
	if len(rungs) == 0 {
		return 0, 1, nil
	}
	left := make([]int, rungs[0].settings)
	for i := range left {
		left[i] = i
	}
	for _, r := range rungs {
		left = left[:r.settings]
		took, err := measure(left, r.epochs)
		if err != nil {
			return 0, 0, err
		}
		order := make([]int, len(left))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(took[a], took[b]) })
		next := make([]int, len(left))
		for i, at := range order {
			next[i] = left[at]
		}
		left = next
	}
	return left[0], rungs[0].settings, nil
}

// A course is how one node learns, with the defaults: what others are to reach.
type course struct {
	untrained float64   // quality before the first epoch
	quality   []float64 // after each
	lower     bool      // quality is an error
	target    float64
}

// tolerance is by how much a quality may be worse than that of one node.
const tolerance = 0.02

// newCourse times others to the last quality of one node, less the tolerance.
func newCourse(untrained float64, curve []Point, lower bool) *course {
	c := &course{untrained: untrained, lower: lower}
	for _, p := range curve {
		c.quality = append(c.quality, p.Quality)
	}
	last := c.quality[len(c.quality)-1]
	if c.target = last * (1 - tolerance); lower {
		c.target = last / (1 - tolerance)
	}
	return c
}

// epochs returns after how many epochs one node is so good, between two of them as if
// quality changed evenly; its last epoch for all that is better than it ever is.
func (c *course) epochs(quality float64) float64 {
	if math.IsNaN(quality) {
		return 0
	}
	before := c.untrained
	for i, q := range c.quality {
		if reached(q, quality, c.lower) {
			if share := (quality - before) / (q - before); share > 0 && share <= 1 {
				return float64(i) + share
			}
			return float64(i)
		}
		before = q
	}
	return float64(len(c.quality))
}

// expect returns how long a run takes to the target: as long as it took, or, where it
// did not train so far, as if it went on to be as good as one node after ever more
// epochs at the pace that it had.
func (c *course) expect(r *Row) time.Duration {
	if r.Diverged {
		return never
	}
	if r.ToTarget > 0 {
		return r.ToTarget
	}
	last := r.Curve[len(r.Curve)-1]
	so, at := time.Duration(last.Seconds*float64(time.Second)), c.epochs(last.Quality)
	if at == 0 {
		return hidden + so
	}
	return time.Duration(float64(so) * max(c.epochs(c.target)/at, 1))
}
