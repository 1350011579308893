package search

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"
)

// TestVectors: the vectors of each width find the first place of a pair, whichever this processor prefers.
func TestVectors(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		b := make([]byte, 129)
		for i := range b {
			b[i] = "aAbB\\uxxyyzz\x80\xff"[rnd.IntN(14)]
		}
		p := newPair('a', 0xDF, 'b', []byte{0xFF, 0xDF, 0}[rnd.IntN(3)])
		want := 0
		for want < 128 && !p.at(b, want) {
			want++
		}
		if cpu.X86.HasAVX2 {
			require.Equal(t, want, nextAVX2(&b[0], 128, &p), "%q", b)
		}
		if cpu.X86.HasAVX512BW {
			require.Equal(t, want, nextAVX512(&b[0], 128, &p), "%q", b)
		}
	}
}
