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

// A masked keeps the masks and the masked embeddings of a batch's queries, and
// puts their gradients through the same masks. With dropout off it hands the
// embeddings and gradients through and keeps nothing.
type masked struct {
	drop        dropout
	n           int
	masks, kept []float32
	grad        []float32
}

// size makes room for q queries with embeddings of n floats.
func (m *masked) size(q, n int) {
	if m.drop.off() {
		return
	}
	m.n = n
	m.masks, m.kept, m.grad = buffer.Sized(m.masks, q*n), buffer.Sized(m.kept, q*n), buffer.Sized(m.grad, n)
	clear(m.grad)
	m.drop.mask(m.masks)
}

// apply returns x as query i uses it.
func (m *masked) apply(i int, x []float32) []float32 {
	if m.drop.off() {
		return x
	}
	kept := buffer.Row(m.kept, int32(i), m.n)
	vec.Mul(kept, x, buffer.Row(m.masks, int32(i), m.n))
	return kept
}

// used returns what apply(i, x) did.
func (m *masked) used(i int, x []float32) []float32 {
	if m.drop.off() {
		return x
	}
	return buffer.Row(m.kept, int32(i), m.n)
}

// gradient returns where to add the gradient towards a query's embedding, whose
// own gradient is g; collect moves it there.
func (m *masked) gradient(g []float32) []float32 {
	if m.drop.off() {
		return g
	}
	return m.grad
}

func (m *masked) collect(i int, g []float32) {
	if m.drop.off() {
		return
	}
	vec.AddMul(g, m.grad, buffer.Row(m.masks, int32(i), m.n))
	clear(m.grad)
}
