#include "textflag.h"

// func gather(dst, slab *float32, keys *godwit.Key, n, dim int)
TEXT ·gather(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ slab+8(FP), SI
	MOVQ keys+16(FP), BX
	MOVQ n+24(FP), CX
	MOVQ dim+32(FP), DX
	SHLQ $2, DX // bytes of a row

row:
	SUBQ $1, CX
	JLT  done
	MOVQ (BX), AX
	ADDQ $8, BX
	IMULQ DX, AX
	ADDQ SI, AX
	MOVQ DX, R9

eight:
	SUBQ $32, R9
	JLT  rest
	VMOVUPS (AX), Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, AX
	ADDQ $32, DI
	JMP  eight

rest:
	ADDQ $32, R9

one:
	SUBQ $4, R9
	JLT  row
	MOVL (AX), R10
	MOVL R10, (DI)
	ADDQ $4, AX
	ADDQ $4, DI
	JMP  one

done:
	VZEROUPPER
	RET
