package godwit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
)

// A Rule says how a push changes a row. A row is a value of dim floats followed
// by the rule's own state.
//
// A rule is applied where the copy is: at the owner or at a replica. Copies
// exchange the *difference* that their pushes made to value and state, and add
// what they receive. So a rule should keep its state as sums where it can (AdaGrad:
// the sum of squared gradients), and must tolerate that others change the state
// between two pushes. A rule that needs another exchange is a [Merger]. A rule whose
// pulls return something else than the value is a [Querier].
//
// A Rule is immutable and may be used by any number of goroutines. A method that panics has the call of the worker panic, if the row
// is at its node, and leaves the row as it is then. Elsewhere it ends the run, with an error at all nodes that names the method, and the process.
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

// A Checker is a [Rule] that checks its own parameters. [NewModel] refuses a table
// whose rule returns an error.
type Checker interface {
	Rule
	// Check returns what is wrong with the parameters, and which values are allowed;
	// nil if nothing is.
	Check() error
}

// A DimChecker is a [Rule] that cannot take values of any length. [NewModel] refuses a table
// whose rule returns an error.
type DimChecker interface {
	Rule
	// CheckDim returns which lengths of values the rule takes, nil if dim is one of them.
	CheckDim(dim int) error
}

// A Merger is a [Rule] that decides itself how pushes made at one copy of a row take
// effect at another copy. There are two reasons to have one. First, where the length
// of a step depends on the state, adding differences repeats steps that each copy made
// for its own state: n copies that start together then go n times as far as one row
// would. Second, where a row is not a sum of what was pushed, but the largest of it,
// or the last, a difference says nothing.
//
// What travels is the effect of pushes on a copy: for the state its difference, which
// the receiver adds; for the value what Pack makes of its difference, which the
// receiver merges. If pushes took a copy from x to y, Pack of the difference at y
// followed by Merge at x must give y, but for rounding. What different copies packed
// may be merged in any order; nothing is merged twice. Where two packed differences do
// not add up to that of one push of both vectors, the rule is also [NonAdditive].
type Merger interface {
	Rule
	// Pack turns the difference that pushes made to a copy's value into what travels,
	// in place. value and state are the copy's after those pushes. A float that did
	// not change must not travel as a change: another node may have set the row
	// meanwhile.
	Pack(value, state, dvalue []float32)
	// Merge applies a packed difference to a value. The difference of states has been
	// added to state before.
	Merge(value, state, dvalue []float32)
	// Fresh is how many floats of a row, from its first, a copy needs up to date at
	// each refresh. It is dim if pushes may be applied with a state that lacks recent
	// pushes of other copies, and dim plus the length of the state if they may not.
	Fresh(dim int) int
}

// A NonAdditive rule is a [Rule] for which two pushes differ from one push of their
// sum: a value is another combination of what was pushed, such as the largest.
type NonAdditive interface {
	Rule
	NonAdditive() // marks the rule
}

// A Roundable rule is a [Rule] that makes many small steps towards values of which the first eight
// bits decide, such as gradient descent. Where bytes are what bounds the network, nodes
// may then send a value or a push as bfloat16, where the policy and the table allow it
// ([Table.MayRound]). What rounding left of a push is pushed later: a push in two parts, of
// which one is far smaller, must be as good as the whole.
type Roundable interface {
	Rule
	Roundable() // marks the rule
}

// A Querier is a [Rule] whose pulls return a function of the row instead of the value.
// The function runs where the copy is, so its result is neither stored nor sent beside
// the row. FTRL keeps two sums and returns the weight that follows from them.
type Querier interface {
	Rule
	// Query writes the result of a pull to dst, which is as long as the value. It must
	// be a function of the row, and must not change or keep it.
	Query(dst, value, state []float32)
	// Keep is the inverse: it turns a value that the initializer made, or that Set
	// wrote, into what the row keeps, in place. The state is new ([Rule.InitState])
	// and may be changed too. A Query then returns the value, but for rounding.
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
// one and no initial value ever travels. [NewModel] refuses a table whose Init has a
// method Check() error that returns one.
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

// Uniform initializes values with draws from the uniform distribution from Lo to Hi.
// Hi itself comes by rounding only.
type Uniform struct {
	Lo, Hi float32 // finite, as is Hi-Lo; Lo not above Hi
}

// Check returns which of the bounds is out of its range.
func (u Uniform) Check() error {
	switch d := float64(u.Hi - u.Lo); {
	case math.IsNaN(d) || math.IsInf(d, 0):
		return fmt.Errorf("lo=%v and hi=%v: want finite numbers whose difference is finite, too", u.Lo, u.Hi)
	case d < 0:
		return fmt.Errorf("lo=%v is above hi=%v", u.Lo, u.Hi)
	}
	return nil
}

func (u Uniform) Name() string { return fmt.Sprintf("uniform(%v,%v)", u.Lo, u.Hi) }

// Init writes uniform draws.
func (u Uniform) Init(value []float32, seed uint64, k Key) {
	var r rand.PCG
	r.Seed(rowSeed(seed, k))
	for i := range value {
		value[i] = u.Lo + float32((u.Hi-u.Lo)*unit(r.Uint64())) // rounded, so that no processor fuses it
	}
}

// unit makes 64 random bits a number in [0, 1), as rand.Rand.Float32 does.
func unit(bits uint64) float32 { return float32(bits>>32&(1<<24-1)) / (1 << 24) }

// Normal initializes values with draws from the normal distribution.
type Normal struct {
	Mean, Std float32 // mean and standard deviation: finite, Std not negative
}

// Check returns which of the parameters is out of its range.
func (n Normal) Check() error {
	for _, x := range []float32{n.Mean, n.Std} {
		if d := float64(x); math.IsNaN(d) || math.IsInf(d, 0) || n.Std < 0 {
			return fmt.Errorf("mean=%v and std=%v: want finite numbers, and std not negative", n.Mean, n.Std)
		}
	}
	return nil
}

func (n Normal) Name() string { return fmt.Sprintf("normal(%v,%v)", n.Mean, n.Std) }

// Init writes normal draws.
func (n Normal) Init(value []float32, seed uint64, k Key) {
	g := generators.Get().(*generator)
	defer generators.Put(g)
	g.pcg.Seed(rowSeed(seed, k))
	for i := range value {
		value[i] = n.Mean + float32(n.Std*float32(g.NormFloat64())) // as that of Uniform
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
