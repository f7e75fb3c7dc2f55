package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/train/kge"
	"github.com/godwit-ps/godwit/train/task"
)

func init() { trainTasks = append(trainTasks, kgeTask) }

var kgeLegend = fmt.Sprintf(`MRR and Hits: of the test triples (or of those that a column names), ranked among all
entities without other known answers (untrained: the MRR before training, of at most %d triples).`, task.UntrainedTriples)

func kgeTask() cli.Task {
	s := task.DefaultKGE()
	return cli.Task{
		Settings: s,
		Short:    "Train knowledge-graph embeddings",
		About: `Train embeddings of the entities and relations of a knowledge graph, and rank
the facts held out of training.

The graph is generated, with structure to be found, or read: from one file with all
facts, of which --split holds some out, or from a folder with the files train, valid
and test (those that there are). A fact a line: head, relation and tail, or what
--columns says, separated by tabs (.txt, .tsv) or commas (.csv), also as .gz.`,
		Example: `  godwit train kge                         # one node
  godwit train kge --nodes 4               # four, as processes on this machine
  godwit train kge --nodes 4 --policies all
  godwit train kge --data fb15k-237 --epochs 30 --export embeddings
  godwit train kge --data facts.csv --columns relation,head,tail --split 0.9,0.05,0.05
  godwit train kge --nodes 2 --await       # the second one joins from another machine`,
		Data:   "`file or folder` of the graph (default: one is generated)",
		Legend: kgeLegend,
		DataFlags: func(g cli.Group) {
			g.Var((*shares)(&s.Files.Split), "split", "`shares` of the facts of a single file to train, validate and test on; 1,0,0 trains all")
			g.StringVar(&s.Files.Columns, "columns", s.Files.Columns, "what the `columns` are, such as relation,head,tail or head,relation,tail,- (-: passed over)")
			g.StringVar(&s.Files.Header, "header", s.Files.Header, "whether the first line names the columns: auto, yes, no")
			g.IntVar(&s.Graph.Entities, "entities", s.Graph.Entities, "`number` of entities of the generated graph")
			g.IntVar(&s.Graph.Relations, "relations", s.Graph.Relations, "`number` of its relations")
			g.IntVar(&s.Graph.Triples, "triples", s.Graph.Triples, "`number` of its triples")
			g.Float64Var(&s.Graph.Exponent, "zipf", s.Graph.Exponent, "how unequally popular its entities are: `exponent` of Zipf's law, 0 … 2")
		},
		ModelFlags: func(g cli.Group) {
			g.StringVarP(&s.Model, "model", "m", s.Model, "`name`: "+strings.Join(kge.Models(), ", "))
			g.IntVar(&s.Dim, "dim", s.Dim, "`floats` of an entity's embedding")
			g.BoolVar(&s.Reciprocal, "reciprocal", s.Reciprocal, "give each relation a second embedding, for its other direction")
			g.Float32Var(&s.InitStd, "init", s.InitStd, "standard deviation of the first values; 0: as suits model and rule, 0.3 of complex, distmult and rescal with sgd, proxsgd, momentum and ftrl, else 0.001")
		},
		TrainingFlags: func(g cli.Group) {
			g.IntVar(&s.Batch, "batch", s.Batch, "`triples` of a step")
			g.IntVar(&s.Negatives, "negatives", s.Negatives, "`number` of sampled entities that a step compares with")
			g.Sampling(&s.Sampling)
			g.StringVar(&s.Loss, "loss", s.Loss, "`name`: "+kge.Softmax+", "+kge.Logistic)
			g.Float32Var(&s.Margin, "margin", s.Margin, "added to the scores by the logistic loss; distances need one")
			g.Float32Var(&s.Adversarial, "adversarial", s.Adversarial, "`temperature` by which the logistic loss weighs negatives that score well (self-adversarial; 0: all alike)")
			g.Rule(&s.Rule, &s.LR, "the model, 0.6 of rotate (sgd, proxsgd: 0.1), 0.2 of transe and 0.1 of the others (rowadagrad, ftrl: 0.3, sgd, proxsgd: 0.01), with adam 0.03 of rotate and 0.01 of the others, with momentum a tenth of sgd's")
			g.StringVar(&s.LRSchedule, "lr-schedule", s.LRSchedule, "how the rate falls from epoch to epoch: "+strings.Join([]string{kge.Constant, kge.Linear, kge.Cosine}, ", "))
			g.Float32Var(&s.N3, "n3", s.N3, "weight of the cubed magnitudes of the embeddings (N3)")
			g.Float32Var(&s.L2, "l2", s.L2, "weight of their squares (L2)")
			g.Float32Var(&s.EntityDropout, "entity-dropout", s.EntityDropout, "`probability` of leaving out an element of an entity")
			g.Float32Var(&s.RelationDropout, "relation-dropout", s.RelationDropout, "`probability` of leaving out an element of a relation")
		},
		Settle: func(func(string) bool) { s.Config.Settle() },
	}
}

// shares are a flag of numbers that are separated by commas.
type shares []float64

func (s *shares) String() string {
	var texts []string
	for _, x := range *s {
		texts = append(texts, strconv.FormatFloat(x, 'g', -1, 64))
	}
	return strings.Join(texts, ",")
}

func (s *shares) Set(text string) error {
	var xs []float64
	for part := range strings.SplitSeq(text, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return fmt.Errorf("%q is no number, want shares such as 0.8,0.1,0.1", part)
		}
		xs = append(xs, x)
	}
	*s = xs
	return nil
}

func (s *shares) Type() string { return "shares" }
