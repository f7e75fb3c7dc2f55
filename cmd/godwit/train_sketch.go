package main

import (
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/train/task"
)

func init() { trainTasks = append(trainTasks, sketchTask) }

const sketchLegend = `mean excess, most: by how much the estimates of the different items exceed their
counts, in the mean and at the most; within bound: the share that does not by more
than e/width of the stream's length; too small: how many are below the count.`

func sketchTask() cli.Task {
	s := task.DefaultSketch()
	return cli.Task{
		Settings: s,
		Short:    "Count the items of a stream by a count-min sketch",
		About: `Count how often each item is in a stream, in far fewer cells than there are
different items: all workers add to one count-min sketch. Its estimates are never
too small, exactly, whatever moves between nodes; evaluations check that.

The items are generated, of popularities that follow Zipf's law, or are the words
of text: a file or a folder of files *.txt and *.gz.`,
		Example: `  godwit train sketch                          # one node
  godwit train sketch --nodes 4                # four, as processes on this machine
  godwit train sketch --data novels --width 20000 --depth 3`,
		Data:   "`file or folder` of text (default: a stream is generated)",
		Legend: sketchLegend,
		DataFlags: func(g cli.Group) {
			g.IntVar(&s.Stream.Items, "items", s.Stream.Items, "`number` of generated items")
			g.IntVar(&s.Stream.Distinct, "distinct", s.Stream.Distinct, "`number` of different items that there can be")
			g.Float64Var(&s.Stream.Exponent, "zipf", s.Stream.Exponent, "how unequally popular they are: `exponent` of Zipf's law, 0 … 3")
		},
		ModelFlags: func(g cli.Group) {
			g.IntVar(&s.Depth, "depth", s.Depth, "`number` of rows: more make large errors rarer")
			g.IntVar(&s.Width, "width", s.Width, "`number` of cells of a row: more make errors smaller")
		},
		TrainingFlags: func(g cli.Group) {
			g.IntVar(&s.Batch, "batch", s.Batch, "`items` of a step; 0: a 128th of all, from 1000 to 8000")
		},
	}
}
