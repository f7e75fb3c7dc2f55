//go:build !purego && !race

#include "go_asm.h"
#include "textflag.h"

DATA tagMask<>+0(SB)/4, $0xfe000000
GLOBL tagMask<>(SB), RODATA|NOPTR, $4

// PLACE multiplies the hash of the key in R8 with the places of the index of the finder in R9:
// the place is in DX. It takes AX and R11; the multiplier of the hash is in R10.
#define PLACE \
	IMULQ R10, R8            \
	MOVQ  R8, R11            \
	SHRQ  $29, R11           \
	XORQ  R11, R8            \
	MOVQ  Finder_n(R9), AX   \
	MULQ  R8

// func fastFetch(keys *godwit.Key, finders **Finder, n int)
TEXT ·fastFetch(SB), NOSPLIT, $0-24
	MOVQ keys+0(FP), SI
	MOVQ finders+8(FP), DI
	MOVQ n+16(FP), BX
	MOVQ $const_hashMul, R10

next:
	SUBQ $1, BX
	JLT  done
	MOVQ (SI), R8
	MOVQ (DI), R9
	ADDQ $8, SI
	ADDQ $8, DI
	PLACE
	MOVQ Finder_index(R9), R12
	PREFETCHT1 (R12)(DX*4)
	JMP  next

done:
	RET

// func fastProbe(keys *godwit.Key, finders **Finder, n int, lines **unsafe.Pointer, offsets *uintptr)
// Requires: AVX2
TEXT ·fastProbe(SB), NOSPLIT, $0-40
	MOVQ         keys+0(FP), SI
	MOVQ         finders+8(FP), DI
	MOVQ         n+16(FP), BX
	MOVQ         lines+24(FP), R13
	MOVQ         offsets+32(FP), R15
	MOVQ         $const_hashMul, R10
	VPBROADCASTD tagMask<>(SB), Y7
	VPXOR        Y6, Y6, Y6
	SUBQ         $8, R13
	SUBQ         $8, R15

next:
	SUBQ         $1, BX
	JLT          done
	MOVQ         (SI), R8
	MOVQ         (DI), R9
	ADDQ         $8, SI
	ADDQ         $8, DI
	ADDQ         $8, R13
	ADDQ         $8, R15
	PLACE
	MOVQ         Finder_index(R9), R12
	SHLL         $const_tagShift, R8 // the tag
	VMOVD        R8, X0
	VPBROADCASTD X0, Y0
	MOVQ         DX, CX
	ANDQ         $15, CX             // in the line
	ANDQ         $~15, DX
	LEAQ         (R12)(DX*4), R12    // the line
	VMOVDQU      (R12), Y1
	VMOVDQU      32(R12), Y2
	VPAND        Y7, Y1, Y3
	VPAND        Y7, Y2, Y4
	VPCMPEQD     Y0, Y3, Y3
	VPCMPEQD     Y0, Y4, Y4
	VPCMPEQD     Y6, Y1, Y1
	VPCMPEQD     Y6, Y2, Y2
	VPOR         Y1, Y3, Y3
	VPOR         Y2, Y4, Y4
	VMOVMSKPS    Y3, AX
	VMOVMSKPS    Y4, R11
	SHLL         $8, R11
	ORL          R11, AX             // one bit for each place that has the tag or is empty
	TESTL        AX, AX
	JZ           beyond
	RORW         CX, AX              // from the place on, round the line
	BSFL         AX, AX
	ADDQ         CX, AX
	ANDQ         $15, AX
	MOVL         (R12)(AX*4), AX     // the entry
	ANDL         $const_refMask, AX
	JZ           empty
	DECL         AX                  // the row's Ref

	LEAQ Finder_first(R9), R11
	MOVL slab_rowBits(R11), CX
	MOVL AX, R8
	SHRL CX, R8                // its class
	JNZ  rest

class:
	MOVL       $-1, DX
	SHLL       CX, DX
	ANDNL      AX, DX, AX       // the number of the row
	MOVL       slab_perLog(R11), CX
	MOVL       AX, R8
	SHRL       CX, R8           // of its chunk
	MOVL       $-1, DX
	SHLL       CX, DX
	ANDNL      AX, DX, AX       // in the chunk
	IMULQ      slab_stride(R11), AX
	MOVQ       slab_chunks(R11), DX
	LEAQ       (DX)(R8*8), DX
	PREFETCHT1 (DX)
	MOVQ       DX, (R13)
	MOVQ       AX, (R15)
	JMP        next

rest:
	DECL  R8
	IMULQ $slab__size, R8
	MOVQ  Finder_rest(R9), R11
	ADDQ  R8, R11
	JMP   class

empty:
	MOVQ $0, (R13)
	MOVQ $0, (R15)
	JMP  next

beyond:
	PREFETCHT1 64(R12)         // where Look goes on
	MOVQ $0, (R13)
	MOVQ $const_beyond, (R15)
	JMP  next

done:
	VZEROUPPER
	RET
