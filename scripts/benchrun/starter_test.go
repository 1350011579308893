package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain is the starter if it is called as one, else it runs the tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == starterName {
		os.Exit(startAsked(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// TestUsed: a program's memory is its own, however large the process is that measures it.
func TestUsed(t *testing.T) {
	large := make([]byte, 200*megabyte)
	for i := range large {
		large[i] = 1
	}
	b := &bench{ctx: t.Context(), dir: t.TempDir()}
	printed, u := b.used(b.dir, "WORD=said", `sh -c 'echo $WORD'`)
	require.Equal(t, "said\n", printed)
	require.Greater(t, u.Peak, 0.0)
	require.Less(t, u.Peak, 50.0*megabyte)
	require.EqualValues(t, 1, large[len(large)-1])
}
