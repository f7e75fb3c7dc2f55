package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/internal/bench"
	"github.com/godwit-ps/godwit/job/cli"
)

// A benching is the command line of "godwit bench".
type benching struct {
	bench.Options
	gib   float64
	json  bool
	costs bool
}

func benchCommand() *cobra.Command {
	b := &benching{Options: bench.DefaultOptions()}
	cmd := &cobra.Command{
		Use:   "bench [PART-OF-NAME …]",
		Short: "Measure this machine's accesses to keys",
		Long: `Measure what accesses to keys cost on this machine: local ones, and those to a
node of another process over TCP, each as a ratio to what does the same without a
parameter server, such as a loop over an array. Path and baseline run in short
turns; a ratio is the median of the turns' ratios, so that it means something on
a busy machine too.

The remote cases start a second process. Every call has keys of its own, and the
table is larger than the processor's caches. They also show the time of one call
(median and 99th percentile) and the processor time a key at both processes.

The cases, all of which are measured unless parts of their names are given:

  ` + strings.Join(bench.Summary(), "\n  "),
		Example: `  godwit bench
  godwit bench local/pull "10 floats" --json
  godwit bench local --rows 10000000 --memory 16`,
		RunE: func(cmd *cobra.Command, args []string) error {
			b.Only = args
			return b.run(cmd)
		},
	}
	g := cli.NewGroup("Benchmark")
	g.Uint64Var(&b.Rows, "rows", b.Rows, "`number` of rows of a table, if memory allows")
	g.Float64Var(&b.gib, "memory", float64(b.Memory)/(1<<30), "`GiB` that a case may take")
	g.DurationVar(&b.Time, "time", b.Time, "of the turns of a case")
	g.Uint64Var(&b.Seed, "seed", b.Seed, "decides which keys are accessed")
	out := cli.NewGroup("Output")
	out.BoolVar(&b.json, "json", false, "print a JSON object instead of the table")
	out.BoolVar(&b.costs, "costs", false, "measure what simulated nodes are charged instead, and print it for \"godwit experiment --costs\"")
	cli.AddGroups(cmd, g, out)
	return cmd
}

// benchPeer is the hidden command of the other process of remote cases.
const benchPeer = "bench-peer"

func benchPeerCommand() *cobra.Command {
	return &cobra.Command{
		Use: benchPeer, Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := bench.ServePeer(context.Background(), os.Stdin, os.Stdout); err != nil {
				return cli.Failed(err)
			}
			return nil
		},
	}
}

func (b *benching) run(cmd *cobra.Command) error {
	if !(b.gib > 0 && b.gib < 1<<20) {
		return fmt.Errorf("--memory %v: want GiB, more than 0", b.gib)
	}
	b.Memory = uint64(b.gib * (1 << 30))
	if err := b.Check(); err != nil {
		return err
	}
	began := time.Now()
	self, err := os.Executable()
	if err != nil {
		return cli.Failed(err)
	}
	b.Peer = []string{self, benchPeer}
	b.Progress = func(c *bench.Case) {
		fmt.Fprintf(os.Stderr, "%6.1f s: %s\n", time.Since(began).Seconds(), c.Name)
	}
	ctx, cancel := cli.UntilInterrupted()
	defer cancel()
	if b.costs {
		return b.calibrate(ctx, cmd)
	}
	r, err := bench.Run(ctx, b.Options)
	if r != nil && len(r.Results) > 0 {
		err = errors.Join(err, b.show(cmd, r))
	}
	switch {
	case ctx.Err() != nil:
		return cli.ErrInterrupted
	case err != nil:
		return cli.Failed(err)
	}
	return nil
}

func (b *benching) calibrate(ctx context.Context, cmd *cobra.Command) error {
	if len(b.Only) > 0 {
		return fmt.Errorf("--costs measures what it needs: name no cases")
	}
	c, err := bench.Calibrate(ctx, b.Options)
	switch {
	case ctx.Err() != nil:
		return cli.ErrInterrupted
	case err != nil:
		return cli.Failed(err)
	}
	e := json.NewEncoder(cmd.OutOrStdout())
	e.SetIndent("", "  ")
	if err := e.Encode(c); err != nil {
		return cli.Failed(err)
	}
	return nil
}

func (b *benching) show(cmd *cobra.Command, r *bench.Report) error {
	if b.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
	}
	return r.Print(cmd.OutOrStdout())
}
