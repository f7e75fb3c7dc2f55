// Healthy trains every task on this machine, with nothing wrong, and counts how often "godwit diagnose" finds an ill
// all the same. It says something of an idle machine, of one that is busy with other things, and, with more nodes
// than processors, of one that is crowded.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/godwit-ps/godwit/telemetry/diagnose"
	"github.com/godwit-ps/godwit/telemetry/record"
)

// Options say what is trained.
type options struct {
	tasks  string // command lines of "godwit train", by semicolons
	nodes  string // numbers of nodes, by commas
	rounds int
	limit  float64  // of the share of runs with a finding
	args   []string // that are no flags: there are none
}

// errMany is the outcome where too many runs have a finding.
var errMany = errors.New("too many healthy runs have a finding")

func main() {
	var o options
	flag.StringVar(&o.tasks, "tasks", "kge --epochs 3; w2v --epochs 4; mf --epochs 30; lda --epochs 25; linear --epochs 8; sketch --epochs 40", "command lines of \"godwit train\", by semicolons; each should take a few seconds")
	flag.StringVar(&o.nodes, "nodes", "4,2", "numbers of nodes, by commas")
	flag.IntVar(&o.rounds, "rounds", 3, "runs of each task by each number of nodes")
	flag.Float64Var(&o.limit, "limit", 0.05, "fail if a greater share of the runs has a finding")
	flag.Parse()
	o.args = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := count(ctx, os.Stdout, &o); err != nil {
		fmt.Fprintln(os.Stderr, "healthy:", err)
		os.Exit(1)
	}
}

func count(ctx context.Context, w io.Writer, o *options) error {
	if len(o.args) > 0 {
		return fmt.Errorf("unexpected argument %q: say by -tasks what to run, and in quotes if it has blanks", o.args[0])
	}
	if o.rounds < 1 {
		return fmt.Errorf("-rounds %d: want at least 1: of no runs none has a finding", o.rounds)
	}
	dir, err := os.MkdirTemp("", "healthy")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "godwit")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/godwit").CombinedOutput(); err != nil {
		return fmt.Errorf("building godwit: %w: %s", err, out)
	}
	runs, ill, crowded := 0, 0, 0
	for i := range o.rounds {
		for _, nodes := range strings.Split(o.nodes, ",") {
			for _, task := range strings.Split(o.tasks, ";") {
				in, err := train(ctx, program, dir, append(strings.Fields(task), "--nodes", nodes, "--workers", "1", "--seed", strconv.Itoa(i+1)))
				if err != nil {
					return err
				}
				found := diagnose.Diagnose(*in)
				runs++
				if in.Crowded() {
					crowded++
				}
				if len(found) > 0 {
					ill++
				}
				for _, f := range found {
					fmt.Fprintf(w, "%s, %s nodes: %s: %s (%.0f %% of the time)\n", strings.Fields(task)[0], nodes, f.Ill, f.Text, 100*f.Loss)
				}
			}
		}
	}
	fmt.Fprintf(w, "of %d healthy runs, %d have a finding; the machine was crowded in %d\n", runs, ill, crowded)
	if float64(ill) > o.limit*float64(runs) {
		return errMany
	}
	return nil
}

// train trains, and returns what the nodes wrote of it.
func train(ctx context.Context, program, dir string, args []string) (*diagnose.Input, error) {
	tmp, err := os.MkdirTemp(dir, "run")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	cmd := exec.CommandContext(ctx, program, append(append([]string{"train"}, args...), "--trace", tmp, "--json", "--quiet")...)
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, errs.String())
	}
	r, err := record.Open(tmp)
	if err != nil {
		return nil, err
	}
	in := diagnose.From(r)
	if len(in.Nodes) == 0 {
		return nil, fmt.Errorf("%s: the run was too short for two samples: give it more epochs", strings.Join(cmd.Args, " "))
	}
	return &in, nil
}
