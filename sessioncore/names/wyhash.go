package names

import (
	"encoding/binary"
	"math/bits"
)

// secret are the constants of the hash.
var secret = [4]uint64{0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3, 0x589965cc75374cc3}

const (
	small = 16 // up to so many bytes make two numbers
	block = 48 // so many are mixed at once, while there are more
)

// wyhash is the hash of newer clients' runtime, Bun.hash.wyhash: final version 4 of wyhash.
func wyhash(seed uint64, text string) uint64 {
	data := []byte(text)
	seed ^= mix(seed^secret[0], secret[1])
	var a, b uint64
	if len(data) <= small {
		a, b = ends(data)
	} else {
		seed = middle(data, seed)
		a = eight(data[len(data)-16:])
		b = eight(data[len(data)-8:])
	}
	high, low := bits.Mul64(a^secret[1], b^seed)
	return mix(low^secret[0]^uint64(len(data)), high^secret[1])
}

// ends makes two numbers of up to 16 bytes. Each byte is in one of them.
func ends(data []byte) (a, b uint64) {
	n := len(data)
	switch {
	case n == 0:
		return 0, 0
	case n < 4:
		first := uint64(data[0])
		middle := uint64(data[n/2])
		last := uint64(data[n-1])
		return first<<16 | middle<<8 | last, 0
	}
	step := n / 8 * 4
	tail := data[n-4:]
	a = four(data)<<32 | four(data[step:])
	b = four(tail)<<32 | four(data[n-4-step:])
	return a, b
}

// middle returns the seed mixed with all of a longer text but its last 16 bytes or less.
func middle(data []byte, seed uint64) uint64 {
	if len(data) >= block {
		lanes := [3]uint64{seed, seed, seed}
		for len(data) > block {
			for i := range lanes {
				pair := data[16*i:]
				first := eight(pair)
				second := eight(pair[8:])
				lanes[i] = mix(first^secret[i+1], second^lanes[i])
			}
			data = data[block:]
		}
		seed = lanes[0] ^ lanes[1] ^ lanes[2]
	}
	for len(data) > 16 {
		first := eight(data)
		second := eight(data[8:])
		seed = mix(first^secret[1], second^seed)
		data = data[16:]
	}
	return seed
}

// mix multiplies and takes both halves of the product.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// four and eight return the number in the first four or eight bytes.
func four(data []byte) uint64  { return uint64(binary.LittleEndian.Uint32(data)) }
func eight(data []byte) uint64 { return binary.LittleEndian.Uint64(data) }
