package node

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
)

// faulty is a rule that panics.
type faulty struct{ godwit.Add }

func (faulty) Apply(value, _, push []float32) {
	if push[0] < 0 {
		panic("a defect of the rule")
	}
	value[0] += push[0]
}

// A rule that panics does so in the goroutine of the worker that pushes, who may go on, as may others; and the node can be closed.
func TestAPanicOfARuleLocksNobodyOut(t *testing.T) {
	ctx := background(t)
	m := modelOf(t, godwit.Table{Name: "t", Rows: 10, Dim: 1, Rule: faulty{}})
	c, err := Local(ctx, 1, Config{Model: m, Workers: 2})
	must(t, err)
	a, b := c.Nodes[0].Worker(0), c.Nodes[0].Worker(1)
	k, v := []godwit.Key{3}, make([]float32, 1)
	for _, before := range []float32{0, 1} { // the row is to be made, and is there
		func() {
			defer func() {
				if p := recover(); p != "a defect of the rule" {
					t.Errorf("the push ends with %v", p)
				}
			}()
			_ = a.Push(ctx, k, []float32{-1})
		}()
		must(t, b.Pull(ctx, k, v))
		if v[0] != before {
			t.Errorf("the row is %v, want %v", v, before)
		}
		must(t, a.Push(ctx, k, []float32{1}))
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	must(t, c.Close(short))
}
