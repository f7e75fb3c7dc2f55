package godwit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
)

// A Filter changes what pushes send to other nodes: it may round values, hold
// vectors back for later, or drop them. Tables have filters ([Table.Filters]),
// and a call may bring its own ([WithFilters]); several work one after the other.
// Package filter has the usual ones; a program may have more.
//
// Filters work on pushes that leave the node, and on nothing else: not on what
// a worker pushes to a copy at its own node, not on Set, not on rows that move.
// (A [Rounder] may be of use in other places, too.) The caller's buffers are
// never changed.
//
// What a filter rounds away or holds back ([Batch.Round], [Batch.Defer]) is
// kept for the worker and added to its next push of the key, wherever that is
// served; WaitSync pushes what is left, as it is. So nothing is lost: the sum of
// what arrives is the sum of what was pushed, to the rounding of float32. Until
// then, it may be missing in what the worker itself reads, and from what a bound
// on staleness promises ([Table.Staleness]). Where a rule is not linear in what is
// pushed, what comes later counts as a push of its own.
//
// A Filter is immutable and may be used by any number of goroutines.
type Filter interface {
	// Name identifies the filter and its parameters, such as "fixed(bytes=1)".
	Name() string
	// Filter changes a batch by its methods. It must be a function of the batch
	// alone, random numbers included ([Batch.Uint64]): a run is replayed from its
	// seeds. It must not keep the batch or parts of it.
	Filter(b *Batch)
}

// A Rounder is a [Filter] that rounds single vectors as well. It is used where
// one vector travels: for the updates of replicas, whose remainder stays in the
// replica and travels later, and, if it RoundsAnswers, for the values with which pulls are answered that come from other nodes.
type Rounder interface {
	Filter
	// Round rounds vals in place, without bias, to values that the form can write,
	// and returns the form. The seed decides the random numbers.
	Round(vals []float32, seed uint64) Form
	// Relative reports whether what a float loses is in proportion to it, so that
	// it does not matter what else is in the vector. Rows with state are rounded
	// by such filters only: the state has a scale of its own.
	Relative() bool
	// RoundsAnswers reports whether values that pulls read at other nodes are
	// rounded. What a rounded answer lacks is not sent later: the next one is
	// rounded anew.
	RoundsAnswers() bool
}

// A Loss says how much a [Filter] may change.
type Loss uint8

const (
	Anything  Loss = iota // values, and when they come, if they do
	Fractions             // not whole numbers of up to 256 in magnitude: they pass as they are, at once
	Nothing               // only how values are written
)

// A Sparing filter says what it may change; that of others is Anything. It
// matters to tables whose rows are no mere sums of numbers ([Table.Counts],
// [Joiner]).
type Sparing interface {
	Filter
	Loses() Loss
}

// A Coding is a way to write floats. It is one of the first four constants,
// alone or with Sparse.
type Coding uint8

const (
	Raw      Coding = iota // 4 bytes each
	BFloat16               // 2 bytes each: floats whose low 16 bits are zero
	Fixed8                 // 1 byte each: multiples of a step, by −127 … 127, rounded to float32
	Fixed16                // 2 bytes each: likewise, by −32767 … 32767

	// Sparse writes +0 (not −0) as one bit, and adds that bit to all others.
	Sparse Coding = 1 << 4
)

// A Form says how the floats of a vector should be written. It is a matter of
// bytes only: a vector with a value that the coding cannot write exactly, or for
// a node that does not take it, is written Raw.
type Form struct {
	Coding Coding
	Step   float32 // of Fixed8 and Fixed16
}

// Usable returns the form, or the raw one if there is no such coding.
func (f Form) Usable() Form {
	if f.Coding&^(Sparse|Fixed16) != 0 {
		return Form{}
	}
	return f
}

// Bytes returns how many bytes a vector takes in the form, if the coding can
// write all of its floats.
func (f Form) Bytes(v []float32) int {
	n, bytes := len(v), 0
	if f.Coding&Sparse != 0 {
		bytes = (n + 7) / 8
		for _, x := range v {
			if math.Float32bits(x) == 0 {
				n--
			}
		}
	}
	switch f.Coding &^ Sparse {
	case BFloat16, Fixed16:
		return bytes + 2*n
	case Fixed8:
		return bytes + n
	}
	return bytes + 4*n
}

// A Batch is what one call pushes to keys of one table that are not here: the
// positions of the call that go to other nodes, as far as is known before they
// are sent, with copies of their vectors. It belongs to one goroutine.
type Batch struct {
	Worker WorkerID
	// Table is the table's index in the model.
	Table int
	// Call is how many batches of the table the worker had before this one.
	Call uint64
	// Dim is the length of each vector.
	Dim int
	// Keys are the positions' keys; the same may come twice. They must not be
	// changed.
	Keys []Key
	// Vals are the vectors, one after the other, as the filters before left them.
	// A filter may change them in place; what it changes so is not made up for
	// later ([Batch.Round] and [Batch.Defer] are). Vectors of positions that are
	// not sent ([Batch.Sent]) mean nothing.
	Vals []float32
	// Form is how the vectors should be written.
	Form Form

	left   []float32 // of Round and Defer: len(Vals), or 0 if nothing is left
	gone   []bool    // positions that are not sent
	goners int
	random uint64
}

// Begin makes the batch one of keys and vectors that are all to be sent. Who
// serves workers sets the other exported fields.
func (b *Batch) Begin(keys []Key, vals []float32, seed uint64) {
	b.Keys, b.Vals, b.Form, b.random, b.goners = keys, vals, Form{}, seed, 0
	b.left = b.left[:0]
	if cap(b.gone) < len(keys) {
		b.gone = make([]bool, len(keys))
	}
	b.gone = b.gone[:len(keys)]
	clear(b.gone)
}

// Vec returns the vector of position i.
func (b *Batch) Vec(i int) []float32 { return b.Vals[i*b.Dim : (i+1)*b.Dim] }

// Sent reports whether position i is still to be sent.
func (b *Batch) Sent(i int) bool { return !b.gone[i] }

// Dropped returns how many positions are not sent.
func (b *Batch) Dropped() int { return b.goners }

// Round replaces float j of the vector of position i; the difference is pushed
// later. A difference that is no finite number is not, nor is that of a position
// that is not sent.
func (b *Batch) Round(i, j int, to float32) {
	if b.gone[i] {
		return
	}
	j += i * b.Dim
	if d := b.Vals[j] - to; d != 0 && d-d == 0 {
		b.rest()[j] += d
	}
	b.Vals[j] = to
}

// Later returns what is to be pushed later of position i, which is to be sent. A
// filter that changes many floats adds to it what [Batch.Round] would.
func (b *Batch) Later(i int) []float32 { return b.rest()[i*b.Dim : (i+1)*b.Dim] }

// Defer has position i not sent: its vector is pushed later.
func (b *Batch) Defer(i int) {
	if b.gone[i] {
		return
	}
	left := b.rest()
	for j := i * b.Dim; j < (i+1)*b.Dim; j++ {
		left[j] += b.Vals[j]
	}
	b.Drop(i)
}

// Drop has position i not sent, and what its vector is now, never.
func (b *Batch) Drop(i int) {
	if !b.gone[i] {
		b.gone[i] = true
		b.goners++
	}
}

// Left returns what is to be pushed later of position i; nil if nothing is of
// the whole batch.
func (b *Batch) Left(i int) []float32 {
	if len(b.left) == 0 {
		return nil
	}
	return b.left[i*b.Dim : (i+1)*b.Dim]
}

func (b *Batch) rest() []float32 {
	if n := len(b.Vals); len(b.left) < n {
		if cap(b.left) < n {
			b.left = make([]float32, n)
		}
		b.left = b.left[:n]
		clear(b.left)
	}
	return b.left
}

// Uint64 returns the next random number of the batch, so that a Batch is a
// source for math/rand/v2. The numbers follow from the run's seed and from
// Worker, Table and Call.
func (b *Batch) Uint64() uint64 {
	b.random += 0x9e3779b97f4a7c15
	return Mix(b.random)
}

// Mix spreads the bits of x: equal for equal x, and as good as random for
// different ones (Steele et al., "Fast splittable pseudorandom number
// generators", 2014). It is how random numbers are made of a seed and what they
// are for.
func Mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

type filtersKey struct{}

// brought is set once some context brings filters: until then, pushes need not
// look for them.
var brought atomic.Bool

// WithFilters returns a context for pushes that go through these filters
// instead of those of their tables: through none, if there are none. A push with
// filters that are of no use ([CheckFilters]), or that the table of one of its
// keys does not bear ([Table.CheckFilter]), is an error, wherever the keys are.
// Nothing is done then.
func WithFilters(ctx context.Context, fs ...Filter) context.Context {
	if !brought.Load() {
		brought.Store(true)
	}
	return context.WithValue(ctx, filtersKey{}, slices.Clone(fs))
}

// FiltersOf returns the filters that a context brings, and whether it brings any.
// They must not be changed.
func FiltersOf(ctx context.Context) (fs []Filter, ok bool) {
	if !brought.Load() {
		return nil, false
	}
	fs, ok = ctx.Value(filtersKey{}).([]Filter)
	return fs, ok
}

// CheckFilters says what is wrong with a list of filters.
func CheckFilters(fs []Filter) error {
	seen := map[string]bool{}
	for i, f := range fs {
		switch {
		case f == nil:
			return fmt.Errorf("filter %d is nil", i)
		case f.Name() == "":
			return fmt.Errorf("filter %d has no name", i)
		case seen[f.Name()]:
			return fmt.Errorf("filter %s is there twice", f.Name())
		}
		seen[f.Name()] = true
		if c, ok := f.(interface{ Check() error }); ok {
			if err := c.Check(); err != nil {
				return err
			}
		}
	}
	if len(fs) > maxFilters {
		return errors.New("too many filters")
	}
	return nil
}

const maxFilters = 16

func (t *Table) checkFilters() error {
	if err := CheckFilters(t.Filters); err != nil {
		return fmt.Errorf("godwit: table %q: %w", t.Name, err)
	}
	for _, f := range t.Filters {
		if err := t.CheckFilter(f); err != nil {
			return fmt.Errorf("godwit: %w", err)
		}
	}
	return nil
}

// CheckFilter says why pushes to the table cannot go through a filter; nil if
// they can.
func (t *Table) CheckFilter(f Filter) error {
	loss := Anything
	if s, ok := f.(Sparing); ok {
		loss = s.Loses()
	}
	if t.Counts && loss < Fractions {
		return fmt.Errorf("table %q: its rows have counts in them, which filter %s does not let pass as they are", t.Name, f.Name())
	}
	if j, ok := t.Rule.(Joiner); ok && loss < Nothing {
		return fmt.Errorf("table %q: by its rule %s a value is no sum, so filter %s cannot push later what it leaves out", t.Name, j.Name(), f.Name())
	}
	return nil
}

// filterNames joins the names of filters, as package filter parses them.
func filterNames(fs []Filter) string {
	var names []string
	for _, f := range fs {
		names = append(names, f.Name())
	}
	return strings.Join(names, ", ")
}
