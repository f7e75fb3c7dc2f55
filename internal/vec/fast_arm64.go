//go:build !purego

package vec

// fast is true: every arm64 processor runs the kernels of kernels_arm64.s.
const fast = true

// wide is false: there are no kernels with AVX-512 here.
const wide = false

const wideLanes = 16

// lanes is the number of floats of a register, which the kernels need at least.
const lanes = 4
