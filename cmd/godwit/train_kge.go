package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/protocol/placement"
	"github.com/godwit-ps/godwit/sampling"
	"github.com/godwit-ps/godwit/train/kge"
)

// A trainKGE is the command line of "godwit train kge".
type trainKGE struct {
	spec     job.Spec
	cluster  cluster
	policies []string
	json     bool
	quiet    bool
}

func trainKGECommand() *cobra.Command {
	t := &trainKGE{spec: job.Default()}
	cmd := &cobra.Command{
		Use:   "kge",
		Short: "Train knowledge-graph embeddings",
		Long: `Train embeddings of the entities and relations of a knowledge graph, and rank
the facts held out of training.

The graph is generated, with structure to be found, or read from a folder with
the files train.txt, valid.txt and test.txt (or .txt.gz): a fact a line, head,
relation and tail, separated by tabs.

The run can be watched on stderr; the result is a table on stdout. With --json,
stdout has a JSON object a line instead: "run", "policy", "seconds" since the
begin, and one of "waiting", "start", "epoch", "evaluation", "stopping" and, last,
"result" (their fields are those of the types Event and Result of package job).
Ctrl-C ends the run in order: the model is judged and exported as it is.

With --await, whoever reaches this machine can take part and read everything:
use it in a network that you trust, or with the three --tls files.

Policies (--policy, --policies):
  ` + strings.Join(placement.Names(), ", ") + `
"adaptive" needs no tuning; the others show what earlier systems do.`,
		Example: `  godwit train kge                         # one node
  godwit train kge --nodes 4               # four, as processes on this machine
  godwit train kge --nodes 4 --policies all
  godwit train kge --data fb15k-237 --epochs 30 --export embeddings
  godwit train kge --nodes 2 --await       # the second one joins from another machine`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return t.run(cmd) },
	}
	addGroups(cmd, t.cluster.flags(&t.spec), t.dataFlags(), t.modelFlags(), t.trainingFlags(), t.outputFlags(), tlsFlags(&t.cluster.tls))
	return cmd
}

func (t *trainKGE) dataFlags() group {
	g, s := newGroup("Data"), &t.spec
	g.StringVarP(&s.Data, "data", "d", "", "`folder` of the graph (default: one is generated)")
	g.IntVar(&s.Graph.Entities, "entities", s.Graph.Entities, "`number` of entities of the generated graph")
	g.IntVar(&s.Graph.Relations, "relations", s.Graph.Relations, "`number` of its relations")
	g.IntVar(&s.Graph.Triples, "triples", s.Graph.Triples, "`number` of its triples")
	g.Float64Var(&s.Graph.Exponent, "zipf", s.Graph.Exponent, "how unequally popular its entities are: `exponent` of Zipf's law, 0 … 2")
	return g
}

func (t *trainKGE) modelFlags() group {
	g, c := newGroup("Model"), &t.spec.KGE
	g.StringVarP(&c.Model, "model", "m", c.Model, "`name`: "+strings.Join(kge.Models(), ", "))
	g.IntVar(&c.Dim, "dim", c.Dim, "`floats` of an entity's embedding")
	g.BoolVar(&c.Reciprocal, "reciprocal", c.Reciprocal, "give each relation a second embedding, for its other direction")
	g.Float32Var(&c.InitStd, "init", c.InitStd, "standard deviation of the first values")
	return g
}

func (t *trainKGE) trainingFlags() group {
	g, s, c := newGroup("Training"), &t.spec, &t.spec.KGE
	g.IntVarP(&s.Options.Epochs, "epochs", "e", s.Options.Epochs, "`number` of passes over the training triples")
	g.IntVar(&s.Options.EvalEvery, "eval-every", s.Options.EvalEvery, "rank the validation triples every so many `epochs`; 0: after the last")
	g.IntVar(&s.Options.Patience, "patience", s.Options.Patience, "end after so many `evaluations` without improvement; 0: never")
	g.IntVar(&c.Batch, "batch", c.Batch, "`triples` of a step")
	g.IntVar(&c.Negatives, "negatives", c.Negatives, "`number` of sampled entities that a step compares with")
	g.StringVar(&s.Sampling, "sampling", s.Sampling, "`scheme` by which they are sampled: "+strings.Join([]string{
		sampling.Prepared{}.Name(), sampling.Local{}.Name(), sampling.Independent{}.Name()}, ", "))
	g.StringVar(&c.Loss, "loss", c.Loss, "`name`: "+kge.Softmax+", "+kge.Logistic)
	g.Float32Var(&c.Margin, "margin", c.Margin, "added to the scores by the logistic loss; distances need one")
	g.StringVar(&c.Rule, "rule", c.Rule, "update rule, by `name`: adagrad, rowadagrad, adam, sgd")
	g.Float32Var(&c.LR, "lr", c.LR, "its learning rate")
	g.Float32Var(&c.N3, "n3", c.N3, "weight of the cubed magnitudes of the embeddings (N3)")
	g.Float32Var(&c.L2, "l2", c.L2, "weight of their squares (L2)")
	g.Float32Var(&c.EntityDropout, "entity-dropout", c.EntityDropout, "`probability` of leaving out an element of an entity")
	g.Float32Var(&c.RelationDropout, "relation-dropout", c.RelationDropout, "`probability` of leaving out an element of a relation")
	g.Uint64Var(&s.Seed, "seed", s.Seed, "decides first values, samples and order")
	return g
}

func (t *trainKGE) outputFlags() group {
	g := newGroup("Output")
	g.StringVarP(&t.cluster.place.Export, "export", "o", "", "`folder` to write the embeddings to, as NumPy arrays")
	g.StringSliceVar(&t.policies, "policies", nil, "run under each of these policies, one after the other, and compare: `names` by commas, or all")
	g.BoolVar(&t.spec.Untrained, "untrained", t.spec.Untrained, "judge the model before training too")
	g.BoolVar(&t.json, "json", false, "print events and results on stdout as a JSON object a line")
	g.BoolVarP(&t.quiet, "quiet", "q", false, "say nothing on stderr but errors")
	return g
}

func (t *trainKGE) run(cmd *cobra.Command) error {
	policies, err := t.check()
	if err != nil {
		return usageError{err}
	}
	stop, ctx := interrupts(modelKept)
	t.cluster.place.Stop = stop
	p := newPrinter(t.quiet, t.json)
	var results []*job.Result
	var failed error
	for _, name := range policies {
		spec, c := t.spec, t.cluster
		spec.Policy = name
		if len(policies) > 1 {
			c.run += "-" + name
		}
		r, err := c.do(ctx, spec, p)
		if failed = outcome(r, err); r != nil {
			results = append(results, r)
		}
		if failed != nil {
			break // what was found out so far is shown
		}
	}
	if !t.json && len(results) > 0 {
		if err := table(cmd.OutOrStdout(), results); err != nil {
			return ranError{err}
		}
		if !t.quiet {
			if err := legend(cmd.ErrOrStderr()); err != nil {
				return ranError{err}
			}
		}
	}
	return failed
}

// check says what is wrong with the command line, and returns the policies to
// run.
func (t *trainKGE) check() ([]string, error) {
	policies := t.policies
	switch {
	case len(policies) == 0:
		policies = []string{t.spec.Policy}
	case len(policies) == 1 && policies[0] == "all":
		policies = placement.Names()
	}
	if len(policies) > 1 && t.cluster.await {
		return nil, fmt.Errorf("--policies makes several runs, and --await waits for the nodes of one: choose one of them")
	}
	if len(policies) > 1 && t.cluster.place.Export != "" {
		return nil, fmt.Errorf("--policies makes several runs, and --export takes the embeddings of one: choose one of them")
	}
	for _, name := range policies {
		spec := t.spec
		spec.Policy = name
		if err := spec.Check(); err != nil {
			return nil, err
		}
	}
	if t.spec.Data != "" {
		// The other processes and people on other machines read it too.
		dir, err := filepath.Abs(t.spec.Data)
		if err != nil {
			return nil, err
		}
		t.spec.Data = dir
	}
	return policies, t.cluster.prepare(&t.spec)
}
