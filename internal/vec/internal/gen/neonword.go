package main

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/arch/arm64/arm64asm"
)

// Go's assembler has no names for the arithmetic of vectors of floats, so these
// instructions are written as words. Each is a base, in which the destination
// takes bits 0…4, the first source bits 5…9 and the second bits 16…20.
var words = map[string]uint32{
	"fadd":  0x4e20d400,
	"fsub":  0x4ea0d400,
	"fmul":  0x6e20dc00,
	"fdiv":  0x6e20fc00,
	"faddp": 0x6e20d400, // sums of neighbours
	"fmax":  0x4e20f400,
	"fmaxp": 0x6e20f400, // maxima of neighbours
	"fcmgt": 0x6ea0e400, // all ones where the first is greater

	"fsqrt": 0x6ea1f800, // of one source
}

// These take a number besides.
const (
	fcmeqZero = 0x4ea0d800 // all ones where the source is zero
	fmlaFirst = 0x4f801000 // add the product with the first lane of the second source
	sshr      = 0x4f000400 // 64 less the shift stands in bits 16…22
)

// word is the line of an instruction that Go's assembler has no name for. The
// disassembler must read the text from it, which the line keeps as a comment.
func word(code uint32, format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	inst, err := arm64asm.Decode(binary.LittleEndian.AppendUint32(nil, code))
	if err != nil {
		panic(fmt.Sprintf("%#08x, meant to be %s: %v", code, text, err))
	}
	if got := arm64asm.GNUSyntax(inst); got != text {
		panic(fmt.Sprintf("%#08x is %s, meant to be %s", code, got, text))
	}
	return fmt.Sprintf("WORD $%#08x // %s", code, text)
}

func word3(name string, d, n, m int) string {
	return word(words[name]|uint32(m<<16|n<<5|d), "%s v%d.4s, v%d.4s, v%d.4s", name, d, n, m)
}

func word2(name string, d, n int) string {
	return word(words[name]|uint32(n<<5|d), "%s v%d.4s, v%d.4s", name, d, n)
}
