#include "textflag.h"

// func prefetch(p unsafe.Pointer, bytes uintptr)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ bytes+8(FP), CX
	LEAQ -1(AX)(CX*1), CX // the last byte
	ANDQ $-64, AX
line:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	CMPQ AX, CX
	JLS line
	RET
