// Command godwit trains sparse models on one or many nodes. "godwit help" is its
// manual.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/job"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitLost        = 3
	exitInterrupted = 130
)

const exitCodes = `Exit codes:
  0    done
  1    failed
  2    wrong usage
  3    another node was lost, failed, or never came
  130  interrupted: what was trained until then was judged and, with --export,
       exported; after a second interrupt, nothing is kept`

func main() {
	cmd := root()
	err := cmd.Execute()
	switch {
	case err == nil, errors.Is(err, errInterrupted):
	case endedAtOnce.Load():
		err = errInterrupted // whatever else came of it
	default:
		fmt.Fprintln(os.Stderr, "godwit:", err)
	}
	os.Exit(exitCode(err))
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "godwit",
		Short: "Train sparse models on one or many nodes",
		Long: `Godwit is a parameter server that adapts itself to the task: it moves or
replicates each parameter as the training uses it, just in time.

To see it train, on one node and then on four:

  godwit demo

` + exitCodes,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w\nSee '%s --help'", err, cmd.CommandPath())}
	})
	cmd.SetHelpCommand(helpCommand())
	cmd.AddCommand(trainCommand(), nodeCommand(), simulateCommand(), experimentCommand(), benchCommand(), demoCommand(), nearestCommand(), analogyCommand(), versionCommand())
	return cmd
}

// helpCommand is "godwit help", which has an error for what it knows nothing of.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usageError{fmt.Errorf("there is no command %q\nSee 'godwit --help'", "godwit "+strings.Join(args, " "))}
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// errInterrupted: the run was stopped early in order, and has told of itself.
var errInterrupted = errors.New("interrupted")

// A usageError is one in the command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// A ranError is one that is not in the command line.
type ranError struct{ err error }

func (e ranError) Error() string { return e.err.Error() }
func (e ranError) Unwrap() error { return e.err }

// exitCode turns an error of a command into its exit code. What a command did
// not return as ranError, cobra found in the command line.
func exitCode(err error) int {
	var ran ranError
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errInterrupted), errors.Is(err, job.ErrInterrupted):
		return exitInterrupted
	case errors.Is(err, godwit.ErrPeerLost), errors.Is(err, coord.ErrFailed), errors.Is(err, coord.ErrMissing), errors.Is(err, coord.ErrCoordinator):
		return exitLost
	case errors.As(err, &ran) && !errors.As(err, &usage):
		return exitFailed
	}
	return exitUsage
}

// outcome is the error of a command that ran jobs.
func outcome(r *job.Result, err error) error {
	switch {
	case err != nil:
		return ranError{err}
	case r.ExportError != "":
		return ranError{errors.New(r.ExportError)}
	case r.Interrupted():
		return errInterrupted
	}
	return nil
}
