package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/job"
)

// Exit codes.
const (
	OK          = 0   // done
	Failure     = 1   // failed
	WrongUsage  = 2   // an error in the command line
	Lost        = 3   // another node or the coordinator was lost, failed, or never came
	Found       = 4   // the run that was looked at has an ill, or failed ([ErrFound])
	Interrupted = 130 // ended by an interrupt
)

// ExitCodes is the text of a help about the exit codes. [AddGroups] adds it to a help that has no such list.
const ExitCodes = exitCodesTitle + `
  0    done
  1    failed
  2    wrong usage
  3    another node was lost, failed, or never came; or another run writes its
       checkpoints to the same place
  130  interrupted`

// exitCodesTitle begins each list of exit codes.
const exitCodesTitle = "Exit codes:"

// ErrInterrupted is returned by a command whose run was stopped early in order, and
// which has printed its result.
var ErrInterrupted = errors.New("interrupted")

// ErrFound is returned by a command that looked at a run, found an ill or that it failed, and has printed
// it.
var ErrFound = errors.New("the run has an ill, or failed")

// A usageError is one in the command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// A failure is an error that is not in the command line.
type failure struct{ err error }

func (e failure) Error() string { return e.err.Error() }
func (e failure) Unwrap() error { return e.err }

// Usage marks an error of a command as one in the command line: its exit code is
// [WrongUsage].
func Usage(err error) error { return usageError{err} }

// Failed marks an error of a command as one that is not in the command line: its exit
// code is [Failure], or [Lost] for a lost node.
func Failed(err error) error { return failure{err} }

// ExitCode turns an error of a command into its exit code. What a command did
// not return as Failed, cobra found in the command line.
func ExitCode(err error) int {
	var failed failure
	var usage usageError
	switch {
	case err == nil:
		return OK
	case errors.Is(err, ErrInterrupted), errors.Is(err, job.ErrInterrupted):
		return Interrupted
	case errors.Is(err, ErrFound):
		return Found
	case errors.As(err, &failed) && errors.Is(err, godwit.ErrMemory):
		return Failure
	case errors.Is(err, godwit.ErrPeerLost), errors.Is(err, coord.ErrFailed), errors.Is(err, coord.ErrMissing), errors.Is(err, coord.ErrCoordinator),
		errors.Is(err, checkpoint.ErrLocked):
		return Lost
	case errors.As(err, &failed) && !errors.As(err, &usage):
		return Failure
	}
	return WrongUsage
}

// Execute runs a command on the command line of this process, says its error on
// stderr, and ends the process with its exit code.
func Execute(root *cobra.Command) {
	root.SetArgs(withAddress(os.Args[1:]))
	var unwritten error // help, of which cobra returns no error
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		out := &failing{w: c.OutOrStdout()}
		c.SetOut(out)
		help(c, args)
		unwritten = out.err
	})
	err := root.Execute()
	if err == nil && unwritten != nil {
		err = Failed(unwritten)
	}
	switch {
	case err == nil, errors.Is(err, ErrInterrupted), errors.Is(err, ErrFound):
	case endedAtOnce.Load():
		err = ErrInterrupted // whatever else came of it
	default:
		if logger.Load() == nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", root.Name(), err)
		} else {
			say(os.Stderr, slog.LevelError, err.Error())
		}
	}
	os.Exit(ExitCode(err))
}

// A failing writer keeps the first error of w, and says nothing of it.
type failing struct {
	w   io.Writer
	err error
}

func (f *failing) Write(b []byte) (int, error) {
	if f.err == nil {
		_, f.err = f.w.Write(b)
	}
	return len(b), nil
}

// outcome is the error of a command that ran a job.
func outcome(r *job.Result, err error) error {
	switch {
	case err != nil:
		return Failed(err)
	case r.ExportError != "" || r.ProfileError != "" || r.CheckpointError != "":
		var errs []error
		for _, text := range []string{r.ExportError, r.ProfileError, r.CheckpointError} {
			if text != "" {
				errs = append(errs, errors.New(text))
			}
		}
		return Failed(errors.Join(errs...))
	case r.Interrupted():
		return ErrInterrupted
	}
	return nil
}
