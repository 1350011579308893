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
	agents "sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/writer"
)

// halfMoved is a disk on which a session is being moved.
type halfMoved struct {
	agent
	project   string
	artifacts bool
}

// create makes the session, as movedName.
func (h halfMoved) create() {
	h.write(movedName, slot("Moved"), header("moved"), writtenEntries[0])
	if h.artifacts {
		require.NoError(h.t, os.Mkdir(h.path(movedName), 0o755))
		require.NoError(h.t, os.WriteFile(h.path(movedName+"/1.log"), []byte("output"), 0o644))
		h.write(movedName+"/Task", header("task"), writtenEntries[0])
	}
}

// whole: the session is in one place on disk, with all that belongs to it. Programs that follow links see that too. It
// returns the directory in which it is.
func (h halfMoved) whole() (at string) {
	h.t.Helper()
	found, err := filepath.Glob(filepath.Join(h.dir, "sessions/*", movedName+".jsonl"))
	require.NoError(h.t, err)
	require.Len(h.t, found, 1)
	text := string(read(h.t, found[0]))
	require.True(h.t, strings.HasPrefix(text, slot("Moved")) && strings.HasSuffix(text, "}\n"+writtenEntries[0]), text)
	beside := strings.TrimSuffix(found[0], ".jsonl")
	if h.artifacts {
		require.Equal(h.t, "output", string(read(h.t, beside+"/1.log")))
		require.Equal(h.t, header("task")+writtenEntries[0], string(read(h.t, beside+"/Task.jsonl")))
	} else {
		_, err := os.Lstat(beside)
		require.ErrorIs(h.t, err, os.ErrNotExist)
	}
	return filepath.Base(filepath.Dir(found[0]))
}

// shown: the next mount finds the session once, with all that belongs to it, and another write to cwd moves it.
func (h halfMoved) shown() {
	m := mountForTest(h.t, h.dir)
	defer m.stop()
	for range 2 {
		shell(h.t, `set -e; cd "$1"; at=$(realpath by-id/moved)
			[ "$(find "$1/sessions" -name "$2.jsonl")" = "$at.jsonl" ]; [ "$(realpath "by-cwd/$(cat "$at/cwd")/latest")" = "$at" ]
			if [ "$3" = true ]; then [ "$(cat "$at/1.log" "$at/artifacts/1.log")" = outputoutput ]; [ "$(jq -r .id "$at/artifacts/Task/header.json")" = task ]; fi
			echo "$4" > "$at/cwd"`, m.dir, movedName, fmt.Sprint(h.artifacts), h.project)
	}
	require.Equal(h.t, h.project+"\n", run(h.t, "cat", m.path("sessions", scope(h.project), movedName, "cwd")))
}

// completes: a writer moves the session.
func (h halfMoved) completes(at string) {
	files, err := dir.Open(filepath.Join(h.dir, "sessions"))
	require.NoError(h.t, err)
	defer files.Close()
	store := sessioncore.NewStore(files)
	defer store.Close()
	w := writer.New(store, writer.Options{Journal: files, Root: files.Path(), Scopes: agents.ScopesOf(uint32(os.Geteuid()))})
	require.NoError(h.t, w.SetCWD(h.t.Context(), store.Session(at+"/"+movedName+".jsonl"), h.project))
}

// TestMoveEndsAnywhere: the daemon is killed, or power is lost, after each change that a move makes to the disk. The session
// is in one place, whole, with its artifacts, on disk and in the next mount, and the move can be made again; and once it was
// acknowledged it is at the new place. Package dir kills the next move too.
func TestMoveEndsAnywhere(t *testing.T) {
	notUnderRace(t)
	for _, artifacts := range []bool{true, false} {
		t.Run(fmt.Sprintf("artifacts=%v", artifacts), func(t *testing.T) {
			h := halfMoved{project: t.TempDir(), artifacts: artifacts}
			l := newLossy(t, false, func(a agent) { h.agent = a; h.create() })
			l.m = mountForTest(t, l.loopback)
			require.NoError(t, put(l.m.path("sessions/p", movedName, "cwd"), h.project+"\n"))
			l.mark("moved")
			l.m.stop()
			ops, states, kills, places := l.ops(), 0, 0, map[string]bool{}
			eachLoss(ops, func(step int, marks []string, image diskImage, killed bool) {
				h.agent = agent{t, filepath.Join(t.TempDir(), "disk")}
				require.NoError(t, image.Write(h.dir))
				at := h.whole()
				places[at] = true
				if slices.Contains(marks, "moved") {
					require.Equal(t, scope(h.project), at)
				}
				shell(t, `rm -f "$1"/sessions/*/.*.lock`, h.dir) // package dir tests stale ones
				if killed {
					kills++
					h.shown()
				} else {
					h.completes(at)
				}
				require.Equal(t, scope(h.project), h.whole())
				require.Equal(t, 1, strings.Count(string(read(t, filepath.Join(h.dir, "sessions", scope(h.project), movedName+".jsonl"))), `"cwd":"`+h.project+`"`))
				states++
				require.False(t, t.Failed(), "after step %d, %s %s", step, ops[step].Kind, ops[step].Name)
			})
			t.Logf("%d states, %d of them of kills", states, kills)
			require.Equal(t, map[string]bool{"p": true, scope(h.project): true}, places)
			require.GreaterOrEqual(t, states, 20)
			require.GreaterOrEqual(t, kills, 6)
		})
	}
}
