#include "textflag.h"

// func Read(p unsafe.Pointer, bytes uintptr)
TEXT ·Read(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD bytes+8(FP), R1
	ADD R0, R1, R1
	SUB $1, R1, R1 // the last byte
	AND $~63, R0, R0
line:
	PRFM (R0), PLDL1KEEP
	ADD $64, R0, R0
	CMP R1, R0
	BLS line
	RET

// func Write(p unsafe.Pointer, bytes uintptr)
TEXT ·Write(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD bytes+8(FP), R1
	ADD R0, R1, R1
	SUB $1, R1, R1 // the last byte
	AND $~63, R0, R0
line:
	PRFM (R0), PSTL1KEEP
	ADD $64, R0, R0
	CMP R1, R0
	BLS line
	RET

// func Wait()
TEXT ·Wait(SB), NOSPLIT, $0-0
	ISB $15 // waits longer than YIELD, which many processors skip
	RET
