package optim_test

import (
	"fmt"

	"github.com/godwit-ps/godwit/optim"
)

// Each rule takes the gradients of (x-3)², whose minimum is at 3. A parameter
// server does the same with what workers push to a row.
func ExampleParse() {
	for _, spec := range []string{"sgd(lr=0.1)", "momentum(lr=0.01)", "adagrad(lr=1)", "adam(lr=0.1)"} {
		rule, err := optim.Parse(spec)
		if err != nil {
			panic(err)
		}
		x, state := []float32{0}, make([]float32, rule.StateLen(1))
		rule.InitState(state)
		for range 500 {
			gradient := 2 * (x[0] - 3)
			rule.Apply(x, state, []float32{gradient})
		}
		fmt.Printf("%s: %.2f\n", rule.Name(), x[0])
	}

	_, err := optim.Parse("sgd(rate=0.1)")
	fmt.Println(err)
	// Output:
	// sgd(lr=0.1): 3.00
	// momentum(lr=0.01,decay=0.9): 3.00
	// adagrad(lr=1,eps=1e-10,init=0): 3.00
	// adam(lr=0.1,b1=0.9,b2=0.999,eps=1e-08): 3.00
	// optim: rule "sgd(rate=0.1)": it has no parameter rate, only lr
}

// Of two weights that are pushed alike but for their strength, FTRL keeps the
// weaker one at exactly zero.
func ExampleFTRL() {
	rule := optim.FTRL{LR: 0.1, L1: 1}
	z, n := make([]float32, 2), make([]float32, rule.StateLen(2))
	rule.InitState(n)
	for range 9 {
		rule.Apply(z, n, []float32{-0.5, -0.1})
	}
	weights := make([]float32, 2)
	rule.Query(weights, z, n)
	fmt.Printf("%.3f\n", weights)
	// Output:
	// [0.160 0.000]
}

// A counter goes on exactly where a sum of float32 stops growing.
func ExampleCounter() {
	pair, sum := []float32{0, 0}, float32(0)
	for range 4 {
		optim.Counter{}.Apply(pair, nil, []float32{1 << 23, 0})
		sum += 1 << 23
	}
	optim.Counter{}.Apply(pair, nil, []float32{1, 0})
	sum++
	fmt.Println(optim.Count(pair[0], pair[1]), int64(sum))
	// Output:
	// 33554433 33554432
}
