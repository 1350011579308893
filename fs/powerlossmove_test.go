package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/writer"
)

// TestPowerLossMove: power is lost after each change that a move makes to the disk. The session is in one place, whole, with
// its artifacts, and the move can be made again; and once it was acknowledged it is at the new place.
func TestPowerLossMove(t *testing.T) {
	notUnderRace(t)
	for _, artifacts := range []bool{true, false} {
		t.Run(fmt.Sprintf("artifacts=%v", artifacts), func(t *testing.T) {
			k := &killedMoves{agent: newAgent(t), project: t.TempDir()}
			k.create(0, artifacts)
			l := recordChanges(t, k.agent, false)
			l.m = mountForTest(t, l.loopback)
			require.NoError(t, put(l.m.path("sessions/p", k.name(0), "cwd"), k.project+"\n"))
			l.mark("moved")
			l.m.stop()
			ops, states, places := l.ops(), 0, map[string]bool{}
			eachLoss(ops, func(step int, marks []string, image diskImage) {
				states++
				disk := *k
				disk.dir = filepath.Join(t.TempDir(), "disk")
				require.NoError(t, image.Write(disk.dir))
				at := disk.afterLoss(fmt.Sprintf("%d, %s %s", step, ops[step].Kind, ops[step].Name), artifacts)
				places[at] = true
				if slices.Contains(marks, "moved") {
					require.Equal(t, scope(k.project), at)
				}
				require.NoError(t, os.RemoveAll(disk.dir))
			})
			t.Logf("%d states", states)
			require.Equal(t, map[string]bool{"p": true, scope(k.project): true}, places)
			require.GreaterOrEqual(t, states, 20)
		})
	}
}

// afterLoss holds a disk to it that the session is whole, and moves it. It returns the directory in which it was.
func (k *killedMoves) afterLoss(step string, artifacts bool) (at string) {
	k.t.Helper()
	k.whole(step, 0, artifacts)
	found, err := filepath.Glob(filepath.Join(k.dir, "sessions/*", k.name(0)+".jsonl"))
	require.NoError(k.t, err)
	at = filepath.Base(filepath.Dir(found[0]))
	locks, err := filepath.Glob(filepath.Join(k.dir, "sessions/*/.*.lock"))
	require.NoError(k.t, err)
	for _, lock := range locks { // package dir tests stale ones
		require.NoError(k.t, os.Remove(lock))
	}
	files, err := dir.Open(filepath.Join(k.dir, "sessions"))
	require.NoError(k.t, err)
	defer files.Close()
	store := sessioncore.NewStore(files)
	defer store.Close()
	w := writer.New(store, writer.Options{Journal: files, Root: files.Path()})
	require.NoError(k.t, w.SetCWD(k.t.Context(), store.Session(at+"/"+k.name(0)+".jsonl"), k.project), step)
	k.whole(step, 0, artifacts)
	require.FileExists(k.t, filepath.Join(k.dir, "sessions", scope(k.project), k.name(0)+".jsonl"), step)
	text, err := os.ReadFile(filepath.Join(k.dir, "sessions", scope(k.project), k.name(0)+".jsonl"))
	require.NoError(k.t, err)
	require.Equal(k.t, 1, strings.Count(string(text), `"cwd":"`+k.project+`"`), step)
	return at
}
