//go:build linux

package fs

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEndEarlier: a daemon of an earlier version, which tells how many new sessions it has in memory alone, is ended with
// SIGTERM, and waited for: then they are on disk. This version tells no such number.
func TestEndEarlier(t *testing.T) {
	var earlier, now statusReply
	require.NoError(t, json.Unmarshal([]byte(`{"version":"1","since":"2026-01-01T00:00:00Z","new":0}`), &earlier))
	require.NotNil(t, earlier.Unsaved)
	text, err := json.Marshal(statusReply{Version: "2"})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &now))
	require.Nil(t, now.Unsaved)

	saved := filepath.Join(t.TempDir(), "saved")
	daemon := exec.Command("sh", "-c", `trap 'sleep 0.3; echo > "$1"; exit' TERM; echo; while :; do sleep 0.01; done`, "sh", saved)
	out, err := daemon.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, daemon.Start())
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)
	end := endEarlier(daemon.Process.Pid)
	end()
	require.FileExists(t, saved)
	require.NoError(t, daemon.Wait())
	end() // which changes nothing
	endEarlier(0)()
}
