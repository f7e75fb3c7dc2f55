//go:build !purego

package vec

import "golang.org/x/sys/cpu"

// fast tells whether the processor runs the kernels of kernels_amd64.s. The
// cpu package also asks whether the system saves the wide registers.
var fast = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// wide tells whether it runs those with AVX-512 besides.
var wide = fast && cpu.X86.HasAVX512F

// lanes is the number of floats of a register. Shorter vectors go through the
// plain loops, which cost less than a call of a kernel.
const lanes = 8

// wideLanes is that of AVX-512.
const wideLanes = 16
