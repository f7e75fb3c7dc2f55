package optim

import "fmt"

// MomentumDecay is the default Decay of a [Momentum].
const MomentumDecay = 0.9

// Momentum is gradient descent by a velocity, the sum of decayed gradients
// (Polyak 1964): v = Decay·v + g; x -= LR·v. In total a gradient moves the
// value by LR/(1-Decay) times itself. The state is v, dim floats.
//
// Copies from a common velocity v that saw k1 and k2 pushes merge to
// (Decay^k1 + Decay^k2 - 1)·v and their own new parts, where one row would have
// Decay^(k1+k2)·v and a more decayed part of the first copy. The two agree to
// first order in (1-Decay)·k: merging suits copies that see fewer than about
// 1/(1-Decay) pushes between two rounds. With n copies the merged old
// velocity lies between -(n-1)·v and v, and decays as usual once the copies agree.
type Momentum struct {
	LR    float32 // learning rate, > 0
	Decay float32 // of the velocity at each push, below 1; 0 means MomentumDecay
}

// Name returns the rule and its parameters, such as
// "momentum(lr=0.1,decay=0.9)".
func (r Momentum) Name() string {
	return fmt.Sprintf("momentum(lr=%v,decay=%v)", r.LR, orElse(r.Decay, MomentumDecay))
}

// StateLen returns dim: the velocity.
func (r Momentum) StateLen(dim int) int { return dim }

// InitState clears the velocity.
func (r Momentum) InitState(state []float32) { clear(state) }

// Apply adds the pushed gradient to the velocity and makes one step against it.
func (r Momentum) Apply(value, state, push []float32) {
	push, state = push[:len(value)], state[:len(value)]
	decay := orElse(r.Decay, MomentumDecay)
	for i, g := range push {
		state[i] = float32(decay*state[i]) + g
		value[i] -= float32(r.LR * state[i])
	}
}
