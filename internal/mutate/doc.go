// Mutate shows what tests notice: it breaks the code in one place at a time, and
// runs the tests that reach the place. A mutant that no test notices survives.
//
//	go run ./internal/mutate              # make mutate
//	go run ./internal/mutate -list        # the mutants that are drawn
//	go run ./internal/mutate -match move  # only those whose name contains this
//
// All mutants are compiled in at once, each behind a number (schemata), into an
// overlay of the sources: the tree is not changed, and the test binaries are built
// once. GODWIT_MUTANT=n makes the n-th mutant the one that is active.
//
// # Which mutants there are
//
// A place is named by its package, its function, the operator and a count within
// the function, and is drawn if a hash of the name and the seed is small. So a
// change elsewhere draws nothing anew. The operators:
//
//	negate  a condition of if, for, or a switch without a value
//	bound   < to <=, <= to <, > to >=, >= to >
//	equal   == to != and back, where that is not the whole condition
//	logic   && to ||, || to &&
//	remove  a call without result, an assignment to a field or an element, x++
//	result  a boolean result
//	zero    the constant 0 to 1, 1 to 0
//	sign    + to -, - to +
//	else    a branch else is left out
//	exit    a return or continue at the end of an if is left out
//
// Left out are, by rules that were fixed before the first draw: what only makes
// texts (methods String, Error, Name and Format; arguments of package fmt, of
// errors.New and of panic) or counts for display (stats.go, inspect.go, statements
// about a field Stats or count), locks and unlocks (without which every test hangs or
// crashes), prefetches (package hint), room to grow in (the third argument of make),
// switches of tests (what is done under a condition about Broken), and what no
// machine of this kind compiles.
//
// # How a mutant is tried
//
// First every test runs alone, without a mutant, which tells how long it takes
// and which places it reaches. A mutant is then tried by the tests that reach it,
// the quick ones and those of its own package first, until one fails or does not
// end; but only for so long (-budget), then by the storms of the simulator. Tests
// that fail without a mutant, or take very long, are left out and named.
//
// The reasons why single mutants may survive are in docs/mutants.md, by the
// mutants' names.
package main
