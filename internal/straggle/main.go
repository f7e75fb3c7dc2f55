package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/godwit-ps/godwit/internal/events"
	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
)

type options struct {
	data   string
	nodes  int
	epochs int
	dim    int
	share  float64
	slow   float64
	period time.Duration
	rounds int
	policy string
	args   []string // that are no flags: there are none
}

func main() {
	if len(os.Args) > 1 && (os.Args[1] == "node" || os.Args[1] == "train") {
		beNode()
		return
	}
	var o options
	flag.StringVar(&o.data, "data", "", "a graph; empty: a generated one")
	flag.IntVar(&o.nodes, "nodes", 4, "at least 2")
	flag.IntVar(&o.epochs, "epochs", 4, "of a run, at least 2; the first one does not count")
	flag.IntVar(&o.dim, "dim", 64, "of the embeddings")
	flag.Float64Var(&o.share, "share", 1./3, "of a processor, for each node")
	flag.Float64Var(&o.slow, "slow", 1./2, "share of that, for the slow node")
	flag.DurationVar(&o.period, "period", 100*time.Millisecond, "in which a node gets its share; then it stands still")
	flag.StringVar(&o.policy, "policy", "adaptive", "of the runs")
	flag.IntVar(&o.rounds, "rounds", 1, "how often each is measured, in turn")
	flag.Parse()
	o.args = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.measure(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "straggle:", err)
		stop()
		os.Exit(1)
	}
}

// beNode is this program as a node of a run.
func beNode() {
	if os.Args[1] == "train" {
		os.Args = slices.Delete(os.Args, 1, 2)
	}
	s := newSettings()
	cli.Main(cli.Task{
		Settings: s, Short: "Train knowledge-graph embeddings", Data: "`folder` of the graph",
		ModelFlags:    func(g cli.Group) { g.IntVar(&s.Dim, "dim", s.Dim, "`floats` of an embedding") },
		TrainingFlags: func(g cli.Group) { g.BoolVar(&s.InAdvance, "in-advance", false, "divide the epochs in advance") },
	})
}

// A case is a way to train.
type way struct {
	name      string
	slow      bool
	inAdvance bool
}

func (o *options) measure(ctx context.Context, out io.Writer) error {
	if len(o.args) > 0 {
		return fmt.Errorf("unexpected argument %q: there are only flags, which -help lists", o.args[0])
	}
	if o.nodes < 2 || o.epochs < 2 || o.rounds < 1 || !(o.share > 0 && o.slow > 0 && o.slow <= 1) {
		return errors.New("want at least 2 nodes, 2 epochs and 1 round, and shares above 0")
	}
	ways := []way{{"all equal, leased", false, false}, {"one slow, leased", true, false}, {"one slow, divided in advance", true, true}}
	took := make([][]float64, len(ways))
	for range o.rounds {
		for i, w := range ways {
			seconds, err := o.run(ctx, w)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			took[i] = append(took[i], seconds...)
		}
	}
	ideal := median(took[0]) * float64(o.nodes) / (float64(o.nodes) - 1 + o.slow)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "nodes\tepoch, s\tof the ideal\teach")
	for i, w := range ways {
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.2f\n", w.name, median(took[i]), median(took[i])/ideal, took[i])
	}
	fmt.Fprintf(t, "one slow, ideal\t%.2f\t1.00\t\n", ideal)
	return t.Flush()
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// run trains, and returns how long the epochs took, in seconds, but for the first one.
func (o *options) run(ctx context.Context, w way) (took []float64, err error) {
	args := []string{"train", "--nodes", strconv.Itoa(o.nodes), "--workers", "1", "--epochs", strconv.Itoa(o.epochs), "--eval-every", "0", "--policy", o.policy, "--dim", strconv.Itoa(o.dim), "--json"}
	if o.data != "" {
		args = append(args, "--data", o.data)
	}
	if w.inAdvance {
		args = append(args, "--in-advance")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var held []*quota
	var pids []int
	defer func() {
		for _, q := range held {
			err = cmp.Or(err, q.close())
		}
	}()
	err = events.Run(ctx, self, args, nil, func(e *job.Event) error {
		if e.Epoch != nil && e.Epoch.Epoch > 1 {
			took = append(took, e.Epoch.Seconds)
		}
		if e.Epoch != nil && e.Epoch.Epoch == o.epochs { // what remains is the evaluation
			for i, q := range held {
				if err := q.release(pids[i]); err != nil {
					return err
				}
			}
		}
		if e.Start == nil {
			return nil
		}
		for i, p := range e.Start.Nodes {
			share := o.share
			if w.slow && i == o.nodes-1 {
				share *= o.slow
			}
			q, err := newQuota(fmt.Sprintf("godwit-straggle-%d-%d", os.Getpid(), i), share, o.period)
			if err != nil {
				return err
			}
			held, pids = append(held, q), append(pids, p.PID)
			if err := q.hold(p.PID); err != nil {
				return err
			}
		}
		return nil
	})
	return took, err
}
