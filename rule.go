package godwit

import (
	"fmt"
	"math/rand/v2"
	"sync"
)

// A Rule says how a push changes a row. A row is a value of dim floats followed
// by the rule's own state.
//
// A rule is applied where the copy is: at the owner or at a replica. Copies
// meet by adding the *difference* that their pushes made to value and state,
// so a rule should write its state as sums where it can (AdaGrad: the sum of
// squared gradients), and must tolerate a state that moved under it. A rule
// that knows better how copies meet is a [Merger]. One that does not keep what
// pulls should get is a [Querier].
//
// A Rule is immutable and may be used by any number of goroutines.
type Rule interface {
	// Name identifies the rule and its parameters, such as "adagrad(lr=0.1)".
	Name() string
	// StateLen is the number of state floats that follow a value of dim floats.
	StateLen(dim int) int
	// InitState sets the state of a new row.
	InitState(state []float32)
	// Apply changes value and state in place by one pushed vector of the
	// value's length. It must not keep or change push.
	Apply(value, state, push []float32)
}

// A Checker is a [Rule] that can tell whether its parameters make sense. [NewModel]
// refuses a table whose rule says that they do not.
type Checker interface {
	Rule
	// Check returns what is wrong with the parameters, and which values they may
	// have.
	Check() error
}

// A Merger is a [Rule] with a way of its own for pushes made at one copy of a
// row to count at another. There are two reasons to have one. Where the length of
// a step depends on the state, the plain sum of differences repeats steps that
// each copy made for its own state; n copies that start together then go n times
// as far as one row would. And where a row is no sum of what was pushed, but the
// largest of it, the last, or any other join, differences say nothing.
//
// What travels is what pushes did to a copy: to the state as a difference, to be
// added, and to the value as the rule packs it at the copy and merges it where it
// arrives. For a copy x that pushes took to y, Pack of the difference at y and
// Merge at x must give y, but for rounding. What different copies packed may be
// merged in any order; the same is never merged twice. Where two that were packed
// do not add up to what one push of both would be, the rule is a [Joiner], too.
type Merger interface {
	Rule
	// Pack makes of the difference that pushes made to a copy's value what is to
	// travel, in place. value and state are the copy's, with those pushes. What
	// did not change must not travel as if it had: the row may have been set
	// elsewhere meanwhile.
	Pack(value, state, dvalue []float32)
	// Merge takes what was packed into a value. To state, the difference of
	// states has been added before.
	Merge(value, state, dvalue []float32)
	// Fresh is how many floats of a row, from its first, a copy needs as they
	// are elsewhere each time that it is brought up to date: dim where pushes
	// may be applied with a state that lacks what other copies' pushes did of
	// late, dim plus the length of the state where they may not.
	Fresh(dim int) int
}

// A Joiner is a [Rule] by which a value is no sum of what was pushed, but a join
// of it, such as the largest: it makes a difference whether two vectors are pushed
// or their sum.
type Joiner interface {
	Rule
	Joins()
}

// A Querier is a [Rule] whose pulls get what a function makes of the row, where
// the copy is, instead of the value as the row keeps it: what follows from a value
// and its state need not be kept beside them, nor travel with them. FTRL keeps
// two sums and answers with the weight that follows from them.
type Querier interface {
	Rule
	// Query writes what a pull gets to dst, which is as long as the value. It must
	// be a function of the row, which it must not change or keep.
	Query(dst, value, state []float32)
	// Keep is the way back: it turns a value that the initializer made, or that
	// somebody set, into what the row keeps, in place. The state is new
	// ([Rule.InitState]), and may be changed too. A Query then gives the value, but
	// for rounding.
	Keep(value, state []float32)
}

// Add is the rule that adds the pushed vector to the value. It has no state.
type Add struct{}

func (Add) Name() string        { return "add" }
func (Add) StateLen(int) int    { return 0 }
func (Add) InitState([]float32) {}

// Apply computes value[i] += push[i].
func (Add) Apply(value, _, push []float32) {
	push = push[:len(value)]
	for i := range value {
		value[i] += push[i]
	}
}

// An Init gives rows their first values. It depends on the seed of the run and
// on the key alone, so that whichever node first needs a row makes the same
// one and no initial value ever travels.
type Init interface {
	// Name identifies the initializer and its parameters.
	Name() string
	// Init writes the first value of the row.
	Init(value []float32, seed uint64, k Key)
}

// Zero initializes values with zeros.
type Zero struct{}

func (Zero) Name() string { return "zero" }

// Init writes zeros.
func (Zero) Init(value []float32, _ uint64, _ Key) { clear(value) }

// Uniform initializes values with draws from the uniform distribution [Lo, Hi).
type Uniform struct{ Lo, Hi float32 }

func (u Uniform) Name() string { return fmt.Sprintf("uniform(%v,%v)", u.Lo, u.Hi) }

// Init writes uniform draws.
func (u Uniform) Init(value []float32, seed uint64, k Key) {
	var r rand.PCG
	r.Seed(rowSeed(seed, k))
	for i := range value {
		value[i] = u.Lo + (u.Hi-u.Lo)*unit(r.Uint64())
	}
}

// unit makes 64 random bits a number in [0, 1), as rand.Rand.Float32 does.
func unit(bits uint64) float32 { return float32(bits>>32&(1<<24-1)) / (1 << 24) }

// Normal initializes values with draws from the normal distribution.
type Normal struct{ Mean, Std float32 }

func (n Normal) Name() string { return fmt.Sprintf("normal(%v,%v)", n.Mean, n.Std) }

// Init writes normal draws.
func (n Normal) Init(value []float32, seed uint64, k Key) {
	g := generators.Get().(*generator)
	defer generators.Put(g)
	g.pcg.Seed(rowSeed(seed, k))
	for i := range value {
		value[i] = n.Mean + n.Std*float32(g.NormFloat64())
	}
}

// A generator is seeded for each row anew. Generators are kept, as a row of a
// few floats takes less time than to make one.
type generator struct {
	*rand.Rand
	pcg rand.PCG
}

var generators = sync.Pool{New: func() any {
	g := &generator{}
	g.Rand = rand.New(&g.pcg)
	return g
}}

// rowSeed is the seed of one row's generator: a function of seed and key.
func rowSeed(seed uint64, k Key) (uint64, uint64) {
	return seed, uint64(k)*0x9e3779b97f4a7c15 + 0x632be59bd9b4e019
}
