package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	ps "github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sim"
)

// A simulate is the command line of "godwit simulate".
type simulate struct {
	seeds, first uint64
	config       sim.StormConfig
	policy       string
	network      string
	parallel     int
	json         bool
}

func simulateCommand() *cobra.Command {
	s := &simulate{}
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Look for a seed that breaks a promise",
		Long: `Run random workers on simulated nodes in virtual time, over a disorderly network,
and check everything they see: that no update is lost or doubled, that reads are
in order, that every key has one owner, that nothing is left over.

What is not given, each seed decides: the number of nodes, the policy, the
network. A seed that breaks a promise does so again, whenever it is run with the
same flags by the same version of Godwit. It is a failure, too, if a hundred seeds
or more never met what their policy and flags are there to stress: no key moved, no
replica was dropped, no read waited for its bound, and so on. As none of so few keys
is hot by the default rule of nonuniform, storms take nonuniform(factor=2) for it.

Networks (--network): ` + strings.Join(sim.NetworkNames(), ", ") + `
Policies (--policy):  ` + strings.Join(placement.Names(), ", "),
		Example: `  godwit simulate --seeds 100000
  godwit simulate --nodes 8 --policy adaptive --network bad
  godwit simulate --first 4711 --seeds 1      # this one again`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	g := cli.NewGroup("Storms")
	g.Uint64Var(&s.seeds, "seeds", 1000, "`number` of seeds")
	g.Uint64Var(&s.first, "first", 1, "first `seed`")
	g.IntVar(&s.config.Nodes, "nodes", 0, "`number` of nodes (default: chosen by the seed, 1 … 5)")
	g.IntVar(&s.config.Workers, "workers", 0, "`number` of workers of a node (default: chosen by the seed, 1 … 3)")
	g.IntVar(&s.config.Steps, "steps", 0, "`number` of steps of a worker (default 50)")
	g.BoolVar(&s.config.Bounded, "bounded", false, "bound the staleness of reads, and check that as well")
	g.StringVar(&s.policy, "policy", "", "`name` of the policy (default: chosen by the seed)")
	g.StringVar(&s.network, "network", "", "`name` of the network (default: the seed makes a bad one)")
	g.IntVar(&s.parallel, "parallel", runtime.GOMAXPROCS(0), "`number` of seeds at a time")
	out := cli.NewGroup("Output")
	out.BoolVar(&s.json, "json", false, "print a JSON object")
	cli.AddGroups(cmd, g, out)
	return cmd
}

func (s *simulate) run(cmd *cobra.Command) error {
	if err := s.check(); err != nil {
		return err
	}
	ctx, cancel := cli.UntilInterrupted()
	defer cancel()
	r := sim.Storms(ctx, s.first, s.seeds, s.config, s.parallel)
	vacuous := r.Vacuous(s.config)
	if err := s.print(cmd.OutOrStdout(), r, vacuous); err != nil {
		return cli.Failed(err)
	}
	switch {
	case r.Failed != nil:
		return cli.Failed(fmt.Errorf("%v\nRun it again by '%s'", r.Failed, s.replay(r.Failed.Seed)))
	case r.Seeds < s.seeds:
		return cli.ErrInterrupted
	case vacuous != nil:
		return cli.Failed(vacuous)
	}
	return nil
}

// check makes the configuration from the flags.
func (s *simulate) check() error {
	switch {
	case s.seeds == 0:
		return fmt.Errorf("--seeds 0: want at least 1")
	case s.config.Nodes < 0 || s.config.Workers < 0 || s.config.Steps < 0 || s.parallel < 1:
		return fmt.Errorf("--nodes, --workers and --steps want 0 or more, --parallel 1 or more")
	case s.config.Nodes > ps.MaxNodes:
		return fmt.Errorf("--nodes %d: want 1 … %d, or 0 to leave it to the seed", s.config.Nodes, ps.MaxNodes)
	case s.config.Workers > node.MaxWorkers:
		return fmt.Errorf("--workers %d: want 1 … %d, or 0 to leave it to the seed", s.config.Workers, node.MaxWorkers)
	}
	if s.policy != "" {
		p, err := placement.ByName(s.policy)
		if err != nil {
			return err
		}
		s.config.Policy = p
	}
	if s.network != "" {
		n, err := sim.NetworkNamed(s.network)
		if err != nil {
			return err
		}
		s.config.Network = &n
	}
	return nil
}

// replay is the command line of one seed.
func (s *simulate) replay(seed uint64) string {
	c := fmt.Sprintf("godwit simulate --first %d --seeds 1", seed)
	for _, f := range []struct {
		name string
		n    int
	}{{"nodes", s.config.Nodes}, {"workers", s.config.Workers}, {"steps", s.config.Steps}} {
		if f.n > 0 {
			c += fmt.Sprintf(" --%s %d", f.name, f.n)
		}
	}
	if s.config.Bounded {
		c += " --bounded"
	}
	if s.policy != "" {
		c += " --policy " + cli.Argument(s.policy)
	}
	if s.network != "" {
		c += " --network " + s.network
	}
	return c
}

// print writes the report. vacuous lists what the storms did not meet, if anything.
func (s *simulate) print(w io.Writer, r *sim.StormsReport, vacuous error) error {
	perSecond := func(n uint64) float64 { return float64(n) / max(r.Took.Seconds(), 1e-9) }
	if !s.json {
		_, err := fmt.Fprintf(w, "%d seeds without a fault in %.1f s (%.0f a second), %v of virtual time\n"+
			"%d messages (%.0f a second), %d moves, %d replicas set up, %d dropped; hash %016x\n",
			r.Seeds, r.Took.Seconds(), perSecond(r.Seeds), r.Virtual.Round(time.Millisecond), r.Messages, perSecond(r.Messages), r.Moves, r.Copies, r.Drops, r.Hash)
		return err
	}
	out := struct {
		*sim.StormsReport
		Hash              string  `json:"hash"` // in place of the report's: many programs read numbers as floats, which have 53 bits
		SeedsPerSecond    float64 `json:"seeds_per_second"`
		MessagesPerSecond float64 `json:"messages_per_second"`
		FailedSeed        uint64  `json:"failed_seed,omitempty"`
		Weather           string  `json:"weather,omitempty"`
		Error             string  `json:"error,omitempty"`
		Replay            string  `json:"replay,omitempty"`
	}{StormsReport: r, Hash: fmt.Sprintf("%016x", r.Hash), SeedsPerSecond: perSecond(r.Seeds), MessagesPerSecond: perSecond(r.Messages)}
	if vacuous != nil {
		out.Error = vacuous.Error()
	}
	if f := r.Failed; f != nil {
		out.FailedSeed, out.Weather, out.Error, out.Replay = f.Seed, f.Config, f.Err.Error(), s.replay(f.Seed)
	}
	return json.NewEncoder(w).Encode(out)
}
