package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/coord/etcd"
	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// NodeCommand returns the command "node", by which a process joins a run that another
// one of the same program leads.
func NodeCommand() *cobra.Command {
	var j job.Joiner
	var at etcd.Access
	var tls tcp.TLSFiles
	var asJSON, quiet bool
	var seen watching
	cmd := &cobra.Command{
		Use:   "node --etcd HOST:PORT --run NAME",
		Short: "Join a run as another node",
		Long: `Join a run that was begun elsewhere, as another of its nodes. What to train is
read from etcd, and the data from this machine. The run begins when all its nodes
are there, and ends everywhere if one is lost. Ctrl-C and SIGTERM here end it in
order at all nodes, as they do where it was begun.

Begin the run on one machine with the flags --nodes 2 --await, and on another run
the command that this prints, such as

  GODWIT_TOKEN=FJQ5NZHN… ` + program() + ` node --etcd http://192.168.1.10:40123 --run kge-1f09ab3c

` + tokenHelp,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := given(cmd)
			if err != nil {
				return Usage(err)
			}
			if j.TLS, err = TLSOf(&tls); err != nil {
				return Usage(err)
			}
			if err := seen.check(); err != nil {
				return Usage(err)
			}
			if err := j.Check(); err != nil {
				return inFlags(cmd, err, &j.NodeConfig)
			}
			if len(at.Endpoints) == 0 || j.Run == "" {
				return Usage(fmt.Errorf("--etcd and --run say which run to join: both are needed"))
			}
			at.Token = os.Getenv(job.TokenEnv)
			if err := etcd.CheckToken(at.Token); err != nil {
				return Usage(fmt.Errorf("%s: %w", job.TokenEnv, err))
			}
			if at.TLS, err = j.TLS.Config(); err != nil {
				return Failed(err)
			}
			j.Coordinator = at
			p := newPrinter(quiet, asJSON)
			if j.Leader != 0 {
				p.people = nil // the leader tells
			}
			stop, ctx := interrupts(evaluated(j.Export), 0)
			j.Stop, j.Progress, j.Tick = stop, p.event, p.tick()
			seen.spread = j.Leader != 0
			seen.attend(&j.NodeConfig, p.listening)
			if j.Leader != 0 {
				j.LeaderGone = endOf(os.Stdin)
			}
			r, err := job.Join(ctx, j)
			p.clear()
			if r != nil && j.Leader != 0 {
				r.ProfileError = "" // the leader tells of it, and would take a failure of this process for a loss
			}
			if err = outcome(r, err); err == nil && p.unread != nil {
				err = Failed(p.unread)
			}
			return err
		},
	}
	run := NewGroup("Run")
	run.StringSliceVar(&at.Endpoints, "etcd", nil, "`addresses` (host:port, by commas) of the run's etcd")
	run.StringVar(&j.Run, "run", "", "`name` of the run")
	run.DurationVar(&j.Wait, "wait", 0, "how long to wait for the run to be begun (default 1m)")
	here := NewGroup("This node")
	here.StringVarP(&j.Data, "data", "d", "", "file or `folder` of the data, if it is another one here")
	here.IntVarP(&j.Workers, "workers", "w", 0, "`number` of workers (default: as the run was begun with, else the cores)")
	here.StringVar(&j.Listen, "listen", "", "`host:port` at which other nodes reach this one (default: the address by which this machine reaches etcd)")
	here.StringVar(&j.Advertise, "advertise", "", "`host` or host:port by which they reach it, if that is another one")
	here.StringVarP(&j.Export, "export", "o", "", exportUsage)
	here.StringVar(&j.Profile, "profile", "", profileUsage)
	here.BoolVar(&asJSON, "json", false, "print events and the result on stdout as a JSON object a line")
	here.BoolVarP(&quiet, "quiet", "q", false, "say nothing on stderr but warnings, errors, and what nobody could know else: a free port, a new token")
	AddGroups(cmd, run, here, seen.flags(), TLSFlags(&tls))
	cmd.Flags().IntVar(&j.Leader, "leader", 0, "`process` that leads the run and started this one, with a stdin that ends when it does")
	_ = cmd.Flags().MarkHidden("leader") // it is there: the line above
	return cmd
}

// endOf returns a channel that is closed when r ends, which is read until then:
// for the rest of this process, if it does not.
func endOf(r io.Reader) <-chan struct{} {
	end := make(chan struct{})
	go func() {
		defer close(end)
		_, _ = io.Copy(io.Discard, r) // an error is an end, too
	}()
	return end
}
