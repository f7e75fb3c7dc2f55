package vec

import "fmt"

// The checks are small enough to be inlined; making the message is not.

func same(f string, n, x int) {
	if n != x {
		badLength(f, n, x)
	}
}

func same3(f string, n, x, y int) {
	if n != x || n != y {
		badLength(f, n, x, y)
	}
}

func sameEven(f string, n, x, y int) {
	if n != x || n != y || n&1 != 0 {
		badLength(f, n, x, y)
	}
}

func shape(f, name string, n, rows, cols int) {
	if rows < 0 || cols < 0 || n != rows*cols {
		badShape(f, name, n, rows, cols)
	}
}

//go:noinline
func badLength(f string, n ...int) {
	panic(fmt.Sprintf("vec.%s: lengths %v do not fit together", f, n))
}

//go:noinline
func badShape(f, name string, n, rows, cols int) {
	panic(fmt.Sprintf("vec.%s: %s has %d floats, want a matrix of %d×%d", f, name, n, rows, cols))
}
