//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
)

// TestSourceThroughALink: a client that knows the agent directory by the same link as the user who mounts has the lock of
// that path, and writes respect it.
func TestSourceThroughALink(t *testing.T) {
	s := newMountable(t, user{"self", os.Geteuid()})
	link := filepath.Join(s.dir, "link")
	require.NoError(t, os.Symlink(s.source, link))
	s.source = "link"
	s.mount()
	session := filepath.Join(s.mountpoint, strings.TrimSuffix(sessionPath, ".jsonl"))
	line := func() result {
		return s.exec("sh", "-c", `printf '{"type":"custom","customType":"x"}\n' > "$1/append"`, "sh", session)
	}
	require.Zero(t, line().code)

	in, base := filepath.Split(sessionPath)
	lock := filepath.Join(link, in, "."+base+".lock.os")
	hash := func(seed uint64) uint64 {
		d := xxhash.NewWithSeed(seed)
		_, _ = d.WriteString(lock)
		return d.Sum64()
	}
	name := fmt.Sprintf("@omp-file-lock-%016x%016x", hash(0x4f4d502d4c4f434b), hash(0x50492d46494c454c))
	held, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	require.NoError(t, err)
	require.NotZero(t, line().code)
	require.Contains(t, s.exec("cat", session+"/last-error").stdout, fmt.Sprintf("held by process %d", os.Getpid()))
	require.NoError(t, held.Close())
	require.Zero(t, line().code)
}
