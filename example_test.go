package godwit_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/optim"
)

// together starts two nodes in this process, lets a program run on a worker of
// each, one after the other, and makes all that the first did visible to the
// second.
func together(table godwit.Table, first, second func(ctx context.Context, w godwit.Worker) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	m, err := godwit.NewModel(table)
	if err != nil {
		return err
	}
	c, err := node.Local(ctx, 2, node.Config{Model: m, Workers: 1})
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	for i, do := range []func(context.Context, godwit.Worker) error{first, second} {
		if err := do(ctx, c.Nodes[i].Worker(0)); err != nil {
			return err
		}
		if err := c.Nodes[i].Worker(0).WaitSync(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Two workers of different nodes train one row. The first one announces that it will
// access the key, and from then on reaches it without messages: the row has moved to
// its node. The second one announces nothing, and reaches the row all the same.
func Example() {
	table := godwit.Table{Name: "weights", Rows: 1000, Dim: 2, Rule: optim.SGD{LR: 0.5}}
	key := []godwit.Key{42}
	value := make([]float32, 2)
	err := together(table, func(ctx context.Context, w godwit.Worker) error {
		if err := w.Intent(key, w.Clock(), w.Clock()+1); err != nil {
			return err
		}
		for !w.PullIfLocal(key[0], value) {
			time.Sleep(time.Millisecond) // others load their data meanwhile
		}
		if err := w.Push(ctx, key, []float32{2, 4}); err != nil {
			return err
		}
		w.Advance() // the intent ends
		return nil
	}, func(ctx context.Context, w godwit.Worker) error {
		if err := w.Pull(ctx, key, value); err != nil {
			return err
		}
		fmt.Println("after a step against (2, 4):", value)
		if err := w.Push(ctx, key, []float32{-2, -4}); err != nil {
			return err
		}
		err := w.Pull(ctx, key, value)
		fmt.Println("and one back:", value)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// after a step against (2, 4): [-1 -2]
	// and one back: [0 0]
}

// Of a large table in which few rows are in use, these are read in order.
func ExampleRows() {
	table := godwit.Table{Name: "clicks", Rows: 1_000_000, Dim: 1}
	err := together(table, func(ctx context.Context, w godwit.Worker) error {
		return w.Push(ctx, []godwit.Key{7, 123_456, 999_999}, []float32{1, 2, 3})
	}, func(ctx context.Context, w godwit.Worker) error {
		for row, err := range godwit.Rows(ctx, w, 100, 1_000_000, godwit.NoNode) {
			if err != nil {
				return err
			}
			fmt.Println(row.Key, row.Value)
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 123456 [2]
	// 999999 [3]
}

// latest is a join: a row is a time and what was known then, and of two rows the
// later one stays.
type latest struct{}

func (latest) Name() string        { return "latest" }
func (latest) StateLen(int) int    { return 0 }
func (latest) InitState([]float32) {}
func (latest) Apply(value, _, push []float32) {
	if push[0] > value[0] {
		copy(value, push)
	}
}

// What travels is the whole row, not how it changed; where it arrives, it counts
// like a push.
func (latest) Pack(value, _, dvalue []float32)    { copy(dvalue, value) }
func (l latest) Merge(value, _, dvalue []float32) { l.Apply(value, nil, dvalue) }
func (latest) Fresh(dim int) int                  { return dim }

// Rows may be joins of what was pushed, also where they are replicated.
func ExampleMerger() {
	table := godwit.Table{Name: "positions", Rows: 10, Dim: 3, Rule: latest{}}
	ship := []godwit.Key{4}
	err := together(table, func(ctx context.Context, w godwit.Worker) error {
		return w.Push(ctx, ship, []float32{17, 53.5, 10}) // at 17 o'clock
	}, func(ctx context.Context, w godwit.Worker) error {
		if err := w.Push(ctx, ship, []float32{15, 54, 9}); err != nil {
			return err
		}
		at := make([]float32, 3)
		err := w.Pull(ctx, ship, at)
		fmt.Println(at)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [17 53.5 10]
}

// mean keeps a sum, and as its state a count; a pull gets the quotient.
type mean struct{}

func (mean) Name() string              { return "mean" }
func (mean) StateLen(int) int          { return 1 }
func (mean) InitState(count []float32) { count[0] = 0 }
func (mean) Apply(sum, count, push []float32) {
	for i, x := range push {
		sum[i] += x
	}
	count[0]++
}

func (mean) Query(dst, sum, count []float32) {
	for i, x := range sum {
		dst[i] = x / max(count[0], 1)
	}
}

// Keep takes a value that was set for one of a single push, unless it is zero.
func (mean) Keep(sum, count []float32) {
	for _, x := range sum {
		if x != 0 {
			count[0] = 1
		}
	}
}

// A pull gets what the rule makes of a row, where the row is.
func ExampleQuerier() {
	table := godwit.Table{Name: "temperature", Rows: 10, Dim: 1, Rule: mean{}}
	here := []godwit.Key{2}
	err := together(table, func(ctx context.Context, w godwit.Worker) error {
		return w.Push(ctx, here, []float32{20})
	}, func(ctx context.Context, w godwit.Worker) error {
		if err := w.Push(ctx, here, []float32{25}); err != nil {
			return err
		}
		t := make([]float32, 1)
		err := w.Pull(ctx, here, t)
		fmt.Println(t)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [22.5]
}

// clipped is a filter of one's own: it sends no value beyond 1, and the rest of it
// later.
type clipped struct{}

func (clipped) Name() string { return "clipped" }

func (clipped) Filter(b *godwit.FilterBatch) {
	for i := range b.Keys {
		for j, x := range b.Vec(i) {
			b.Round(i, j, min(max(x, -1), 1))
		}
	}
}

// Filters are for what leaves the node, and some of these keys are here. What
// they held back is there after WaitSync.
func ExampleFilter() {
	table := godwit.Table{Name: "steps", Rows: 1000, Dim: 1, Filters: []godwit.Filter{clipped{}}}
	keys, vals := make([]godwit.Key, 1000), make([]float32, 1000)
	for i := range keys {
		keys[i], vals[i] = godwit.Key(i), 2.5
	}
	sum := func(ctx context.Context, w godwit.Worker) (sum float32, err error) {
		now := make([]float32, len(keys))
		err = w.Pull(ctx, keys, now)
		for _, x := range now {
			sum += x
		}
		return sum, err
	}
	err := together(table, func(ctx context.Context, w godwit.Worker) error {
		if err := w.Push(ctx, keys, vals); err != nil {
			return err
		}
		got, err := sum(ctx, w)
		fmt.Println("all of 2500 at once:", got == 2500)
		return err
	}, func(ctx context.Context, w godwit.Worker) error {
		got, err := sum(ctx, w)
		fmt.Println("in the end:", got)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// all of 2500 at once: false
	// in the end: 2500
}

// A table's pushes are clipped, but for one that is to arrive as it is: the first one, say, which brings all rows near their values.
func ExampleWithFilters() {
	table := godwit.Table{Name: "steps", Rows: 1000, Dim: 1, Filters: []godwit.Filter{clipped{}}}
	key := []godwit.Key{0}
	err := together(table, func(ctx context.Context, w godwit.Worker) error {
		for key[0] = 0; w.PullIfLocal(key[0], make([]float32, 1)); {
			key[0]++ // filters are for what leaves the node
		}
		for _, call := range []context.Context{godwit.WithFilters(ctx), ctx} {
			if err := w.Push(call, key, []float32{2.5}); err != nil {
				return err
			}
			now := make([]float32, 1)
			if err := w.Pull(ctx, key, now); err != nil {
				return err
			}
			fmt.Println(now)
		}
		return nil
	}, func(ctx context.Context, w godwit.Worker) error {
		now := make([]float32, 1)
		err := w.Pull(ctx, key, now)
		fmt.Println(now, "in the end")
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// [2.5]
	// [3.5]
	// [5] in the end
}
