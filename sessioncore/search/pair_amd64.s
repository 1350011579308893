#include "textflag.h"

// nextAVX2 and nextAVX512 differ in the width of a block.

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

// func nextAVX512(b *byte, n int, p *pair) int
TEXT ·nextAVX512(SB), NOSPLIT, $0-32
	MOVQ b+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ p+16(FP), DI
	VPBROADCASTB 0(DI), Z8  // mask of the first byte
	VPBROADCASTB 1(DI), Z9  // the first byte
	VPBROADCASTB 2(DI), Z10 // mask of the second byte
	VPBROADCASTB 3(DI), Z11 // the second byte
	VPBROADCASTB 4(DI), Z12 // the escape
	VPBROADCASTB 5(DI), Z13
	XORQ AX, AX

block:
	VMOVDQU64 (SI)(AX*1), Z0
	VMOVDQU64 1(SI)(AX*1), Z1
	VPCMPEQB Z12, Z0, K1
	VPCMPEQB Z13, Z1, K1, K1
	VPANDQ Z8, Z0, Z0
	VPANDQ Z10, Z1, Z1
	VPCMPEQB Z9, Z0, K2
	VPCMPEQB Z11, Z1, K2, K2
	KORTESTQ K1, K2
	JNZ found
	ADDQ $64, AX
	CMPQ AX, CX
	JB block
	VZEROUPPER
	MOVQ AX, ret+24(FP)
	RET

found:
	KORQ K1, K2, K2
	KMOVQ K2, DX
	BSFQ DX, DX
	ADDQ DX, AX
	VZEROUPPER
	MOVQ AX, ret+24(FP)
	RET
