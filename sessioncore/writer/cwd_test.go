package writer

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
)

// brokenMove is a storage in which nothing can be moved.
type brokenMove struct{ *dir.Storage }

func (brokenMove) Move(string, string, string) error { return unix.EXDEV }

// TestCWDUndone: if the file cannot be moved, its header is as before.
func TestCWDUndone(t *testing.T) {
	disk := sessiontest.OpenDir(t, t.TempDir())
	cwd := t.TempDir()
	slot := string(titleSlot("A title", titleByUser, plainNow))
	withDirectory := strings.Replace(plainFile, `"cwd"`, `"additionalDirectories":["`+cwd+`"],"cwd"`, 1)
	putFile(t, disk, plainName, slot+withDirectory)
	w := startWriting(t, brokenMove{disk}, "", Options{})
	require.ErrorIs(t, w.SetCWD(t.Context(), w.session, cwd), unix.EXDEV)
	snap := w.snapshot()
	header, _, err := snap.ReadHeader()
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"session","version":3,"id":"s1","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/home/dev/pi","additionalDirectories":["`+
		cwd+`"]}`, string(header))
	require.True(t, strings.HasSuffix(w.content(), plainUser+plainReply))
}

// syncs is a storage that records the files that a writer makes durable.
type syncs struct {
	*dir.Storage
	names []string
	err   error // of each call; nil for success
}

// Sync implements storage.Journal.
func (s *syncs) Sync(name string) error {
	s.names = append(s.names, name)
	if s.err != nil {
		return s.err
	}
	return s.Storage.Sync(name)
}

// TestCWDCompletes: a move that was killed after the header was written, and the artifacts were moved, is completed by
// another attempt. The session is durable before it moves, though nothing changes in it.
func TestCWDCompletes(t *testing.T) {
	disk := sessiontest.OpenDir(t, t.TempDir())
	cwd := t.TempDir()
	putFile(t, disk, clients.AbsoluteScope(cwd)+"/session/1.log", "out")
	content := strings.Replace(plainFile, "/home/dev/pi", cwd, 1)
	w := startWriting(t, disk, content, Options{})
	w.opts.Scope = func(_ context.Context, dir, except string) (string, error) {
		require.Equal(t, []string{cwd, plainName}, []string{dir, except})
		return "", nil
	}
	journal := &syncs{Storage: disk, err: unix.EIO}
	w.opts.Journal = journal
	require.ErrorIs(t, w.SetCWD(t.Context(), w.session, cwd), unix.EIO)
	require.Equal(t, content, w.content(), "what is not durable stays where it is")
	journal.err = nil
	require.NoError(t, w.SetCWD(t.Context(), w.session, cwd))
	require.Equal(t, []string{plainName, plainName}, journal.names)
	require.Equal(t, content, fileContent(t, disk, clients.AbsoluteScope(cwd)+"/session.jsonl"))
}

// TestCWDAfterKilledMove: the artifacts of a move that was killed follow the session to another place, and back.
func TestCWDAfterKilledMove(t *testing.T) {
	disk := sessiontest.OpenDir(t, t.TempDir())
	killed := t.TempDir()
	cwd := t.TempDir()
	putFile(t, disk, clients.AbsoluteScope(killed)+"/session/1.log", "out")
	w := startWriting(t, disk, strings.Replace(plainFile, "/home/dev/pi", killed, 1), Options{})
	for _, to := range []string{cwd, killed} {
		require.NoError(t, w.SetCWD(t.Context(), w.session, to))
		at := clients.AbsoluteScope(to) + "/session"
		require.Equal(t, strings.Replace(plainFile, "/home/dev/pi", to, 1), fileContent(t, disk, at+".jsonl"))
		require.Equal(t, "out", fileContent(t, disk, at+"/1.log"))
		w.session = w.store.Session(at + ".jsonl")
	}
}

// TestCWDKeepsLeafInMemory: a leaf that was moved in memory only follows the session.
func TestCWDKeepsLeafInMemory(t *testing.T) {
	disk := sessiontest.OpenDir(t, t.TempDir())
	cwd := t.TempDir()
	w := startWriting(t, disk, plainFile, Options{LeafMemory: true})
	require.NoError(t, w.MoveLeaf(t.Context(), w.session, new("a")))
	require.NoError(t, w.SetCWD(t.Context(), w.session, cwd))
	w.session = w.store.Session(clients.AbsoluteScope(cwd) + "/session.jsonl")
	require.Equal(t, "a", w.leaf())
}

// TestCWDShownIsWrittenBack: a line as the file cwd shows a directory with control characters means that directory, and
// changes nothing.
func TestCWDShownIsWrittenBack(t *testing.T) {
	disk := sessiontest.OpenDir(t, t.TempDir())
	putFile(t, disk, "x/session.jsonl", `{"type":"session","version":3,"id":"s","cwd":"/a\nb"}`+"\n")
	w := startWriting(t, disk, "", Options{Scope: func(context.Context, string, string) (string, error) { return "x", nil }})
	before := snapshotOf(t, disk.Path())
	require.NoError(t, w.SetCWD(t.Context(), w.store.Session("x/session.jsonl"), `/a\nb`))
	require.Equal(t, before, snapshotOf(t, disk.Path()))
}

// snapshotOf lists all files below a directory, with the text of the sessions.
func snapshotOf(t testing.TB, top string) (files map[string]string) {
	files = map[string]string{}
	require.NoError(t, filepath.WalkDir(top, func(path string, item fs.DirEntry, err error) error {
		if err == nil && item.Type().IsRegular() {
			var text []byte
			text, err = os.ReadFile(path)
			files[path] = string(text)
		}
		return err
	}))
	return files
}

// TestScopeOfTheClient: if the client's directory for a working directory exists, a new session goes there. Otherwise it goes
// to the directory of the other sessions.
func TestScopeOfTheClient(t *testing.T) {
	disk := sessiontest.OpenDir(t, t.TempDir())
	w := startWriting(t, disk, "", Options{Scope: func(context.Context, string, string) (string, error) { return "elsewhere", nil }})
	session := NewSession{Create: true, CWD: "/srv/w"}
	name, err := w.NewSession(t.Context(), session)
	require.NoError(t, err)
	require.Equal(t, "elsewhere", storage.Dir(name))
	ofClient := clients.AbsoluteScope(session.CWD)
	require.NoError(t, disk.MkdirAll(ofClient))
	name, err = w.NewSession(t.Context(), session)
	require.NoError(t, err)
	require.Equal(t, ofClient, storage.Dir(name))
}
