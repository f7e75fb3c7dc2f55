package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/telemetry/diagnose"
	"github.com/godwit-ps/godwit/telemetry/record"
)

func diagnoseCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diagnose RUN",
		Short: "Say what holds up a run that was traced",
		Long: `Say what holds up a run, with figures and advice, from what it wrote with --trace: a slow node or
link, keys that are announced too late or not at all, a hot key, small batches, a machine without
memory. What costs most comes first. The run may be under way. RUN is the folder of a run, or of
--trace if there is one run in it.

With --json, stdout has one object: "run", "policy" and "findings", each with "ill", "loss" (share of
the workers' time), "node", "peer", "keys", "text", "advice" and "figures".

Exit codes:
  0    no ill was found: the run is well, or no node has told yet how it trains
  1    failed
  2    wrong usage
  4    the run has an ill`,
		Example: "  godwit train kge --nodes 4 --trace /tmp/trace\n  godwit diagnose /tmp/trace",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := record.Open(args[0])
			if err != nil {
				return cli.Failed(err)
			}
			in := diagnose.From(r)
			found := diagnose.Diagnose(in)
			write := writeFindings
			if asJSON {
				write = findingsAsJSON
			}
			if err := write(cmd.OutOrStdout(), r, &in, found); err != nil {
				return cli.Failed(err)
			}
			if len(found) > 0 {
				return cli.ErrFound
			}
			return nil
		},
	}
	g := cli.NewGroup("Output")
	g.BoolVar(&asJSON, "json", false, "print a JSON object")
	cli.AddGroups(cmd, g)
	return cmd
}

func findingsAsJSON(w io.Writer, r *record.Run, in *diagnose.Input, found []diagnose.Finding) error {
	if found == nil {
		found = []diagnose.Finding{}
	}
	return json.NewEncoder(w).Encode(struct {
		Run      string             `json:"run"`
		Policy   string             `json:"policy"`
		Findings []diagnose.Finding `json:"findings"`
	}{r.About.Run, in.Policy, found})
}

func writeFindings(w io.Writer, _ *record.Run, in *diagnose.Input, found []diagnose.Finding) error {
	var b strings.Builder
	switch {
	case len(in.Nodes) == 0:
		b.WriteString("no node has told yet how it trains: each does so every second\n")
	case len(found) == 0:
		b.WriteString("the run is well\n")
	}
	for _, f := range found {
		fmt.Fprintf(&b, "%s: %s.\n  It costs about %.0f %% of the workers' time. Advice: %s.\n", f.Ill, f.Text, 100*f.Loss, f.Advice)
	}
	if in.Crowded() {
		b.WriteString("The processors of its machines are taken, by other programs or by more nodes than there are processors, so it is not known why workers wait.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
