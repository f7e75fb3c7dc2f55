// Command godwit trains sparse models on one or many nodes. "godwit help" is its
// manual.
package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/job/cli"
)

func main() { cli.Execute(root()) }

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "godwit",
		Short: "Train sparse models on one or many nodes",
		Long: `Godwit is a parameter server that adapts itself to the task: it moves or
replicates each parameter as the training uses it, just in time.

To see it train, on one node and then on four:

  godwit demo

` + cli.ExitCodes + `

"godwit diagnose" ends with 4 if the run has an ill.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cli.Root(cmd)
	cmd.AddCommand(trainCommand(), simulateCommand(), experimentCommand(), benchCommand(), benchPeerCommand(), demoCommand(), checkpointCommand(), predictCommand(), evaluateCommand(), nearestCommand(), analogyCommand(),
		explainCommand(), diagnoseCommand(), topCommand(), dashboardCommand(), versionCommand())
	return cmd
}

// resumeAny is "godwit train --resume PLACE …": the command of the task that the checkpoint is of.
func resumeAny(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
		return cmd.Help()
	}
	place := ""
	for i, a := range args {
		if text, ok := strings.CutPrefix(a, "--resume="); ok {
			place = text
		} else if a == "--resume" && i+1 < len(args) {
			place = args[i+1]
		}
	}
	switch {
	case place != "":
	case strings.HasPrefix(args[0], "-"):
		return cli.Usage(fmt.Errorf("want the task before the flags, as in 'godwit train kge %s', or --resume with the place of a checkpoint\nSee 'godwit train --help'", strings.Join(args, " ")))
	default:
		return cli.Usage(fmt.Errorf("there is no task %q\nSee 'godwit train --help'", args[0]))
	}
	c, err := checkpoint.OpenPlace(cmd.Context(), place)
	if err != nil {
		return cli.Failed(err)
	}
	name := c.Manifest().Task
	if !slices.ContainsFunc(cmd.Commands(), func(t *cobra.Command) bool { return t.Name() == name }) {
		return cli.Failed(fmt.Errorf("--resume %s: it is a checkpoint of %q, which is no task of godwit: go on with the program that wrote it", place, name))
	}
	root := cmd.Root()
	root.SetArgs(append([]string{"train", name}, args...))
	return root.ExecuteContext(cmd.Context())
}

// trainTasks make the subcommands of "godwit train", with settings of their own each time. The file of each one adds
// it in its init function.
var trainTasks []func() cli.Task

func trainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a model",
		Long: `Train a model. "godwit train TASK --help" shows the settings of a task.

With --resume and no task, the run of a checkpoint goes on; the other flags are those of its task.`,
		Example: `  godwit train kge --data fb15k-237 --checkpoint runs/kge
  godwit train --resume runs/kge --nodes 3   # whatever task it was`,
		DisableFlagParsing: true, // the flags are those of a task
		RunE:               resumeAny,
	}
	for _, task := range trainTasks {
		t := task()
		cmd.AddCommand(t.Command())
	}
	return cmd
}
