package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTerminalIDs: the terminal ids of a process, from its files in /proc.
func TestTerminalIDs(t *testing.T) {
	device := func(major, minor uint32) int32 { return int32(minor&0xFF | major<<8 | minor>>8<<20) }
	for _, test := range []struct {
		name, stdin, environ string
		tty                  int32
		want                 []string
		known                bool
	}{
		{"pseudo terminal", "/dev/pts/3", "TMUX_PANE=%1\x00", device(136, 3), []string{"pts-3", "pts-3"}, true},
		{"of 300", "/dev/pts/300", "", device(136, 300), []string{"pts-300", "pts-300"}, true},
		{"of 1000 000", "/dev/null", "", device(136, 1_000_000), []string{"pts-1000000"}, true},
		{"the second device number", "/dev/null", "", device(137, 4), []string{"pts-260"}, true},
		{"console", "/dev/tty2", "", device(4, 2), []string{"tty2", "tty2"}, true},
		{"serial", "/dev/null", "", device(4, 65), []string{"ttyS1"}, true},
		{"other", "/dev/null", "", device(204, 64), nil, true},
		{"pipe", "pipe:[1]", "A=b\x00KITTY_WINDOW_ID=5\x00TERM_SESSION_ID=\x00WT_SESSION=x=y\x00", 0, []string{"kitty-5", "wt-x=y"}, true},
		{"zellij", "pipe:[1]", "ZELLIJ_PANE_ID=5\x00", 0, []string{"zellij-5"}, true},
		{"nothing", "/dev/null", "", 0, nil, true},
		{"no environment", "/dev/null", "none", device(136, 3), []string{"pts-3"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(dir, "fd"), 0o700))
			require.NoError(t, os.Symlink(test.stdin, filepath.Join(dir, "fd", "0")))
			stat := fmt.Sprintf("12 (a) (b) 5 6) S 1 12 12 %d 12 4194304 1 2 3", test.tty)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o600))
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
