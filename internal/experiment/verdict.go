package experiment

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/godwit-ps/godwit/placement"
)

// compared are the columns of "best".
var compared = []column{
	{"task", func(r *Row) string { return r.Task }},
	{"nodes", func(r *Row) string { return fmt.Sprint(r.Nodes) }},
	{"policy", func(r *Row) string { return r.Policy }},
	{"setting", func(r *Row) string { return r.Setting }},
	{"of", func(r *Row) string { return fmt.Sprint(max(r.Tried, 1)) }},
	{"step", func(r *Row) string { return r.Step.String() }},
	{"epoch", func(r *Row) string {
		return rangedTime(r.Epoch, r.Range, func(g *Range) [2]time.Duration { return g.Epoch })
	}},
	{"to target", func(r *Row) string {
		return rangedTime(r.ToTarget, r.Range, func(g *Range) [2]time.Duration { return g.ToTarget })
	}},
	{"effective", func(r *Row) string { return fmt.Sprintf("%.2f", r.Effective) }},
	{"quality", func(r *Row) string { return fmt.Sprintf("%s %.4g of %.4g", r.metric, r.Quality, r.Target) }},
	{"cpu/item", func(r *Row) string { return r.ComputedPerItem.String() }},
	{"bytes/item", func(r *Row) string { return fmt.Sprintf("%.1f", r.BytesPerItem) }},
	{"no message", func(r *Row) string { return fmt.Sprintf("%.1f %%", 100*r.NoMessage) }},
}

// rangedTime is a time with what other seeds came to; 0 is one that did not end.
func rangedTime(d time.Duration, g *Range, of func(*Range) [2]time.Duration) string {
	show := func(d time.Duration) string {
		if d == 0 {
			return "not reached"
		}
		return d.Round(max(time.Microsecond, d/1000)).String()
	}
	if g == nil {
		return show(d)
	}
	ends := of(g)
	return fmt.Sprintf("%s [%s, %s]", show(d), show(ends[0]), show(ends[1]))
}

// String is the ratio for people.
func (o *Over) String() string {
	show := func(x float64) string {
		if x == 0 {
			return "not reached"
		}
		return fmt.Sprintf("%.2f", x)
	}
	s, least := show(o.Ratio), show(o.Range[0])
	missed := o.Ratio > 0 && o.Range[0] == 0
	if missed {
		least = "the other not reached"
	}
	if missed || o.Range[0] != o.Range[1] {
		s += fmt.Sprintf(" [%s, %s]", least, show(o.Range[1]))
	}
	return s
}

// verdicts writes for each task and number of nodes how adaptive does, with the defaults and with the best program.
func (r *Report) verdicts(w io.Writer) error {
	rows := slices.DeleteFunc(slices.Clone(r.Rows), func(row *Row) bool { return row.Policy != placement.Adaptive.Name() || row.Nodes == 1 })
	if len(rows) == 0 { // the experiment was ended before
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nadaptive's time to the target over that of the best other policy:\n\ntask\tnodes\tprogram\tratio\tbest other\tits setting\t\n")
	for _, row := range rows {
		o, note := row.Over, ""
		switch {
		case o == nil && row.ToTarget == 0:
			fmt.Fprintf(t, "%s\t%d\t%s\t-\tnobody reached it\t\t\n", row.Task, row.Nodes, row.Setting)
			continue
		case o == nil:
			fmt.Fprintf(t, "%s\t%d\t%s\t-\tno other reached it\t\t\n", row.Task, row.Nodes, row.Setting)
			continue
		case o.Behind:
			note = "BEHIND by more than 5 %"
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", row.Task, row.Nodes, row.Setting, o, o.Policy, o.Setting, note)
	}
	return t.Flush()
}

// A claim is what a paper says of a policy's time of an epoch beside another one's.
type claim struct{ of, slower, faster, says string }

var claims = []claim{
	{"Lapse", placement.Static.Name(), placement.RelocateAll.Name(), "4 to 203 times as fast as a classic server"},
	{"NuPS", placement.RelocateAll.Name(), placement.NonUniform.Name(), "up to 10 times as fast as Lapse"},
	{"AdaPM", placement.NonUniform.Name(), placement.Adaptive.Name(), "as fast as NuPS at its best, or faster"},
	{"AdaPM", placement.Static.Name(), placement.Adaptive.Name(), "much faster than a classic server"},
}

// claimed writes what the papers claim beside the times of an epoch of the policies at
// their best. A claim of which there are no times, as the policies were not compared or the experiment was ended before, is left out.
func (r *Report) claimed(w io.Writer) error {
	type place struct {
		task  string
		nodes int
	}
	var places []place
	head := ""
	epochs := map[string]time.Duration{}
	of := func(p place, policy string) time.Duration { return epochs[fmt.Sprint(p, policy)] }
	for _, row := range r.Rows {
		p := place{row.Task, row.Nodes}
		if row.Nodes > 1 && !slices.Contains(places, p) {
			places = append(places, p)
			head += fmt.Sprintf("%s, %d nodes\t", p.task, p.nodes)
		}
		epochs[fmt.Sprint(p, baseName(row.Policy))] = row.Epoch // of adaptive the best program, which comes second
	}
	lines := ""
	for _, c := range claims {
		figures := ""
		for _, p := range places {
			if a, b := of(p, c.slower), of(p, c.faster); a > 0 && b > 0 {
				figures += fmt.Sprintf("%.2f", a.Seconds()/b.Seconds())
			}
			figures += "\t"
		}
		if strings.Trim(figures, "\t") != "" {
			lines += fmt.Sprintf("%s: %s\t%s\n", c.of, c.says, figures)
		}
	}
	if lines == "" {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nclaims of the papers, whose programs make calls of single keys; here %s calls, an epoch of each policy's best setting:\n\nclaim\t%s\n%s", r.Calls, head, lines)
	return t.Flush()
}

// overs plots adaptive's times, with the defaults, over the best other ones.
func overs(r *Report, nodes []int) Plot {
	p := Plot{File: "best", Title: "Adaptive's time to the target over the best other policy's", X: "task", Y: "ratio"}
	for _, n := range nodes {
		s := Series{Name: fmt.Sprintf("%d nodes", n)}
		for _, row := range r.Rows {
			if row.Nodes != n || row.Policy != placement.Adaptive.Name() || row.Setting != defaults {
				continue
			}
			if !slices.Contains(p.Ticks, row.Task) {
				p.Ticks = append(p.Ticks, row.Task)
			}
			ratio := math.Inf(1) // adaptive did not reach the target, or no other did
			if row.Over != nil && row.Over.Ratio > 0 {
				ratio = row.Over.Ratio
			}
			s.Y = append(s.Y, ratio)
		}
		p.Series = append(p.Series, s)
	}
	return p
}
