// Command godwit trains sparse models on one or many nodes. "godwit help" is its
// manual.
package main

import (
	"github.com/spf13/cobra"

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

` + cli.ExitCodes,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cli.Root(cmd)
	cmd.AddCommand(trainCommand(), simulateCommand(), experimentCommand(), benchCommand(), benchPeerCommand(), demoCommand(), checkpointCommand(), predictCommand(), evaluateCommand(), nearestCommand(), analogyCommand(), versionCommand())
	return cmd
}

// trainTasks are the subcommands of "godwit train". The file of each one adds
// it in its init function.
var trainTasks []cli.Task

func trainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a model",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for i := range trainTasks {
		cmd.AddCommand(trainTasks[i].Command())
	}
	return cmd
}
