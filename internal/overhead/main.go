// Overhead measures what watching a run costs: it trains in pairs, with and without some flags of
// "godwit train", or by two builds of it, and says by how much the one takes longer than the other,
// with the 95 % interval of the mean.
//
// Pairs alternate in their order, and what is compared is the ratio within a pair, so that a machine
// that becomes slower in between does little harm. Still it says something on an idle machine only.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Options say what is compared.
type options struct {
	tasks string // command lines of "godwit train", by semicolons
	with  string // flags of the one side; TMP is a folder that is new for each run
	base  string // program of the other side; empty: the same
	pairs int
	limit float64  // of the upper end of the interval of the time of epochs
	args  []string // that are no flags: there are none
}

// errOver is the outcome where something costs more than it may.
var errOver = errors.New("it costs more than it may")

func main() {
	var o options
	flag.StringVar(&o.tasks, "tasks", "kge --nodes 4; linear --nodes 4", "command lines of \"godwit train\", by semicolons")
	flag.StringVar(&o.with, "with", "--trace TMP", "flags of the runs that are compared with those without; TMP is a new folder")
	flag.StringVar(&o.base, "base", "", "program of the runs without the flags, such as an older build; empty: the same as of the others")
	flag.IntVar(&o.pairs, "pairs", 20, "pairs of runs of each task")
	flag.Float64Var(&o.limit, "limit", 1.05, "fail if the upper end of an interval is above this")
	flag.Parse()
	o.args = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, os.Stdout, &o); err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, w io.Writer, o *options) error {
	if len(o.args) > 0 {
		return fmt.Errorf("unexpected argument %q: say by -tasks what to measure, and in quotes if it has blanks", o.args[0])
	}
	if o.pairs < 3 {
		return fmt.Errorf("-pairs %d: want at least 3, for an interval", o.pairs)
	}
	dir, err := os.MkdirTemp("", "overhead")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "godwit")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/godwit").CombinedOutput(); err != nil {
		return fmt.Errorf("building godwit: %w: %s", err, out)
	}
	base := program
	if o.base != "" {
		base = o.base
	}
	over := false
	for _, task := range strings.Split(o.tasks, ";") {
		times, processor, err := compare(ctx, o, dir, program, base, strings.Fields(task))
		if err != nil {
			return err
		}
		t, p := intervalOf(times), intervalOf(processor)
		fmt.Fprintf(w, "%s, with %q: time of epochs × %v, processor time × %v, %d pairs\n", strings.TrimSpace(task), o.with, t, p, o.pairs)
		over = over || t.high > o.limit
	}
	if over {
		return errOver
	}
	return nil
}

// compare runs pairs and returns the ratios of the times of epochs and of processor times.
func compare(ctx context.Context, o *options, dir, program, base string, task []string) (times, processor []float64, err error) {
	for i := range o.pairs {
		var with, without run
		for _, first := range []bool{i%2 == 0, i%2 != 0} {
			if first {
				with, err = train(ctx, program, dir, append(task[:len(task):len(task)], strings.Fields(o.with)...))
			} else {
				without, err = train(ctx, base, dir, task)
			}
			if err != nil {
				return nil, nil, err
			}
		}
		times = append(times, with.epochs/without.epochs)
		processor = append(processor, with.processor/without.processor)
	}
	return times, processor, nil
}

// A run is what one took, in seconds.
type run struct{ epochs, processor float64 }

func train(ctx context.Context, program, dir string, args []string) (r run, err error) {
	tmp, err := os.MkdirTemp(dir, "run")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(tmp)
	args = slices.Clone(args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "TMP", tmp)
	}
	cmd := exec.CommandContext(ctx, program, append(append([]string{"train"}, args...), "--json", "--quiet")...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return r, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, errs.String())
	}
	r.processor = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() // with those of the nodes that it started
	r.epochs, err = epochsIn(&out)
	return r, err
}

// epochsIn returns the time of the epochs of a run that printed its events.
func epochsIn(events io.Reader) (float64, error) {
	for d := json.NewDecoder(events); ; {
		var e struct {
			Result *struct {
				TrainSeconds float64 `json:"train_seconds"`
			}
		}
		if err := d.Decode(&e); err != nil {
			return 0, fmt.Errorf("the run printed no result: %w", err)
		}
		if e.Result != nil && e.Result.TrainSeconds > 0 {
			return e.Result.TrainSeconds, nil
		}
	}
}

// An interval is where the mean of a ratio lies, with 95 %.
type interval struct{ low, mean, high float64 }

func (i interval) String() string { return fmt.Sprintf("%.3f [%.3f, %.3f]", i.mean, i.low, i.high) }

// intervalOf returns the geometric mean of ratios and its interval, by Student's distribution of their
// logarithms.
func intervalOf(ratios []float64) interval {
	n, sum, squares := float64(len(ratios)), 0.0, 0.0
	for _, r := range ratios {
		sum += math.Log(r)
	}
	mean := sum / n
	for _, r := range ratios {
		d := math.Log(r) - mean
		squares += d * d
	}
	half := student(n-1) * math.Sqrt(squares/(n-1)/n)
	return interval{math.Exp(mean - half), math.Exp(mean), math.Exp(mean + half)}
}

// student returns the quantile 0.975 of Student's distribution, by the first terms of its expansion about
// the normal distribution: right to 1 % from 4 degrees of freedom on.
func student(degrees float64) float64 {
	const z = 1.959964
	z3, z5, z7 := z*z*z, z*z*z*z*z, z*z*z*z*z*z*z
	return z + (z3+z)/(4*degrees) + (5*z5+16*z3+3*z)/(96*degrees*degrees) + (3*z7+19*z5+17*z3-15*z)/(384*degrees*degrees*degrees)
}
