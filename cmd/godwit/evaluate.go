package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

// An evaluation is the command line of "godwit evaluate".
type evaluation struct {
	data string
	use  task.Use
	by   string
	json bool
}

// byRelation is the value of --by.
const byRelation = "relation"

func evaluateCommand() *cobra.Command {
	e := &evaluation{}
	cmd := &cobra.Command{
		Use:   "evaluate MODEL [FILE]",
		Short: "Evaluate a trained model",
		Long: `Evaluate a trained model by the same figures as training does.

Without FILE, on the data that were held out of training, which are read again where
they were then, or at --data. With FILE, on all that it holds, in the format of the
task's data (and of the same options, such as --hash): facts, cells, examples,
documents; questions with four words a line for w2v. What the model has no name or
weight for is left out, and counted on stderr. A sketch is evaluated without FILE only.

Facts are ranked among all entities of the model, without other facts of FILE and
those of --known, which should be those of training. Their figures are printed of all
ranks, and of those of heads and of tails by themselves; with --by relation also of
each relation, that with the most facts first.

` + modelFolder,
		Example: `  godwit evaluate embeddings
  godwit evaluate embeddings new-facts.txt --known fb15k-237/
  godwit evaluate embeddings --by relation
  godwit evaluate weights next-week.libsvm --json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && e.data != "" {
				return cli.Usage(errors.New("--data is where the data of training are, and FILE is evaluated instead of them: choose one"))
			}
			if len(args) == 1 && e.use.Known != "" {
				return cli.Usage(errors.New("--known is for the facts of a FILE: those of training are known without it"))
			}
			if e.by != "" && e.by != byRelation {
				return cli.Usage(fmt.Errorf("--by %q: want %s", e.by, byRelation))
			}
			return ranErr(e.run(cmd, args))
		},
	}
	g := cli.NewGroup("Data")
	g.StringVarP(&e.data, "data", "d", "", "`file or folder` of the data of training, where it is elsewhere now")
	g.StringVar(&e.use.Known, "known", "", "`file or folder` of facts that are known: ranks leave them out (kge)")
	o := cli.NewGroup("Output")
	o.StringVar(&e.by, "by", "", "what else to print the figures of: each `relation` (kge)")
	o.BoolVar(&e.json, "json", false, "print the figures as a JSON object")
	cli.AddGroups(cmd, g, o)
	return cmd
}

func (e *evaluation) run(cmd *cobra.Command, args []string) error {
	m, err := openModel(cmd.Context(), args[0])
	if err != nil {
		return err
	}
	defer m.close()
	if err := onlyKGE(m.about, "--known", e.use.Known); err != nil {
		return err
	}
	if err := onlyKGE(m.about, "--by "+e.by, e.by); err != nil {
		return err
	}
	var t *task.Test
	if len(args) == 2 {
		e.use.Test = args[1]
		t, err = m.Test(cmd.Context(), e.use)
	} else {
		if t, err = m.TestHeldOut(cmd.Context(), e.data); err != nil && e.data != "" {
			err = fmt.Errorf("%w (--data is where the data of training are now; other data to evaluate on are named without it, as FILE)", err)
		}
	}
	if err != nil {
		return err
	}
	if e.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(e.object(m.about, t))
	}
	for _, w := range t.Warnings {
		fmt.Fprintln(os.Stderr, "warning:", w)
	}
	fmt.Fprintln(os.Stderr, t.Data)
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', tabwriter.AlignRight)
	printFigures(w, t)
	if e.by == byRelation {
		fmt.Fprintln(w)
		printRelations(w, t.Links.Relations)
	}
	return w.Flush()
}

// evaluated is what --json prints.
type evaluated struct {
	Task        string             `json:"task"`
	Model       string             `json:"model"`
	Data        string             `json:"data"`
	Test        job.Metrics        `json:"test"`
	ByDirection *directionFigures  `json:"by_direction,omitempty"`
	ByRelation  []*relationFigures `json:"by_relation,omitempty"`
	Warnings    []string           `json:"warnings,omitempty"`
}

type directionFigures struct {
	Head job.Metrics `json:"head"`
	Tail job.Metrics `json:"tail"`
}

type relationFigures struct {
	Relation string `json:"relation"`
	Facts    int64  `json:"facts"`
	directionFigures
}

func (e *evaluation) object(about *export.Model, t *task.Test) *evaluated {
	o := &evaluated{Task: about.Task, Model: about.Model, Data: t.Data, Test: t.Metrics, Warnings: t.Warnings}
	if t.Links == nil {
		return o
	}
	o.ByDirection = &directionFigures{t.Links.Head, t.Links.Tail}
	if e.by == byRelation {
		for _, r := range t.Links.Relations {
			o.ByRelation = append(o.ByRelation, &relationFigures{r.Name, r.Facts, directionFigures{r.Head, r.Tail}})
		}
	}
	return o
}

// printFigures prints the figures as columns: a line of them, or three with what was predicted
// before them.
func printFigures(w io.Writer, t *task.Test) {
	type row struct {
		predicted string
		figures   []train.Metric
	}
	rows := []row{{"", t.Metrics}}
	if t.Links != nil {
		rows = []row{{"both\t", t.Metrics}, {"head\t", t.Links.Head}, {"tail\t", t.Links.Tail}}
		fmt.Fprint(w, "predicted\t")
	}
	for _, x := range t.Metrics {
		fmt.Fprintf(w, "%s\t", x.Name)
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		fmt.Fprint(w, r.predicted)
		for _, x := range r.figures {
			fmt.Fprintf(w, "%.4f\t", x.Value)
		}
		fmt.Fprintln(w)
	}
}

// printRelations prints a line for each relation. Its name comes last, since it may be long.
func printRelations(w io.Writer, relations []task.Relation) {
	fmt.Fprint(w, "facts\t")
	for i, r := range relations {
		// The first figure is the MRR, and the last one is that of the hits among the first ten.
		columns := []int{0, len(r.Head) - 1}
		if i == 0 {
			for _, c := range columns {
				fmt.Fprintf(w, "head %s\ttail %s\t", r.Head[c].Name, r.Tail[c].Name)
			}
			fmt.Fprintln(w, "  relation")
		}
		fmt.Fprintf(w, "%d\t", r.Facts)
		for _, c := range columns {
			fmt.Fprintf(w, "%.4f\t%.4f\t", r.Head[c].Value, r.Tail[c].Value)
		}
		fmt.Fprintf(w, "  %s\n", r.Name)
	}
}
