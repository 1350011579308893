package clients

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTerminalIDs: the terminal ids of a process, from its files in /proc.
func TestTerminalIDs(t *testing.T) {
	for _, test := range []struct {
		name, stdin, environ string
		want                 []string
		known                bool
	}{
		{"pseudo terminal", "/dev/pts/3", "TMUX_PANE=%1\x00", []string{"pts-3"}, true},
		{"console", "/dev/tty2", "", []string{"tty2"}, true},
		{"pipe", "pipe:[1]", "A=b\x00KITTY_WINDOW_ID=5\x00TERM_SESSION_ID=\x00WT_SESSION=x=y\x00", []string{"kitty-5", "wt-x=y"}, true},
		{"zellij", "pipe:[1]", "ZELLIJ_PANE_ID=5\x00", []string{"zellij-5"}, true},
		{"nothing", "/dev/null", "", nil, true},
		{"no environment", "/dev/null", "none", nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(dir, "fd"), 0o700))
			require.NoError(t, os.Symlink(test.stdin, filepath.Join(dir, "fd", "0")))
			if test.environ != "none" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "environ"), []byte(test.environ), 0o600))
			}
			ids, known := terminalIDs(dir)
			require.Equal(t, test.want, ids)
			require.Equal(t, test.known, known)
		})
	}
	ids, _ := terminalIDs(t.TempDir())
	require.Empty(t, ids, "a process that is gone")
}
