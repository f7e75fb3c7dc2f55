package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/lines"
	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/train/task"
)

const modelFolder = `MODEL is a folder that "godwit train … --export" wrote. What is read of it is
checked against its model.json. Or it is a checkpoint, the last one of a folder or, as in
runs/kge#12, that of a number; then the data of training are read again, for the names.`

// A prediction is the command line of "godwit predict".
type prediction struct {
	use  task.Use
	json bool
}

func predictCommand() *cobra.Command {
	p := &prediction{}
	cmd := &cobra.Command{
		Use:   "predict MODEL [FILE]",
		Short: "Answer questions by a trained model",
		Long: `Answer the questions of a file, or of stdin, by a trained model: one a line, as the
model's task has them, each answered as soon as it is read.

  kge     head, relation and tail, separated by tabs or spaces: how likely the fact
          is, as a score to compare. "?" for head or tail: what completes the fact
          best, without the facts of --known
  mf      row and column: the value of the cell. "?" for one of them: the cells with
          the largest values
  linear  index:value … as in training, with or without a label: of two classes the
          label and the probability of the positive one, of several the label and its
          probability (--json: of all), or the value
  lda     the text of a document: its topics and their shares
  sketch  an item: about how often it was counted, and no less often
  w2v     a word: the nearest ones. Three words A B C: what is to C as B is to A

Answers are lines of fields separated by tabs. What the model does not know is
answered by "?" and the reason, and counted on stderr. With --json, an answer is
{"line": N, "answer": {…}}, or {"line": N, "answer": {"unknown": "…"}}.

` + modelFolder,
		Example: `  printf 'Paris\tcapital of\t?\n' | godwit predict embeddings --known facts/ --top 5
  godwit predict factors cells.tsv > values.tsv
  godwit predict weights new.libsvm --json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if p.use.Top < 1 {
				return cli.Usage(fmt.Errorf("--top %d: want at least 1", p.use.Top))
			}
			return ranErr(p.run(cmd, args))
		},
	}
	g := cli.NewGroup("Questions")
	g.StringVar(&p.use.Known, "known", "", "`file or folder` of facts that are known: completions leave them out (kge)")
	cli.AddGroups(cmd, g, topFlags(&p.use.Top, &p.json))
	return cmd
}

// A trained is a model that can be asked, wherever it is kept. It must be closed.
type trained struct {
	*task.Model
	about *export.Model
	kept  *job.Model
}

// openModel opens an exported folder, or a checkpoint.
func openModel(ctx context.Context, place string) (*trained, error) {
	kept, err := job.OpenModel(ctx, place)
	if err != nil {
		return nil, err
	}
	m, err := task.Open(kept.Source)
	if err != nil {
		return nil, errors.Join(err, kept.Close())
	}
	return &trained{m, kept.Describe(), kept}, nil
}

// close removes what was made to read the model.
func (t *trained) close() { _ = t.kept.Close() } // the system cleans its folder of temporary files

func (p *prediction) run(cmd *cobra.Command, args []string) error {
	m, err := openModel(cmd.Context(), args[0])
	if err != nil {
		return err
	}
	defer m.close()
	if err := onlyKGE(m.about, "--known", p.use.Known); err != nil {
		return err
	}
	out := bufio.NewWriter(cmd.OutOrStdout())
	in := lines.New("stdin", flushing{cmd.InOrStdin(), out}, task.MaxQuestion)
	if len(args) == 2 && args[1] != "-" {
		if in, err = lines.Open(args[1], task.MaxQuestion); err != nil {
			return err
		}
		defer in.Close() // it is only read
	}
	unknown := 0
	err = m.Answer(cmd.Context(), p.use, in, func(line int, a task.Answer) error {
		if _, ok := a.(task.Unknown); ok {
			unknown++
		}
		return p.print(out, line, a)
	})
	err = errors.Join(err, out.Flush())
	if unknown > 0 {
		fmt.Fprintf(os.Stderr, "unanswered, for names that the model does not have: %d\n", unknown)
	}
	return err
}

// onlyKGE refuses a flag of the task kge for a model of another task.
func onlyKGE(m *export.Model, flag, value string) error {
	if value != "" && m.Task != "kge" {
		return cli.Usage(fmt.Errorf("%s is for models of the task kge, and this one is of %s", flag, m.Task))
	}
	return nil
}

func (p *prediction) print(w io.Writer, line int, a task.Answer) error {
	if p.json {
		return json.NewEncoder(w).Encode(struct {
			Line   int         `json:"line"`
			Answer task.Answer `json:"answer"`
		}{line, a})
	}
	for _, text := range a.Text() {
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}

// flushing is a reader that has what was said flushed before it waits for more.
type flushing struct {
	io.Reader
	out *bufio.Writer
}

func (f flushing) Read(b []byte) (int, error) {
	if err := f.out.Flush(); err != nil {
		return 0, err
	}
	return f.Reader.Read(b)
}
