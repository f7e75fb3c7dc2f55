package main

// A machine turns the arithmetic of a kernel, said once for all of them, into
// instructions of one kind of processor.
//
// Every operation rounds on its own, gives a new value, and leaves its
// arguments as they were. What it does with a NaN is what Go does, but for the
// bits of the NaN.
type machine interface {
	// text begins a kernel. Its doc goes on from its name.
	text(name, sig, doc string)
	// argument is a float32 parameter in all lanes of a register; spare is one
	// that need not stay there, being used but once in a turn of the loop.
	argument(param string) value
	spare(param string) value
	// constant is a word in all lanes. Equal names must mean equal words.
	constant(name string, word uint32) value
	// load makes sure that x is in a register: it does not change any more when
	// memory does.
	load(x value) value

	add(x, y value) value
	sub(x, y value) value
	mul(x, y value) value
	div(x, y value) value
	sqrt(x value) value
	atMost(x, limit value) value  // limit where x > limit, else x
	atLeast(x, limit value) value // limit where x < limit, else x

	// These take the bits of the floats as integers.
	addInt(x, y value) value
	subInt(x, y value) value
	half(x value) value             // rounded down
	exponent(x value) value         // shifted to where the exponent of a float is
	or(x, y value) value            // all bits of both
	bySign(x, neg, pos value) value // neg where the sign bit of x is set, else pos

	// flag is a register for raise, which notes whether any lane of x is not
	// zero (a NaN is not); returnFlag makes that the kernel's result.
	flag() value
	raise(flag, x value)
	returnFlag(flag value)

	// sweep emits the loop of an elementwise kernel. Its function must have the
	// named pointers and "n", at least the lanes of a register, as parameters.
	// body computes a register's worth of each result from the vectors.
	//
	// The last elements, a register's worth, are loaded and computed before the
	// loop, and stored after it. They overlap with the loop's where n is no
	// multiple of the lanes; both then write the same results, as both read the
	// original elements. So there is no elementwise tail.
	sweep(ptrs []string, unroll int, body func(v func(name string) value) []result)
	// sum is sweep for a kernel whose result is the sum of what body gives besides, in
	// whatever order. It ends the kernel.
	sum(ptrs []string, unroll int, body func(v func(name string) value) ([]result, value))
	// running emits the loop of a kernel that stores sums: element i of dst is what body computes, added to
	// element i-8 of dst, or to 0 for the first 8. "n" is a multiple of 8.
	running(dst string, ptrs []string, body func(v func(name string) value) value)
	ret()

	// What is too different to be shared.
	reductions()
	matrices()
}

// A value is a register of floats, or the place in memory that it is to be read
// from. Only its machine looks inside.
type value any

// A result is stored in the vector called to.
type result struct {
	to string
	x  value
}
