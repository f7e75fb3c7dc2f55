package linear

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/protocol/placement"
	"github.com/godwit-ps/godwit/sim"
	"github.com/godwit-ps/godwit/train"
)

// A waiter adds up the virtual time that a worker spends in meetings.
type waiter struct {
	godwit.Worker
	now    func() time.Duration
	waited *time.Duration
}

func (w waiter) wait(do func() error) error {
	begin := w.now()
	err := do()
	*w.waited += w.now() - begin
	return err
}

func (w waiter) Barrier(ctx context.Context) error {
	return w.wait(func() error { return w.Worker.Barrier(ctx) })
}

func (w waiter) WaitSync(ctx context.Context) error {
	return w.wait(func() error { return w.Worker.WaitSync(ctx) })
}

// BenchmarkDelay is eight simulated nodes that take an objective to within a
// hundredth of its minimum, by the blocks that may be under way. It reports
// virtual time, passes over the data, and the share of time spent waiting.
func BenchmarkDelay(b *testing.B) {
	const blocks, most = 16, 200
	data := generated(b, nil)
	c := DefaultBlockConfig()
	c.Blocks, c.L1 = blocks, 3
	best := newBlocks(b, c, data)
	r, _ := trained[Phase](b, best, 1, train.Options{Epochs: 100})
	target := 1.01 * r[0].Losses[99].Sum
	for _, delay := range []int{0, 1, 3, 7, 15} {
		b.Run(fmt.Sprint(delay), func(b *testing.B) {
			c.Delay = delay
			task := newBlocks(b, c, data)
			for b.Loop() {
				passes, took, waited := simulateDelay(b, task, most, target)
				b.ReportMetric(float64(passes), "passes")
				b.ReportMetric(took.Seconds()*1000, "virtual-ms")
				b.ReportMetric(100*waited, "%waiting")
			}
		})
	}
}

func simulateDelay(b *testing.B, task *Blocks, most int, target float64) (passes int, took time.Duration, waiting float64) {
	const nodes = 8
	network, err := sim.NetworkNamed("10g")
	if err != nil {
		b.Fatal(err)
	}
	model, err := godwit.NewModel(task.Tables()...)
	if err != nil {
		b.Fatal(err)
	}
	// A node's part of a round takes about 4 ns for each value of its blocks, and
	// 20 ns for each example; two phases share it. Each example stands for a
	// hundred, since few would be hardly worth eight nodes.
	set := task.data.Train
	phase := 100 * time.Duration(4*len(set.Values)/task.rounds()+20*set.Len()) / nodes / 2
	cluster, err := sim.New(sim.Config{
		Nodes: nodes, Workers: 1, Seed: 1, Model: model, Policy: placement.Adaptive, Network: network,
		Compute: sim.Compute{Step: phase, Spread: 0.3, Key: 100 * time.Nanosecond, Frame: 5 * time.Microsecond, Record: 200 * time.Nanosecond},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer cluster.Close()
	waited := make([]time.Duration, nodes)
	_, err = cluster.RunNodes(b.Context(), func(ctx context.Context, env train.Env) error {
		env.Workers = []godwit.Worker{waiter{env.Workers[0], cluster.Now, &waited[env.Node]}}
		stop := make(chan struct{})
		env.Stop = stop
		env.Progress = func(e train.Event) {
			if e.Loss != nil && passes == 0 && e.Loss.Sum <= target {
				passes, took = e.Epoch-1, cluster.Now()
				for _, w := range waited {
					waiting += w.Seconds() / took.Seconds() / nodes
				}
			}
			if passes > 0 && env.Node == 0 {
				select {
				case <-stop:
				default:
					close(stop)
				}
			}
		}
		_, err := train.Run(ctx, env, task, train.Options{Epochs: most})
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	if passes == 0 {
		b.Fatalf("the objective is not reached in %d passes", most)
	}
	return passes, took, waiting
}
