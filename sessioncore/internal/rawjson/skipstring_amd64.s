#include "textflag.h"

// A block is 64 bytes: two vectors of 32, or a mask with a bit for each byte, of which the lowest is the first byte.

// Bytes that are repeated to fill a vector.
DATA skipBytes<>+0(SB)/4, $0x0f5c2002 // 2, space, backslash, 15
GLOBL skipBytes<>(SB), RODATA|NOPTR, $4

// What may follow a backslash: " \ / b f n r t. Their high nibbles 2, 5, 6 and 7 have the bits 1, 2, 4 and 8 in
// byHigh, and byLow has the bits of the high nibbles that go with a low one. A byte above 0x7f finds no bit, because
// VPSHUFB gives 0 for it.
DATA byLow<>+0(SB)/8, $0x00040008000d0000
DATA byLow<>+8(SB)/8, $0x0104000200000000
DATA byHigh<>+0(SB)/8, $0x0804020000010000
DATA byHigh<>+8(SB)/8, $0
GLOBL byLow<>(SB), RODATA|NOPTR, $16
GLOBL byHigh<>(SB), RODATA|NOPTR, $16

// func skipVectors(p *byte, n int) (skipped int, high bool)
TEXT ·skipVectors(SB), NOSPLIT, $0-25
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	SUBQ $64, CX                     // the last offset at which a block can begin
	XORL AX, AX                      // offset of the block
	XORL R8, R8                      // 1 if the block before escapes the first byte of this one
	MOVQ $0x5555555555555555, R9     // the bytes at even offsets
	VPBROADCASTB skipBytes<>+0(SB), Y8
	VPBROADCASTB skipBytes<>+1(SB), Y9
	VPBROADCASTB skipBytes<>+2(SB), Y10
	VPBROADCASTB skipBytes<>+3(SB), Y11
	VBROADCASTI128 byLow<>(SB), Y12
	VBROADCASTI128 byHigh<>(SB), Y13
	VPXOR Y14, Y14, Y14
	VPXOR Y15, Y15, Y15              // all bytes of the blocks before, ORed
	JMP more

block:
	VMOVDQU (SI)(AX*1), Y0
	VMOVDQU 32(SI)(AX*1), Y1

	// Y2, Y3: quotes and control characters. XOR with 2 makes them the bytes up to 0x20.
	VPXOR Y8, Y0, Y2
	VPXOR Y8, Y1, Y3
	VPMINUB Y9, Y2, Y4
	VPMINUB Y9, Y3, Y5
	VPCMPEQB Y4, Y2, Y2
	VPCMPEQB Y5, Y3, Y3

	// Y4, Y5: backslashes.
	VPCMPEQB Y10, Y0, Y4
	VPCMPEQB Y10, Y1, Y5

	// A block without any of them is plain.
	VPOR Y2, Y3, Y6
	VPOR Y4, Y5, Y7
	VPOR Y6, Y7, Y6
	VPMOVMSKB Y6, DX
	ORL R8, DX
	JNZ special

plain:
	VPOR Y0, Y1, Y0
	VPOR Y0, Y15, Y15
	ADDQ $64, AX

more:
	CMPQ AX, CX
	JLE block
	SUBQ R8, AX                      // an escape that continues after the block is left out
	XORL R10, R10
	JMP done

special:
	// DX: quotes and control characters. BX: backslashes.
	VPMOVMSKB Y2, DX
	VPMOVMSKB Y3, R10
	SHLQ $32, R10
	ORQ R10, DX
	VPMOVMSKB Y4, BX
	VPMOVMSKB Y5, R10
	SHLQ $32, R10
	ORQ R10, BX

	// R11: the backslashes that escape the next byte: in each run of backslashes the first, the third and so on. Adding
	// its first bit to a run clears it, and sets the bit after it, which the last AND removes. This is done for runs
	// that begin at an even offset. So of runs that begin at an even offset no bits are set, and of others all. XOR with
	// the even offsets leaves of the former those at even offsets, and of the latter those at odd ones.
	ANDNQ BX, R8, BX                 // less the one that the block before escapes
	LEAQ (BX)(BX*1), R11
	ANDNQ BX, R11, R11               // first bits of runs
	ANDQ R9, R11
	ADDQ BX, R11
	XORQ R9, R11
	ANDQ BX, R11

	// R12: escaped bytes. R8: whether the last backslash escapes the first byte of the next block.
	LEAQ (R8)(R11*2), R12
	SHRQ $63, R11
	MOVQ R11, R8

	// BX: bytes that may not follow a backslash, or not without more, as in \u.
	VPSRLW $4, Y0, Y2
	VPSRLW $4, Y1, Y3
	VPAND Y11, Y2, Y2
	VPAND Y11, Y3, Y3
	VPSHUFB Y2, Y13, Y2
	VPSHUFB Y3, Y13, Y3
	VPSHUFB Y0, Y12, Y4
	VPSHUFB Y1, Y12, Y5
	VPAND Y2, Y4, Y2
	VPAND Y3, Y5, Y3
	VPCMPEQB Y14, Y2, Y2
	VPCMPEQB Y14, Y3, Y3
	VPMOVMSKB Y2, BX
	VPMOVMSKB Y3, R10
	SHLQ $32, R10
	ORQ R10, BX

	// DX: where to stop. Control characters are among the bytes that may not follow a backslash.
	ANDQ R12, BX
	ANDNQ DX, R12, DX
	ORQ BX, DX
	JZ plain

	// R10: bytes above 0x7f before that.
	VPMOVMSKB Y0, R10
	VPMOVMSKB Y1, R11
	SHLQ $32, R11
	ORQ R11, R10
	LEAQ -1(DX), R11
	ANDNQ R11, DX, R11               // the bits below the lowest of DX
	ANDQ R11, R10

	TZCNTQ DX, DX
	ADDQ DX, AX
	BTQ DX, R12
	SBBQ $0, AX                      // if that byte is escaped: stop at its backslash

done:
	VPMOVMSKB Y15, DX
	ORQ DX, R10
	SETNE high+24(FP)
	VZEROUPPER
	MOVQ AX, skipped+16(FP)
	RET
