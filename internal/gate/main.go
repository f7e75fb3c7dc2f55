package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/godwit-ps/godwit/internal/bench"
)

// A task is a command line of "godwit train" whose epochs take some tenths of a
// second of one processor.
type task struct {
	name string
	args string
}

var tasks = []task{
	{"kge", "kge --triples 40000 --dim 128 --epochs 3"},
	{"mf", "mf --rows 8000 --columns 2000 --cells 1000000 --epochs 4 --batch 256"}, // one node takes more of them by default
	{"w2v", "w2v --epochs 3"},
	{"linear", "linear --examples 200000 --epochs 3"},
	{"linear-wide", "linear --examples 20000 --features 200000 --per-example 40 --epochs 3"},
	{"lda", "lda --documents 20000 --epochs 5"},
	{"sketch", "sketch --epochs 3"},
}

const nodes = 4

// Options say what is measured and with what it is compared.
type options struct {
	match     string
	rounds    int
	policy    string
	baseline  string // file
	tolerance float64
	write     bool
	json      bool
	args      []string // that are no flags: there are none
}

// errWorse is the outcome of a gate that is closed.
var errWorse = errors.New("worse than the baseline")

func main() {
	var o options
	flag.StringVar(&o.match, "match", "", "only tasks whose name contains this")
	flag.IntVar(&o.rounds, "rounds", 5, "runs on one node, on four, and four on one at once, in turn, of each task")
	flag.StringVar(&o.policy, "policy", "adaptive", "of the runs; one that is not adaptive is compared with nothing")
	flag.StringVar(&o.baseline, "baseline", filepath.Join("internal", "gate", "baseline.json"), "file of the baseline")
	flag.Float64Var(&o.tolerance, "tolerance", 0.2, "share by which a ratio may exceed that of the baseline")
	flag.BoolVar(&o.write, "write", false, "make what is measured the baseline, of the tasks that match")
	flag.BoolVar(&o.json, "json", false, "print a JSON object instead of the table")
	flag.Parse()
	o.args = flag.Args()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	switch err := o.run(ctx, os.Stdout); {
	case errors.Is(err, errWorse):
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(2)
	}
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	var wanted []task
	for _, t := range tasks {
		if strings.Contains(t.name, o.match) {
			wanted = append(wanted, t)
		}
	}
	switch {
	case len(o.args) > 0:
		return fmt.Errorf("unexpected argument %q: say by -match which tasks to measure", o.args[0])
	case len(wanted) == 0:
		return fmt.Errorf("no task's name contains %q", o.match)
	case o.rounds < 1:
		return fmt.Errorf("%d rounds, want at least 1", o.rounds)
	case o.write && o.policy != "adaptive":
		return errors.New("the baseline is of the policy adaptive")
	}
	base, err := readBaseline(o.baseline)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "godwit-gate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "godwit")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/godwit-ps/godwit/cmd/godwit")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build godwit: %w", err)
	}
	r := &report{Machine: bench.Here(), Date: time.Now().UTC().Format(time.DateOnly), Policy: o.policy}
	for _, t := range wanted {
		f, err := o.measure(ctx, binary, t, base.figure(t))
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		r.Tasks = append(r.Tasks, f)
	}
	r.Machine.LookAtLoad()
	if err := r.show(out, o.json); err != nil {
		return err
	}
	if o.write {
		return base.merge(r).save(o.baseline)
	}
	return r.worse(o.tolerance)
}

// measure runs the rounds of a task, and as many more if it looks worse.
func (o *options) measure(ctx context.Context, binary string, t task, base *figure) (*figure, error) {
	f := &figure{Name: t.name, Args: t.args}
	for attempt := range 2 {
		for range o.rounds {
			if err := f.round(ctx, binary, o.policy, t); err != nil {
				return nil, err
			}
			fmt.Fprintf(os.Stderr, "%s: round %d: four nodes take %.2f times the processor time of one\n", t.name, len(f.ratios), f.ratios[len(f.ratios)-1])
		}
		f.sum()
		if o.policy == "adaptive" {
			f.Baseline = base
		}
		if attempt > 0 || o.write || f.Baseline == nil || !f.exceeds(o.tolerance) {
			break
		}
	}
	return f, nil
}

// round trains on one node, on four, and four times at once on one, in an order that changes.
func (f *figure) round(ctx context.Context, binary, policy string, t task) error {
	kinds := [3]struct{ nodes, runs int }{{1, 1}, {nodes, 1}, {1, nodes}}
	var costs [3]cost
	for i := range kinds {
		j := (i + len(f.ratios)) % len(kinds)
		args := append([]string{"train"}, strings.Fields(t.args)...)
		args = append(args, "--nodes", fmt.Sprint(kinds[j].nodes), "--workers", "1", "--policy", policy, "--untrained=false", "--quiet", "--json")
		c, err := trainAtOnce(ctx, kinds[j].runs, binary, args, bench.ProcessorTimeOf)
		if err != nil {
			return fmt.Errorf("%d nodes: %w", kinds[j].nodes, err)
		}
		costs[j] = c
	}
	f.add(costs[0], costs[1], costs[2])
	return nil
}

func (r *report) show(out io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(r)
	}
	fmt.Fprintf(out, "%s\npolicy %s; processor time an example, in µs, of %d nodes of one worker, of one, and of as many runs of one at once; median [least, most] of the rounds\n\n", r.Machine.String(), r.Policy, nodes)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "task\tone node\t%d nodes\tratio\tfirst epoch\tbaseline\t%d apart\tratio to these\n", nodes, nodes)
	for _, f := range r.Tasks {
		base := "none"
		if f.Baseline != nil {
			base = f.Baseline.Ratio.String()
		}
		fmt.Fprintf(t, "%s\t%v\t%v\t%v\t%v\t%s\t%v\t%v\n", f.Name, f.One, f.Four, f.Ratio, f.First, base, f.Apart, f.ToApart)
	}
	return t.Flush()
}
