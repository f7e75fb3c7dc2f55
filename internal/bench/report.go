package bench

import (
	"bufio"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// A Report is what was measured, and where.
type Report struct {
	Machine Machine  `json:"machine"`
	Rows    uint64   `json:"rows"`    // asked for
	Seconds float64  `json:"seconds"` // of the turns of a case
	Results []Result `json:"results"`
}

// A Machine is where a measurement was made.
type Machine struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	System    string `json:"system"`
	Go        string `json:"go"`
	// Load is the number of processes that ran or wanted to, a mean of the last
	// minute, before and after; empty where the system does not say.
	Load []string `json:"load"`
}

// Run measures the cases that the options name. If it ends early, the report
// has what was measured until then.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	r := &Report{Machine: Here(), Rows: o.Rows, Seconds: o.Time.Seconds()}
	for _, c := range Cases() {
		if !o.wants(c.Name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return r, context.Cause(ctx)
		}
		if o.Progress != nil {
			o.Progress(&c)
		}
		x, err := c.Measure(ctx, &o)
		if err != nil {
			return r, err
		}
		r.Results = append(r.Results, *x)
		runtime.GC() // the next case shall not pay for this one's garbage
	}
	r.Machine.LookAtLoad()
	return r, nil
}

// Here is the machine that the program runs on, with its load of now.
func Here() Machine {
	m := Machine{Processor: processor(), Cores: runtime.GOMAXPROCS(0), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	m.LookAtLoad()
	return m
}

// LookAtLoad adds the load of now.
func (m *Machine) LookAtLoad() {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return
	}
	one, _, _ := strings.Cut(string(b), " ")
	m.Load = append(m.Load, one)
}

// String is the machine in a line.
func (m *Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s, %s, load %s", m.Processor, m.Cores, m.System, m.Go, strings.Join(m.Load, " … "))
}

// processor is the model of the processor, as far as the system says.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, value, _ := strings.Cut(s.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// Print writes the report as a table.
func (r *Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n\n", r.Machine.String())
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "path\ttime\tratio [quartiles] to\taim\tallocations")
	for i := range r.Results {
		x := &r.Results[i]
		for j, ratio := range x.Ratios {
			name, unit, aim, allocs := "", "", "", ""
			if j == 0 {
				name, unit, aim = x.Name, fmt.Sprintf("%s/%s", nanos(x.Nanos.Median), x.Unit), "-"
				if x.Aim > 0 {
					aim = fmt.Sprintf("%.3g", x.Aim)
				}
				if x.Allocs != nil {
					allocs = fmt.Sprintf("%.0f", *x.Allocs)
				}
			}
			fmt.Fprintf(t, "%s\t%s\t%.2f [%.2f, %.2f] %s, %s\t%s\t%s\n", name, unit, ratio.Median, ratio.Q1, ratio.Q3, ratio.To, nanos(ratio.Nanos), aim, allocs)
		}
	}
	return t.Flush()
}

// CSV writes all figures, a line a ratio, with a line of names first. Times are
// nanoseconds a unit.
func (r *Report) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	c.Write([]string{"path", "unit", "ns_q1", "ns_median", "ns_q3", "baseline", "baseline_ns", "ratio_q1", "ratio_median", "ratio_q3", "aim", "turns", "allocs"}) // Error has it
	for i := range r.Results {
		x := &r.Results[i]
		for j, ratio := range x.Ratios {
			aim, allocs := "", ""
			if j == 0 && x.Aim > 0 {
				aim = fmt.Sprint(x.Aim)
			}
			if x.Allocs != nil {
				allocs = fmt.Sprint(*x.Allocs)
			}
			c.Write([]string{x.Name, x.Unit, fmt.Sprint(x.Nanos.Q1), fmt.Sprint(x.Nanos.Median), fmt.Sprint(x.Nanos.Q3), ratio.To, fmt.Sprint(ratio.Nanos),
				fmt.Sprint(ratio.Q1), fmt.Sprint(ratio.Median), fmt.Sprint(ratio.Q3), aim, fmt.Sprint(x.Turns), allocs})
		}
	}
	c.Flush()
	return c.Error()
}

func nanos(ns float64) string {
	d := time.Duration(ns)
	switch {
	case ns < 1000:
		return fmt.Sprintf("%.1f ns", ns)
	case d < time.Millisecond:
		return fmt.Sprintf("%.1f µs", ns/1e3)
	}
	return fmt.Sprintf("%.1f ms", ns/1e6)
}
