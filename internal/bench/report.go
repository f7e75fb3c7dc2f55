package bench

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
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
	o.pairs = &pairs{}
	err := run(ctx, &o, r)
	err = errors.Join(err, o.pairs.close(context.WithoutCancel(ctx)))
	r.Machine.LookAtLoad()
	return r, err
}

// run adds results to a report.
func run(ctx context.Context, o *Options, r *Report) error {
	for _, c := range Cases() {
		if !o.wants(c.Name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if o.Progress != nil {
			o.Progress(&c)
		}
		x, err := c.Measure(ctx, o)
		if err != nil {
			return err
		}
		r.Results = append(r.Results, *x)
		runtime.GC() // the next case shall not pay for this one's garbage
	}
	return nil
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

// Print writes the report as a table, and one more of the cases between two
// processes.
func (r *Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n", r.Machine.String())
	var here, between []*Result
	for i := range r.Results {
		if x := &r.Results[i]; x.Ends == nil {
			here = append(here, x)
		} else {
			between = append(between, x)
		}
	}
	if len(here) > 0 {
		if err := printPaths(w, here); err != nil {
			return err
		}
	}
	if len(between) > 0 {
		return printEnds(w, between)
	}
	return nil
}

func printPaths(w io.Writer, results []*Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\npath\ttime\tratio [quartiles] to\taim\tallocations")
	for _, x := range results {
		for j, ratio := range x.Ratios {
			name, unit, aim, allocs := "", "", "", ""
			if j == 0 {
				name, unit, aim = x.Name, fmt.Sprintf("%s/%s", nanos(x.Nanos.Median), x.Unit), x.aim()
				if x.Allocs != nil {
					allocs = fmt.Sprintf("%.0f", *x.Allocs)
				}
			}
			fmt.Fprintf(t, "%s\t%s\t%s %s, %s\t%s\t%s\n", name, unit, ratio.Spread, ratio.To, nanos(ratio.Nanos), aim, allocs)
		}
	}
	return t.Flush()
}

// printEnds prints two lines a case: the path, and the plain connection.
func printEnds(w io.Writer, results []*Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nbetween two processes\tone call p50\tp99\tkeys/s\tprocessor time a key: caller\towner\tboth [quartiles]\ttime, ratio\tprocessor time, ratio\taim")
	line := func(name string, c *Calls, rest string) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%.3g M\t%s\t%s\t%s [%s, %s]\t%s\n", name, nanos(c.P50), nanos(c.P99), c.KeysPerSecond.Median/1e6,
			nanos(c.Caller.Median), nanos(c.Owner.Median), nanos(c.Both.Median), nanos(c.Both.Q1), nanos(c.Both.Q3), rest)
	}
	for _, x := range results {
		line(x.Name, &x.Ends.Path, fmt.Sprintf("%s\t%s\t%s", x.Ratios[0].Spread, x.Ends.ProcessorRatio, x.aim()))
		line("  "+x.Ratios[0].To, &x.Ends.Echo, "\t\t")
	}
	return t.Flush()
}

func (x *Result) aim() string {
	if x.Aim > 0 {
		return fmt.Sprintf("%.3g", x.Aim)
	}
	return "-"
}

// String is the median with the quartiles.
func (s Spread) String() string { return fmt.Sprintf("%.2f [%.2f, %.2f]", s.Median, s.Q1, s.Q3) }

// CSV writes all figures, a line a ratio, with a line of names first. Times are
// nanoseconds a unit.
func (r *Report) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	c.Write([]string{"path", "unit", "ns_q1", "ns_median", "ns_q3", "baseline", "baseline_ns", "ratio_q1", "ratio_median", "ratio_q3", "aim", "turns", "allocs",
		"call_p50_ns", "call_p99_ns", "keys_per_second", "processor_ns_caller", "processor_ns_owner", "processor_ns_both_q1", "processor_ns_both", "processor_ns_both_q3",
		"baseline_call_p50_ns", "baseline_call_p99_ns", "baseline_keys_per_second", "baseline_processor_ns_both", "processor_ratio_q1", "processor_ratio", "processor_ratio_q3",
		"bytes_sent_a_call", "bytes_answered_a_call"}) // Error has it
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
			c.Write(append([]string{x.Name, x.Unit, fmt.Sprint(x.Nanos.Q1), fmt.Sprint(x.Nanos.Median), fmt.Sprint(x.Nanos.Q3), ratio.To, fmt.Sprint(ratio.Nanos),
				fmt.Sprint(ratio.Q1), fmt.Sprint(ratio.Median), fmt.Sprint(ratio.Q3), aim, fmt.Sprint(x.Turns), allocs}, x.Ends.cells()...))
		}
	}
	c.Flush()
	return c.Error()
}

// cells are the columns of the CSV that only cases between two processes have.
func (e *Ends) cells() []string {
	if e == nil {
		return make([]string, 17)
	}
	p, q := &e.Path, &e.Echo
	var cells []string
	for _, x := range []float64{p.P50, p.P99, p.KeysPerSecond.Median, p.Caller.Median, p.Owner.Median, p.Both.Q1, p.Both.Median, p.Both.Q3,
		q.P50, q.P99, q.KeysPerSecond.Median, q.Both.Median, e.ProcessorRatio.Q1, e.ProcessorRatio.Median, e.ProcessorRatio.Q3,
		float64(e.AskBytes), float64(e.AnswerBytes)} {
		cells = append(cells, fmt.Sprint(x))
	}
	return cells
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
