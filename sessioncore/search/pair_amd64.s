#include "textflag.h"

// func nextAVX2(b *byte, n int, p *pair) int
TEXT ·nextAVX2(SB), NOSPLIT, $0-32
	MOVQ b+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ p+16(FP), DI
	VPBROADCASTB 0(DI), Y8  // mask of the first byte
	VPBROADCASTB 1(DI), Y9  // the first byte
	VPBROADCASTB 2(DI), Y10 // mask of the second byte
	VPBROADCASTB 3(DI), Y11 // the second byte
	VPBROADCASTB 4(DI), Y12 // the escape
	VPBROADCASTB 5(DI), Y13
	XORQ AX, AX

block:
	VMOVDQU (SI)(AX*1), Y0
	VMOVDQU 1(SI)(AX*1), Y1
	VPAND Y8, Y0, Y2
	VPAND Y10, Y1, Y3
	VPCMPEQB Y9, Y2, Y2
	VPCMPEQB Y11, Y3, Y3
	VPAND Y3, Y2, Y2
	VPCMPEQB Y12, Y0, Y0
	VPCMPEQB Y13, Y1, Y1
	VPAND Y1, Y0, Y0
	VPOR Y0, Y2, Y2
	VPMOVMSKB Y2, DX
	TESTL DX, DX
	JNZ found
	ADDQ $32, AX
	CMPQ AX, CX
	JB block
	VZEROUPPER
	MOVQ AX, ret+24(FP)
	RET

found:
	BSFL DX, DX
	ADDQ DX, AX
	VZEROUPPER
	MOVQ AX, ret+24(FP)
	RET

// func skipAVX512(b *byte, n int, p *pair) int
TEXT ·skipAVX512(SB), NOSPLIT, $0-32
	MOVQ b+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ p+16(FP), DI
	VPBROADCASTB 0(DI), Z8
	VPBROADCASTB 1(DI), Z9
	VPBROADCASTB 2(DI), Z10
	VPBROADCASTB 3(DI), Z11
	VPBROADCASTB 4(DI), Z12
	VPBROADCASTB 5(DI), Z13
	XORQ AX, AX

blocks:
	VMOVDQU8 (SI)(AX*1), Z0
	VMOVDQU8 1(SI)(AX*1), Z1
	VMOVDQU8 64(SI)(AX*1), Z2
	VMOVDQU8 65(SI)(AX*1), Z3

	// Z4, Z5: the significant bits that differ from the pair. VPTERNLOGQ $0xF8 is c |= a & b.
	VPXORQ Z9, Z0, Z6
	VPXORQ Z9, Z2, Z7
	VPXORQ Z11, Z1, Z4
	VPXORQ Z11, Z3, Z5
	VPANDQ Z10, Z4, Z4
	VPANDQ Z10, Z5, Z5
	VPTERNLOGQ $0xF8, Z8, Z6, Z4
	VPTERNLOGQ $0xF8, Z8, Z7, Z5

	// Z0, Z2: the bits that differ from the escape. VPTERNLOGQ $0xF6 is c |= a ^ b.
	VPXORQ Z12, Z0, Z0
	VPXORQ Z12, Z2, Z2
	VPTERNLOGQ $0xF6, Z13, Z1, Z0
	VPTERNLOGQ $0xF6, Z13, Z3, Z2

	// K1: the bytes of which neither differs.
	VPMINUB Z0, Z4, Z4
	VPMINUB Z2, Z5, Z5
	VPMINUB Z4, Z5, Z4
	VPTESTNMB Z4, Z4, K1
	KORTESTQ K1, K1
	JNZ near
	ADDQ $128, AX
	CMPQ AX, CX
	JB blocks

near:
	VZEROUPPER
	MOVQ AX, ret+24(FP)
	RET
