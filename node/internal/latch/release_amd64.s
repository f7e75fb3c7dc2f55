//go:build !race

#include "textflag.h"

// func release(word *atomic.Uint32, v uint32)
TEXT ·release(SB), NOSPLIT, $0-12
	MOVQ word+0(FP), AX
	MOVL v+8(FP), CX
	MOVL CX, (AX)
	RET
