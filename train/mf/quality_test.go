//go:build !race

package mf

// Training to the end shows the race detector nothing that the short runs of the
// other tests do not.

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/godwit-ps/godwit/data/ratings"
	"github.com/godwit-ps/godwit/train"
)

// quality trains on two workers and returns the RMSE of the test.
func quality(t *testing.T, c Config, set *ratings.Set, epochs int) float64 {
	t.Helper()
	task, s := setup(t, c, set, 1, 2)
	env := train.Env{Workers: s.Workers(0), Progress: func(e train.Event) { t.Log(e) }}
	if _, err := train.Run(t.Context(), env, task, train.Options{Epochs: epochs}); err != nil {
		t.Fatal(err)
	}
	rmse, err := task.RMSE(t.Context(), &env, "test", set.Test)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, %s: RMSE %.4f", c.Order, c.Rule, rmse)
	return rmse
}

func TestEveryOrderAndRuleReachesTheNoiseOfAGeneratedMatrix(t *testing.T) {
	s := ratings.DefaultSpec()
	s.Rows, s.Cols, s.Cells, s.Rank, s.Noise = 600, 300, 40_000, 3, 0.1
	set, err := ratings.Generate(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range Orders() {
		for _, rule := range []string{SGD, "adagrad"} {
			for _, biased := range []bool{false, true} {
				c := DefaultConfig()
				c.Order, c.Rule, c.Biased = order, rule, biased
				c.Dim, c.Batch, c.L2, c.LR = 4, 64, 0.003, 0.05
				if c.BoldDriver = rule == SGD; !c.BoldDriver {
					c.LR = 0.1
				}
				// What is learned from so many cells errs by some of the noise: by 0.103
				// to 0.106 altogether, in 13 runs of each on a busy machine. Where both
				// workers step on the same column at a time, Adagrad's outcome depends on
				// how they take turns, and is 0.108 to 0.119.
				most := 1.2 * s.Noise
				if order == Columns && rule == "adagrad" {
					most = 1.4 * s.Noise
				}
				if rmse := quality(t, c, set, 25); rmse > most {
					t.Errorf("%s, %s, biased %v: the RMSE is %.4f, the noise %v", order, rule, biased, rmse, s.Noise)
				}
			}
		}
	}
}

func TestMovieLens100kReachesItsUsualQuality(t *testing.T) {
	dir := os.Getenv("GODWIT_DATA")
	if dir == "" {
		t.Skip("set GODWIT_DATA to a folder with mf/ml-100k to train on real ratings")
	}
	set, err := ratings.Load(filepath.Join(dir, "mf", "ml-100k"), ratings.Options{Split: "u1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range Orders() {
		c := DefaultConfig()
		c.Order = order
		if rmse := quality(t, c, set, 30); rmse > 0.93 {
			t.Errorf("%s: the RMSE is %.4f, want at most 0.93", order, rmse)
		}
	}
	c := DefaultConfig()
	c.Rule, c.BoldDriver, c.LR = "adagrad", false, 0.1
	if rmse := quality(t, c, set, 15); rmse > 0.935 {
		t.Errorf("adagrad: the RMSE is %.4f, want at most 0.935", rmse)
	}
}
