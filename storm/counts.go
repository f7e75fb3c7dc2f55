package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/godwit-ps/godwit/node"
)

// counts say how often storms checked what they are there to check, and met what
// they are there to meet. Any number of goroutines may add.
type counts struct {
	memory, tcp, processes, stops atomic.Int64 // storms by where they were, and how often a process was stopped

	reads, owed, own, elsewhere, order   atomic.Int64
	eras, bounds, after, windows, synced atomic.Int64
	causes, chains, ends                 atomic.Int64
	sets, largest, counters, lossy       atomic.Int64
	glances, samples, scans              atomic.Int64
	cancelled, tornWrites                atomic.Int64

	moves, copies, drops, forwards, blocked, parked, rounded, heldBack, leftovers, compressed atomic.Int64
}

// A count is one of them, as reports name it.
type count struct {
	name string
	n    *atomic.Int64
}

func (c *counts) list() []count {
	return []count{
		{"storms in memory", &c.memory}, {"storms over TCP", &c.tcp}, {"storms in processes", &c.processes}, {"processes stopped for a while", &c.stops},
		{"reads judged", &c.reads}, {"reads that owed something", &c.owed},
		{"writes of the own node owed", &c.own}, {"writes of other nodes owed (one copy)", &c.elsewhere}, {"own writes in order without a wait (one copy, no hints)", &c.order},
		{"reads after a barrier", &c.eras}, {"reads within a bound", &c.bounds}, {"reads after a clock (PullAfter)", &c.after}, {"reads behind a window", &c.windows},
		{"writes of other nodes owed after WaitSync", &c.synced},
		{"writes with what came before them (one copy)", &c.causes}, {"reads in one order (one copy)", &c.chains}, {"final coordinates", &c.ends},
		{"reads of rows that are set", &c.sets}, {"reads of largest values", &c.largest}, {"reads of counters", &c.counters}, {"reads behind lossy filters", &c.lossy},
		{"values of PullIfLocal", &c.glances}, {"values of samples", &c.samples}, {"rows of scans", &c.scans},
		{"calls cut short", &c.cancelled}, {"pushes cut short", &c.tornWrites},
		{"keys moved", &c.moves}, {"replicas set up", &c.copies}, {"replicas dropped", &c.drops}, {"requests forwarded", &c.forwards},
		{"calls that waited for a bound", &c.blocked}, {"PullAfters that waited", &c.parked},
		{"bytes saved by rounding", &c.rounded}, {"vectors held back", &c.heldBack}, {"vectors flushed", &c.leftovers}, {"bytes saved by compression", &c.compressed},
	}
}

// missing names what never happened.
func (c *counts) missing() (names []string) {
	for _, x := range c.list() {
		if x.n.Load() == 0 {
			names = append(names, x.name)
		}
	}
	return names
}

func (c *counts) String() string {
	var b strings.Builder
	for _, x := range c.list() {
		fmt.Fprintf(&b, "%12d %s\n", x.n.Load(), x.name)
	}
	return b.String()
}

// met adds what nodes say that they did.
func (c *counts) met(s node.Stats) {
	c.moves.Add(int64(s.Moves))
	c.copies.Add(int64(s.Copies))
	c.drops.Add(int64(s.Drops))
	c.forwards.Add(int64(s.Forwards))
	c.blocked.Add(int64(s.Blocked))
	c.parked.Add(int64(s.Parked))
	c.rounded.Add(int64(s.FilterIn) - int64(s.FilterOut))
	c.heldBack.Add(int64(s.HeldBack))
	c.leftovers.Add(int64(s.Leftovers))
	c.compressed.Add(int64(s.PlainBytes) - int64(s.SentBytes))
}

// MarshalJSON writes the numbers, for the process that counts all.
func (c *counts) MarshalJSON() ([]byte, error) {
	var all []int64
	for _, x := range c.list() {
		all = append(all, x.n.Load())
	}
	return json.Marshal(all)
}

// add adds what another process counted.
func (c *counts) add(text []byte) error {
	var all []int64
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for i, x := range c.list() {
		if i < len(all) {
			x.n.Add(all[i])
		}
	}
	return nil
}
