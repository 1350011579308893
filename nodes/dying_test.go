package nodes

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHasNoMemory(t *testing.T) {
	for statm, want := range map[string]bool{
		"0 0 0 0 0 0 0\n":             true,
		"4487 2644 775 1 0 2345 0\n":  false,
		"1 1 0 0 0 1 0\n":             false, // in the middle of execve(2)
		"":                            false,
		"\n":                          false,
		"0 0 0 0 0 0 1\n":             false,
		"18446744073709551615 0 0\n":  false,
		"no such process, and no row": false,
	} {
		require.Equal(t, want, hasNoMemory(statm), "%q", statm)
	}
}

func TestIsKilled(t *testing.T) {
	for _, c := range []struct {
		pending, shared, blocked, ignored, caught uint64
		want                                      bool
	}{
		{},
		{shared: 0x100, want: true},  // SIGKILL
		{pending: 0x100, want: true}, // SIGKILL
		{shared: 0x100, blocked: 0x100, want: true},      // which nobody can block
		{shared: 0x4000, ignored: 0x1001000, want: true}, // SIGTERM
		{shared: 0x2, want: true},                        // SIGINT
		{shared: 0x1, want: true},                        // SIGHUP
		{shared: 0x1000, want: true},                     // SIGPIPE
		{shared: 0x1000, ignored: 0x1000},
		{shared: 0x4000, blocked: 0x4000},
		{shared: 0x4000, caught: 0x4000},
		{shared: 0x10000},   // SIGCHLD
		{shared: 0x8000000}, // SIGWINCH
	} {
		status := fmt.Sprintf("Name:\tcp\nState:\tD (disk sleep)\nSigQ:\t1/96365\nSigPnd:\t%016x\nShdPnd:\t%016x\nSigBlk:\t%016x\nSigIgn:\t%016x\nSigCgt:\t%016x\nCapInh:\t0\n",
			c.pending, c.shared, c.blocked, c.ignored, c.caught)
		require.Equal(t, c.want, isKilled([]byte(status)), "%+v", c)
	}
	require.False(t, isKilled(nil))
	require.False(t, isKilled([]byte("ShdPnd:\tzzz\n")))
}
