package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/train/task"
)

// An evaluation is the command line of "godwit evaluate".
type evaluation struct {
	data string
	use  task.Use
	json bool
}

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
those of --known, which should be those of training.

` + modelFolder,
		Example: `  godwit evaluate embeddings
  godwit evaluate embeddings new-facts.txt --known fb15k-237/
  godwit evaluate weights next-week.libsvm --json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && e.data != "" {
				return cli.Usage(errors.New("--data is where the data of training are, and FILE is evaluated instead of them: choose one"))
			}
			if len(args) == 1 && e.use.Known != "" {
				return cli.Usage(errors.New("--known is for the facts of a FILE: those of training are known without it"))
			}
			return ranErr(e.run(cmd, args))
		},
	}
	g := cli.NewGroup("Data")
	g.StringVarP(&e.data, "data", "d", "", "`file or folder` of the data of training, where it is elsewhere now")
	g.StringVar(&e.use.Known, "known", "", "`file or folder` of facts that are known: ranks leave them out (kge)")
	o := cli.NewGroup("Output")
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
		return json.NewEncoder(cmd.OutOrStdout()).Encode(struct {
			Task     string      `json:"task"`
			Model    string      `json:"model"`
			Data     string      `json:"data"`
			Test     job.Metrics `json:"test"`
			Warnings []string    `json:"warnings,omitempty"`
		}{m.about.Task, m.about.Model, t.Data, t.Metrics, t.Warnings})
	}
	for _, w := range t.Warnings {
		fmt.Fprintln(os.Stderr, "warning:", w)
	}
	fmt.Fprintln(os.Stderr, t.Data)
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, x := range t.Metrics {
		fmt.Fprintf(w, "%s\t", x.Name)
	}
	fmt.Fprintln(w)
	for _, x := range t.Metrics {
		fmt.Fprintf(w, "%.4f\t", x.Value)
	}
	fmt.Fprintln(w)
	return w.Flush()
}
