package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

func explainCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "explain KEY|NAME --run RUN",
		Short: "Tell the life of a key in a run that was traced",
		Long: `Tell who owned a key and when, which nodes had replicas, which announced it, and how often workers
accessed it where, what nodes decided about it last and from which costs and intents, from what a run wrote with --trace. A key is its number, table:row, or its name, where
the task has names (entities of a graph, words). RUN is the folder of a run, or of --trace if there is one
run in it; the run may be under way. Of one that has gone on by itself with a node less, it is the last part.

Evaluations announce no keys, and a step may begin before its keys can come: so nodes learn from accesses of
keys that a task announces, too, and what they made of these is told.`,
		Example: "  godwit train kge --nodes 4 --trace /tmp/trace\n  godwit explain entity:17 --run /tmp/trace",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" {
				return cli.Usage(errors.New("want --run RUN, the folder that --trace of the run named"))
			}
			t, err := trace.Open(dir)
			if err != nil {
				return cli.Failed(err)
			}
			k, err := t.Find(args[0])
			if err != nil {
				return cli.Usage(err)
			}
			l, err := t.Life(k)
			if err != nil {
				return cli.Failed(err)
			}
			if err := l.Explain(cmd.OutOrStdout(), &t.Header); err != nil {
				return cli.Failed(err)
			}
			return nil
		},
	}
	g := cli.NewGroup("Trace")
	g.StringVar(&dir, "run", "", "`folder` of the run")
	g.StringVar(&dir, "trace", "", "`folder` of the run, as --run")
	cli.AddGroups(cmd, g)
	return cmd
}
