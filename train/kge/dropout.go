package kge

import (
	"math/rand/v2"

	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/train/internal/buffer"
)

// A dropout leaves out elements with probability p and scales the others by
// 1/(1−p), so that sums keep their mean (Srivastava et al., JMLR 2014).
type dropout struct {
	src       *rand.PCG
	threshold uint64 // of 2¹⁶: an element is left out if its 16 random bits are below
	keep      float32
}

func newDropout(p float32, src *rand.PCG) dropout {
	return dropout{src: src, threshold: uint64(p * (1 << 16)), keep: 1 / (1 - p)}
}

func (d *dropout) off() bool { return d.threshold == 0 }

// mask fills m with 0 or 1/(1−p).
func (d *dropout) mask(m []float32) {
	var bits uint64
	for i := range m {
		if i%4 == 0 {
			bits = d.src.Uint64()
		}
		m[i] = d.keep
		if bits&0xffff < d.threshold {
			m[i] = 0
		}
		bits >>= 16
	}
}

// A masked applies dropout to the embeddings of a batch's queries: forward to the
// embeddings, backward to their gradients. It keeps the masks and the masked embeddings
// in between. With dropout off it passes embeddings and gradients through and keeps
// nothing.
type masked struct {
	drop           dropout
	n              int
	masks, outputs []float32
	grad           []float32
}

// size makes room for q queries with embeddings of n floats, and draws their masks.
func (m *masked) size(q, n int) {
	if m.drop.off() {
		return
	}
	m.n = n
	m.masks, m.outputs, m.grad = buffer.Sized(m.masks, q*n), buffer.Sized(m.outputs, q*n), buffer.Sized(m.grad, n)
	clear(m.grad)
	m.drop.mask(m.masks)
}

// forward returns x as query i uses it.
func (m *masked) forward(i int, x []float32) []float32 {
	if m.drop.off() {
		return x
	}
	y := buffer.Row(m.outputs, int32(i), m.n)
	vec.Mul(y, x, buffer.Row(m.masks, int32(i), m.n))
	return y
}

// output returns what forward(i, x) returned.
func (m *masked) output(i int, x []float32) []float32 {
	if m.drop.off() {
		return x
	}
	return buffer.Row(m.outputs, int32(i), m.n)
}

// outputGrad returns where to add the gradient towards an output, given that g is the
// one towards the embedding. backward adds it to g.
func (m *masked) outputGrad(g []float32) []float32 {
	if m.drop.off() {
		return g
	}
	return m.grad
}

// backward adds to g the gradient that was left in outputGrad, through the mask of
// query i.
func (m *masked) backward(i int, g []float32) {
	if m.drop.off() {
		return
	}
	vec.AddMul(g, m.grad, buffer.Row(m.masks, int32(i), m.n))
	clear(m.grad)
}
