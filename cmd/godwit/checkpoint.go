package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/internal/plural"
	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
)

const checkpointPlaces = `PLACE is a folder, such as runs/kge, or in a bucket, such as s3://models/runs/kge. Commands
for one checkpoint take the last one there, or that of a number: runs/kge#12.`

func checkpointCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "checkpoint",
		Short: "List, check, show, export and remove checkpoints",
		Long: `List, check, show, export and remove the checkpoints of training runs.

` + checkpointPlaces + `

Exit codes:
  0    done
  1    failed: there is none, a file is missing, cut short or was changed, or the
       store cannot be read
  2    wrong usage
  3    another run writes checkpoints there (prune)`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(lsCommand(), verifyCommand(), showCommand(), exportCommand(), pruneCommand())
	return cmd
}

// A checkpointUse is the command line of a command of "godwit checkpoint".
type checkpointUse struct {
	json bool
	keep int
}

func (u *checkpointUse) output() cli.Group {
	g := cli.NewGroup("Output")
	g.BoolVar(&u.json, "json", false, "print JSON, an object a line")
	return g
}

// on makes the function of a command with one argument.
func on(do func(cmd *cobra.Command, place string) error) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, args []string) error { return ranErr(do(cmd, args[0])) }
}

func lsCommand() *cobra.Command {
	u := &checkpointUse{}
	cmd := &cobra.Command{
		Use:   "ls PLACE",
		Short: "List checkpoints",
		Long: `List the checkpoints at a place, the last one last. An incremental one has the rows that
changed since an earlier one, and the rows and MB of these. With --json, each is its
manifest. If the manifest of one is damaged, the others are listed, and it is an error.

` + checkpointPlaces,
		Example: `  godwit checkpoint ls runs/kge`,
		Args:    cobra.ExactArgs(1),
		RunE:    on(u.ls),
	}
	cli.AddGroups(cmd, u.output())
	return cmd
}

func (u *checkpointUse) ls(cmd *cobra.Command, place string) error {
	s, err := checkpoint.OpenStore(cmd.Context(), place)
	if err != nil {
		return err
	}
	all, damaged := checkpoint.Manifests(cmd.Context(), s)
	switch {
	case len(all) == 0 && damaged != nil:
		return damaged
	case len(all) == 0:
		return fmt.Errorf("checkpoint: %w at %s", checkpoint.ErrNone, s)
	case u.json:
		return errors.Join(encodeEach(cmd.OutOrStdout(), all), damaged)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "checkpoint\twritten\trun\tepochs\tnodes\tsince\trows\tMB\tscore\t\n")
	for _, m := range all {
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%d\t%s\t%d\t%.1f\t%s\t\n",
			m.Number, m.Written.Local().Format(time.DateTime), m.Run, m.Epochs, m.Nodes, sinceText(m), m.Rows, float64(m.Bytes())/1e6, scoreText(m.Score))
	}
	return errors.Join(w.Flush(), damaged)
}

// sinceText says since which checkpoint the rows of an incremental one changed.
func sinceText(m *checkpoint.Manifest) string {
	if len(m.BuildsOn) == 0 {
		return "-"
	}
	return fmt.Sprint(m.BuildsOn[len(m.BuildsOn)-1].Number)
}

func encodeEach[T any](w io.Writer, all []T) error {
	e := json.NewEncoder(w)
	for _, x := range all {
		if err := e.Encode(x); err != nil {
			return err
		}
	}
	return nil
}

func scoreText(s *checkpoint.Score) string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%s %.4f", s.Name, s.Value)
}

func verifyCommand() *cobra.Command {
	u := &checkpointUse{}
	cmd := &cobra.Command{
		Use:   "verify PLACE[#NUMBER]",
		Short: "Read a whole checkpoint and check it",
		Long: `Read all of a checkpoint, compare it with its checksums, and print the digest of its
rows. The digest covers the table, number, value and state of each row, bit by bit; it is
equal for equal models, whatever the number of nodes that wrote them, at once or as
changes of earlier checkpoints. Rows that were never accessed are not written, and count
for nothing. A checkpoint that was written with a row twice is refused, as by a run that
resumes it; of very large models some of the rows are looked at for that.

` + checkpointPlaces,
		Example: `  godwit checkpoint verify runs/kge
  godwit checkpoint verify runs/kge#12 --json`,
		Args: cobra.ExactArgs(1),
		RunE: on(u.verify),
	}
	cli.AddGroups(cmd, u.output())
	return cmd
}

func (u *checkpointUse) verify(cmd *cobra.Command, place string) error {
	c, err := checkpoint.OpenPlace(cmd.Context(), place)
	if err != nil {
		return err
	}
	sum, err := c.Verify(cmd.Context())
	if err != nil {
		return err
	}
	m := c.Manifest()
	if u.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(struct {
			Number uint64 `json:"number"`
			Bytes  int64  `json:"bytes"`
			checkpoint.Sum
		}{m.Number, m.ReadBytes(), sum})
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "checkpoint %d is whole: %s in %.1f MB, digest %v\n", m.Number, plural.Of(sum.Rows, "row"), float64(m.ReadBytes())/1e6, sum.Digest)
	return err
}

func showCommand() *cobra.Command {
	u := &checkpointUse{}
	cmd := &cobra.Command{
		Use:   "show PLACE[#NUMBER]",
		Short: "Show what is in a checkpoint",
		Long: `Show what the manifest of a checkpoint says. With --json, it is the manifest.

` + checkpointPlaces,
		Example: `  godwit checkpoint show runs/kge#12`,
		Args:    cobra.ExactArgs(1),
		RunE:    on(u.show),
	}
	cli.AddGroups(cmd, u.output())
	return cmd
}

func (u *checkpointUse) show(cmd *cobra.Command, place string) error {
	c, err := checkpoint.OpenPlace(cmd.Context(), place)
	if err != nil {
		return err
	}
	m := c.Manifest()
	if u.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(m)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	by := ""
	if m.Program != "" { // the library for other languages says nothing of itself
		by = " by godwit " + m.Program
	}
	fmt.Fprintf(w, "checkpoint\t%d, format %d, written %s%s\n", m.Number, m.Format, m.Written.Local().Format(time.DateTime), by)
	fmt.Fprintf(w, "run\t%s, task %s, seed %d, %s\n", m.Run, m.Task, m.Seed, plural.Of(m.Nodes, "node"))
	fmt.Fprintf(w, "trained\t%s, score %s\n", plural.Of(m.Epochs, "epoch"), scoreText(m.Score))
	fmt.Fprintf(w, "rows\t%d in %.1f MB, digest %v\n", m.Rows, float64(m.Bytes())/1e6, m.Digest)
	if len(m.BuildsOn) > 0 {
		fmt.Fprintf(w, "\tthose that changed since checkpoint %s; %.1f MB are read to restore all\n", sinceText(m), float64(m.ReadBytes())/1e6)
	}
	for _, t := range m.Tables {
		fmt.Fprintf(w, "table\t%s: %s of %s, %d with state, %s, first %s\n", t.Name, plural.Of(t.Rows, "row"), plural.Of(t.Dim, "float"), t.Width, t.Rule, t.Init)
	}
	for _, l := range m.Layers() {
		for _, p := range l.Parts {
			fmt.Fprintf(w, "part\t%s: %s, %d bytes\n", p.Name, plural.Of(p.Rows, "row"), p.Bytes)
		}
	}
	for _, s := range m.Sections {
		fmt.Fprintf(w, "section\t%s: %d bytes\n", s.Name, s.Bytes)
	}
	return w.Flush()
}

func exportCommand() *cobra.Command {
	var c job.NodeConfig
	cmd := &cobra.Command{
		Use:   "export PLACE[#NUMBER] FOLDER",
		Short: "Write the model of a checkpoint as an export",
		Long: `Write the model of a checkpoint to a folder, as "godwit train --export" does at the end of a
run: with names, which are read from the data of the run again, and its figures on the
test data.

` + checkpointPlaces,
		Example: `  godwit checkpoint export runs/kge embeddings
  godwit checkpoint export runs/kge#12 embeddings --data fb15k-237`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Export = args[1]
			r, err := job.ExportCheckpoint(cmd.Context(), args[0], c)
			if err == nil && r.ExportError != "" {
				err = errors.New(r.ExportError)
			}
			return ranErr(err)
		},
	}
	g := cli.NewGroup("Data")
	g.StringVarP(&c.Data, "data", "d", "", "`file or folder` of the data of training, where it is elsewhere now")
	cli.AddGroups(cmd, g)
	return cmd
}

func pruneCommand() *cobra.Command {
	u := &checkpointUse{}
	cmd := &cobra.Command{
		Use:   "prune PLACE",
		Short: "Remove old checkpoints, and what was left unfinished",
		Long: `Remove all checkpoints but the last --keep and the one with the best score, and then what
no checkpoint that is left names: parts of runs that were killed while they wrote. What a
checkpoint that is left builds on stays, though it is not listed any more. It is
refused (exit code 3) while a run writes there; such a run prunes by itself.

` + checkpointPlaces,
		Example: `  godwit checkpoint prune runs/kge --keep 1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if u.keep < 1 {
				return cli.Usage(fmt.Errorf("--keep %d: want at least 1", u.keep))
			}
			return ranErr(u.prune(cmd, args[0]))
		},
	}
	g := cli.NewGroup("Checkpoints")
	g.IntVar(&u.keep, "keep", 3, "`number` of checkpoints to keep, the last ones; the best one is kept too")
	cli.AddGroups(cmd, g, u.output())
	return cmd
}

func (u *checkpointUse) prune(cmd *cobra.Command, place string) (err error) {
	ctx := cmd.Context()
	s, err := checkpoint.OpenStore(ctx, place)
	if err != nil {
		return err
	}
	all, err := s.List(ctx, "")
	if err != nil {
		return fmt.Errorf("checkpoint: listing %s: %w", s, err)
	}
	ours := func(o checkpoint.Object) bool { return checkpoint.IsObject(o.Name) || checkpoint.IsLock(o.Name) }
	if !slices.ContainsFunc(all, ours) { // the lock would make the folder, or stay in one of something else
		return fmt.Errorf("checkpoint: %w at %s", checkpoint.ErrNone, s)
	}
	host, _ := os.Hostname() // it helps people only
	lock, err := checkpoint.Acquire(ctx, s, checkpoint.Holder{Run: "godwit checkpoint prune", Host: host, PID: os.Getpid(), Since: time.Now()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	done, err := lock.Prune(ctx, s, u.keep)
	if err != nil {
		return err
	}
	if err := u.pruned(cmd.OutOrStdout(), done); err != nil || len(done.Unreadable) == 0 {
		return err
	}
	last := done.Unreadable[len(done.Unreadable)-1]
	_, damaged := checkpoint.Manifests(ctx, s)
	return errors.Join(fmt.Errorf("nothing of checkpoint %d and those before it was removed, as nobody knows what it names (remove its manifest if it is of no use)", last), damaged)
}

// pruned says what was removed.
func (u *checkpointUse) pruned(out io.Writer, done *checkpoint.Pruned) error {
	if u.json {
		return json.NewEncoder(out).Encode(done)
	}
	which := "no checkpoint"
	switch n := len(done.Checkpoints); {
	case n == 1:
		which = fmt.Sprintf("checkpoint %d", done.Checkpoints[0])
	case n > 1:
		which = "checkpoints " + strings.Trim(fmt.Sprint(done.Checkpoints), "[]")
	}
	_, err := fmt.Fprintf(out, "removed %s: %s, %.1f MB, and %s\n", which, plural.Of(done.Objects, "object"), float64(done.Bytes)/1e6, plural.Of(done.Unfinished, "unfinished one"))
	return err
}
