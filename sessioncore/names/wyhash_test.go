package names

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWyhash: the vectors published with final version 4 of wyhash, and those of Bun.hash in bun's documentation.
func TestWyhash(t *testing.T) {
	for seed, vector := range []struct {
		text string
		want uint64
	}{
		{"", 0x409638ee2bde459},
		{"a", 0xa8412d091b5fe0a9},
		{"abc", 0x32dd92e4b2915153},
		{"message digest", 0x8619124089a3a16b},
		{"abcdefghijklmnopqrstuvwxyz", 0x7a43afb61d7f5f40},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 0xff42329b90e50d58},
		{strings.Repeat("1234567890", 8), 0xc39cab13b115aad3},
	} {
		require.Equal(t, vector.want, wyhash(uint64(seed), vector.text), vector.text)
	}
	require.Equal(t, uint64(11562320457524636935), wyhash(0, "some data here"))
	require.Equal(t, uint64(15724820720172937558), wyhash(1234, "some data here"))
}
