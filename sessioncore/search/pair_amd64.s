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
