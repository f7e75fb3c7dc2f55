package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/data/wordvec"
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/train/kge"
	"github.com/godwit-ps/godwit/train/w2v"
)

const vectorFiles = `VECTORS is a file that "godwit train … --export" or another program wrote: .txt or
.vec (word2vec's text format), .bin (its binary one), or .npy (a NumPy array, with
the names of its rows in a .txt file of the same name); or an exported folder, whose
files are checked against its model.json.`

// readVectors reads vectors and normalizes them.
func readVectors(path string) (*wordvec.Vectors, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("there is no file of vectors and no exported folder: %w", err)
	}
	if info.IsDir() {
		file, err := exportedVectors(path)
		if err != nil {
			return nil, err
		}
		path = file
	}
	v, err := wordvec.Read(path)
	if err == nil {
		wordvec.Normalize(v.Vals, v.Dim)
	}
	return v, err
}

// exportedVectors finds the vectors in a folder that an export wrote, and checks that
// they are whole. A folder without a description is taken as it is.
func exportedVectors(dir string) (string, error) {
	m, err := export.Read(dir)
	described := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	names := []string{w2v.BinaryFile, w2v.ArrayFile, kge.EntityFile}
	for _, name := range names {
		file := filepath.Join(dir, name)
		switch {
		case described && m.File(name) != nil:
			return file, m.Verify(dir, name)
		case described:
		default:
			if _, err := os.Stat(file); err == nil {
				return file, nil
			}
		}
	}
	if described {
		return "", fmt.Errorf("the model of the task %s in %s has no names with vectors to compare: none of %s", m.Task, dir, strings.Join(names, ", "))
	}
	return "", fmt.Errorf("the folder %s has none of %s", dir, strings.Join(names, ", "))
}

// find returns the number of a name.
func find(v *wordvec.Vectors, name string) (int, error) {
	if id, ok := v.ID(name); ok {
		return id, nil
	}
	if _, ok := v.ID(strings.ToLower(name)); ok {
		return 0, fmt.Errorf("%q is none of the %d names, but %q is", name, len(v.Names), strings.ToLower(name))
	}
	return 0, fmt.Errorf("%q is none of the %d names", name, len(v.Names))
}

// A near is an answer of "godwit nearest" and "godwit analogy", as JSON.
type near struct {
	Of      []string            `json:"of"`
	Nearest []wordvec.Neighbour `json:"nearest"`
}

func (n near) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(n)
	}
	for _, x := range n.Nearest {
		if _, err := fmt.Fprintf(w, "  %.4f  %s\n", x.Cosine, x.Name); err != nil {
			return err
		}
	}
	return nil
}

func nearestCommand() *cobra.Command {
	var top int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "nearest VECTORS NAME…",
		Short: "Show what is near in trained vectors",
		Long: `Show the names whose vectors are nearest to those of names, by the cosine.

` + vectorFiles,
		Example: `  godwit nearest vectors/ london
  godwit nearest GoogleNews.bin --top 3 king queen
  godwit nearest embeddings/entities.npy /m/07sbbz2`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if top < 1 {
				return cli.Usage(fmt.Errorf("--top %d: want at least 1", top))
			}
			return ranErr(nearest(cmd.OutOrStdout(), args[0], args[1:], top, asJSON))
		},
	}
	cli.AddGroups(cmd, topFlags(&top, &asJSON))
	return cmd
}

func topFlags(top *int, asJSON *bool) cli.Group {
	g := cli.NewGroup("Output")
	g.IntVar(top, "top", 10, "`number` of names to show")
	g.BoolVar(asJSON, "json", false, "print answers as a JSON object a line")
	return g
}

// ranErr marks the error of a command whose command line was right.
func ranErr(err error) error {
	if err != nil {
		return cli.Failed(err)
	}
	return nil
}

func nearest(w io.Writer, path string, names []string, top int, asJSON bool) error {
	v, err := readVectors(path)
	if err != nil {
		return err
	}
	for _, name := range names {
		id, err := find(v, name)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if !asJSON {
			fmt.Fprintln(w, name)
		}
		if err := (near{[]string{name}, v.Nearest(v.Vector(id), top, id)}).print(w, asJSON); err != nil {
			return err
		}
	}
	return nil
}

// An analogy is the command line of "godwit analogy".
type analogy struct {
	top       int
	json      bool
	questions string
	restrict  int
}

func analogyCommand() *cobra.Command {
	a := &analogy{}
	cmd := &cobra.Command{
		Use:   "analogy VECTORS [A B C]",
		Short: "Answer analogies by trained vectors",
		Long: `Answer "A is to B as C is to …" by the names nearest to B - A + C, or, with
--questions, evaluate vectors by a file of analogies whose answers are known: four
words a line, in sections that begin with a line ": name". Questions with a word
that has no vector are counted, but not asked. Words of questions are put in
lower case if all names of the vectors are.

` + vectorFiles,
		Example: `  godwit analogy vectors/ man king woman
  godwit analogy vectors/ --questions questions-words.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.check(args); err != nil {
				return cli.Usage(err)
			}
			return ranErr(a.run(cmd.OutOrStdout(), args))
		},
	}
	q := cli.NewGroup("Questions")
	q.StringVar(&a.questions, "questions", "", "`file` of analogies")
	q.IntVar(&a.restrict, "restrict", w2v.DefaultConfig().Restrict, "ask and answer them with so many of the first `names`, in files the most frequent ones")
	cli.AddGroups(cmd, q, topFlags(&a.top, &a.json))
	return cmd
}

func (a *analogy) check(args []string) error {
	switch {
	case a.questions == "" && len(args) != 4:
		return errors.New("want VECTORS A B C, or VECTORS --questions FILE")
	case a.questions != "" && len(args) != 1:
		return errors.New("--questions asks what is in its file: want VECTORS alone beside it")
	case a.top < 1 || a.restrict < 1:
		return errors.New("--top and --restrict are at least 1")
	}
	return nil
}

func (a *analogy) run(w io.Writer, args []string) error {
	v, err := readVectors(args[0])
	if err != nil {
		return err
	}
	if a.questions != "" {
		return a.evaluate(w, v)
	}
	var ids [3]int
	for i, name := range args[1:] {
		if ids[i], err = find(v, name); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
	}
	if !a.json {
		fmt.Fprintf(w, "%s is to %s as %s is to\n", args[1], args[2], args[3])
	}
	return near{args[1:], v.Analogy(ids[0], ids[1], ids[2], a.top)}.print(w, a.json)
}

// evaluate answers all questions and prints how many answers were right.
func (a *analogy) evaluate(w io.Writer, v *wordvec.Vectors) error {
	q, err := wordvec.ReadQuestions(a.questions, !slices.ContainsFunc(v.Names, func(n string) bool { return n != strings.ToLower(n) }))
	if err != nil {
		return err
	}
	known := q.Known(func(word string) (int32, bool) { id, ok := v.ID(word); return int32(id), ok }, a.restrict)
	right := make([]int64, len(q.Sections))
	wordvec.Answer(v.Vals[:min(a.restrict, len(v.Names))*v.Dim], v.Dim, known, right)
	score := q.Score(known, right)
	rows := append(score.Sections, score.Sum("semantic", wordvec.Semantic), score.Sum("syntactic", wordvec.Syntactic), score.Sum("all", wordvec.All))
	if a.json {
		return json.NewEncoder(w).Encode(rows)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\tright\tknown\tof\taccuracy\t\n")
	for _, r := range rows {
		accuracy := "-"
		if r.Known > 0 {
			accuracy = fmt.Sprintf("%.1f %%", 100*r.Accuracy())
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t\n", r.Name, r.Right, r.Known, r.Asked, accuracy)
	}
	return t.Flush()
}
