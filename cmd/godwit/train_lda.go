package main

import (
	"fmt"

	"github.com/godwit-ps/godwit/data/corpus"
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/train/task"
)

func init() { trainTasks = append(trainTasks, ldaTask) }

var ldaLegend = fmt.Sprintf(`perplexity: between how many equally likely words the model is in doubt, where half of
a held-out document's words are predicted by the others (untrained: of %d documents).`, task.UntrainedDocuments)

func ldaTask() cli.Task {
	s := task.DefaultLDA()
	return cli.Task{
		Settings: s,
		Short:    "Find the topics of documents (latent Dirichlet allocation)",
		About: `Find the topics that documents are about, by collapsed Gibbs sampling, and evaluate
them by how well half of a document predicts the other half. The counts that are
shared are exact, whatever moves between nodes; evaluations check that.

The documents are generated, or read. Text, a file or a folder of files *.txt and
*.gz, is cut into documents of --length words, or has one on each line (--document
line). Counts are read from docword.NAME.txt and vocab.NAME.txt (UCI's bags of words)
or from NAME.mtx and NAME.vocab.txt (Matrix Market), also as .gz. --export writes a line with the words of each topic, topics.txt, and
all counts.`,
		Example: `  godwit train lda                             # one node
  godwit train lda --nodes 4                   # four, as processes on this machine
  godwit train lda --data novels --topics 100 --export topics
  godwit train lda --data abstracts.txt --document line --skip 50 --min-count 5
  godwit train lda --data docword.kos.txt.gz --skip 0 --min-count 1`,
		Data:   "`file or folder` of documents (default: documents are generated)",
		Legend: ldaLegend,
		DataFlags: func(g cli.Group) {
			g.StringVar((*string)(&s.Text.Format), "format", string(s.Text.Format), "of the text: "+string(corpus.Prose)+" as people write it, or "+string(corpus.Lines)+" of words between blanks")
			g.StringVar(&s.Text.Documents, "document", s.Text.Documents, "what a document of a text is: cut, of --length words, or line")
			g.IntVar(&s.Text.Length, "length", s.Text.Length, "least `number` of words of a document")
			g.Int64Var(&s.Text.MinCount, "min-count", s.Text.MinCount, "leave out words that occur fewer `times`")
			g.IntVar(&s.Text.Skip, "skip", s.Text.Skip, "leave out so many of the most frequent `words`")
			g.IntVar(&s.Text.Most, "most", s.Text.Most, "use so many `words` at the most; 0: any")
			g.IntVar(&s.Held, "hold", s.Held, "hold out every `n`th document")
			g.IntVar(&s.Documents.Documents, "documents", s.Documents.Documents, "`number` of generated documents")
			g.IntVar(&s.Documents.Words, "words", s.Documents.Words, "`number` of their different words")
			g.IntVar(&s.Documents.Topics, "planted", s.Documents.Topics, "`number` of their topics")
		},
		ModelFlags: func(g cli.Group) {
			g.IntVar(&s.Topics, "topics", s.Topics, "`number` of topics")
			g.Float32Var(&s.Alpha, "alpha", s.Alpha, "of the Dirichlet distribution of documents' topics")
			g.Float32Var(&s.Beta, "beta", s.Beta, "of that of topics' words")
		},
		TrainingFlags: func(g cli.Group) {
			g.IntVar(&s.Batch, "batch", s.Batch, "least `number` of words of a step; 0: a 64th of all, from 2000 to 8000")
			g.IntVar(&s.Fold, "fold", s.Fold, "draw the words of a document that is evaluated so many `times`")
		},
	}
}
