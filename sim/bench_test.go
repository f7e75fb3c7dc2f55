package sim

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
)

// BenchmarkMessages is eight nodes of eight workers, who push and pull keys of
// other nodes: every access is two messages. records/frame tells how many
// travel together.
func BenchmarkMessages(b *testing.B) {
	for _, keys := range []int{1, 16} {
		b.Run(map[int]string{1: "one key a call", 16: "16 keys a call"}[keys], func(b *testing.B) {
			m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 10_000, Dim: 8})
			if err != nil {
				b.Fatal(err)
			}
			network, _ := NetworkNamed("10g")
			c, err := New(Config{Nodes: 8, Workers: 8, Seed: 1, Model: m, Policy: placement.Static, Network: network,
				Compute: Compute{Step: 10 * time.Microsecond, Key: 100 * time.Nanosecond, Frame: time.Microsecond, Record: 200 * time.Nanosecond}})
			if err != nil {
				b.Fatal(err)
			}
			var messages, frames, events uint64
			for b.Loop() {
				r, err := c.Run(context.Background(), func(ctx context.Context, w godwit.Worker) error {
					rng := rand.New(rand.NewPCG(uint64(w.ID().Node), uint64(w.ID().Local)))
					ks, vals := make([]godwit.Key, keys), make([]float32, 8*keys)
					for range 50 {
						for i := range ks {
							ks[i] = godwit.Key(rng.Uint64N(m.Keys()))
						}
						if err := w.Pull(ctx, ks, vals); err != nil {
							return err
						}
						if err := w.Push(ctx, ks, vals); err != nil {
							return err
						}
						w.Advance()
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
				messages, frames, events = messages+r.Messages, frames+r.Frames, events+r.Events
			}
			s := b.Elapsed().Seconds()
			b.ReportMetric(float64(messages)/s, "messages/s")
			b.ReportMetric(float64(events)/s, "events/s")
			b.ReportMetric(float64(messages)/float64(frames), "records/frame")
			if err := c.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkStorms is the storms of the tests.
func BenchmarkStorms(b *testing.B) {
	seed, messages := uint64(0), uint64(0)
	for b.Loop() {
		seed++
		r, err := Storm(context.Background(), seed, StormConfig{})
		if err != nil {
			b.Fatal(err)
		}
		messages += r.Messages
	}
	b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "messages/s")
}
