package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/internal/bench"
	"github.com/godwit-ps/godwit/internal/experiment"
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/placement"
)

// An experiments is the command line of "godwit experiment".
type experiments struct {
	choice    experiment.Choice
	calls     string
	data, out string
	json      bool
	seed      uint64
	step      time.Duration
	parallel  int
	nodes     []int
	budget    int
	real      bool
	policies  []string
	costs     string
	cores     int
	seeds     int
}

func experimentCommand() *cobra.Command {
	e := &experiments{}
	var list strings.Builder
	for _, name := range experiment.Names() {
		fmt.Fprintf(&list, "  %-12s%s\n", name, experiment.About(name))
	}
	cmd := &cobra.Command{
		Use:   "experiment [NAME]",
		Short: "Measure policies on simulated clusters",
		Long: `Train on simulated nodes in virtual time, and compare policies. Without a name,
list the experiments:

` + list.String() + `
The protocol and the training are the real ones; the network and the cost of
computing are models, unless --real makes nodes real. A training step costs what it is measured to cost here,
unless --step gives it; with --step a run repeats bit for bit. Beside it, simulated nodes are charged for accesses,
announcing, loading, messages and bytes, on the cores that their workers use. Where steps are measured, so is that, in
about a minute (--quick: some seconds), because what a step computes is what is left without it; with --step,
constants are charged. --costs takes what "godwit bench --costs" measured.`,
		Example: `  godwit experiment scaling --quick
  godwit experiment techniques --data fb15k-237 --out plots
  godwit experiment skew --step 150us         # the same on any machine
  godwit experiment sketch --real             # on processes of this machine`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := fmt.Fprint(cmd.OutOrStdout(), list.String())
				return ranErr(err)
			}
			return e.run(cmd, args[0])
		},
	}
	g := cli.NewGroup("Experiment")
	g.StringVar(&e.choice.Task, "task", "", "`name` of what is trained (default: kge, of best all; not of timing, delay, filters and sketch, which have programs of their own): "+strings.Join(experiment.Tasks(), ", "))
	g.StringVarP(&e.data, "data", "d", "", "file or `folder` of the data (default: they are generated); best then trains with the settings of \"godwit train\"")
	g.BoolVar(&e.choice.Quick, "quick", false, "a smaller task on fewer workers, for a first look")
	g.StringVar(&e.calls, "calls", string(experiment.Batched), "how the program accesses the server, a `kind`: batched, all keys of a step in a call, or single, one key a call and one example a step, as programs for Lapse, NuPS and AdaPM do")
	g.DurationVar(&e.step, "step", 0, "what a training step computes, as a `duration` (default: measured)")
	g.IntVarP(&e.choice.Epochs, "epochs", "e", 0, "`number` of passes over the data (default: the task's); the first does not count for the mean")
	g.Policies(&e.policies, "compare these only: `names` by commas (default: all, of sketch adaptive; not of timing, sampling, delay and filters, which have theirs)")
	g.Uint64Var(&e.seed, "seed", 1, "decides data, first values, samples and the network's jitter")
	g.IntVar(&e.choice.Dim, "dim", 0, "`floats` of a row (default: 32, of mf 16); measure the step again")
	g.StringVar(&e.costs, "costs", "", "`file` of what simulated nodes are charged, as \"godwit bench --costs\" prints it")
	g.IntVar(&e.cores, "cores", 0, "`number` of cores of a simulated node, for its workers and everything else (default: as many as workers)")
	g.IntVar(&e.seeds, "seeds", 0, "`number` of seeds to run, of which medians and ranges are shown (default: 3, --quick and --real: 1)")
	g.IntSliceVar(&e.nodes, "nodes", nil, "`numbers` of nodes by commas, of scaling, sketch and best (default: 1, 2, 4, 8, of scaling and best 16, too); one number of others (default: 8; --quick and --real: 4)")
	g.IntVar(&e.budget, "budget", 0, "`epochs` that best may train to find a policy's best setting, for each task and number of nodes (default: 32, --quick: 12)")
	g.BoolVar(&e.real, "real", false, "on real nodes, processes of this machine, instead of simulated ones (delay, sketch, best)")
	g.IntVar(&e.parallel, "parallel", runtime.GOMAXPROCS(0), "`number` of runs simulated at a time")
	out := cli.NewGroup("Output")
	out.StringVarP(&e.out, "out", "o", "", "`folder` for the figures as CSV and the plots as SVG")
	out.BoolVar(&e.json, "json", false, "print a JSON object instead of the table")
	cli.AddGroups(cmd, g, out)
	return cmd
}

// useless are the flags that an experiment has no use for, by its name; simulation those that matter to
// simulated nodes only.
var (
	useless = map[string][]string{
		"scaling":    {"budget"},
		"techniques": {"budget"},
		"timing":     {"task", "data", "calls", "epochs", "policies", "dim", "nodes", "budget"},
		"skew":       {"budget"},
		"sampling":   {"policies", "budget"},
		"delay":      {"task", "calls", "epochs", "policies", "dim", "budget"},
		"filters":    {"task", "data", "calls", "epochs", "policies", "dim", "budget"},
		"sketch":     {"task", "calls", "epochs", "dim", "budget"},
	}
	simulation = []string{"step", "costs", "cores", "parallel"}
)

// useful refuses flags that would change nothing.
func (e *experiments) useful(cmd *cobra.Command, name string) error {
	for _, flag := range useless[name] {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s: %s has no use for it", flag, name)
		}
	}
	if len(e.nodes) > 1 && !slices.Contains([]string{"scaling", "sketch", "best"}, name) {
		return fmt.Errorf("--nodes %s: %s takes one number", strings.Trim(fmt.Sprint(e.nodes), "[]"), name)
	}
	for _, flag := range simulation {
		if e.real && cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is for simulated nodes: leave it or --real out", flag)
		}
	}
	return nil
}

func (e *experiments) run(cmd *cobra.Command, name string) error {
	if !slices.Contains(experiment.Names(), name) {
		return fmt.Errorf("no experiment %q, there are %s", name, strings.Join(experiment.Names(), ", "))
	}
	if err := e.useful(cmd, name); err != nil {
		return err
	}
	if e.step < 0 || min(e.choice.Epochs, e.cores, e.seeds, e.budget) < 0 {
		return fmt.Errorf("--step %v, --epochs %d, --cores %d, --seeds %d, --budget %d: want more than 0", e.step, e.choice.Epochs, e.cores, e.seeds, e.budget)
	}
	if e.parallel < 1 {
		return fmt.Errorf("--parallel %d: want at least 1", e.parallel)
	}
	e.choice.Calls, e.choice.Search, e.choice.Given = experiment.Calls(e.calls), name == "best", e.data != ""
	l, err := experiment.NewLab(e.choice)
	if err != nil {
		return err
	}
	l.Data, l.Seed, l.Step, l.Parallel, l.Cores = e.data, e.seed, e.step, e.parallel, e.cores
	if e.costs != "" {
		if l.Costs, err = readCosts(e.costs); err != nil {
			return err
		}
	}
	if e.real {
		l.OnReal(cli.OnProcesses)
	}
	if e.seeds > 0 {
		l.Seeds = e.seeds
	}
	if e.budget > 0 {
		l.Budget = e.budget
	}
	if err := l.On(e.nodes); err != nil {
		return err
	}
	for _, name := range e.policies {
		p, err := placement.ByName(name)
		if err != nil {
			return err
		}
		l.Policies = append(l.Policies, p)
	}
	if err := l.Check(name); err != nil { // before costs are measured, for a minute
		return err
	}
	if e.out != "" { // … and before what takes hours has no place
		if err := os.MkdirAll(e.out, 0o755); err != nil {
			return cli.Failed(fmt.Errorf("--out: %w", err))
		}
	}
	began := time.Now()
	l.Progress = func(what string) {
		fmt.Fprintf(os.Stderr, "%s: %6.1f s: %s\n", name, time.Since(began).Seconds(), what)
	}
	ctx, cancel := cli.UntilInterrupted()
	defer cancel()
	if e.step == 0 && e.costs == "" && !e.real {
		err = e.calibrate(ctx, &l)
	}
	var r *experiment.Report
	if err == nil {
		r, err = experiment.Run(ctx, name, l)
	}
	if err != nil && r != nil && len(r.Rows) > 0 {
		_ = e.print(cmd, r) // what there is; why it ended follows
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return cli.ErrInterrupted
	case err != nil:
		return cli.Failed(err)
	}
	return ranErr(e.show(cmd, r))
}

// calibrate measures what simulated nodes are charged.
func (e *experiments) calibrate(ctx context.Context, l *experiment.Lab) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	l.Progress("measuring costs")
	o := bench.DefaultOptions()
	o.Peer = []string{self, benchPeer}
	if e.choice.Quick {
		o.Rows, o.Time = 20_000, 20*time.Millisecond
	}
	c, err := bench.Calibrate(ctx, o)
	if err == nil {
		l.Costs = *c
	}
	return err
}

// readCosts reads what "godwit bench --costs" printed.
func readCosts(file string) (c bench.Costs, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return c, fmt.Errorf("--costs: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("--costs %s: %w", file, err)
	}
	if err := c.Check(); err != nil {
		return c, fmt.Errorf("--costs %s: %w", file, err)
	}
	return c, nil
}

// show prints the report, also where its files cannot be written.
func (e *experiments) show(cmd *cobra.Command, r *experiment.Report) error {
	err := e.print(cmd, r)
	if e.out == "" {
		return err
	}
	files, failed := r.Save(e.out)
	if failed == nil {
		fmt.Fprintln(os.Stderr, "wrote", strings.Join(files, ", "))
	}
	return errors.Join(err, failed)
}

func (e *experiments) print(cmd *cobra.Command, r *experiment.Report) error {
	if e.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
	}
	return r.Print(cmd.OutOrStdout())
}
