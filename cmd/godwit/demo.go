package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/job/cli"
)

func demoCommand() *cobra.Command {
	var d cli.Demo
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Train a small model on one node, then on four, and compare",
		Long: `Train embeddings of a generated knowledge graph, on one node and then on four
node processes of this machine, and compare quality and cost. It is the same as

  godwit train kge
  godwit train kge --nodes 4`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return demo(cmd, &d) },
	}
	cli.AddGroups(cmd, d.Flags())
	return cmd
}

func demo(cmd *cobra.Command, d *cli.Demo) error {
	results, err := d.Compare(cmd, kgeTask(), 1, 4)
	if err != nil {
		return err
	}
	one, four := results[0].Test.At("MRR"), results[1].Test.At("MRR")
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "\n1 node: MRR %.4f. 4 nodes: MRR %.4f; their workers waited for %.1f %% of the time.\n", one, four, 100*results[1].Waiting)
	return err
}
