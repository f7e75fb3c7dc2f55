package experiment

import (
	"time"

	"github.com/godwit-ps/godwit/internal/bench"
	"github.com/godwit-ps/godwit/sim"
)

// MeasuredCosts are constants for what simulated nodes are charged, so that a report of steps that are
// given can be repeated on any machine. Where steps are measured, costs must be of the same machine.
func MeasuredCosts() bench.Costs {
	return bench.Costs{
		From: "godwit bench --costs, 2026-11-22; Intel(R) Xeon(R) Processor, 2 cores, linux/amd64, go1.26.8, load 5.65 … 7.65",
		Key:  48, Byte: 0.26, Announce: 10, Plan: 100, Want: 135, Load: 14, Sample: 29,
		Send: 7400, Frame: 7400, Record: 450, FrameByte: 0.45, Round: 1080,
	}
}

// Compute is what a simulated node of so many workers computes: steps by measurement
// or as the lab says, everything else by its costs, on the cores of the node.
func (l *Lab) Compute(workers int) sim.Compute {
	c := &l.Costs
	ns := func(x float64) time.Duration { return time.Duration(x + 0.5) }
	cores := l.Cores
	if cores == 0 {
		cores = workers
	}
	return sim.Compute{Step: l.Step, Spread: 0.1, Key: ns(c.Key), Byte: c.Byte,
		Announce: ns(c.Announce), Plan: ns(c.Plan), Want: ns(c.Want), Load: ns(c.Load), Sample: ns(c.Sample),
		Send: ns(c.Send), Frame: ns(c.Frame), Record: ns(c.Record), FrameByte: c.FrameByte, Round: ns(c.Round), Cores: cores}
}
