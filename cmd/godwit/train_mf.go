package main

import (
	"fmt"
	"strings"

	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/train/mf"
	"github.com/godwit-ps/godwit/train/task"
)

func init() { trainTasks = append(trainTasks, mfTask) }

var mfLegend = fmt.Sprintf(`RMSE: root of the mean squared error of the cells to test (untrained: of at most %d of
them).`, task.UntrainedCells)

func mfTask() cli.Task {
	s := task.DefaultMF()
	return cli.Task{
		Settings: s,
		Short:    "Factorize a matrix, such as ratings",
		About: `Find vectors and biases of the rows and columns of a sparse matrix that predict
its cells, and evaluate them on cells held out of training.

The matrix is generated, of low rank with noise, or read from a file or folder:
MovieLens' u.data, ratings.csv and ratings.dat, tables of the same fields, or the
coordinate format of Matrix Market (.mtx), each also as .gz. A folder may have a
split S of files S.base and S.test, which --split names, or files train and test.

The order of training decides how local accesses can be: "plain" takes any cells,
"columns" gives each worker rows of its own and goes column by column, "blocks"
also gives each worker columns of its own in turn, and all wait for each other.`,
		Example: `  godwit train mf                             # one node
  godwit train mf --nodes 4                   # four, as processes on this machine
  godwit train mf --nodes 4 --policies all
  godwit train mf --data ml-100k --split u1 --export factors
  godwit train mf --data ml-20m/ratings.csv --nodes 4 --order blocks`,
		Data:   "`file or folder` of the matrix (default: one is generated)",
		Legend: mfLegend,
		DataFlags: func(g cli.Group) {
			g.StringVar(&s.Held.Split, "split", s.Held.Split, "`name` of a split of the folder, such as u1")
			g.Float64Var(&s.Held.Test, "hold-out", s.Held.Test, "`share` of a single file's cells to hold out for the test")
			g.IntVar(&s.Matrix.Rows, "rows", s.Matrix.Rows, "`number` of rows of the generated matrix")
			g.IntVar(&s.Matrix.Cols, "columns", s.Matrix.Cols, "`number` of its columns")
			g.IntVar(&s.Matrix.Cells, "cells", s.Matrix.Cells, "`number` of its cells")
			g.IntVar(&s.Matrix.Rank, "rank", s.Matrix.Rank, "its `rank`, without the noise")
			g.Float64Var(&s.Matrix.Noise, "noise", s.Matrix.Noise, "standard deviation of its noise; that of the cells without it is 1")
			g.Float64Var(&s.Matrix.Exponent, "zipf", s.Matrix.Exponent, "how unequally its cells are spread: `exponent` of Zipf's law, 0 … 2")
		},
		ModelFlags: func(g cli.Group) {
			g.IntVar(&s.Dim, "dim", s.Dim, "`floats` of the vector of a row or column")
			g.BoolVar(&s.Biased, "biased", s.Biased, "give rows and columns a bias each")
			g.Float32Var(&s.InitStd, "init", s.InitStd, "standard deviation of the first values")
		},
		TrainingFlags: func(g cli.Group) {
			g.StringVar(&s.Order, "order", s.Order, "`name`: "+strings.Join(mf.Orders(), ", "))
			g.IntVar(&s.Batch, "batch", s.Batch, "`cells` of a step (default: 256, and up to 16,384 on one node)")
			g.Rule(&s.Rule, &s.LR, ratesOf(func(rule string) float32 {
				c := mf.Config{Rule: rule}
				c.Settle()
				return c.LR
			}))
			g.BoolVar(&s.BoldDriver, "bold-driver", s.BoldDriver, "change the learning rate of sgd by whether the loss falls; other rules need false, which they have unless it is given")
			g.Float32Var(&s.L2, "l2", s.L2, "weight of the squares of vectors and biases, for each cell")
		},
		Settle: func(given func(string) bool) {
			if !given("bold-driver") {
				s.BoldDriver = s.BoldDriver && s.Rule == mf.SGD
			}
			s.Config.Settle()
		},
	}
}
