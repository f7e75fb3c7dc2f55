package cli

import (
	"fmt"
	"os"
	"path/filepath"
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
	Root(cmd)
	return cmd
}

// Root makes a command the root of a program: with the command "node" for the other
// processes of a run, help, completion, and errors of flags that point to the help.
func Root(cmd *cobra.Command) {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return Usage(fmt.Errorf("%w\nSee '%s --help'", err, cmd.CommandPath()))
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
func (d *Demo) Flags() Group { return d.watching.flags() }

// Compare trains a task with each of some numbers of nodes, as processes of this
// program, one run after the other, and prints their results beside each other.
func (d *Demo) Compare(cmd *cobra.Command, t Task, nodes ...int) ([]*job.Result, error) {
	stop, ctx := interrupts("the model is evaluated as it is", 0)
	p := newPrinter(false, false)
	var results []*job.Result
	for _, n := range nodes {
		spec := job.Default(t.Settings)
		spec.Nodes = n
		c := cluster{node: job.NodeConfig{Stop: stop}, watching: d.watching}
		if err := c.prepare(&spec); err != nil {
			return nil, Failed(err)
		}
		r, err := c.do(ctx, spec, p)
		if err := outcome(r, err); err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	if err := table(cmd.OutOrStdout(), results); err != nil {
		return nil, Failed(err)
	}
	if err := legend(cmd.ErrOrStderr(), t.Legend); err != nil {
		return nil, Failed(err)
	}
	return results, nil
}
