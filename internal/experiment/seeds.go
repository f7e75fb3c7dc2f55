package experiment

import (
	"cmp"
	"slices"
	"time"
)

// A Range is the least and the most of what runs with different seeds came to.
type Range struct {
	Epoch     [2]time.Duration `json:"epoch_ns"`
	Speedup   [2]float64       `json:"speedup"`
	Effective [2]float64       `json:"effective_speedup"` // 0: one did not reach the target
	Quality   [2]float64       `json:"quality"`
	ToTarget  [2]time.Duration `json:"to_target_ns"` // 0: it was not reached
}

// merged makes one report of those of several seeds: each row is that of the seed
// whose epochs took the median time, the longer one of two, with the medians and ranges of the figures that
// are compared, and plots are of these rows. A report that has fewer rows or plots, because the run was ended, is left out.
func merged(reports []*Report) *Report {
	first := reports[0]
	whole := slices.DeleteFunc(slices.Clone(reports), func(r *Report) bool {
		return len(r.Rows) != len(first.Rows) || len(r.plots) != len(first.plots)
	})
	if len(whole) < 2 {
		return first
	}
	m := *first
	m.Seeds = len(whole)
	m.Rows = make([]*Row, len(first.Rows))
	of := map[*Row]*Row{}
	for i := range m.Rows {
		var rows []*Row
		for _, r := range whole {
			rows = append(rows, r.Rows[i])
		}
		m.Rows[i] = mergedRow(rows)
		of[first.Rows[i]] = m.Rows[i]
	}
	m.plots = slices.Clone(first.plots)
	for i := range m.plots {
		m.plots[i] = first.plots[i].again(of)
	}
	return &m
}

// mergedRow leaves the rows in their order.
func mergedRow(rows []*Row) *Row {
	if len(rows) == 1 {
		return rows[0]
	}
	sorted := slices.SortedStableFunc(slices.Values(rows), func(a, b *Row) int { return cmp.Compare(a.Epoch, b.Epoch) })
	m := *sorted[len(rows)/2]
	g := &Range{}
	m.Epoch, g.Epoch = middle(rows, true, func(r *Row) time.Duration { return r.Epoch })
	m.Speedup, g.Speedup = middle(rows, false, func(r *Row) float64 { return r.Speedup })
	m.Effective, g.Effective = middle(rows, false, func(r *Row) float64 { return r.Effective })
	m.Quality, g.Quality = middle(rows, m.lowerIsBetter, func(r *Row) float64 { return r.Quality })
	m.Target, _ = middle(rows, m.lowerIsBetter, func(r *Row) float64 { return r.Target }) // the same of all that are compared
	m.ToTarget, g.ToTarget = middle(rows, true, func(r *Row) time.Duration {
		if r.ToTarget == 0 {
			return never
		}
		return r.ToTarget
	})
	for _, t := range []*time.Duration{&m.ToTarget, &g.ToTarget[0], &g.ToTarget[1]} {
		if *t == never {
			*t = 0
		}
	}
	m.Range = g
	return &m
}

// middle returns the median of a figure, the worse one of two, and its range.
func middle[T cmp.Ordered](rows []*Row, lowerIsBetter bool, of func(*Row) T) (median T, ends [2]T) {
	var xs []T
	for _, r := range rows {
		xs = append(xs, of(r))
	}
	slices.Sort(xs)
	at := (len(xs) - 1) / 2
	if lowerIsBetter {
		at = len(xs) / 2
	}
	return xs[at], [2]T{xs[0], xs[len(xs)-1]}
}

// again is the plot with other rows in the places of its own.
func (p Plot) again(of map[*Row]*Row) Plot {
	p.Series = slices.Clone(p.Series)
	for i := range p.Series {
		s := &p.Series[i]
		rows := s.rows
		s.rows, s.Y = nil, nil
		for _, r := range rows {
			s.add(of[r])
		}
	}
	return p
}
