package node

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/placement"
)

// These tests look at what arrives at the owner, not at what a filter makes of a
// vector: so at the rounding, at what is kept for later and added again, at the coding,
// and at the random numbers that the way of a push hands to its filters.

// rounded is what is pushed, and quantum the distance of the values next to each of its
// floats that a filter can write. The first float decides the step of Fixed.
var rounded = []float32{1, 0.09, -0.077, 0.11, 0, 0, 0, 0}

var wayRounders = []struct {
	name    string
	of      func(answers, forget bool) godwit.Filter
	quantum float64
}{
	{"fixed(bytes=1)", func(a, f bool) godwit.Filter { return filter.Fixed{Bytes: 1, Answers: a, Forget: f} }, 1. / 127},
	{"fixed(bytes=2)", func(a, f bool) godwit.Filter { return filter.Fixed{Bytes: 2, Answers: a, Forget: f} }, 1. / 32767},
	{"bf16", func(a, f bool) godwit.Filter { return filter.BF16{Answers: a, Forget: f} }, 1. / 2048},
}

// A drift is the errors of a float of many vectors, each of which is less than a quantum,
// and has mean 0 whatever the ones before it are, if rounding has no bias.
type drift struct {
	sum, largest float64
	n            int
}

func (d *drift) add(e float64) {
	d.sum += e
	d.largest = max(d.largest, math.Abs(e))
	d.n++
}

// check fails the test if the mean error is one that no rounding without bias has: by the
// inequality of Azuma and Hoeffding, n errors that lie within an interval of one quantum
// sum up to 3.5·√n quanta or more, in either direction, with a probability below 5e-11.
func (d *drift) check(t *testing.T, what string, quantum float64) {
	t.Helper()
	quantum *= 1.05 // what is kept makes the largest float a little larger, and so the step
	switch most := 3.5 * quantum * math.Sqrt(float64(d.n)); {
	case d.largest == 0:
		t.Errorf("%s: nothing was rounded: the test is vacuous", what)
	case d.largest > quantum:
		t.Errorf("-seed %d: %s: what arrives is off by %v, more than a quantum of %v", *seed, what, d.largest, quantum)
	case math.Abs(d.sum) > most:
		t.Errorf("-seed %d: %s: the errors of %d vectors sum up to %v, that of a rounding without bias stays within %v", *seed, what, d.n, d.sum, most)
	}
}

// owned is a model of rows of rounded's length, and keys of it whose home is node 1
// of two, which has a worker at each.
func owned(t *testing.T, policy placement.Policy, keys int, fs ...godwit.Filter) (c *Cluster, at []godwit.Key) {
	t.Helper()
	m := modelOf(t, godwit.Table{Name: "t", Rows: 4096, Dim: len(rounded), Filters: fs})
	c = local(t, 2, Config{Model: m, Policy: policy, Workers: 1, Seed: *seed})
	return c, homedAt(t, c.Nodes[0], 1, keys)
}

// ways are those of a push to another node: by a request, and by the delta of a replica.
var ways = map[string]placement.Policy{"request": placement.Static, "delta": placement.ReplicateAll}

// push pushes rounded to a key from node 0 and returns the row at node 1 with the push.
func pushAcross(t *testing.T, ctx context.Context, c *Cluster, k godwit.Key, times int) []float32 {
	t.Helper()
	must(t, c.Nodes[0].Worker(0).Push(ctx, []godwit.Key{k}, rounded))
	v := pulled(t, c.Nodes[1].Worker(0), k)
	for v[0] < float32(times)-0.5 { // a replica's update is on its way
		eventually(t, fmt.Sprintf("push %d of key %d is at the owner", times, k), func() bool {
			v = pulled(t, c.Nodes[1].Worker(0), k)
			return v[0] >= float32(times)-0.5
		})
	}
	return v
}

// After each push, the owner has what was pushed but for less than a quantum, which is
// sometimes too much and sometimes too little; after WaitSync it has all.
func TestConformanceC27WhatPushesBringToTheOwnerHasNoBias(t *testing.T) {
	const keys, pushes = 40, 20
	for _, r := range wayRounders {
		for way, policy := range ways {
			t.Run(r.name+"/"+way, func(t *testing.T) {
				ctx := background(t)
				c, at := owned(t, policy, keys, r.of(false, false))
				var ds [4]drift
				for _, k := range at {
					for i := range pushes {
						v := pushAcross(t, ctx, c, k, i+1)
						for j := range ds {
							ds[j].add(float64(v[j]) - float64(i+1)*float64(rounded[j]))
						}
					}
				}
				for j := range ds[1:] { // the first float is the largest multiple, and hardly rounded
					ds[j+1].check(t, fmt.Sprintf("float %d", j+1), r.quantum)
				}
				must(t, c.Nodes[0].Worker(0).WaitSync(ctx))
				for _, k := range at {
					for j, x := range pulled(t, c.Nodes[1].Worker(0), k) {
						if want := pushes * float64(rounded[j]); math.Abs(float64(x)-want) > 2e-5 {
							t.Errorf("-seed %d: float %d of key %d is %v when all has arrived, want %v", *seed, j, k, x, want)
						}
					}
				}
			})
		}
	}
}

// What is forgotten makes each push less or more, and the sum neither.
func TestConformanceC27PushesThatForgetWhatIsRoundedOffHaveNoBias(t *testing.T) {
	const keys, pushes = 40, 20
	for _, r := range wayRounders {
		t.Run(r.name, func(t *testing.T) {
			ctx := background(t)
			c, at := owned(t, placement.Static, keys, r.of(false, true))
			var ds [4]drift
			for _, k := range at {
				was := make([]float32, len(rounded))
				for i := range pushes {
					v := pushAcross(t, ctx, c, k, i+1)
					for j := range ds {
						ds[j].add(float64(v[j]) - float64(was[j]) - float64(rounded[j]))
					}
					was = v
				}
			}
			for j := range ds[1:] {
				ds[j+1].check(t, fmt.Sprintf("float %d", j+1), r.quantum)
			}
		})
	}
}

// Answers are rounded without anything kept: each by random numbers of its own.
func TestConformanceC27RoundedAnswersHaveNoBias(t *testing.T) {
	for _, r := range wayRounders {
		t.Run(r.name, func(t *testing.T) {
			ctx := background(t)
			c, at := owned(t, placement.Static, 40, r.of(true, false))
			var ds [4]drift
			for _, k := range at {
				must(t, c.Nodes[1].Worker(0).Push(ctx, []godwit.Key{k}, rounded))
				for range 20 {
					for j, x := range pulled(t, c.Nodes[0].Worker(0), k)[:len(ds)] {
						ds[j].add(float64(x) - float64(rounded[j]))
					}
				}
			}
			for j := range ds[1:] {
				ds[j+1].check(t, fmt.Sprintf("float %d", j+1), r.quantum)
			}
		})
	}
}

// Skip holds back as many pushes as it says, by chance, and what it held back goes with
// the next push of the key that it lets through, once.
func TestConformanceC27WhatSkipHoldsBackComesWithALaterPush(t *testing.T) {
	const keys, pushes, p = 40, 50, 0.4
	ctx := background(t)
	c, at := owned(t, placement.Static, keys, filter.Skip{P: p})
	held := 0
	for _, k := range at {
		was := float32(0)
		for i := range pushes {
			must(t, c.Nodes[0].Worker(0).Push(ctx, []godwit.Key{k}, rounded))
			v := pulled(t, c.Nodes[1].Worker(0), k)
			switch v[0] {
			case was:
				held++
			case float32(i + 1):
				was = v[0]
			default:
				t.Fatalf("-seed %d: key %d is %v after %d pushes, it was %v", *seed, k, v[0], i+1, was)
			}
		}
	}
	const n = keys * pushes
	if mean, sigma := p*n, math.Sqrt(n*p*(1-p)); math.Abs(float64(held)-mean) > 6.5*sigma {
		t.Errorf("-seed %d: %d of %d pushes were held back, want %v ± %.0f", *seed, held, n, mean, 6.5*sigma)
	}
	must(t, c.Nodes[0].Worker(0).WaitSync(ctx))
	for _, k := range at {
		if v := pulled(t, c.Nodes[1].Worker(0), k); v[0] != pushes {
			t.Errorf("-seed %d: key %d is %v in the end, want %d", *seed, k, v[0], pushes)
		}
	}
}
