package kge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/setting"
	"github.com/godwit-ps/godwit/optim"
)

// The names of the schedules of the learning rate. In epoch e of E the rate is LR times
//
//	constant  1
//	linear    1 − (e−1)/E
//	cosine    (1 + cos(π·(e−1)/E))/2
const (
	Constant = "constant"
	Linear   = "linear"
	Cosine   = "cosine"
)

var schedules = map[string]func(done float64) float64{
	Constant: func(float64) float64 { return 1 },
	Linear:   func(done float64) float64 { return 1 - done },
	Cosine:   func(done float64) float64 { return (1 + math.Cos(math.Pi*done)) / 2 },
}

// schedule is the name of the schedule. A Config that says nothing of it has Constant.
func (c *Config) schedule() string { return cmp.Or(c.LRSchedule, Constant) }

// rateOf returns the learning rate of an epoch, from 1 on, of so many. It follows from
// these alone, so that all nodes have the same, and a run that is resumed too. Epochs
// beyond the last have the rate of the last.
func (c *Config) rateOf(epoch, epochs int) float32 {
	epochs = max(epochs, 1)
	done := float64(min(epoch, epochs)-1) / float64(epochs)
	return float32(float64(c.LR) * schedules[c.schedule()](done))
}

// rated says that pushes bring their learning rate, which differs by the epoch.
func (c *Config) rated() bool { return c.schedule() != Constant }

// ratedRule makes the rule that steps as Rule does, by the rate of each push.
func (c *Config) ratedRule() (godwit.Rule, error) {
	if r, err := optim.Parse("rated" + c.Rule); err == nil {
		return r, nil
	}
	able := slices.DeleteFunc(optim.GradientRules(), func(name string) bool {
		_, err := optim.Parse("rated" + name)
		return err != nil
	})
	return nil, setting.Bad("kge.Config", "LRSchedule", c.LRSchedule,
		fmt.Sprintf("%s with the rule %s: only %s can have another rate in each epoch", Constant, c.Rule, strings.Join(able, ", ")))
}

// A block is so many rows of dim floats.
type block struct{ rows, dim int }

// narrow takes the float of the rate out of the rows of vals, which is blocks of rows, if
// they have it, and returns what is left.
func (t *Task) narrow(vals []float32, blocks ...block) []float32 {
	if t.extra == 0 {
		return vals
	}
	to, from := 0, 0
	for _, b := range blocks {
		end := from + b.rows*(b.dim+t.extra)
		optim.Narrow(vals[to:], vals[from:end], b.dim)
		to, from = to+b.rows*b.dim, end
	}
	return vals[:to]
}
