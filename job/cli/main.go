package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/train/task"
)

// Main makes a program of a task, runs it on the command line of this process, and
// ends the process: see the package comment. The task is registered by
// [task.Register] before, in an init function.
func Main(t Task) { Execute(Program(t)) }

// Program returns the command that Main executes.
func Program(t Task) *cobra.Command {
	if t.Settings == nil {
		panic("cli: Main: a task without settings")
	}
	if _, err := task.New(t.Settings.Name()); err != nil {
		panic(fmt.Sprintf("cli: Main: %v: an init function must call task.Register, so that the other nodes know it", err))
	}
	cmd := t.Command()
	cmd.Use = program()
	root(cmd)
	return cmd
}

// Root makes a command the root of a program: with the command "node" for the other
// processes of a run, help, completion, and errors of flags and arguments that point to the help.
func Root(cmd *cobra.Command) {
	helpWithArgs(cmd)
	root(cmd)
}

// root makes a command the root of a program. Errors of its arguments point to the help already.
func root(cmd *cobra.Command) {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return Usage(fmt.Errorf("%w\nSee '%s --help'", worded(err), cmd.CommandPath()))
	})
	cmd.SetHelpCommand(helpCommand())
	cmd.AddCommand(NodeCommand())
}

// helpCommand is the command "help", which has an error for what it knows nothing of.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				name := cmd.Root().Name()
				return Usage(fmt.Errorf("there is no command %q\nSee '%s --help'", name+" "+strings.Join(args, " "), name))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// program is what this program is called.
func program() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") }

// A Demo is how the runs of Compare are watched.
type Demo struct{ watching watching }

// Flags are how the runs can be watched.
func (d *Demo) Flags() Group { return d.watching.showing() }

// Compare trains a task with each of some numbers of nodes, as processes of this
// program, one run after the other, and prints their results beside each other.
func (d *Demo) Compare(cmd *cobra.Command, t Task, nodes ...int) ([]*job.Result, error) {
	stop, ctx := interrupts(evaluated(""), 0)
	if err := d.watching.check(); err != nil {
		return nil, Usage(err)
	}
	p := newPrinter(false, false)
	end, err := d.watching.show(nil, func(asked, text string) { p.listening(asked, text+"#/allocation") }) // what it is about, at once
	if err != nil {
		return nil, Failed(err)
	}
	results, err := d.each(ctx, cmd, t, stop, p, nodes)
	if err == nil && d.watching.dashboard != "" {
		err = d.tour(ctx, cmd, t, stop, p, slices.Max(nodes))
	}
	if eerr := end(); err == nil && eerr != nil {
		err = Failed(eerr)
	}
	return results, err
}

// each does the runs, and shows what came of them.
func (d *Demo) each(ctx context.Context, cmd *cobra.Command, t Task, stop <-chan struct{}, p *printer, nodes []int) (results []*job.Result, err error) {
	for _, n := range nodes {
		spec := job.Default(t.Settings)
		spec.Nodes = n
		r, err := d.once(ctx, spec, stop, p)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	if err := table(cmd.OutOrStdout(), results); err != nil {
		return nil, Failed(err)
	}
	if logger.Load() == nil {
		legend(cmd.ErrOrStderr(), t.Legend)
	}
	return results, nil
}

// once is one run.
func (d *Demo) once(ctx context.Context, spec job.Spec, stop <-chan struct{}, p *printer) (*job.Result, error) {
	c := cluster{node: job.NodeConfig{Stop: stop}, watching: d.watching}
	if err := c.prepare(&spec); err != nil {
		return nil, Failed(err)
	}
	r, err := c.do(ctx, spec, p)
	return r, outcome(r, err)
}

// What the dashboard shows beside the runs that are compared: a few epochs under other policies.
var tourPolicies = []string{"static", "replicate", "relocate", "adapm"}

const tourEpochs = 3

// tour trains the task under other policies, for the dashboard to show what they do.
func (d *Demo) tour(ctx context.Context, cmd *cobra.Command, t Task, stop <-chan struct{}, p *printer, nodes int) error {
	p.say(fmt.Sprintf("\nA tour for the dashboard: %d epochs under each of %s", tourEpochs, strings.Join(tourPolicies, ", ")))
	var results []*job.Result
	for _, policy := range tourPolicies {
		spec := job.Default(t.Settings)
		spec.Nodes, spec.Policy, spec.Options.Epochs, spec.Untrained = nodes, policy, tourEpochs, false
		r, err := d.once(ctx, spec, stop, p)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	if err := table(cmd.OutOrStdout(), results); err != nil {
		return Failed(err)
	}
	if p.terminal {
		p.say("the dashboard stays until Ctrl-C")
		<-stop
	}
	return nil
}
