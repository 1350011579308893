//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	s := commandStore(t)
	require.Equal(t, result{exitFound, "6 sessions, 0 with problems\n", ""}, s.here("check"))

	found, err := filepath.Glob(filepath.Join(s.source, "sessions/*/*_019d3d9*.jsonl"))
	require.NoError(t, err)
	f, err := os.OpenFile(found[0], os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("torn {\n" + `{"type":"custom","customType":"x","id":"dddddddd","parentId":"gone"}` + "\nmore\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	empty := filepath.Join(filepath.Dir(found[0]), "empty.jsonl")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))

	r := s.here("check")
	require.Equal(t, exitNothing, r.code)
	require.Empty(t, r.stderr)
	name, err := filepath.Rel(s.source, found[0])
	require.NoError(t, err)
	require.Contains(t, r.stdout, name+"\n  line 70: skipped: not JSON (and 1 more of this kind)\n    "+remedies["skipped"]+
		"\n  line 71: orphan: its parent is not in the file: it counts as a root\n    "+remedies["orphan"]+"\n")
	require.Contains(t, r.stdout, "/empty.jsonl\n  not a session: ")
	require.Contains(t, r.stdout, "7 sessions, 2 with problems\n")
	require.Contains(t, s.here("check", "by-id/019d3d9").stdout, "2 sessions, 1 with problems\n", "with its subagent's")
	require.Contains(t, s.here("check", "by-id/019d42a").stdout, "1 sessions, 0 with problems\n")

	// A missing blob, in whichever session that is.
	require.NoError(t, os.RemoveAll(filepath.Join(s.source, "blobs")))
	require.Contains(t, s.here("check").stdout, "    "+remedies["blob"])

	for _, args := range [][]string{{"none"}, {"index.jsonl"}, {"-o", "bogus"}} {
		requireStatus(t, exitNotDone, s.here("check", args...))
	}
	s.source = "/nowhere"
	requireStatus(t, exitNotDone, s.here("check"), "/nowhere does not exist")
}

// What cannot be read is said, and the status tells that not all was looked at.
func TestCheckUnreadable(t *testing.T) {
	s := commandStore(t)
	if os.Geteuid() == 0 {
		s.user = user{"user", nobody}
	}
	s.chown()
	closed := filepath.Join(s.source, "sessions/--home-dev-tidetable--")
	require.NoError(t, os.Chmod(closed, 0))
	r := s.run("check", "-s", s.source)
	requireStatus(t, exitNotDone, r, "check: sessions/--home-dev-tidetable--: permission denied")
	require.NoError(t, os.Chmod(closed, 0o700))
}
