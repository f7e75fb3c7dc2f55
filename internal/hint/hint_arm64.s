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

// func ReadEach(p *unsafe.Pointer, n int, bytes uintptr)
TEXT ·ReadEach(SB), NOSPLIT, $0-24
	MOVD p+0(FP), R2
	MOVD n+8(FP), R3
	MOVD bytes+16(FP), R4
next:
	SUBS $1, R3, R3
	BLT done
	MOVD.P 8(R2), R0
	CBZ R0, next
	ADD R0, R4, R1
	SUB $1, R1, R1 // the last byte
	AND $~63, R0, R0
line:
	PRFM (R0), PLDL1KEEP
	ADD $64, R0, R0
	CMP R1, R0
	BLS line
	B next
done:
	RET

// func Wait()
TEXT ·Wait(SB), NOSPLIT, $0-0
	ISB $15 // waits longer than YIELD, which many processors skip
	RET
