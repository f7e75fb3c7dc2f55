package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	ps "github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/telemetry/diagnose"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

func diagnoseCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diagnose RUN",
		Short: "Say what holds up a run that was traced",
		Long: `Say what holds up a run, with figures and advice, from what it wrote with --trace: a slow node or
link, keys that are announced too late or not at all, a hot key, small batches, a machine without
memory. What costs most comes first. The run may be under way. RUN is the folder of a run, or of
--trace if there is one run in it; of one that has gone on by itself with a node less, the last part is
looked at (NAME-restartN). The first line has the run's name.

A run that failed is not well: why it did stands before what held it up. One whose end is missing and
that has written nothing for 10 s has failed, too: its leader was killed.

With --json, stdout has one object: "run", "policy", "failed", why the run failed (empty: it did
not, or goes on), "findings", each with "ill", "loss" (share of the workers' time), "node", "peer",
"keys", "text", "advice" and "figures", "crowded", whether processors were taken, so that it is not
known why workers wait, and "damaged", how many lines of samples and events could not be read.

Exit codes:
  0    no ill was found: the run is well, or no node has told how it trains
  1    failed
  2    wrong usage
  4    the run has an ill, or failed`,
		Example: "  godwit train kge --nodes 4 --trace /tmp/trace\n  godwit diagnose /tmp/trace",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := record.Outline(args[0])
			if err == nil {
				err = r.Watch(cmd.Context())
			}
			if err != nil {
				return cli.Failed(err)
			}
			p := &reading{to: cmd.ErrOrStderr(), terminal: cli.Rewrites(cmd.ErrOrStderr()), next: time.Now().Add(silent)}
			for i := range r.Nodes {
				p.all += r.Bytes(ps.NodeID(i))
			}
			in, err := diagnose.Scan(r, p.tell)
			p.end()
			if err != nil {
				return cli.Failed(err)
			}
			found := diagnose.Diagnose(in)
			write := writeFindings
			if asJSON {
				write = findingsAsJSON
			}
			if err := write(cmd.OutOrStdout(), r, &in, found); err != nil {
				return cli.Failed(err)
			}
			if len(found) > 0 || r.Failure() != "" {
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

// For how long a reading says nothing, and how often it tells how far it is.
const (
	silent    = time.Second
	tellEvery = 200 * time.Millisecond
)

// A reading tells on a terminal how far the samples of a run are read, if that takes long.
type reading struct {
	to        io.Writer
	terminal  bool
	read, all int64     // bytes
	next      time.Time // when it is to tell
	told      bool      // the terminal shows a line
}

func (p *reading) tell(bytes int) {
	p.read += int64(bytes)
	if now := time.Now(); p.terminal && !now.Before(p.next) {
		p.next, p.told = now.Add(tellEvery), true
		_, _ = fmt.Fprintf(p.to, "\r\x1b[Kreading samples: %.1f of %.1f GB", float64(p.read)/1e9, float64(max(p.read, p.all))/1e9)
	}
}

// end clears the line.
func (p *reading) end() {
	if p.told {
		_, _ = io.WriteString(p.to, "\r\x1b[K")
	}
}

// runOf returns the name of a run: of its events, or, where these are elsewhere, of a node's samples.
func runOf(r *record.Run) string {
	name := r.About.Run
	for _, n := range r.Nodes {
		if n != nil {
			name = cmp.Or(name, n.Header.Run)
		}
	}
	return name
}

func findingsAsJSON(w io.Writer, r *record.Run, in *diagnose.Input, found []diagnose.Finding) error {
	if found == nil {
		found = []diagnose.Finding{}
	}
	return json.NewEncoder(w).Encode(struct {
		Run      string             `json:"run"`
		Policy   string             `json:"policy"`
		Failed   string             `json:"failed"`
		Findings []diagnose.Finding `json:"findings"`
		Crowded  bool               `json:"crowded"`
		Damaged  int                `json:"damaged"`
	}{runOf(r), in.Policy, r.Failure(), found, in.Crowded(), r.Bad})
}

// damaged is a line about lines that could not be read.
func damaged(lines int) string {
	return fmt.Sprintf("Damaged lines of samples or events, which were passed over: %d. What they tell is missing above.\n", lines)
}

func writeFindings(w io.Writer, r *record.Run, in *diagnose.Input, found []diagnose.Finding) error {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s\n", trace.Printable(runOf(r)))
	why := r.Failure()
	if why != "" {
		fmt.Fprintf(&b, "the run failed: %s\n", trace.Printable(strings.ReplaceAll(why, "\n", "; ")))
	}
	switch {
	case len(in.Nodes) == 0 && (r.End() != nil || why != ""):
		b.WriteString("no node told how it trained: each does so every second\n")
	case len(in.Nodes) == 0:
		b.WriteString("no node has told yet how it trains: each does so every second\n")
	case len(found) == 0 && why != "":
		b.WriteString("until then nothing was found that held it up\n")
	case len(found) == 0 && in.Crowded():
		b.WriteString("no ill was found\n")
	case len(found) == 0:
		b.WriteString("the run is well\n")
	}
	for _, f := range found {
		fmt.Fprintf(&b, "%s: %s.\n  It costs about %.0f %% of the workers' time. Advice: %s.\n", f.Ill, f.Text, 100*f.Loss, f.Advice)
	}
	if in.Crowded() {
		b.WriteString("The processors of its machines are taken, by other programs or by more nodes than there are processors, so it is not known why workers wait.\n")
	}
	if r.Bad > 0 {
		b.WriteString(damaged(r.Bad))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
