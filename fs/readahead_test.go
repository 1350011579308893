package fs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestReadAhead: mounted by root, the kernel reads a long file far ahead.
func TestReadAhead(t *testing.T) {
	m := mountForTest(t, newAgent(t).dir)
	var st unix.Stat_t
	require.NoError(t, unix.Stat(m.dir, &st))
	setting := fmt.Sprintf("/sys/class/bdi/%d:%d/read_ahead_kb", unix.Major(st.Dev), unix.Minor(st.Dev))
	if unix.Access(setting, unix.W_OK) != nil {
		t.Skip("the kernel's setting cannot be changed here")
	}
	text := read(t, setting)
	require.Equal(t, "1024\n", string(text))
}

// TestReadingAsksLittle: the kernel does not ask for the size of a branch's entries before each read(2).
func TestReadingAsksLittle(t *testing.T) {
	const reads = 2000
	a := newAgent(t)
	a.write("s", header("s")+entry(0, "e0", "", strings.Repeat("etaoin shrdlu ", reads*4096/14)))
	w := &writing{a, mountForTest(t, a.dir)}
	file := w.in("branches/current/entries.jsonl")
	run(t, "stat", "-L", file) // reads the session
	was := w.m.procNumber("io", "syscr")
	run(t, "dd", "if="+file, "of=/dev/null", "bs=4096", "status=none")
	require.Less(t, w.m.procNumber("io", "syscr")-was, reads/2)
}
