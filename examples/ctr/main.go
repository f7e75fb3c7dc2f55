// Command ctr predicts clicks: an example of a program with a task of its own, in a
// module of its own. Copy it to begin one.
//
//	ctr                              one node, on generated impressions
//	ctr --nodes 4                    four, as processes on this machine
//	ctr --data clicks.txt --export model
//	ctr --nodes 3 --await            prints the command for the other two machines
//
// settings.go says what can be set and where impressions come from, task.go what a job
// asks of a task, net.go is the mathematics, policy.go a policy of one's own.
package main

import (
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/train/task"
)

func init() { task.Register(func() task.Settings { return defaults() }) }

func main() {
	s := defaults()
	cli.Main(cli.Task{
		Settings: s,
		Short:    "Predict clicks",
		About: `Train embeddings of hashed categorical features and a small dense network on
top of them, which predict whether somebody clicks.`,
		Example: "  ctr --nodes 4\n  ctr --data clicks.txt --bits 20 --export model",
		Data:    "`file` of impressions, one a line: 1 or 0, and the name of its category in each field (default: they are generated)",
		Legend:  "log loss, AUC: of the impressions held out, every tenth.",
		DataFlags: func(g cli.Group) {
			g.IntVar(&s.Impressions, "impressions", s.Impressions, "`number` of generated impressions")
		},
		ModelFlags: func(g cli.Group) {
			g.IntVar(&s.Bits, "bits", s.Bits, "hash the categories to numbers of so many `bits`")
			g.IntVar(&s.Dim, "dim", s.Dim, "`floats` of a category's embedding")
			g.IntVar(&s.Hidden, "hidden", s.Hidden, "`units` of the hidden layer")
		},
		TrainingFlags: func(g cli.Group) {
			g.IntVar(&s.Batch, "batch", s.Batch, "`impressions` of a step")
			g.Float32Var(&s.LR, "lr", s.LR, "learning rate of AdaGrad")
		},
	})
}
