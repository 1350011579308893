//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestHungSource: a mount of a SOURCE that does not answer can be ended, by -u -z and by a signal, and nobody waits for it
// any more.
func TestHungSource(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("ends a connection without fusectl, so root")
	}
	for _, end := range []string{"-u -z", "signal"} {
		t.Run(end, func(t *testing.T) {
			below := newStore(t, user{"root", 0})
			requireFuse(t, below.user)
			s := *below
			s.source, s.mountpoint = below.mountpoint, below.mkdir("above")
			hangs := below.mount()
			r := s.run("-o", "noshared", s.source, s.mountpoint)
			require.Zero(t, r.code, r)
			pids := daemons(s.dir)
			require.Len(t, pids, 2)
			above := pids[0] + pids[1] - hangs
			require.NoError(t, unix.Kill(hangs, unix.SIGSTOP))
			t.Cleanup(func() { _ = unix.Kill(hangs, unix.SIGCONT) })
			waits := s.command("cat", filepath.Join(s.mountpoint, sessionPath))
			require.NoError(t, waits.Start())
			time.Sleep(200 * time.Millisecond)
			if end == "signal" {
				require.NoError(t, unix.Kill(above, unix.SIGTERM))
			} else {
				r = s.run("-u", "-z", s.mountpoint)
				require.Zero(t, r.code, r)
			}
			s.requireEnds(waits)
			require.False(t, waits.ProcessState.Success())
			require.True(t, eventually(func() bool { _, ok := mountAt(s.mountpoint); return !ok }))
		})
	}
}
