package fs_test

import (
	"fmt"
	"os"
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
	text, err := os.ReadFile(setting)
	require.NoError(t, err)
	require.Equal(t, "1024\n", string(text))
}
