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

var trained = []column{
	{"network", func(r *Row) string { return r.Network }},
	{"policy", func(r *Row) string { return r.Policy }},
	{"nodes", func(r *Row) string { return fmt.Sprint(r.Nodes) }},
	{"epoch", func(r *Row) string { return r.Epoch.Round(10 * time.Microsecond).String() }},
	{"speed-up", func(r *Row) string { return fmt.Sprintf("%.2f", r.Speedup) }},
	{"loss", func(r *Row) string { return fmt.Sprintf("%.3f", r.Loss) }},
	{"MRR", func(r *Row) string { return fmt.Sprintf("%.3f", r.MRR) }},
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
	fmt.Fprintf(w, "%s: %s\nstep %v of computation, seed %d\n\n", r.Name, r.Task, r.Step, r.Seed)
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
	return t.Flush()
}

// CSV writes all figures of all rows, with a line of names first.
func (r *Report) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	c.Write([]string{"network", "policy", "nodes", "workers", "zipf", "offset", "epoch_seconds", "speedup", "loss", "mrr", // Error has it
		"no_message", "remote", "replica", "bytes_per_access", "accesses", "moves", "copies", "drops", "deltas", "refreshes",
		"rounds", "replicas", "window", "lead_ms"})
	for _, x := range r.Rows {
		var cells []string
		for _, v := range []any{x.Network, x.Policy, x.Nodes, x.Workers, x.Zipf, x.Offset, x.Epoch.Seconds(), x.Speedup, x.Loss, x.MRR,
			x.NoMessage, x.Remote, x.Replica, x.BytesPerAccess, x.Accesses, x.Moves, x.Copies, x.Drops, x.Deltas, x.Refreshes,
			x.Rounds, x.Replicas, x.Window, x.LeadMs} {
			cells = append(cells, fmt.Sprint(v))
		}
		c.Write(cells)
	}
	c.Flush()
	return c.Error()
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
	for i := range r.plots {
		save(r.plots[i].File+".svg", r.plots[i].SVG)
	}
	return files, err
}
