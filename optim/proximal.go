package optim

import "fmt"

// ProximalSGD is gradient descent with an elastic net, L1·|x| + L2/2·x², that
// is not stepped against but minimized exactly after each gradient step
// (Duchi, Singer, "Efficient Online and Batch Learning Using Forward Backward
// Splitting", JMLR 2009, section 5), so that weights become exactly zero. It
// has no state. The penalty is charged for each push: L1 and L2 are per push,
// where those of [FTRL] are for the whole run.
type ProximalSGD struct {
	LR     float32 // learning rate, > 0
	L1, L2 float32 // weights of the penalty, ≥ 0
}

// Name returns the rule and its parameters, such as
// "proxsgd(lr=0.1,l1=0.01,l2=0)".
func (r ProximalSGD) Name() string {
	return fmt.Sprintf("proxsgd(lr=%v,l1=%v,l2=%v)", r.LR, r.L1, r.L2)
}

// StateLen returns 0.
func (r ProximalSGD) StateLen(int) int { return 0 }

// InitState does nothing.
func (r ProximalSGD) InitState([]float32) {}

// Apply makes one step against the pushed gradient and one to the penalty's
// minimum near there.
func (r ProximalSGD) Apply(value, _, push []float32) {
	push = push[:len(value)]
	for i, g := range push {
		value[i] = proximal(value[i], g, r.LR, r.L1, r.L2)
	}
}

// ProximalAdaGrad is [AdaGrad] with an elastic net as in [ProximalSGD], each
// coordinate's penalty under the coordinate's own learning rate (Duchi, Hazan,
// Singer, JMLR 2011, section 5.1). A coordinate of a gradient counts as ±2⁴⁷ at most,
// so that no square overflows.
type ProximalAdaGrad struct {
	LR     float32 // learning rate, > 0
	Eps    float32 // added to the root; 0 means AdaGradEps
	Init   float32 // accumulators of a new row, ≥ 0
	L1, L2 float32 // weights of the penalty, ≥ 0, for each push
}

// Name returns the rule and its parameters, such as
// "proxadagrad(lr=0.1,eps=1e-10,init=0,l1=0.01,l2=0)".
func (r ProximalAdaGrad) Name() string {
	return fmt.Sprintf("proxadagrad(lr=%v,eps=%v,init=%v,l1=%v,l2=%v)", r.LR, orElse(r.Eps, AdaGradEps), r.Init, r.L1, r.L2)
}

// StateLen returns dim: an accumulator for each coordinate.
func (r ProximalAdaGrad) StateLen(dim int) int { return dim }

// InitState sets the accumulators to r.Init.
func (r ProximalAdaGrad) InitState(state []float32) { fill(state, r.Init) }

// Apply makes one step against the pushed gradient and one to the penalty's
// minimum near there. With Init 0, a coordinate that never had a gradient stays.
func (r ProximalAdaGrad) Apply(value, state, push []float32) {
	push, state = push[:len(value)], state[:len(value)]
	eps := orElse(r.Eps, AdaGradEps)
	for i, g := range push {
		g, square := clip(g)
		if state[i] += square; state[i] > 0 {
			value[i] = proximal(value[i], g, r.LR/(sqrt(state[i])+eps), r.L1, r.L2)
		}
	}
}

// proximal is the minimum over y of (y - (x - lr·g))²/2 + lr·(l1·|y| + l2/2·y²).
func proximal(x, g, lr, l1, l2 float32) float32 {
	return shrink(x-float32(lr*g), float32(lr*l1)) / (1 + float32(lr*l2))
}
