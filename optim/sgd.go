package optim

import (
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/vec"
)

var _, _, _ godwit.Roundable = SGD{}, AdaGrad{}, RowAdaGrad{}

// SGD is stochastic gradient descent (Robbins, Monro 1951): value -= LR·gradient.
// It has no state.
type SGD struct {
	LR float32 // learning rate, > 0
}

// Name returns the rule and its parameters, such as "sgd(lr=0.1)".
func (r SGD) Name() string { return fmt.Sprintf("sgd(lr=%v)", r.LR) }

// StateLen returns 0.
func (r SGD) StateLen(int) int { return 0 }

// InitState does nothing.
func (r SGD) InitState([]float32) {}

// Roundable says that values and gradients may be rounded on a slow network.
func (r SGD) Roundable() {}

// Apply makes one step against the pushed gradient.
func (r SGD) Apply(value, _, push []float32) { vec.AXPY(value, -r.LR, push) }
