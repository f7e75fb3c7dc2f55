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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/godwit-ps/godwit/internal/bench"
	"github.com/godwit-ps/godwit/internal/experiment"
	"github.com/godwit-ps/godwit/internal/slownet"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
)

// A task is a command line of "godwit train".
type task struct{ name, args string }

var tasks = []task{
	{"kge", "kge --entities 2000 --triples 40000 --dim 64 --batch 128 --negatives 100 --epochs 4"},
	{"mf", "mf --rows 4000 --columns 1000 --cells 400000 --dim 32 --batch 256 --epochs 4"}, // one node takes more of them by default
}

// Options say what is compared.
type options struct {
	match     string
	nodes     string
	policies  string
	latency   time.Duration
	bandwidth float64
	rounds    int
	costs     string // file
	json      bool
	args      []string // that are no flags: there are none
}

// A comparison is the time of an epoch on real nodes and on simulated ones.
type comparison struct {
	Task            string        `json:"task"`
	Policy          string        `json:"policy"`
	Nodes           int           `json:"nodes"`
	Real            time.Duration `json:"real_ns"` // median of the rounds
	Least           time.Duration `json:"real_least_ns"`
	Most            time.Duration `json:"real_most_ns"`
	Simulated       time.Duration `json:"simulated_ns"`
	Ratio           float64       `json:"ratio"`  // of simulated over real
	Frames          uint64        `json:"frames"` // sent in all epochs
	SimulatedFrames uint64        `json:"simulated_frames"`
	Step            time.Duration `json:"step_ns"`
	Latency         time.Duration `json:"latency_ns"` // as measured
	Proxies         time.Duration `json:"proxies_ns"` // processor time a frame
}

type report struct {
	Machine     bench.Machine `json:"machine"`
	Bandwidth   float64       `json:"bandwidth"`
	Latency     time.Duration `json:"latency_ns"` // asked for
	Costs       bench.Costs   `json:"costs"`
	Comparisons []comparison  `json:"comparisons"`
}

func main() {
	var o options
	flag.StringVar(&o.match, "match", "", "only tasks whose name contains this")
	flag.StringVar(&o.nodes, "nodes", "2,4", "numbers of nodes, by commas")
	flag.StringVar(&o.policies, "policies", "static,adaptive", "names of policies, by commas")
	flag.DurationVar(&o.latency, "latency", 500*time.Microsecond, "of one way between two nodes")
	flag.Float64Var(&o.bandwidth, "bandwidth", 1e9, "bits a second of a node's interface, in each direction")
	flag.IntVar(&o.rounds, "rounds", 3, "real runs of each kind")
	flag.StringVar(&o.costs, "costs", filepath.Join("internal", "agree", "costs.json"), "file of what simulated nodes are charged, by \"godwit bench --costs\" with tables as small as those of the tasks")
	flag.BoolVar(&o.json, "json", false, "print a JSON object instead of the table")
	flag.Parse()
	o.args = flag.Args()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	r, err := o.run(ctx)
	if r != nil {
		err = errors.Join(err, r.show(os.Stdout, o.json))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "agree:", err)
		os.Exit(2)
	}
}

func (o *options) run(ctx context.Context) (*report, error) {
	if len(o.args) > 0 {
		return nil, fmt.Errorf("unexpected argument %q: say by -match which tasks to measure", o.args[0])
	}
	if o.rounds < 1 {
		return nil, fmt.Errorf("%d rounds, want at least 1", o.rounds)
	}
	b, err := os.ReadFile(o.costs)
	if err != nil {
		return nil, err
	}
	var costs bench.Costs
	if err := json.Unmarshal(b, &costs); err != nil {
		return nil, fmt.Errorf("%s: %w", o.costs, err)
	}
	dir, err := os.MkdirTemp("", "godwit-agree-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "godwit")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/godwit-ps/godwit/cmd/godwit")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build godwit: %w", err)
	}
	r := &report{Machine: bench.Here(), Bandwidth: o.bandwidth, Latency: o.latency, Costs: costs}
	for _, t := range tasks {
		if !strings.Contains(t.name, o.match) {
			continue
		}
		for _, name := range strings.Split(o.policies, ",") {
			for _, n := range strings.Split(o.nodes, ",") {
				nodes, err := strconv.Atoi(n)
				if err != nil || nodes < 2 {
					return r, fmt.Errorf("%q nodes, want numbers from 2 on", n)
				}
				c, err := o.compare(ctx, binary, t, name, nodes, r.Costs)
				if err != nil {
					return r, fmt.Errorf("%s, %s, %d nodes: %w", t.name, name, nodes, err)
				}
				r.Comparisons = append(r.Comparisons, *c)
				fmt.Fprintf(os.Stderr, "%s, %s, %d nodes: real %v, simulated %v\n", t.name, name, nodes, c.Real, c.Simulated)
			}
		}
	}
	r.Machine.LookAtLoad()
	return r, nil
}

// compare runs a task on real nodes some times and on simulated ones once.
func (o *options) compare(ctx context.Context, binary string, t task, policy string, nodes int, costs bench.Costs) (*comparison, error) {
	c := &comparison{Task: t.name, Policy: policy, Nodes: nodes}
	var times, proxies, ways []time.Duration
	var last *real
	var err error
	for range o.rounds {
		n := slownet.New(nodes, o.latency, o.bandwidth)
		last, err = train(ctx, binary, t.args, policy, nodes, n)
		if err := errors.Join(err, n.Close()); err != nil {
			return nil, err
		}
		times, proxies, ways = append(times, mean(last.epochs[1:])), append(proxies, last.proxies), append(ways, last.latency)
	}
	c.Real, c.Least, c.Most = median(times), slices.Min(times), slices.Max(times)
	c.Proxies, c.Latency = median(proxies), median(ways)
	p, err := placement.ByName(policy)
	if err != nil {
		return nil, err
	}
	twin, err := experiment.NewTwin(ctx, last.spec, costs)
	if err != nil {
		return nil, err
	}
	k := twin.Compute()
	c.Step = k.Step
	k.Cores, k.Machine = runtime.GOMAXPROCS(0), true
	k.Slice = 100 * time.Microsecond // the system runs a thread that wakes up at once
	k.Send += c.Proxies
	epochs, frames, err := twin.Epochs(ctx, nodes, p, sim.Network{Latency: c.Latency, Bandwidth: o.bandwidth}, k)
	if err != nil {
		return nil, err
	}
	c.Frames, c.SimulatedFrames = last.frames, frames
	c.Simulated = mean(epochs[1:])
	c.Ratio = float64(c.Simulated) / float64(c.Real)
	return c, nil
}

func mean(ds []time.Duration) (m time.Duration) {
	for _, d := range ds {
		m += d / time.Duration(len(ds))
	}
	return m
}

func median(ds []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(ds))
	return s[len(s)/2]
}

func (r *report) show(out io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(r)
	}
	fmt.Fprintf(out, "%s\n%v each way, %g bit/s; times of an epoch without the first: real ones are medians [least, most]\n\n", r.Machine.String(), r.Latency, r.Bandwidth)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "task\tpolicy\tnodes\treal\tsimulated\tsimulated/real\tstep\tlatency, measured\tproxies, a frame\tframes, real\tsimulated")
	for _, c := range r.Comparisons {
		fmt.Fprintf(t, "%s\t%s\t%d\t%v [%v, %v]\t%v\t%.2f\t%v\t%v\t%v\t%d\t%d\n", c.Task, c.Policy, c.Nodes,
			c.Real.Round(time.Millisecond), c.Least.Round(time.Millisecond), c.Most.Round(time.Millisecond), c.Simulated.Round(time.Millisecond), c.Ratio,
			c.Step, c.Latency.Round(time.Microsecond), c.Proxies.Round(100*time.Nanosecond), c.Frames, c.SimulatedFrames)
	}
	return t.Flush()
}
