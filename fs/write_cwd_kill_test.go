package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// killedMoves moves sessions of one store, and kills the daemon before each change that it makes to the disk.
type killedMoves struct {
	agent
	l       *lossy
	m       *mount
	project string
}

// name is the file name of the session that is killed before change n.
func (k *killedMoves) name(n int) string {
	return fmt.Sprintf("2026-02-16T10-20-30-000Z_019d3d96-1111-7000-8000-%012d", n)
}

// create makes the session for change n, with artifacts or without.
func (k *killedMoves) create(n int, artifacts bool) {
	name := k.name(n)
	k.write(name, slot("Killed"), header(fmt.Sprint("k", n)), writtenEntries[0])
	if artifacts {
		require.NoError(k.t, os.Mkdir(k.path(name), 0o755))
		require.NoError(k.t, os.WriteFile(k.path(name+"/1.log"), []byte("output"), 0o644))
		k.write(name+"/Task", header("task"), writtenEntries[0])
	}
}

// moveKilled moves a session and kills the daemon before change n. It reports whether there was such a change.
func (k *killedMoves) moveKilled(at string, n int) bool {
	require.NoError(k.t, killAfter(k.l.loopback, k.m.cmd.Process.Pid, n))
	err := put(at+"/cwd", k.project+"\n")
	require.NoError(k.t, killAfter(k.l.loopback, 0, 0))
	if err == nil {
		return false
	}
	<-k.m.ended
	k.m.crash()
	// On a file system like this one the process could live on another machine: else the next writer would wait.
	locks, err := filepath.Glob(k.path(".*.lock"))
	require.NoError(k.t, err)
	for _, lock := range locks {
		require.NoError(k.t, os.Remove(lock))
	}
	return true
}

// whole: the session n is in one place on disk, with all that belongs to it. Programs that follow links see that too.
func (k *killedMoves) whole(when string, n int, artifacts bool) {
	k.t.Helper()
	name := k.name(n)
	found, err := filepath.Glob(filepath.Join(k.dir, "sessions/*", name+".jsonl"))
	require.NoError(k.t, err)
	require.Len(k.t, found, 1, when)
	text, err := os.ReadFile(found[0])
	require.NoError(k.t, err)
	require.True(k.t, strings.HasPrefix(string(text), slot("Killed")) && strings.HasSuffix(string(text), "}\n"+writtenEntries[0]), "%s: %s", when, text)
	beside := strings.TrimSuffix(found[0], ".jsonl")
	if !artifacts {
		_, err := os.Lstat(beside)
		require.ErrorIs(k.t, err, os.ErrNotExist)
		return
	}
	for file, want := range map[string]string{"1.log": "output", "Task.jsonl": header("task") + writtenEntries[0]} {
		got, err := os.ReadFile(filepath.Join(beside, file))
		require.NoError(k.t, err, when)
		require.Equal(k.t, want, string(got), when)
	}
}

// shown returns the path of the session in the mount, where it is whole and found once.
func (k *killedMoves) shown(n int, artifacts bool) string {
	k.t.Helper()
	at := strings.TrimSuffix(run(k.t, "realpath", k.m.path(fmt.Sprint("by-id/k", n))), "\n")
	require.Equal(k.t, at+".jsonl\n", run(k.t, "find", k.m.path("sessions"), "-name", k.name(n)+".jsonl"))
	cwd := strings.TrimSuffix(run(k.t, "cat", at+"/cwd"), "\n")
	require.Contains(k.t, []string{k.project, "/home/dev/project"}, cwd)
	require.Equal(k.t, at+"\n", run(k.t, "realpath", filepath.Join(k.m.path("by-cwd"), cwd, k.name(n))))
	if artifacts {
		require.Equal(k.t, "output", run(k.t, "cat", at+"/1.log"))
		require.Equal(k.t, "output", run(k.t, "cat", at+"/artifacts/1.log"))
		require.Equal(k.t, "task\n", run(k.t, "jq", "-r", ".id", at+"/artifacts/Task/header.json"))
	}
	return at
}

// round moves a session and kills the daemon before change n, and again before change n of the next attempt, and then moves
// it for good. It returns how often there was such a change.
func (k *killedMoves) round(n int, artifacts bool) (kills int) {
	k.create(n, artifacts)
	for at := k.m.path("sessions/p", k.name(n)); kills < 2 && k.moveKilled(at, n); at = k.shown(n, artifacts) {
		kills++
		k.whole(fmt.Sprint("change ", n), n, artifacts)
		k.m = mountForTest(k.t, k.l.loopback)
	}
	require.NoError(k.t, put(k.shown(n, artifacts)+"/cwd", k.project+"\n"))
	require.Equal(k.t, k.m.path("sessions", scope(k.project), k.name(n)), k.shown(n, artifacts))
	k.whole(fmt.Sprint("change ", n), n, artifacts)
	return kills
}

// TestCWDKilled: the daemon is killed before each change that a move makes to the disk. The session then is in one place,
// whole, on disk and in the next mount. Where it is killed again before the same change, it still is; and then another
// attempt moves it.
func TestCWDKilled(t *testing.T) {
	all := 0
	for _, artifacts := range []bool{true, false} {
		a := newAgent(t)
		k := &killedMoves{agent: a, l: recordChanges(t, a, false), project: t.TempDir()}
		k.m = mountForTest(t, k.l.loopback)
		for n, kills := 0, 1; kills > 0; n += sized(1, 7) {
			kills = k.round(n, artifacts)
			all += kills
		}
	}
	t.Logf("%d kills", all)
	require.GreaterOrEqual(t, all, sized(50, 6))
}
