package experiment

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"
)

// A column of a table.
type column struct {
	name string
	of   func(*Row) string
}

func percent(x float64) string { return fmt.Sprintf("%.3f %%", 100*x) }

// ranged is a figure with what other seeds came to.
func ranged(x float64, g *Range, of func(*Range) [2]float64) string {
	if g == nil {
		return fmt.Sprintf("%.2f", x)
	}
	ends := of(g)
	return fmt.Sprintf("%.2f [%.2f, %.2f]", x, ends[0], ends[1])
}

var trained = []column{
	{"network", func(r *Row) string { return r.Network }},
	{"policy", func(r *Row) string { return r.Policy }},
	{"nodes", func(r *Row) string { return fmt.Sprint(r.Nodes) }},
	{"epoch", func(r *Row) string { return r.Epoch.Round(10 * time.Microsecond).String() }},
	{"speed-up", func(r *Row) string { return ranged(r.Speedup, r.Range, func(g *Range) [2]float64 { return g.Speedup }) }},
	{"to target", func(r *Row) string {
		if r.ToTarget == 0 {
			return "not reached"
		}
		return r.ToTarget.Round(10 * time.Microsecond).String()
	}},
	{"effective", func(r *Row) string {
		if r.Effective == 0 {
			return "-"
		}
		return ranged(r.Effective, r.Range, func(g *Range) [2]float64 { return g.Effective })
	}},
	{"loss", func(r *Row) string {
		if r.Diverged {
			return "diverged"
		}
		return fmt.Sprintf("%.3f", r.Loss)
	}},
	{"quality", func(r *Row) string { return fmt.Sprintf("%.3f", r.Quality) }},
	{"no message", func(r *Row) string { return percent(r.NoMessage) }},
	{"bytes/access", func(r *Row) string { return fmt.Sprintf("%.0f", r.BytesPerAccess) }},
	{"moves", func(r *Row) string { return fmt.Sprint(r.Moves) }},
	{"copies", func(r *Row) string { return fmt.Sprint(r.Copies) }},
	{"refreshes", func(r *Row) string { return fmt.Sprint(r.Refreshes) }},
	{"replicas", func(r *Row) string { return fmt.Sprintf("%.0f", r.Replicas) }},
	{"window", func(r *Row) string { return fmt.Sprint(r.Window) }},
}

var signalled = []column{
	{"policy", func(r *Row) string { return r.Policy }},
	{"ahead", func(r *Row) string { return fmt.Sprint(r.Offset) }},
	{"time", func(r *Row) string { return r.Epoch.Round(100 * time.Microsecond).String() }},
	{"no message", func(r *Row) string { return percent(r.NoMessage) }},
	{"remote", func(r *Row) string { return percent(r.Remote) }},
	{"bytes/access", func(r *Row) string { return fmt.Sprintf("%.0f", r.BytesPerAccess) }},
	{"moves", func(r *Row) string { return fmt.Sprint(r.Moves) }},
	{"copies", func(r *Row) string { return fmt.Sprint(r.Copies) }},
	{"refreshes", func(r *Row) string { return fmt.Sprint(r.Refreshes) }},
	{"mean replicas", func(r *Row) string { return fmt.Sprintf("%.1f", r.Replicas) }},
	{"window", func(r *Row) string { return fmt.Sprint(r.Window) }},
}

// Print writes the report as a table for people.
func (r *Report) Print(w io.Writer) error {
	step := "real computation"
	if r.Step > 0 {
		step = fmt.Sprintf("step %v of computation", r.Step)
	}
	fmt.Fprintf(w, "%s: %s\n%s, seed %d\n", r.Name, r.Task, step, r.Seed)
	first := "" // seed has this target; each other one has its own
	if r.Seeds > 1 {
		first = ", of the first seed"
		fmt.Fprintf(w, "medians [least, most] of the seeds %d … %d\n", r.Seed, r.Seed+uint64(r.Seeds)-1)
	}
	if r.Step > 0 {
		fmt.Fprintf(w, "costs: %s\n", r.Charged())
	}
	switch {
	case r.Goal != "":
		fmt.Fprintf(w, "the target is %s\n", r.Goal)
	case r.Objective != 0:
		fmt.Fprintf(w, "the objective is %.6g an example%s, where it is without delay after some passes\n", r.Objective, first)
	case r.Target != 0:
		fmt.Fprintf(w, "quality is %s; the target is %.4g%s, by nine tenths as good as the best of one node\n", r.Metric, r.Target, first)
	case r.Metric != "":
		fmt.Fprintf(w, "quality is %s; the target is by nine tenths as good as the best of one node\n", r.Metric)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, c := range r.columns {
		fmt.Fprintf(t, "%s\t", c.name)
	}
	fmt.Fprintln(t)
	for _, row := range r.Rows {
		for _, c := range r.columns {
			fmt.Fprintf(t, "%s\t", c.of(row))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil || r.Goal == "" {
		return err
	}
	return errors.Join(r.verdicts(w), r.claimed(w))
}

// Charged says in a line what simulated nodes had and were charged, and where that
// was measured.
func (r *Report) Charged() string {
	c := &r.Costs
	cores := "as many cores as workers"
	if r.Cores > 0 {
		cores = fmt.Sprintf("%d cores", r.Cores)
	}
	return fmt.Sprintf("%s a node, for workers and server; in ns: a key %.3g and %.3g a byte, announced %.3g, planned %.3g and %.3g if acted on, loaded %.3g, a sample %.3g, a frame sent %.4g and received %.4g and %.3g a byte, a record %.3g, a record of a round %.3g (%s)",
		cores, c.Key, c.Byte, c.Announce, c.Plan, c.Want, c.Load, c.Sample, c.Send, c.Frame, c.FrameByte, c.Record, c.Round, c.From)
}

// CSV writes all figures of all rows, with a line of names first.
func (r *Report) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	c.Write([]string{"network", "policy", "scheme", "nodes", "workers", "zipf", "offset", "epoch_seconds", "speedup", // Error has it
		"to_target_seconds", "effective_speedup", "loss", "quality", "diverged", "no_message", "remote", "replica", "bytes_per_access",
		"accesses", "moves", "copies", "drops", "deltas", "refreshes", "rounds", "replicas", "window", "lead_ms", "messages",
		"sent_bytes", "waiting", "delay", "passes", "spread", "batch", "inserts_per_second", "bytes_per_insert", "too_small",
		"program", "filters", "list_saved", "less", "than_plain", "change", "same",
		"epoch_seconds_least", "epoch_seconds_most", "speedup_least", "speedup_most", "effective_least", "effective_most",
		"task", "setting", "tried", "step_seconds", "target", "to_target_seconds_least", "to_target_seconds_most",
		"computed_seconds_per_item", "bytes_per_item", "over", "over_least", "over_most", "best_policy", "best_setting"})
	for _, x := range r.Rows {
		g := x.Range
		if g == nil {
			g = &Range{Epoch: [2]time.Duration{x.Epoch, x.Epoch}, Speedup: [2]float64{x.Speedup, x.Speedup}, Effective: [2]float64{x.Effective, x.Effective}, ToTarget: [2]time.Duration{x.ToTarget, x.ToTarget}}
		}
		o := x.Over
		if o == nil {
			o = &Over{}
		}
		c.Write(cells(x.Network, x.Policy, x.Scheme, x.Nodes, x.Workers, x.Zipf, x.Offset, x.Epoch.Seconds(), x.Speedup,
			x.ToTarget.Seconds(), x.Effective, x.Loss, x.Quality, x.Diverged, x.NoMessage, x.Remote, x.Replica, x.BytesPerAccess,
			x.Accesses, x.Moves, x.Copies, x.Drops, x.Deltas, x.Refreshes, x.Rounds, x.Replicas, x.Window, x.LeadMs, x.Messages,
			x.SentBytes, x.Waiting, x.Delay, x.Passes, x.Spread, x.Batch, x.Inserts, x.BytesPerInsert, x.TooSmall,
			x.Program, x.Filters, x.ListSaved, x.Less, x.ThanPlain, x.Change, x.Same,
			g.Epoch[0].Seconds(), g.Epoch[1].Seconds(), g.Speedup[0], g.Speedup[1], g.Effective[0], g.Effective[1],
			x.Task, x.Setting, x.Tried, x.Step.Seconds(), x.Target, g.ToTarget[0].Seconds(), g.ToTarget[1].Seconds(),
			x.ComputedPerItem.Seconds(), x.BytesPerItem, o.Ratio, o.Range[0], o.Range[1], o.Policy, o.Setting))
	}
	c.Flush()
	return c.Error()
}

// Curves writes how training went in every row, a line an epoch.
func (r *Report) Curves(w io.Writer) error {
	c := csv.NewWriter(w)
	c.Write([]string{"network", "policy", "scheme", "nodes", "zipf", "epoch", "seconds", "loss", "quality"}) // Error has it
	for _, x := range r.Rows {
		for i, p := range x.Curve {
			c.Write(cells(x.Network, x.Policy, x.Scheme, x.Nodes, x.Zipf, i+1, p.Seconds, p.Loss, p.Quality))
		}
	}
	c.Flush()
	return c.Error()
}

func cells(vals ...any) (cells []string) {
	for _, v := range vals {
		cells = append(cells, fmt.Sprint(v))
	}
	return cells
}

// Save writes the report's CSV and plots to a folder, which is made, and
// returns their names.
func (r *Report) Save(dir string) (files []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	save := func(name string, write func(io.Writer) error) {
		if err != nil {
			return
		}
		name = filepath.Join(dir, name)
		f, e := os.Create(name)
		if err = e; err == nil {
			err = errors.Join(write(f), f.Close())
			files = append(files, name)
		}
	}
	save(r.Name+".csv", r.CSV)
	if r.Metric != "" {
		save(r.Name+"-curves.csv", r.Curves)
	}
	for i := range r.plots {
		save(r.plots[i].File+".svg", r.plots[i].SVG)
	}
	return files, err
}
