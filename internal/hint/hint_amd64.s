#include "textflag.h"

// func Read(p unsafe.Pointer, bytes uintptr)
TEXT ·Read(SB), NOSPLIT, $0-16
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

// PREFETCHW, which Go's assembler has no word for. Processors of this kind that
// do not know it take it for no operation.
#define PREFETCHW_AX BYTE $0x0F; BYTE $0x0D; BYTE $0x08

// func Write(p unsafe.Pointer, bytes uintptr)
TEXT ·Write(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ bytes+8(FP), CX
	LEAQ -1(AX)(CX*1), CX // the last byte
	ANDQ $-64, AX
line:
	PREFETCHW_AX // (AX)
	ADDQ $64, AX
	CMPQ AX, CX
	JLS line
	RET

// func ReadEach(p *unsafe.Pointer, n int, bytes uintptr)
TEXT ·ReadEach(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), BX
	MOVQ bytes+16(FP), DX

next:
	SUBQ $1, BX
	JLT  done
	MOVQ (SI), AX
	ADDQ $8, SI
	TESTQ AX, AX
	JZ   next
	LEAQ -1(AX)(DX*1), CX // the last byte
	ANDQ $-64, AX

line:
	PREFETCHT1 (AX)
	ADDQ $64, AX
	CMPQ AX, CX
	JLS  line
	JMP  next

done:
	RET

// func Wait()
TEXT ·Wait(SB), NOSPLIT, $0-0
	PAUSE
	RET
