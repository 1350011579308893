package fs_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// How lines are cut from what is written to append (docs/design.md section 2).

// TestLineTooLong: a line over 64 MiB is EFBIG, and so is what comes behind it; the next open file works. Package nodes cuts
// such lines at every place.
func TestLineTooLong(t *testing.T) {
	notUnderRace(t)
	w := newWriting(t)
	before := w.raw("s")
	f, err := os.OpenFile(w.in("append"), os.O_WRONLY, 0)
	require.NoError(t, err)
	chunk := []byte(strings.Repeat("x", 1<<20))
	for range 64 {
		_, err := f.Write(chunk)
		require.NoError(t, err)
	}
	for _, more := range []string{string(chunk), string(chunk), "\n" + message("with the end of that line") + "\n",
		message("next") + "\n"} { // a stubborn writer goes on
		_, err := f.WriteString(more)
		require.ErrorIs(t, err, syscall.EFBIG)
		require.Contains(t, w.read("last-error"), "at most 67108864 bytes")
	}
	require.NoError(t, f.Close())
	_, problems, err := tool(t, "bash", "-c", `head -c 70000000 /dev/zero | tr '\0' x > "$1"`, "bash", w.in("append"))
	require.Error(t, err)
	require.Contains(t, problems, "File too large")
	require.Empty(t, w.added(before))
	require.NoError(t, put(w.in("append"), message("next")+"\n"))
	require.Len(t, w.added(before), 1)
	for _, file := range []string{w.in("append"), w.m.path("new-session")} { // in parts of another size, of a file that answers
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		require.NoError(t, err)
		for err == nil {
			_, err = f.Write(chunk[:1008<<10])
		}
		require.ErrorIs(t, err, syscall.EFBIG)
		require.NoError(t, f.Close())
	}
}
