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

// A Filter changes what pushes send to other nodes: it may round values, defer
// vectors, or drop them. Tables have filters ([Table.Filters]), and a call may bring
// its own ([WithFilters]). Several filters work one after the other. Package filter
// has the usual ones; a program may add more.
//
// Filters work only on pushes that leave the node. They do not see what a worker
// pushes to a copy at its own node, what Set writes, or rows that move. (A
// [Quantizer] may be used in other places, too.) The caller's buffers are never
// changed.
//
// What a filter rounds away or defers ([FilterBatch.Round], [FilterBatch.Defer]) is
// the residual. The worker keeps it and adds it to its next push of the key, wherever
// that push is served; WaitSync pushes what is still kept, unchanged. So nothing is
// lost: the sum of what arrives is the sum of what was pushed, to the rounding of
// float32. Until the residual is pushed, the worker's own reads may lack it, and so
// may what a bound on staleness promises ([Table.Staleness]). Where a rule is not
// linear in what is pushed, a residual counts as a push of its own.
//
// A Filter is immutable and may be used by any number of goroutines.
type Filter interface {
	// Name identifies the filter and its parameters, such as "fixed(bytes=1)".
	Name() string
	// Filter changes a batch by its methods. It must be a function of the batch
	// alone, random numbers included ([FilterBatch.Uint64]): a run is replayed from
	// its seeds. It must not keep the batch or parts of it.
	Filter(b *FilterBatch)
}

// A Quantizer is a [Filter] that also rounds single vectors. The server uses it
// where one vector travels alone: for the updates of replicas, whose residual stays
// in the replica and travels later; and, if QuantizesPulls, for the values that pulls
// read at other nodes.
type Quantizer interface {
	Filter
	// Quantize rounds vals in place, without bias, to values that the encoding can
	// write, and returns the encoding. The seed decides the random numbers.
	Quantize(vals []float32, seed uint64) Encoding
	// RelativeError reports whether the error of each float is in proportion to that
	// float alone, whatever else is in the vector. Rows with state are rounded
	// only by such filters, because the scale of the state differs from the value's.
	RelativeError() bool
	// QuantizesPulls reports whether values that pulls read at other nodes are
	// rounded. What such a value lacks is not sent later: the next pull is rounded
	// anew.
	QuantizesPulls() bool
}

// A Loss bounds what a [Filter] may change. Smaller values allow more.
type Loss uint8

const (
	LossAny       Loss = iota // values may change, come later, or not come at all
	LossFractions             // whole numbers up to 256 in magnitude pass unchanged and at once
	LossNone                  // only the encoding of values may change
)

// A LossReporter is a [Filter] that bounds its loss. The loss of other filters is
// LossAny. It matters to tables whose rows are not plain sums of numbers
// ([Table.Counts], [NonAdditive]).
type LossReporter interface {
	Filter
	// MaxLoss is the same at every call.
	MaxLoss() Loss
}

// A Coding is a way to write floats in fewer bytes. It is one of the first four
// constants, alone or with Sparse.
type Coding uint8

const (
	Raw      Coding = iota // 4 bytes each
	BFloat16               // 2 bytes each: floats whose low 16 bits are zero
	Fixed8                 // 1 byte each: multiples of a step, by −127 … 127, rounded to float32
	Fixed16                // 2 bytes each: likewise, by −32767 … 32767

	// Sparse writes +0 (not −0) as one bit, and adds that bit to all others.
	Sparse Coding = 1 << 4
)

// An Encoding is a coding with its parameter. It decides only how many bytes a vector
// takes: a vector with a value that the coding cannot write exactly, or one for a node
// that does not support it, is written Raw.
type Encoding struct {
	Coding Coding  // how each float is written
	Step   float32 // of Fixed8 and Fixed16: the difference of two neighbouring values, above 0
}

// Usable returns the encoding, or the raw one if there is no such coding.
func (e Encoding) Usable() Encoding {
	if e.Coding&^(Sparse|Fixed16) != 0 {
		return Encoding{}
	}
	return e
}

// Bytes returns how many bytes a vector takes in the encoding, if the coding can
// write all of its floats.
func (e Encoding) Bytes(v []float32) int {
	n, bytes := len(v), 0
	if e.Coding&Sparse != 0 {
		bytes = (n + 7) / 8
		for _, x := range v {
			if math.Float32bits(x) == 0 {
				n--
			}
		}
	}
	switch e.Coding &^ Sparse {
	case BFloat16, Fixed16:
		return bytes + 2*n
	case Fixed8:
		return bytes + n
	}
	return bytes + 4*n
}

// A FilterBatch holds what one call pushes to keys of one table that are not at this
// node: the positions of the call that go to other nodes, as far as is known before
// they are sent, with copies of their vectors. It belongs to one goroutine.
type FilterBatch struct {
	// Worker is the worker that pushes.
	Worker WorkerID
	// Table is the table's index in the model.
	Table int
	// Call is how many batches of the table the worker had before this one.
	Call uint64
	// Dim is the length of each vector.
	Dim int
	// Keys are the positions' keys; a key may come twice. Filters must not change
	// them.
	Keys []Key
	// Vals are the vectors, one after the other, as the filters before left them.
	// A filter may change them in place; such a change is final, while changes by
	// [FilterBatch.Round] and [FilterBatch.Defer] are made up for later. Vectors of
	// positions that are not sent ([FilterBatch.Sent]) are meaningless.
	Vals []float32
	// Encoding is how the vectors should be written.
	Encoding Encoding

	residual []float32 // of Round and Defer: len(Vals), or 0 if there is none
	dropped  []bool    // positions that are not sent
	nDropped int       // how many of them
	random   uint64
}

// Reset fills the batch with keys and vectors, all of them to be sent. The code that
// serves workers sets the other exported fields.
func (b *FilterBatch) Reset(keys []Key, vals []float32, seed uint64) {
	b.Keys, b.Vals, b.Encoding, b.random, b.nDropped = keys, vals, Encoding{}, seed, 0
	b.residual = b.residual[:0]
	if cap(b.dropped) < len(keys) {
		b.dropped = make([]bool, len(keys))
	}
	b.dropped = b.dropped[:len(keys)]
	clear(b.dropped)
}

// Vec returns the vector of position i.
func (b *FilterBatch) Vec(i int) []float32 { return b.Vals[i*b.Dim : (i+1)*b.Dim : (i+1)*b.Dim] }

// Sent reports whether position i is still to be sent.
func (b *FilterBatch) Sent(i int) bool { return !b.dropped[i] }

// Dropped returns how many positions are not sent.
func (b *FilterBatch) Dropped() int { return b.nDropped }

// Round replaces float j of the vector of position i and adds the difference to the
// residual. A difference that is not finite is not kept, nor is one of a position that
// is not sent.
func (b *FilterBatch) Round(i, j int, to float32) {
	if b.dropped[i] {
		return
	}
	j += i * b.Dim
	if d := b.Vals[j] - to; d != 0 && d-d == 0 {
		b.residuals()[j] += d
	}
	b.Vals[j] = to
}

// EnsureResidual returns the residual of position i, which is to be sent, and makes a
// zero one if there is none. A filter that changes many floats adds to it what
// [FilterBatch.Round] would.
func (b *FilterBatch) EnsureResidual(i int) []float32 { return b.residuals()[i*b.Dim : (i+1)*b.Dim] }

// Defer moves the vector of position i to the residual: it is pushed later, not now.
func (b *FilterBatch) Defer(i int) {
	if b.dropped[i] {
		return
	}
	left := b.residuals()
	for j := i * b.Dim; j < (i+1)*b.Dim; j++ {
		left[j] += b.Vals[j]
	}
	b.Drop(i)
}

// Drop has position i not sent, and its present vector never pushed.
func (b *FilterBatch) Drop(i int) {
	if !b.dropped[i] {
		b.dropped[i] = true
		b.nDropped++
	}
}

// Residual returns what is to be pushed later of position i; nil if the whole batch
// has no residual.
func (b *FilterBatch) Residual(i int) []float32 {
	if len(b.residual) == 0 {
		return nil
	}
	return b.residual[i*b.Dim : (i+1)*b.Dim]
}

func (b *FilterBatch) residuals() []float32 {
	if n := len(b.Vals); len(b.residual) < n {
		if cap(b.residual) < n {
			b.residual = make([]float32, n)
		}
		b.residual = b.residual[:n]
		clear(b.residual)
	}
	return b.residual
}

// Uint64 returns the next random number of the batch, so that a FilterBatch is a
// source for math/rand/v2. The numbers follow from the run's seed and from
// Worker, Table and Call.
func (b *FilterBatch) Uint64() uint64 {
	b.random += 0x9e3779b97f4a7c15
	return Hash64(b.random)
}

// Hash64 returns a hash of x, the same for equal x: the finalizer of SplitMix64
// (Steele et al., "Fast splittable pseudorandom number generators", 2014). Hashing a
// seed together with the purpose of a random number gives that number.
func Hash64(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

type filtersKey struct{}

// contextFilters is set once any context brings filters: until then, pushes need not
// look for them.
var contextFilters atomic.Bool

// WithFilters returns a context for pushes that go through these filters
// instead of those of their tables: through none, if fs is empty. A push with invalid
// filters ([CheckFilters]), or with one that the table of one of its keys refuses
// ([Table.CheckFilter]), is an error, wherever the keys are. Nothing is pushed then.
func WithFilters(ctx context.Context, fs ...Filter) context.Context {
	if !contextFilters.Load() {
		contextFilters.Store(true)
	}
	return context.WithValue(ctx, filtersKey{}, slices.Clone(fs))
}

// FiltersOf returns the filters that a context brings, and whether it brings any.
// They must not be changed.
func FiltersOf(ctx context.Context) (fs []Filter, ok bool) {
	if !contextFilters.Load() {
		return nil, false
	}
	fs, ok = ctx.Value(filtersKey{}).([]Filter)
	return fs, ok
}

// CheckFilters returns what is wrong with a list of filters; nil if nothing is.
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

// CheckFilter returns why pushes to the table cannot go through a filter; nil if
// they can.
func (t *Table) CheckFilter(f Filter) error {
	loss := LossAny
	if r, ok := f.(LossReporter); ok {
		loss = r.MaxLoss()
	}
	if t.Counts && loss < LossFractions {
		return fmt.Errorf("table %q: its rows hold counts, and filter %s may change counts", t.Name, f.Name())
	}
	if r, ok := t.Rule.(NonAdditive); ok && loss < LossNone {
		return fmt.Errorf("table %q: pushes of rule %s do not add up, so filter %s, which may change pushes or put off parts of them, would change what they do: use filters that lose nothing, such as sparse, or another rule", t.Name, r.Name(), f.Name())
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
